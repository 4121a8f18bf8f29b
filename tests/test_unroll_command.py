"""The command line around the unroller, as far as it goes without a GPU."""

import pytest

from graphgain.__main__ import main
from graphgain.experiments import EXPERIMENTS
from graphgain.unroll.commands import _case, table

QUANTITY = {"median": 4.0}


def row(**more: object) -> dict[str, object]:
    return {
        "launches": 100,
        "pdl_launches": 10,
        "host_issue_ms": {"median": 1.5},
        "identical_outputs": {"eager": True, "cpp_eager": True},
        **more,
    }


def decode(**more: object) -> dict[str, object]:
    hosts = {"eager": 9.0, "cpp_eager": 5.0, "cpp_eager_no_pdl": 5.5, "graph": 4.0}
    return {
        "experiment": "decode_graph_gain",
        "parameters": {"model": "some/model"},
        "rows": [{"host": host, "step_ms": {"median": ms}} for host, ms in hosts.items()],
        **row(**more),
    }


def test_the_table_of_a_decode_step() -> None:
    lines = table(decode()).splitlines()
    assert lines[0] == "some/model: 100 launches, 10 with PDL"
    assert lines[1].split() == [
        "Python",
        "9.000",
        "ms",
        "graph",
        "saves",
        "5.000",
        "ms,",
        "50.00",
        "µs",
        "a",
        "launch",
    ]
    assert lines[4].split() == ["graph", "4.000", "ms"]
    assert lines[5].strip() == "the C++ loop issues in 1.500 ms: the host is ahead of the GPU"
    assert lines[6].strip() == "all hosts give the same bits"


def test_the_table_says_when_the_gpu_waits_and_when_results_differ() -> None:
    shown = table(
        decode(host_issue_ms={"median": 5.1}, identical_outputs={"eager": False, "cpp_eager": True})
    )
    assert "the GPU waits for the host" in shown
    assert "other result than the graph's: Python" in shown


def test_the_table_of_a_prefill() -> None:
    prefill = row(eager_ms={"median": 9.0}, cpp_eager_ms={"median": 5.0}, graph_ms={"median": 4.0})
    document = {
        "experiment": "prefill_graph_gain",
        "parameters": {"model": "some/model"},
        "rows": [prefill],
    }
    assert [line.split()[0] for line in table(document).splitlines()[1:4]] == [
        "Python",
        "C++",
        "graph",
    ]


@pytest.mark.parametrize("decode", [True, False])
def test_the_case_is_of_parameters_that_the_experiment_has(decode: bool) -> None:
    experiment = EXPERIMENTS["decode_graph_gain" if decode else "prefill_graph_gain"]
    merged = experiment.with_overrides(_case(77, decode))
    assert 77 in (merged["cached_tokens"], merged.get("tokens", [None])[0])


@pytest.mark.parametrize("option", ["--tokens", "--rounds", "--process-runs"])
def test_a_number_below_one_is_refused_by_name(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = {"--tokens": "5", "--rounds": "5", "--process-runs": "1", option: "0"}
    arguments = [part for pair in numbers.items() for part in pair]
    assert main(["unroll", "--model", "some/model", *arguments]) == 1
    assert f"{option} must be at least 1" in capsys.readouterr().err
