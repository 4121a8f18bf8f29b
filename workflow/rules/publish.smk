# Publishing: where to is said in config/config.yaml. Without an output, it runs whenever asked for;
# publishing the same site again changes nothing.


localrules:
    publish,


rule publish:
    input:
        index="report/_site/index.html",
    log:
        "logs/publish.log",
    conda:
        "../../environment.yml"
    message:
        "Publishing report/_site"
    shell:
        "python -m graphgain publish --site report/_site 2>&1 | tee {log}"
