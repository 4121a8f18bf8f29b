"""A changed source of an experiment: nothing is measured, and the site says what became stale."""

import re

import pytest

from checkout import Checkout

pytestmark = pytest.mark.workflow


def test_a_changed_native_source_rebuilds_the_site_with_a_badge(rebuilt: Checkout) -> None:
    source = rebuilt.root / "workflow/native/launch_floor.cu"
    source.write_text(source.read_text(encoding="utf-8") + "\n// Another source.\n")
    assert rebuilt.planned("report") == ["site"]
    rebuilt.snakemake("report")
    page = (rebuilt.root / "report/_site/index.html").read_text(encoding="utf-8")
    badges = re.findall(r'launch_floor · h200</a> <span class="badge stale">([^<]+)</span>', page)
    assert badges and set(badges) == {"stale: source changed"}


def test_a_changed_listing_is_built_again(rebuilt: Checkout) -> None:
    rebuilt.replace(
        "src/graphgain/experiments/ffi_process.py",
        "            function()",
        "            function( )",
    )
    rebuilt.snakemake("report")
    page = (rebuilt.root / "report/_site/index.html").read_text(encoding="utf-8")
    assert "function( )" in re.sub(r"<[^>]+>", "", page)


def test_a_listing_that_moved_stops_the_build_and_keeps_the_site(rebuilt: Checkout) -> None:
    before = (rebuilt.root / "report/_site/index.html").read_bytes()
    rebuilt.replace("workflow/native/gate.hpp", "double gpu_us(Issue", "double gpu_time_us(Issue")
    done = rebuilt.snakemake("report", check=False)
    assert done.returncode != 0
    assert "listing handoff_gate: the line" in done.stdout + done.stderr
    assert (rebuilt.root / "report/_site/index.html").read_bytes() == before
