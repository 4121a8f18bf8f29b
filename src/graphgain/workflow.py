"""What the Snakefile needs to know: machines, notebooks, the plan, and each rule's files."""

import json
import os
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphgain.config import Config, check_config, select_machines
from graphgain.experiments import EXPERIMENTS
from graphgain.measuring.plan import Plan, make_plan
from graphgain.measuring.provenance import experiment_sources
from graphgain.notebooks import Notebook, list_notebooks
from graphgain.results.store import list_traces
from graphgain.site.commit import describe_commit
from graphgain.site.listings import read_listings
from graphgain.sources import imported_modules
from graphgain.traces.provenance import counting_sources

RESULTS = Path("results")
BUILD = Path("build")
NATIVE = Path("workflow/native")

# One value for a start of Snakemake and the jobs that it starts, which read the Snakefile again.
START = os.environ.setdefault("GRAPHGAIN_START", f"{time.time_ns():x}")


@dataclass(frozen=True)
class Project:
    """The checkout as the rules see it; `machines` includes this one where it will be measured."""

    config: Config
    machines: list[str]
    notebooks: list[Notebook]
    plan: Plan
    commit: str

    def documents(self, notebook: Notebook) -> list[str]:
        """The result documents that a notebook shows: those kept, and those planned here."""
        of_machines = [
            str(path)
            for machine in self.machines
            for experiment in notebook.documents
            if (path := RESULTS / machine / f"{experiment}.json").exists()
            or (machine == self.plan.slug and experiment in self.plan.experiments)
        ]
        of_traces = self.trace_documents() if "agent_workload" in notebook.documents else []
        return of_machines + of_traces

    def trace_documents(self) -> list[str]:
        """The documents of the counted traces, which are shown with any machines."""
        return [str(RESULTS / slug / "agent_workload.json") for slug in list_traces(RESULTS)]

    def machine_files(self) -> list[str]:
        """`machine.json` of every machine shown."""
        return [str(RESULTS / machine / "machine.json") for machine in self.machines]

    def outputs(self, notebook: Notebook) -> dict[str, str]:
        """Every file that a notebook's rule writes, by a name that is valid in a rule."""
        return {name: str(BUILD / path) for name, path in notebook.outputs().items()}

    def all_outputs(self) -> list[str]:
        """Every file that any notebook writes."""
        return [path for notebook in self.notebooks for path in self.outputs(notebook).values()]

    def figures(self) -> dict[str, list[str]]:
        """The files of each figure, by the figure's name."""
        return {
            figure: [
                path
                for name, path in self.outputs(notebook).items()
                if Path(path).name.partition(".")[0] == figure and name.startswith("figure_")
            ]
            for notebook in self.notebooks
            for figure in notebook.figures
        }

    def folder(self) -> str:
        """The folder of this machine's results."""
        return str(RESULTS / self.plan.slug)

    def document(self, experiment: str) -> str:
        """The document that measuring an experiment here writes."""
        return str(RESULTS / self.plan.slug / f"{experiment}.json")

    def asked(self, experiment: str) -> str:
        """A file that no earlier start of Snakemake can have made.

        As a second output it makes `measure: always` measure although the document exists; with
        the other modes there is no rule for a document that exists.
        """
        return str(BUILD / "measured" / f"{experiment}-{START}")

    def compiled(self) -> dict[str, list[str]]:
        """The native sources of each planned experiment that has programs of its own."""
        headers = sorted(str(path) for path in NATIVE.glob("*.hpp"))
        return {
            name: [*(str(NATIVE / f"{program}.cu") for program in programs), *headers]
            for name in self.plan.experiments
            if (programs := EXPERIMENTS[name].programs)
        }

    def built(self, experiment: str) -> list[str]:
        """The file that says that an experiment's programs are compiled, if it has any."""
        return [str(BUILD / "native" / f"{experiment}.built")] * (experiment in self.compiled())

    def options(self, experiment: str) -> str:
        """What the configuration says about an experiment, as options of `graphgain measure`."""
        machine = self.config.machine
        options = ["--arch", machine.arch]
        if machine.label is not None:
            options += ["--label", machine.label]
        for name, value in sorted(self.config.experiments.get(experiment, {}).items()):
            options += ["--parameter", f"{name}={json.dumps(value)}"]
        return shlex.join(options)

    def measurements(self) -> list[str]:
        """What measuring everything planned writes."""
        planned = self.plan.experiments
        return [*map(self.document, planned), *map(self.asked, planned)]

    def prose(self) -> list[str]:
        """The site's own sources: prose, captions, template and styles."""
        return sorted(
            str(path)
            for path in Path("report").rglob("*")
            if path.is_file() and not {"_site", ".quarto"} & set(path.parts)
        )

    def measuring_sources(self) -> list[str]:
        """The code that measures: the site quotes it, and says which documents it has outdated."""
        listed = {str(listing.file) for listing in read_listings()}
        hashed = {
            os.path.relpath(path)
            for experiment in EXPERIMENTS.values()
            for path in experiment_sources(experiment)
        }
        counting = {os.path.relpath(path) for path in counting_sources()}
        return sorted(listed | hashed | counting)

    def kept_documents(self) -> list[str]:
        """Every document of the machines shown, for the downloads of the site."""
        kept = {
            str(path)
            for machine in self.machines
            for path in (RESULTS / machine).glob("*.json")
            if path.name != "machine.json"
        }
        planned = {document for n in self.notebooks for document in self.documents(n)}
        return sorted(kept | planned | set(self.trace_documents()))


def open_project(raw: Mapping[str, Any]) -> Project:
    """Read the checkout in the current folder under a configuration; raises GraphgainError."""
    config = check_config(dict(raw))
    plan = make_plan(config, RESULTS)
    machines = select_machines(config, RESULTS)
    if plan.experiments and plan.slug not in machines:
        machines.append(plan.slug)
    return Project(
        config=config,
        machines=machines,
        notebooks=list_notebooks(Path("notebooks")),
        plan=plan,
        commit=describe_commit(Path()),
    )


def put_this_python_first() -> None:
    """Let `python` in a rule be the Python that runs Snakemake, also outside an active venv."""
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join((here, os.environ.get("PATH", "")))


def modules_of(*sources: Path) -> list[str]:
    """The package's own modules behind some sources, relative to the current folder."""
    return [os.path.relpath(path) for path in imported_modules(*sources)]


def as_yaml(value: object) -> str:
    """A parameter value on one line, as the command line takes it."""
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).strip()
