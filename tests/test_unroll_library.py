"""The unroller without a GPU: what it builds, reads and refuses."""

import json
from pathlib import Path

import pytest

from graphgain.errors import MeasureError
from graphgain.measuring.nvcc import find_nvcc
from graphgain.unroll.library import SOURCE, Library, build_library
from graphgain.unroll.unrolled import Node, read_nodes, summarise

KERNEL = {
    "kind": "kernel",
    "name": "_Z5emptyv",
    "grid": [2, 1, 1],
    "block": [32, 1, 1],
    "dynamic_shared_bytes": 128,
    "argument_form": "none",
    "programmatic": False,
    "demangled": "empty()",
    "argument_bytes": 16,
}
MEMSET = {"kind": "memset", "bytes": 64, "programmatic": False}
MEMCPY = {"kind": "memcpy", "bytes": 8, "programmatic": False}


def test_nodes_are_read_from_what_the_library_prints() -> None:
    nodes = read_nodes(json.dumps([MEMSET, KERNEL, {**KERNEL, "programmatic": True}, MEMCPY]))
    assert nodes[0] == Node("memset", "memset", False, moved_bytes=64)
    assert nodes[1] == Node("kernel", "empty()", False, (2, 1, 1), (32, 1, 1), 128, 16)
    assert [node.pdl for node in nodes] == [False, False, True, False]


def test_a_summary_counts_by_kind_and_name() -> None:
    other = {**KERNEL, "demangled": "other()"}
    nodes = read_nodes(
        json.dumps([KERNEL, other, {**other, "programmatic": True}, MEMSET, MEMCPY, MEMCPY])
    )
    summary = summarise(nodes)
    assert (summary.nodes, summary.launches, summary.memsets, summary.memcpys) == (6, 3, 1, 2)
    assert summary.pdl == 1
    assert list(summary.kernels.items()) == [("other()", 2), ("empty()", 1)]
    assert str(summary).splitlines()[0] == (
        "6 nodes: 3 kernels, 1 memsets, 2 memcpys; 1 of the kernels with PDL"
    )


def test_a_file_that_is_no_library_is_an_error_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "unroll.so"
    broken.write_text("not a library")
    with pytest.raises(MeasureError, match=r"unroll\.so: cannot be loaded"):
        Library(broken)


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc on the PATH or in CUDA_HOME")
def test_the_library_loads_without_a_driver_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    library = Library(build_library(tmp_path))
    with pytest.raises(MeasureError, match=r"^CUDA .*error .* while .*\.$"):
        library.read(0)


@pytest.mark.skipif(find_nvcc() is None, reason="no nvcc on the PATH or in CUDA_HOME")
def test_the_library_is_built_once(tmp_path: Path) -> None:
    first = build_library(tmp_path)
    made = first.stat().st_mtime_ns
    assert build_library(tmp_path) == first
    assert first.stat().st_mtime_ns == made


def test_the_source_lies_where_the_build_looks() -> None:
    assert SOURCE.is_file()
