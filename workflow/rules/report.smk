# The site: everything that the notebooks wrote, the prose, and the documents to download.


rule report:
    default_target: True
    input:
        "report/_site/index.html",
        PROJECT.measurements(),
    message:
        "The article is built: report/_site/index.html"


rule site:
    input:
        exhibits=PROJECT.all_outputs(),
        documents=PROJECT.kept_documents(),
        machines=PROJECT.machine_files(),
        prose=PROJECT.prose(),
        modules=modules_of(Path("src/graphgain/site/build.py")),
        measuring=PROJECT.measuring_sources(),
    output:
        update("report/_site/index.html"),
    log:
        "logs/site.log",
    conda:
        "../../environment.yml"
    params:
        commit=PROJECT.commit,
        machines=PROJECT.machines,
        experiments=PROJECT.config.experiments,
    message:
        "Building the site in report/_site"
    shell:
        "python -m graphgain site --machines {params.machines} --commit {params.commit:q}"
        " 2>&1 | tee {log}"


rule clean_site:
    log:
        "logs/clean_site.log",
    conda:
        "../../environment.yml"
    message:
        "Removing the built site and what the notebooks wrote; results/ stays"
    shell:
        "rm -rf report/_site build > {log} 2>&1"
