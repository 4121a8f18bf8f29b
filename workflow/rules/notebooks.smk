# Notebooks: one rule each, made from what the notebook's header declares.

for notebook in PROJECT.notebooks:

    rule:
        name:
            f"notebook_{notebook.name}"
        input:
            source=str(notebook.source),
            documents=PROJECT.documents(notebook),
            machines=PROJECT.machine_files(),
            modules=modules_of(notebook.source),
        output:
            **PROJECT.outputs(notebook),
        log:
            f"logs/notebooks/{notebook.name}.log",
        conda:
            "../../environment.yml"
        params:
            machines=as_yaml(PROJECT.machines),
        message:
            "Executing {input.source}"
        shell:
            "{GRAPHGAIN} notebook {input.source} --parameter machines={params.machines:q}"
            " 2>&1 | tee {log}"


rule notebooks:
    input:
        PROJECT.all_outputs(),


rule figures:
    input:
        list(PROJECT.figures().values()),


for figure, files in PROJECT.figures().items():

    rule:
        name:
            f"figure_{figure}"
        input:
            files,
