"""The article's sources: commands as they are kept, and no number typed where a fact belongs."""

import json
import re

import pytest

from notebook_source import ROOT

SECTIONS = ROOT / "report" / "sections"
OURS = [
    "agent_workload",
    "agent_ttft",
    "handoff",
    "gil",
    "ttft",
    "ttft_breakdown",
    "claims",
    "appendix",
]


def test_the_appendix_has_the_commands_as_kept() -> None:
    text = (SECTIONS / "_appendix.md").read_text(encoding="utf-8")
    listings = re.findall(r"^```bash\n(.*?)\n```$", text, re.DOTALL | re.MULTILINE)
    kept = json.loads(
        (ROOT / "results" / "gb300-published" / "commands.json").read_text(encoding="utf-8")
    )
    wanted = [row["command"] for row in kept["rows"] if row["purpose"] in ("start", "benchmark")]
    assert listings == wanted


def test_every_section_is_in_the_article_once() -> None:
    article = (ROOT / "report" / "index.qmd").read_text(encoding="utf-8")
    included = re.findall(r"^\{\{< include sections/(_\w+\.md) >\}\}$", article, re.MULTILINE)
    assert sorted(included) == sorted(path.name for path in SECTIONS.glob("*.md"))


# Names and lengths that a sentence may spell: a model, a GPU, versions, rows of the sweep.
ALLOWED = re.compile(
    r"Qwen3\.8-27B|GB300|H200|p99|cc-traces-weka-062126|since\s+3\.2|4k tokens|3k tokens|"
    r"(128|256|384|512|768|1,024|1,280|1,536|2,048|3,072|4,096)( tokens)?"
)


@pytest.mark.parametrize("name", OURS)
def test_no_measured_number_is_typed(name: str) -> None:
    text = (SECTIONS / f"_{name}.md").read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)  # listings
    text = re.sub(r"\{\{<.*?>\}\}|\{#[\w-]+\}|@[\w-]+", "", text, flags=re.DOTALL)
    text = re.sub(r"^\d+\. ", "", text, flags=re.MULTILINE)  # numbered lists
    assert re.findall(r".{0,20}\d[\d.,]*.{0,10}", ALLOWED.sub("", text)) == []
