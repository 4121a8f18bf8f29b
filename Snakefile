# The article, from result documents to the site. Targets: report (default), figures,
# figure_NAME, notebooks, measure, publish, clean_site. Rules by stage in workflow/rules/.
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

from graphgain.errors import GraphgainError
from graphgain.workflow import as_yaml, modules_of, open_project, put_this_python_first

min_version("9.20")


configfile: "config/config.yaml"


put_this_python_first()

try:
    PROJECT = open_project(config)
except GraphgainError as error:
    raise WorkflowError(str(error)) from None

if workflow.is_main_process and PROJECT.plan.experiments:
    print(f"Going to measure on this {PROJECT.plan}", file=sys.stderr)


include: "workflow/rules/report.smk"
include: "workflow/rules/notebooks.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/publish.smk"
