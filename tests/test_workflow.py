"""The workflow end to end on the documents that the repository keeps."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import ROOT, Checkout, output

pytestmark = pytest.mark.workflow


def shuffle_file_times(root: Path) -> None:
    """Give every file a random time, as checkouts in any order do."""
    random.seed(7)
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".git" not in path.parts:
            moment = 1_700_000_000 + random.randrange(10_000_000)
            os.utime(path, (moment, moment))


def test_a_fresh_clone_with_shuffled_file_times_plans_no_measurement(checkout: Checkout) -> None:
    shuffle_file_times(checkout.root)
    planned = checkout.planned("report")
    assert "site" in planned
    assert "notebook_ttft" in planned
    assert not [rule for rule in planned if rule.startswith("measure")]


def test_shuffled_file_times_after_a_build_never_measure(rebuilt: Checkout) -> None:
    shuffle_file_times(rebuilt.root / "results")
    assert not [rule for rule in rebuilt.planned("report") if rule.startswith("measure")]


def test_a_built_article_has_nothing_to_do(rebuilt: Checkout) -> None:
    assert rebuilt.planned("report") == []


def test_a_changed_colour_reruns_one_notebook_and_the_site(rebuilt: Checkout) -> None:
    source = rebuilt.root / "src/graphgain/figures/launch_floor.py"
    source.write_text(source.read_text() + "\n# a colour\n")
    assert rebuilt.planned("report") == ["notebook_launch_floor", "site"]


def test_changed_prose_reruns_no_notebook(rebuilt: Checkout) -> None:
    for name in ("index.qmd", "sections/_ttft.md", "exhibits/ttft.yml"):
        path = rebuilt.root / "report" / name
        path.write_text(path.read_text() + "\n")
    assert rebuilt.planned("report") == ["site"]


def test_a_changed_document_reruns_the_notebooks_that_show_it(rebuilt: Checkout) -> None:
    path = rebuilt.root / "results/gb300-published/prefill_graph_gain.json"
    path.write_text(path.read_text() + "\n")
    planned = rebuilt.planned("report")
    assert "notebook_prefill_graph_gain" in planned
    assert "notebook_launch_floor" not in planned
    assert not [rule for rule in planned if rule.startswith("measure")]


def test_one_figure_target_executes_its_notebook_alone(checkout: Checkout) -> None:
    assert checkout.planned("figure_ttft") == ["notebook_ttft"]


def test_there_is_one_target_for_each_figure(built: Checkout) -> None:
    figures = {path.name.partition(".")[0] for path in (built.root / "build/figures").iterdir()}
    listed = built.snakemake("--list-rules").stdout.split()
    assert {f"figure_{name}" for name in figures} == {r for r in listed if r.startswith("figure_")}
    assert len(figures) >= 10


def test_a_second_build_writes_the_same_figures_tables_and_facts(
    built: Checkout, checkout: Checkout
) -> None:
    checkout.snakemake("notebook_launch_floor")
    for path in sorted((checkout.root / "build").rglob("*")):
        if path.is_file():
            name = path.relative_to(checkout.root)
            assert path.read_bytes() == (built.root / name).read_bytes(), name


def test_a_failing_cell_ends_with_its_error_and_the_log(rebuilt: Checkout) -> None:
    rebuilt.replace("notebooks/launch_floor.py", "save_facts(", "1 / 0\nsave_facts(")
    done = rebuilt.snakemake("figure_launch_floor", check=False)
    assert done.returncode != 0
    assert "ZeroDivisionError: division by zero" in output(done)
    assert "notebooks/launch_floor.py" in output(done)
    assert "logs/notebooks/launch_floor.log" in output(done)
    assert not (rebuilt.root / "build/.running/launch_floor").exists()
    assert (rebuilt.root / "report/_site/index.html").exists()


def test_a_broken_document_is_named_with_field_and_reason(checkout: Checkout) -> None:
    path = checkout.root / "results/gb300-published/launch_floor.json"
    document = json.loads(path.read_text())
    document["rows"][0]["host_us"]["median"] = "fast"
    path.write_text(json.dumps(document))
    done = checkout.snakemake("figure_launch_floor", check=False)
    assert done.returncode != 0
    assert "launch_floor.json" in output(done)
    assert "rows[0].host_us.median" in output(done)


def test_a_truncated_document_is_named(checkout: Checkout) -> None:
    path = checkout.root / "results/gb300-published/launch_floor.json"
    path.write_text(path.read_text()[:200])
    done = checkout.snakemake("figure_launch_floor", check=False)
    assert done.returncode != 0
    assert "not valid JSON" in output(done)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("machines=['gb200']", "results/gb200/machine.json does not exist"),
        ("colour=red", "unknown key colour; known here are machines, measure"),
        ("measure=perhaps", "measure: Input should be 'auto', 'never' or 'always'"),
        ("site={'rendrer': 'pandoc'}", "unknown key site.rendrer; known here are renderer"),
    ],
)
def test_a_wrong_configuration_is_one_sentence(
    checkout: Checkout, setting: str, sentence: str
) -> None:
    done = checkout.snakemake("--dry-run", "--config", setting, check=False)
    assert done.returncode != 0
    assert sentence in output(done)
    assert "Traceback" not in output(done)


def test_a_missing_fact_is_named_with_file_and_line(rebuilt: Checkout) -> None:
    path = rebuilt.root / "report/sections/_ttft.md"
    lines = path.read_text().splitlines()
    lines[2:2] = ["", "A number: {{< var ttft.gb300.speed_of_ligth >}}.", ""]
    path.write_text("\n".join(lines) + "\n")
    before = (rebuilt.root / "report/_site/index.html").read_bytes()
    done = rebuilt.snakemake("report", check=False)
    assert done.returncode != 0
    assert "sections/_ttft.md:4: " in output(done)
    assert "ttft.gb300.speed_of_ligth" in output(done)
    assert (rebuilt.root / "report/_site/index.html").read_bytes() == before


def test_only_one_machine_still_builds_the_notebooks(checkout: Checkout) -> None:
    checkout.snakemake("figures", "--config", "machines=['rtx5070ti-published']")
    figures = list((checkout.root / "build/figures").glob("*.light.svg"))
    assert len(figures) >= 10


def test_two_builds_at_once_the_second_is_refused(rebuilt: Checkout) -> None:
    """The first build is held inside a notebook by a pipe that nobody has written to yet."""
    pipe = rebuilt.root / "held"
    os.mkfifo(pipe)
    rebuilt.replace(
        "notebooks/launch_floor.py", "save_facts(", f"open({str(pipe)!r}).read()\nsave_facts("
    )
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "figure_launch_floor"]
    environment = {**os.environ, "PYTHONPATH": str(rebuilt.root / "src")}
    first = subprocess.Popen(
        command, cwd=rebuilt.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    with pipe.open("w"):  # returns when the notebook has opened its end, so the build is under way
        second = rebuilt.snakemake("figure_launch_floor", check=False)
    first.communicate(timeout=120)
    assert first.returncode == 0
    assert second.returncode != 0
    assert "lock" in output(second).lower()


def test_lint_and_format_are_clean(built: Checkout) -> None:
    assert "Congratulations" in output(built.snakemake("--lint"))
    command = (sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow")
    assert built.run(*command, check=False).returncode == 0


@pytest.mark.parametrize("path", sorted((ROOT / "workflow/rules").glob("*.smk")), ids=str)
def test_every_rule_that_runs_something_has_message_and_log(path: Path) -> None:
    bodies = re.split(r"^ *rule\b.*:$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert bodies
    for body in bodies:
        assert "message:" in body
        assert "shell:" not in body or "log:" in body
