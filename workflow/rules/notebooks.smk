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
            "python -m graphgain notebook {input.source} --parameter machines={params.machines:q}"
            " 2>&1 | tee {log}"


rule notebooks:
    input:
        PROJECT.all_outputs(),
    message:
        "Every notebook is executed: build/notebooks"


rule figures:
    input:
        list(PROJECT.figures().values()),
    message:
        "Every figure is drawn: build/figures"


for figure, files in PROJECT.figures().items():

    rule:
        name:
            f"figure_{figure}"
        input:
            files,
        params:
            figure=figure,
        message:
            "The figure is drawn: build/figures/{params.figure}.light.svg"
