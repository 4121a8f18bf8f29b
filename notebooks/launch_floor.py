# ---
# jupyter:
#   graphgain:
#     title: What one launch costs the host
#     documents: [launch_floor, statements]
#     figures: [launch_floor, graph_length]
#     tables: [launch_floor, graph_length]
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
# # What one launch costs the host
#
# An empty kernel, launched over and over into one stream; the clock stops before the GPU has to be
# waited for. This is the floor under every launch: no arguments to marshal, nothing to look up.

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
from graphgain.figures import graph_length, launch_floor
from graphgain.results.article import Statements
from graphgain.results.launches import LaunchFloor
from graphgain.results.quantity import Quantity
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import side_by_side, stacked

PATHS = {
    "driver": "cuLaunchKernel\n(driver)",
    "runtime": "<<<>>>\n(runtime)",
    "launch_ex": "cuLaunchKernelEx\n(driver)",
    "launch_ex_pdl": "cuLaunchKernelEx\nwith PDL",
    "graph": "one kernel of a\n512-kernel graph",
}
CODE = re.compile(r"(cuLaunch\w+|<<<>>>)")
documents = load_documents(results, machines, LaunchFloor)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# The rows that are compared: rounds of 512 launches, no kernel arguments. That stays below the
# depth of the launch queue, so nothing in these numbers is waiting for the GPU.

# %%
COLUMNS = ["path", "machine", "host_us", "low_us", "high_us", "text"]
compared = [
    (name, row)
    for path in PATHS
    for name, document in documents.items()
    for row in document.rows
    if row.path == path and row.launches == 512 and row.arguments == 0 and not row.past_queue
]
rows = pd.DataFrame(
    [
        {
            "path": PATHS[row.path],
            "machine": labels[name],
            "host_us": row.host_us.value,
            "low_us": row.host_us.low,
            "high_us": row.host_us.high,
            "text": text.quantity(row.host_us, 3),
        }
        for name, row in compared
    ],
    columns=COLUMNS,
).astype({"low_us": float, "high_us": float})
rows

# %% [markdown]
# A kernel of the graph costs so little because one call launches all of them: its bar is there, it
# is just thinner than the axis.

# %%
data = rows.drop(columns="text").assign(path=rows["path"].str.replace("\n", " "))
save_figure("launch_floor", lambda: launch_floor.draw(rows, shown_machines), data, out)

# %%
cells = pd.DataFrame(
    [
        {
            "launched through": CODE.sub(r"`\1`", PATHS[row.path].replace("\n", " ")),
            "machine": labels[name],
            "text": text.quantity_with_interval(row.host_us, 3, "µs"),
        }
        for name, row in compared
    ]
)
save_table("launch_floor", data, side_by_side(cells, ["launched through"], shown_machines), out)

# %% [markdown]
# ## Longer and shorter graphs
#
# What a graph costs by the number of kernels in it, where that was measured. Rows of more kernels
# than the launch queue holds are flagged: hollow in the figure, marked in the table.

# %%
LENGTHS = ["graph_host_us", "host_us", "instantiate_us", "gpu_us_per_node"]
graphs = [
    (name, row)
    for name, document in documents.items()
    for row in document.rows
    if row.path == "graph" and row.graph_host_us is not None
]
lengths = pd.DataFrame(
    [
        {"machine": labels[name], "launches": row.launches, "past_queue": row.past_queue}
        | {column: quantity.value for column in LENGTHS if (quantity := getattr(row, column))}
        | {f"low_{column}": q.low for column in LENGTHS if (q := getattr(row, column))}
        | {f"high_{column}": q.high for column in LENGTHS if (q := getattr(row, column))}
        for name, row in graphs
    ],
    columns=[
        *("machine", "launches", "past_queue"),
        *(f"{end}{column}" for column in LENGTHS for end in ("", "low_", "high_")),
    ],
).astype({f"{end}{column}": float for column in LENGTHS for end in ("", "low_", "high_")})
lengths

# %%
save_figure("graph_length", lambda: graph_length.draw(lengths, shown_machines), lengths, out)

# %%
CELLS = {
    "launch of the graph (µs)": ("graph_host_us", 1),
    "per kernel (µs)": ("host_us", 4),
    "instantiation (µs)": ("instantiate_us", 0),
    "GPU, per kernel (µs)": ("gpu_us_per_node", 3),
}
listed = pd.DataFrame(
    [
        {"machine": labels[name], "kernels": text.number(row.launches)}
        | {
            title: text.quantity_with_interval(quantity, digits)
            for title, (column, digits) in CELLS.items()
            if (quantity := getattr(row, column))
        }
        | {"past the queue": "yes" if row.past_queue else "no"}
        for name, row in graphs
    ],
    columns=["machine", "kernels", *CELLS, "past the queue"],
).fillna("—")
shown_columns = ["kernels", *CELLS, "past the queue"]
save_table("graph_length", lengths, stacked(listed, shown_columns, shown_machines), out)

# %% [markdown]
# ## Numbers for the prose

# %%
facts = [
    fact(f"launch_floor.{machine_key(name)}.{row.path}", row.host_us, "µs", 3)
    for name, row in compared
]
facts += [
    fact(f"launch_floor.{machine_key(name)}.{field}", getattr(document.parameters, field))
    for name, document in documents.items()
    for field in ("launches", "rounds", "warmup_rounds")
]

# %% [markdown]
# Where process runs were repeated: the spread between them, and what only measuring can tell.


# %%
def extent(values: list[float]) -> Quantity:
    """From the smallest to the largest of some numbers."""
    return Quantity(low=min(values), high=max(values), interval="printed range")


for name, row in compared:
    if row.host_us.interval == "run medians":
        spread = extent([row.host_us.low, row.host_us.high])
        digits = 3 if row.path == "graph" else 2
        facts.append(
            fact(f"launch_floor.{machine_key(name)}.{row.path}_runs", spread, "µs", digits)
        )
for name, document in documents.items():
    key = f"launch_floor.{machine_key(name)}"
    paths = {row.path: row.host_us for of, row in compared if of == name}
    if "graph" in paths and "driver" in paths:
        times = paths["driver"].value / paths["graph"].value
        facts.append(fact(f"{key}.driver_over_graph", times))
    if {"launch_ex", "launch_ex_pdl"} <= set(paths):
        saved_us = paths["launch_ex"].value - paths["launch_ex_pdl"].value
        facts += [
            fact(f"{key}.pdl_saved_us", saved_us, "µs", 2),
            fact(f"{key}.pdl_saved_percent", 100 * saved_us / paths["launch_ex"].value, "%"),
        ]
    calls = [
        row.host_us
        for row in document.rows
        if row.path in ("driver", "runtime", "launch_ex") and not row.past_queue
    ]
    if all(cost.interval == "run medians" for cost in calls):
        facts += [
            fact(f"{key}.calls", extent([cost.value for cost in calls]), "µs", 1),
            fact(f"{key}.calls_low", min(cost.low for cost in calls), "µs", 1),
            fact(f"{key}.calls_high", max(cost.high for cost in calls), "µs", 1),
        ]
    arguments = {row.arguments: row.host_us.value for row in document.rows if row.arguments}
    if arguments:
        facts += [
            fact(f"{key}.arguments", extent(list(arguments.values())), "µs", 2),
            fact(f"{key}.arguments_least", min(arguments)),
            fact(f"{key}.arguments_most", max(arguments)),
        ]
    if document.parameters.process_runs:
        facts.append(fact(f"{key}.process_runs", document.parameters.process_runs))
    for end, found in (
        ("outstanding", document.outstanding_launches),
        ("outstanding_pdl", document.outstanding_pdl_launches),
    ):
        if found:
            depth = extent([found.low, found.high]) if found.interval else found
            facts.append(fact(f"{key}.{end}", depth))
for name in dict.fromkeys(name for name, _ in graphs):
    key = f"launch_floor.{machine_key(name)}.graph_length"
    own = [row for of, row in graphs if of == name]
    below = [row for row in own if not row.past_queue]
    longest = max(below, key=lambda row: row.launches)
    facts += [
        fact(f"{key}.shortest", min(row.launches for row in own)),
        fact(f"{key}.shortest_us", min(own, key=lambda row: row.launches).graph_host_us, "µs", 1),
        fact(f"{key}.longest", max(row.launches for row in own)),
        fact(f"{key}.longest_below", longest.launches),
        fact(f"{key}.host_us", extent([row.graph_host_us.value for row in below]), "µs", 1),
    ]
    if longest.instantiate_us:
        each_us = longest.instantiate_us.value / longest.launches
        facts.append(fact(f"{key}.instantiate_us", longest.instantiate_us, "µs"))
        facts.append(fact(f"{key}.instantiate_us_per_kernel", each_us, "µs", 2))
    if longest.gpu_us_per_node:
        facts.append(fact(f"{key}.gpu_us_per_kernel", longest.gpu_us_per_node, "µs", 2))
for name, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        statement_fact(
            f"launch_floor.{machine_key(name)}.decode_launches", printed["decode_launches"]
        ),
        statement_fact(
            f"launch_floor.{machine_key(name)}.runs_5070ti", printed["consumer_card_runs"]
        ),
    ]
save_facts(facts, Path(out) / "facts" / "launch_floor.json")
