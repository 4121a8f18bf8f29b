# ---
# jupyter:
#   graphgain:
#     title: How Python launches a kernel
#     documents: [launch_paths, ffi_launch, decode_graph_gain, statements]
#     figures: [launch_paths, launch_stages]
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
from graphgain.facts import fact, machine_key, save_facts, words
from graphgain.figures import launch_paths, launch_stages
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain
from graphgain.results.launches import FfiLaunch, LaunchPaths
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import NOT_MEASURED, side_by_side

FFI = {
    "cpp_loop": "C++ loop",
    "python_tvm_ffi": "Python, tvm-ffi,\nno tensors",
    "python_tvm_ffi_tensors": "Python, tvm-ffi,\ntwo of its tensors",
    "python_tvm_ffi_torch_tensors": "Python, tvm-ffi,\ntwo torch tensors",
    "graph": "one kernel of a\n512-kernel graph",
}
ADDS = {
    "cpp_loop": "C++ loop, add",
    "tvm_ffi": "tvm-ffi,\nthree tensors",
    "jit_cached": "JIT, cached\nlookup",
    "aot_torch_library": "torch op in C++\n(AOT)",
    "jit_torch_op": "torch op\naround a JIT",
    "jit_custom_op": "torch op around a\nJIT, custom_op",
    "other_warm_jit": "other JIT, warm\n(CuTe DSL, Triton)",
    "torch_add_out": "torch.add(out=)",
    "triton_jit": "Triton",
    "triton_jit_pdl": "Triton, PDL",
    "cupy_raw": "CuPy",
    "numba_cuda": "Numba-CUDA",
    "cuda_graph": "CUDA graph,\nper kernel",
}
LEVELS = {"cpp_loop": "cpp", "cuda_graph": "graph"}
listings = load_documents(results, machines, FfiLaunch)
paths = load_documents(results, machines, LaunchPaths)
decodes = load_documents(results, machines, DecodeGraphGain)
statements = load_documents(results, machines, Statements)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# First the bare call: an empty kernel, launched from a Python loop through tvm-ffi, from a loop in
# C++, and as part of a graph. Below it an elementwise add through each way of integrating a kernel.
# Where the add was launched from C++ as well, it stands alone in the figure; the empty kernel is in
# the table.

# %%
records = []
for name in machines:
    label = labels[name]
    adds = [row for row in paths[name].rows if row.host_us] if name in paths else []
    bare = [] if "cpp_loop" in {row.path for row in adds} else listings.get(name)
    for row in bare.rows if bare else []:
        if row.path != "graph":
            level = LEVELS.get(row.path, "python")
            records.append((name, label, row.path, FFI[row.path], level, row.host_us, 3))
    for row in adds:
        shown, level = ADDS.get(row.path, row.label), LEVELS.get(row.path, "python")
        digits = 0 if row.host_us.approximate else 2
        records.append((name, label, row.path, shown, level, row.host_us, digits))
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
# A step of as many launches as the article's decode step has, and of the larger number that it
# assumes for a forward with little fusion. The budget is the machine's own eager decode step.

# %%
said = [by_name(document) for document in statements.values()]
fused = {int(printed["paths_launches"].quantity.value) for printed in said}
unfused = {int(printed["paths_unfused_launches"].quantity.value) for printed in said}
budgets = {
    name: min(row.step_ms.value for row in document.rows if row.host != "graph")
    for name, document in decodes.items()
}
steps = pd.DataFrame(
    [
        {
            "machine": call["machine"],
            "path": call["path"],
            "label": call["label"],
            "launches": launches,
            "issue_ms": launches * call["host_us"] / 1000,
            "budget_ms": budgets.get(call["name"]),
        }
        for call in calls.to_dict("records")
        for launches in sorted(fused | unfused)
    ],
    columns=["machine", "path", "label", "launches", "issue_ms", "budget_ms"],
).astype({"budget_ms": float})
steps

# %%
data = calls[["machine", "path", "host_us", "low_us", "high_us"]]
save_figure("launch_paths", lambda: launch_paths.draw(calls, steps, shown_machines), data, out)

# %% [markdown]
# Where the time goes: the differences between calls that leave a stage out and calls that do not,
# measured in turn with each other.

# %%
stages = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "path": stage.path,
            "stage": stage.stage,
            "host_us": stage.host_us.value,
            "low_us": stage.host_us.low,
            "high_us": stage.host_us.high,
        }
        for name, document in paths.items()
        for stage in document.stages
    ],
    columns=["machine", "path", "stage", "host_us", "low_us", "high_us"],
)
save_figure("launch_stages", lambda: launch_stages.draw(stages, shown_machines), stages, out)

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
CALLS = r"[\w.]+(?:\[[^\]]*\])?(?:<<<[^>]*>>>|\([^→]*\))"
NAMES = r"@\w+|[\w/]+(?:\.\w+)+|\w+_\w+"


def code(words: str) -> str:
    """Words with calls and the names of functions, decorators and files set as code."""
    return re.sub(f"({CALLS}|{NAMES})", r"`\1`", words)


def used_in(row):
    """Where SGLang launches in this way, if the article says so."""
    files = f", {row.files} files" if row.files else ""
    return f" (in SGLang: {code(row.used_in)}{files})" if row.used_in else ""


described = {}
for row in (row for document in paths.values() for row in document.rows):
    described.setdefault(row.path, row)
cells = pd.DataFrame(
    [
        {
            "path": described[path].label,
            "call chain": code(described[path].call_chain or "—") + used_in(described[path]),
            "machine": labels[name],
            "text": ("about " if row.host_us.approximate else "")
            + text.quantity_with_interval(row.host_us, 0 if row.host_us.approximate else 2, "µs")
            if row.host_us
            else (row.skipped or "no reason given").partition(":")[0],
        }
        for path in described
        for name, document in paths.items()
        for row in document.rows
        if row.path == path
    ]
)
# Machines without such a measurement would each be a column of a wide table: one line names them.
with_paths = [labels[name] for name in machines if name in paths]
without = [label for label in shown_machines if label not in with_paths]
table = side_by_side(cells, ["path", "call chain"], with_paths if paths else shown_machines)
if paths and without:
    absent = {"path": ", ".join(without), "call chain": NOT_MEASURED}
    absent |= dict.fromkeys(with_paths, "—")
    table = pd.concat([table, pd.DataFrame([absent])], ignore_index=True)
reasons = pd.DataFrame(
    [
        {"machine": labels[name], "path": row.path, "skipped": row.skipped}
        for name, document in paths.items()
        for row in document.rows
        if row.skipped
    ]
)
save_table("launch_paths", pd.concat([data, reasons], ignore_index=True), table, out)

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
            facts += [
                fact(f"{key}.{row.path}_{step}_ms", count * row.host_us.value / 1000, "ms", 1)
                for step, counts in (("step", fused), ("unfused", unfused))
                for count in counts
            ]
        if row.files:
            facts.append(fact(f"{key}.{row.path}_files", row.files))
    cost = {row.path: row.host_us.value for row in document.rows if row.host_us}
    if "cpp_loop" in cost:
        facts += [
            fact(f"{key}.{path}_times", us / cost["cpp_loop"], "", 1) for path, us in cost.items()
        ]
    for stage in document.stages:
        if stage.path in ("jit_custom_op", "aot_torch_library"):
            chain = "aot" if stage.path == "aot_torch_library" else "jit"
            facts.append(fact(f"{key}.{chain}_{stage.stage}_us", stage.host_us, "µs", 2))
    versions = document.provenance.versions if document.provenance else {}
    facts += [
        words(f"{key}.{package.replace('-', '_').replace('.', '_')}_version", version)
        for package, version in versions.items()
        if version
    ]
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
