# ---
# jupyter:
#   graphgain:
#     title: How Python launches a kernel
#     documents: [launch_paths, ffi_launch, decode_graph_gain, statements]
#     figures: [launch_paths]
#     tables: [ffi_launch, launch_paths]
#   jupytext:
#     notebook_metadata_filter: graphgain
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How Python launches a kernel
#
# Python reaches a compiled kernel through a foreign-function call, a cached just-in-time wrapper,
# or torch's operator dispatcher. What does each cost the host per call, and what would a whole
# decode step cost if every launch went that way?

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
import re
from pathlib import Path

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts
from graphgain.figures import launch_paths
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain
from graphgain.results.launches import FfiLaunch, LaunchPaths
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import side_by_side

FFI = {
    "cpp_loop": "C++ loop",
    "python_tvm_ffi": "Python, tvm-ffi,\nno tensors",
    "python_tvm_ffi_tensors": "Python, tvm-ffi,\ntwo of its tensors",
    "python_tvm_ffi_torch_tensors": "Python, tvm-ffi,\ntwo torch tensors",
    "graph": "one kernel of a\n512-kernel graph",
}
ADDS = {
    "tvm_ffi": "tvm-ffi,\nthree tensors",
    "jit_cached": "JIT, cached\nlookup",
    "aot_torch_library": "torch op in C++\n(AOT)",
    "jit_torch_op": "torch op\naround a JIT",
    "other_warm_jit": "other JIT, warm\n(CuTe DSL, Triton)",
}
listings = load_documents(results, machines, FfiLaunch)
paths = load_documents(results, machines, LaunchPaths)
decodes = load_documents(results, machines, DecodeGraphGain)
statements = load_documents(results, machines, Statements)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# First the bare call: an empty kernel, launched from a Python loop through tvm-ffi, from a loop in
# C++, and as part of a graph. Below it an elementwise add through each way of integrating a kernel.
# The graph is left out of the figure: from Python, too, it is one call for 512 kernels.

# %%
records = []
for name in machines:
    label = labels[name]
    for row in listings[name].rows if name in listings else []:
        if row.path != "graph":
            level = "cpp" if row.path == "cpp_loop" else "python"
            records.append((name, label, row.path, FFI[row.path], level, row.host_us, 3))
    for row in paths[name].rows if name in paths else []:
        if row.host_us is not None:
            shown = ADDS.get(row.path, row.label)
            records.append(
                (
                    name,
                    label,
                    row.path,
                    shown,
                    "python",
                    row.host_us,
                    0 if row.host_us.approximate else 2,
                )
            )
calls = pd.DataFrame(
    [
        {
            "name": name,
            "machine": machine,
            "path": path,
            "label": label,
            "level": level,
            "host_us": host_us.value,
            "low_us": host_us.low,
            "high_us": host_us.high,
            "text": ("≈ " if host_us.approximate else "") + text.quantity(host_us, digits),
        }
        for name, machine, path, label, level, host_us, digits in records
    ],
    columns=["name", "machine", "path", "label", "level", "host_us", "low_us", "high_us", "text"],
).astype({"low_us": float, "high_us": float})
calls = calls.sort_values(
    ["machine", "host_us"],
    key=lambda column: column.map(shown_machines.index) if column.name == "machine" else column,
    ignore_index=True,
)
calls.drop(columns=["label", "text"])

# %% [markdown]
# A step of as many launches as the machine's decode step has, and of the larger number that the
# article assumes for a forward with little fusion. The budget is the eager decode step.

# %%
unfused = {
    int(by_name(document)["paths_unfused_launches"].quantity.value)
    for document in statements.values()
}
steps = pd.DataFrame(
    [
        {
            "machine": call["machine"],
            "label": call["label"],
            "launches": launches,
            "issue_ms": launches * call["host_us"] / 1000,
            "budget_ms": min(
                row.step_ms.value for row in decodes[call["name"]].rows if row.host != "graph"
            ),
        }
        for call in calls.to_dict("records")
        if call["name"] in decodes
        for launches in sorted({decodes[call["name"]].launches, *unfused})
    ],
    columns=["machine", "label", "launches", "issue_ms", "budget_ms"],
)
steps

# %%
data = calls[["machine", "path", "host_us", "low_us", "high_us"]]
save_figure("launch_paths", lambda: launch_paths.draw(calls, steps, shown_machines), data, out)

# %%
cells = pd.DataFrame(
    [
        {
            "launched from": FFI[row.path].replace("\n", " "),
            "machine": labels[name],
            "text": text.with_unit(
                " / ".join(text.number(run, 3) for run in row.host_us.runs), "µs"
            )
            if row.host_us.interval == "printed repeats"
            else text.quantity_with_interval(row.host_us, 3, "µs"),
        }
        for path in FFI
        for name, document in listings.items()
        for row in document.rows
        if row.path == path
    ]
)
bare = [
    {"machine": labels[name], "path": row.path, "host_us": row.host_us.value, "run": run}
    for name, document in listings.items()
    for row in document.rows
    for run in row.host_us.runs or [row.host_us.value]
]
save_table(
    "ffi_launch",
    pd.DataFrame(bare),
    side_by_side(cells, ["launched from"], shown_machines),
    out,
)

# %%
NAMES = re.compile(r"(@\w+|[\w/]+(?:\.\w+)+(?:\([^)]*\))?|\w+_\w+)")


def code(words: str) -> str:
    """Words with the names of functions, decorators and files set as code."""
    return NAMES.sub(r"`\1`", words)


cells = pd.DataFrame(
    [
        {
            "path": row.label,
            "call chain": code(row.call_chain or "–"),
            "used in SGLang": code(row.used_in or "–")
            + (f" ({row.files} files)" if row.files else ""),
            "machine": labels[name],
            "text": ("about " if row.host_us.approximate else "")
            + text.quantity_with_interval(row.host_us, 0 if row.host_us.approximate else 2, "µs")
            if row.host_us
            else f"skipped: {row.skipped or 'no reason given'}",
        }
        for name, document in paths.items()
        for row in document.rows
    ]
)
save_table(
    "launch_paths",
    data,
    side_by_side(cells, ["path", "call chain", "used in SGLang"], shown_machines),
    out,
)

# %% [markdown]
# Numbers for the prose.

# %%
facts = []
for name, document in listings.items():
    key = f"launch_paths.{machine_key(name)}"
    cost = {row.path: row.host_us for row in document.rows}
    facts += [fact(f"{key}.{path}_us", host_us, "µs", 3) for path, host_us in cost.items()]
    if {"python_tvm_ffi", "cpp_loop"} <= set(cost):
        extra = cost["python_tvm_ffi"].value - cost["cpp_loop"].value
        facts.append(fact(f"{key}.ffi_extra_us", extra, "µs", 2))
        facts.append(fact(f"{key}.ffi_extra_percent", 100 * extra / cost["cpp_loop"].value, "%"))
    if {"python_tvm_ffi", "python_tvm_ffi_torch_tensors"} <= set(cost):
        extra = cost["python_tvm_ffi_torch_tensors"].value - cost["python_tvm_ffi"].value
        facts.append(fact(f"{key}.torch_tensors_extra_us", extra, "µs", 2))
    if document.tensor_arguments_extra_us:
        extra_us = document.tensor_arguments_extra_us
        facts += [
            fact(f"{key}.tensors_extra_us", extra_us, "µs", 1 if extra_us.approximate else 2),
            fact(f"{key}.with_tensors_us", cost["python_tvm_ffi"].value + extra_us.value, "µs", 2),
        ]
for name, document in paths.items():
    key = f"launch_paths.{machine_key(name)}"
    for row in document.rows:
        if row.host_us:
            facts.append(
                fact(
                    f"{key}.{row.path}_add_us",
                    row.host_us,
                    "µs",
                    0 if row.host_us.approximate else 2,
                )
            )
        if row.files:
            facts.append(fact(f"{key}.{row.path}_files", row.files))
for name, document in decodes.items():
    key = f"launch_paths.{machine_key(name)}"
    budget = min(row.step_ms.value for row in document.rows if row.host != "graph")
    facts += [
        fact(f"{key}.step_launches", document.launches),
        fact(f"{key}.step_ms", budget, "ms", 2),
        fact(f"{key}.budget_us_per_launch", 1000 * budget / document.launches, "µs", 1),
    ]
for name, document in statements.items():
    key = f"launch_paths.{machine_key(name)}"
    printed = by_name(document)
    facts += [
        statement_fact(f"{key}.said_{short}", printed[statement])
        for short, statement in {
            "ffi_extra_us": "ffi_extra_us",
            "worst_us": "paths_worst_us",
            "issue_ms": "paths_issue_ms",
            "unfused_launches": "paths_unfused_launches",
            "unfused_ms": "paths_unfused_issue_ms",
        }.items()
    ]
save_facts(facts, Path(out) / "facts" / "launch_paths.json")
