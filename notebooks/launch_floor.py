# ---
# jupyter:
#   graphgain:
#     title: What one launch costs the host
#     documents: [launch_floor]
#     figures: [launch_floor]
#     tables: [launch_floor]
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
from pathlib import Path

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts
from graphgain.figures import launch_floor
from graphgain.results.launches import LaunchFloor
from graphgain.results.store import load_documents, machine_labels

LABELS = {
    "driver": "driver: cuLaunchKernel",
    "runtime": "runtime: <<<>>>",
    "launch_ex": "driver: cuLaunchKernelEx",
    "launch_ex_pdl": "cuLaunchKernelEx + PDL",
    "graph": "graph of 512 kernels",
}
documents = load_documents(results, machines, LaunchFloor)
labels = machine_labels(results, machines)

# %% [markdown]
# The rows that are compared: rounds of 512 launches, no kernel arguments.

# %%
rows = pd.DataFrame(
    {
        "path": LABELS[row.path],
        "machine": labels[name],
        "host_us": row.host_us.value,
        "low_us": row.host_us.low,
        "high_us": row.host_us.high,
        "text": text.quantity_with_interval(row.host_us, 3),
    }
    for name, document in documents.items()
    for row in document.rows
    if row.launches == 512 and row.arguments == 0
).astype({"low_us": float, "high_us": float})
rows

# %%
save_figure("launch_floor", lambda: launch_floor.draw(rows), rows.drop(columns="text"), out)

# %%
shown = rows.pivot_table(
    index="path", columns="machine", values="text", aggfunc="first", sort=False
)
shown = shown.reindex(columns=[labels[name] for name in machines]).fillna("not measured")
save_table(
    "launch_floor", rows.drop(columns="text"), shown.reset_index(names="launched through (µs)"), out
)

# %%
facts = [
    fact(f"launch_floor.{machine_key(name)}.{row.path}", row.host_us, "µs", 3)
    for name, document in documents.items()
    for row in document.rows
    if row.launches == 512 and row.arguments == 0
]
save_facts(facts, Path(out) / "facts" / "launch_floor.json")
