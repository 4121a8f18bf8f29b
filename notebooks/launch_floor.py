# ---
# jupyter:
#   graphgain:
#     title: What one launch costs the host
#     documents: [launch_floor, statements]
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
import re
from pathlib import Path

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts
from graphgain.figures import launch_floor
from graphgain.results.article import Statements
from graphgain.results.launches import LaunchFloor
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import side_by_side

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
    for name, document in documents.items()
    for row in document.rows
    if row.launches == 512 and row.arguments == 0 and not row.past_queue
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
        for name, row in sorted(compared, key=lambda pair: list(PATHS).index(pair[1].path))
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
# Numbers for the prose.

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
