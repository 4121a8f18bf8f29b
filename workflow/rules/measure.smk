# Measuring: rules exist only for the documents that the plan names (see `measure` in
# config/config.yaml), so that no file time can ever start a measurement. A document is marked
# `update`: Snakemake leaves the old one in place until the new one is written.

for experiment in PROJECT.plan.experiments:

    rule:
        name:
            f"measure_{experiment}"
        input:
            built=PROJECT.built(experiment),
        output:
            document=update(PROJECT.document(experiment)),
            asked=touch(PROJECT.asked(experiment)),
        log:
            f"logs/measure/{experiment}.log",
        conda:
            "../../environment.yml"
        # All of them: nothing else runs beside a measurement, no notebook and no compiler.
        threads: workflow.cores
        resources:
            gpu=1,
        params:
            experiment=experiment,
            options=PROJECT.options(experiment),
            folder=PROJECT.folder(),
        message:
            "Measuring {params.experiment} into {params.folder}"
        shell:
            "python -m graphgain measure {params.experiment} --out {params.folder} --force"
            " {params.options} 2>&1 | tee {log}"


rule measure:
    input:
        PROJECT.measurements(),
    log:
        "logs/measure/status.log",
    conda:
        "../../environment.yml"
    message:
        "The documents of this machine"
    shell:
        "python -m graphgain status 2>&1 | tee {log}"
