# ---
# jupyter:
#   graphgain:
#     title: What one cuBLAS call costs the host
#     documents: [gemm_host_cost, launch_floor, decode_graph_gain, statements]
#     figures: [gemm_host_cost]
#     tables: [gemm_host_cost, gemm_split, gemm_kernels]
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
# # What one cuBLAS call costs the host
#
# A decode step at batch size 1 multiplies a single row by each weight matrix. On the GPU that is
# memory-bound work; on the host it is the most expensive launch of the step. Here: the host time of
# every shape, how many kernels each call really issues, and what the host does in between.

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
from graphgain.figures import gemm_host_cost
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain
from graphgain.results.launches import GemmHostCost, LaunchFloor
from graphgain.results.quantity import Quantity
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import side_by_side, stacked

PARTS = {
    "algorithm_choice": "choosing an algorithm for the shape",
    "driver_queries": "querying driver attributes",
    "library_code": "other code inside cuBLAS",
    "remainder": "the rest: queries and other code",
    "launch": "the launch itself",
}
documents = load_documents(results, machines, GemmHostCost)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# One row a shape. `n` is the number of output features, `k` the length of the reduction.

# %%
shapes = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "gemm": row.gemm,
            "n": row.n,
            "k": row.k,
            "calls_per_step": row.calls_per_step,
            "host_us": row.host_us.value,
            "low_us": row.host_us.low,
            "high_us": row.host_us.high,
            "kernels": row.kernels_per_call,
            "memsets": row.memsets_per_call or 0,
        }
        for name, document in documents.items()
        for row in document.rows
    ],
    columns=[
        *("machine", "gemm", "n", "k", "calls_per_step"),
        *("host_us", "low_us", "high_us", "kernels", "memsets"),
    ],
).astype({"low_us": float, "high_us": float})
shapes

# %% [markdown]
# The parts of a call that issues one kernel, where they are known: as published, or measured as
# differences between calls that share all but one part.

# %%
split = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "part": part.part,
            "host_us": part.host_us.value,
            "text": ("about " if part.host_us.approximate else "")
            + text.quantity_with_interval(part.host_us, 1, "µs"),
        }
        for name, document in documents.items()
        for part in sorted(document.split, key=lambda part: list(PARTS).index(part.part))
    ],
    columns=["machine", "part", "host_us", "text"],
)
split

# %% [markdown]
# The floor to compare with: an empty kernel timed by the same program, or else the runtime launch
# of the launch test on the same machine.

# %%
floors = load_documents(results, machines, LaunchFloor)


def empty_launch(name: str) -> Quantity | None:
    """Host time of an empty launch on one machine."""
    if documents[name].empty_us is not None or name not in floors:
        return documents[name].empty_us
    runtime = [
        row.host_us
        for row in floors[name].rows
        if row.path == "runtime" and row.launches == 512 and row.arguments == 0
    ]
    return runtime[0] if runtime else None


empty = {name: launch for name in documents if (launch := empty_launch(name)) is not None}
empty_us = {labels[name]: launch.value for name, launch in empty.items()}
empty_us

# %%
save_figure(
    "gemm_host_cost",
    lambda: gemm_host_cost.draw(shapes, split, empty_us, shown_machines),
    shapes,
    out,
)

# %%
uses = {
    row.gemm: " + ".join(str(calls) for calls in row.uses.values())
    for document in documents.values()
    for row in document.rows
}
cells = pd.DataFrame(
    [
        {
            "GEMM": f"`{row.gemm}`".replace(" / ", "` / `"),
            "n": text.number(row.n),
            "k": text.number(row.k),
            "calls per step": uses[row.gemm],
            "machine": labels[name],
            "text": text.quantity_with_interval(row.host_us, 2, "µs")
            + f" · {row.kernels_per_call} kernel{'s' if row.kernels_per_call > 1 else ''}"
            + (" + memset" if row.memsets_per_call else ""),
        }
        for name, document in documents.items()
        for row in document.rows
    ]
)
save_table(
    "gemm_host_cost",
    shapes,
    side_by_side(cells, ["GEMM", "n", "k", "calls per step"], shown_machines),
    out,
)

# %%
in_order = split.sort_values("part", key=lambda part: part.map(list(PARTS).index))
parts = in_order.assign(part=in_order["part"].map(PARTS)).rename(
    columns={"part": "part of the call"}
)
save_table(
    "gemm_split",
    split.drop(columns="text"),
    side_by_side(parts, ["part of the call"], shown_machines),
    out,
)

# %% [markdown]
# Which kernels a call issues, and which of them with PDL, was counted where the call was captured
# into a graph: an edge to a kernel launched with PDL is a programmatic one. Two calls are captured
# and the second is read, so that the edge into its first kernel shows as well.

# %%
SHORT = re.compile(r"_ZN8cublasLt\d+(splitKreduce_kernel)\w+")
captured = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "gemm": row.gemm,
            "kernel": kernel.name,
            "grid": "×".join(map(str, kernel.grid)),
            "block": "×".join(map(str, kernel.block)),
            "shared_bytes": kernel.shared_bytes,
            "first": kernel is row.kernels[0],
            "pdl": kernel.pdl,
        }
        for name, document in documents.items()
        for row in document.rows
        for kernel in row.kernels or []
    ],
    columns=["machine", "gemm", "kernel", "grid", "block", "shared_bytes", "first", "pdl"],
)
listed = pd.DataFrame(
    [
        [
            row.machine,
            f"`{row.gemm}`".replace(" / ", "` / `") if row.first else "",
            "`" + SHORT.sub(r"cublasLt::\1", row.kernel) + "`",
            row.grid,
            "yes" if row.pdl else "no",
        ]
        for row in captured.itertuples()
    ],
    columns=["machine", "GEMM", "kernel", "blocks", "with PDL"],
)
save_table(
    "gemm_kernels",
    captured,
    stacked(listed, ["GEMM", "kernel", "blocks", "with PDL"], shown_machines),
    out,
)

# %% [markdown]
# One decode step: what all GEMM calls cost together, how many kernels they are, and what that
# leaves for the other launches of the step.

# %%
decodes = load_documents(results, machines, DecodeGraphGain)
facts = []
for name, document in documents.items():
    key = f"gemm_host_cost.{machine_key(name)}"
    own = document.rows
    calls = sum(row.calls_per_step for row in own)
    kernels = sum(row.calls_per_step * row.kernels_per_call for row in own)
    total_us = sum(row.calls_per_step * row.host_us.value for row in own)
    facts += [
        fact(f"{key}.calls", calls),
        fact(f"{key}.kernels", kernels),
        fact(f"{key}.total_us", total_us, "µs"),
        fact(f"{key}.two_kernel_calls", kernels - calls),
        *(
            fact(f"{key}.round_{field}", getattr(document.parameters, field))
            for field in ("launches", "rounds", "warmup_rounds")
        ),
    ]
    for kind, chosen in (
        ("one_kernel", [row.host_us.value for row in own if row.kernels_per_call == 1]),
        ("two_kernel", [row.host_us.value for row in own if row.kernels_per_call == 2]),
    ):
        if chosen:
            extent = Quantity(low=min(chosen), high=max(chosen), interval="printed range")
            facts.append(fact(f"{key}.{kind}_us", extent, "µs", 2))
    if name in empty:
        single = [row.host_us.value / empty[name].value for row in own if row.kernels_per_call == 1]
        facts.append(fact(f"{key}.empty_us", empty[name], "µs", 2))
        if single:
            extent = Quantity(low=min(single), high=max(single), interval="printed range")
            facts.append(fact(f"{key}.one_kernel_launches", extent, "", 1))
    facts += [fact(f"{key}.{part.part}_us", part.host_us, "µs", 1) for part in document.split]
    if document.split:
        split_us = sum(part.host_us.value for part in document.split)
        facts.append(fact(f"{key}.split_us", split_us, "µs", 1))
    if name in decodes:
        step = decodes[name]
        host_us = step.host_issue_ms.value * 1000
        facts += [
            fact(f"{key}.step_launches", step.launches),
            fact(f"{key}.step_host_ms", step.host_issue_ms, "ms", 1),
            fact(f"{key}.other_launches", step.launches - kernels),
            fact(f"{key}.other_us", host_us - total_us, "µs"),
            fact(
                f"{key}.us_per_other_launch",
                (host_us - total_us) / (step.launches - kernels),
                "µs",
                2,
            ),
            fact(f"{key}.gemm_percent", 100 * total_us / host_us, "%"),
        ]

# %% [markdown]
# What was counted in the captured calls, and by which cuBLAS.


# %%
def cublas_version(number: str) -> str:
    """cuBLAS's version as a word: `cublasGetVersion` gives 10000 major + 100 minor + patch."""
    major, rest = divmod(int(number), 10000)
    return f"{major}.{rest // 100}.{rest % 100}"


for name, document in documents.items():
    key = f"gemm_host_cost.{machine_key(name)}"
    counted = [row for row in document.rows if row.kernels]
    if counted:
        after = [kernel for row in counted for kernel in row.kernels[1:]]
        choices = [row.algorithm_choice_us.value for row in counted if row.algorithm_choice_us]
        split_k = [row.gemm for row in counted if row.kernels_per_call > 1]
        facts += [
            fact(f"{key}.shapes", len(counted)),
            fact(f"{key}.first_kernels_pdl", sum(row.kernels[0].pdl for row in counted)),
            fact(f"{key}.later_kernels", len(after)),
            fact(f"{key}.later_kernels_pdl", sum(kernel.pdl for kernel in after)),
            fact(f"{key}.memset_shapes", sum(bool(row.memsets_per_call) for row in counted)),
            fact(f"{key}.split_shapes", len(split_k)),
            words(f"{key}.split_names", " and ".join(f"`{gemm}`" for gemm in split_k)),
        ]
        if choices:
            extent = Quantity(low=min(choices), high=max(choices), interval="printed range")
            facts.append(fact(f"{key}.choices_us", extent, "µs", 2))
    version = document.provenance.versions.get("cublas") if document.provenance else None
    if version:
        facts.append(words(f"{key}.cublas", cublas_version(version)))

# %% [markdown]
# Rounded numbers of the article's own text, as it states them.

# %%
for name, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        statement_fact(f"gemm_host_cost.{machine_key(name)}.said_{short}", printed[statement])
        for short, statement in {
            "us_per_launch": "decode_host_per_kernel_us",
            "one_kernel_us": "gemm_one_kernel_us",
            "two_kernel_us": "gemm_split_k_us",
            "reference_us": "gemm_one_kernel_reference_us",
            "forward_ms": "decode_forward_ms",
        }.items()
    ]
save_facts(facts, Path(out) / "facts" / "gemm_host_cost.json")
