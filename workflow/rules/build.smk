# Building: the native programs of the experiments that are planned. What is compiled already is kept,
# by a hash of its sources, flags, architecture and compiler.

for experiment, sources in PROJECT.compiled().items():

    rule:
        name:
            f"build_{experiment}"
        input:
            sources=sources,
        output:
            touch(PROJECT.built(experiment)),
        log:
            f"logs/build/{experiment}.log",
        conda:
            "../../environment.yml"
        params:
            experiment=experiment,
            arch=PROJECT.config.machine.arch,
        message:
            "Compiling the programs of {params.experiment} for {params.arch}"
        shell:
            "python -m graphgain build {params.experiment} --arch {params.arch} 2>&1 | tee {log}"
