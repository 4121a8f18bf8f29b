# ---
# jupyter:
#   graphgain:
#     title: The hand-over between two kernels, with the host out of the way
#     documents: [handoff, decode_graph_gain, statements]
#     figures: [handoff]
#     tables: [handoff]
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
# # The hand-over between two kernels, with the host out of the way
#
# A gate kernel holds the stream while the host queues a chain of equal kernels behind it. Then the
# gate opens, and two events time the chain: what passes between one kernel and the next is the
# GPU's alone. Once the chain is launched kernel by kernel, once as a graph, with and without PDL.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from pathlib import Path
from statistics import median

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts
from graphgain.figures import handoff
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain
from graphgain.results.launches import Handoff
from graphgain.results.quantity import Quantity
from graphgain.results.store import load_documents, machine_labels, read_machine
from graphgain.statements import by_name
from graphgain.tables import stacked

documents = load_documents(results, machines, Handoff)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]


# %% [markdown]
# A grid is named by how it fills the GPU, so that GPUs of different sizes can stand side by side.


# %%
def blocks_per_sm(name: str, blocks: int) -> int | None:
    """How many blocks of a grid each SM gets; None for a single block or an uneven grid."""
    gpu = read_machine(Path(results) / name).gpu
    sm_count = gpu.sm_count if gpu else None
    return blocks // sm_count if blocks > 1 and sm_count and blocks % sm_count == 0 else None


def grid_name(name: str, blocks: int) -> str:
    """A grid in words."""
    each = blocks_per_sm(name, blocks)
    if each is None:
        return "1 block" if blocks == 1 else f"{blocks:,} blocks"
    return f"{each} block{'s' * (each > 1)} per SM"


def grid_key(name: str, blocks: int) -> str:
    """A grid as a part of a fact's name."""
    each = blocks_per_sm(name, blocks)
    return f"blocks{blocks}" if each is None else f"per_sm{each}"


# %%
COLUMNS = [
    *("name", "machine", "grid_blocks", "grid", "argument_bytes", "pdl", "kernel_us"),
    *("eager_us", "graph_us", "saved_us", "low_us", "high_us", "own_us"),
]
rows = pd.DataFrame(
    [
        {
            "name": name,
            "machine": labels[name],
            "grid_blocks": row.grid_blocks,
            "grid": grid_name(name, row.grid_blocks),
            "argument_bytes": row.argument_bytes,
            "pdl": row.pdl,
            "kernel_us": row.kernel_us,
            "eager_us": row.eager_us.value,
            "graph_us": row.graph_us.value,
            "saved_us": row.saved_us.value,
            "low_us": row.saved_us.low,
            "high_us": row.saved_us.high,
            "own_us": row.bare_us.value if row.bare_us else None,
        }
        for name, document in documents.items()
        for row in document.rows
    ],
    columns=COLUMNS,
).astype({"low_us": float, "high_us": float, "own_us": float})
data = rows.drop(columns="name")
data

# %% [markdown]
# Does the size of the argument block matter? The same cases with the smallest and the largest one,
# and the largest difference between the two in what the graph saves.

# %%
CASE = ["name", "grid_blocks", "pdl", "kernel_us"]
by_size = rows.set_index([*CASE, "argument_bytes"])["saved_us"].unstack()
size_matters_us = (by_size.max(axis=1) - by_size.min(axis=1)).groupby("name").max()
size_matters_us

# %% [markdown]
# It does not, so the smallest block stands for all in the figure and the table; the data have both.
# The shaded band is what the article says a hand-over gains.

# %%
small = rows[rows["argument_bytes"] == rows.groupby("name")["argument_bytes"].transform("min")]
statements = load_documents(results, machines, Statements)
said = [by_name(document)["tldr_handoff_saved_us"].quantity for document in statements.values()]
published_us = next(((q.low, q.high) for q in said if q.low is not None), None)
save_figure("handoff", lambda: handoff.draw(small, published_us, shown_machines), data, out)

# %%
TIMES = [
    f"{what}{with_pdl}"
    for with_pdl in ("", ", PDL")
    for what in ("eager (µs)", "graph (µs)", "saved (µs)")
]
cells = []
for (*_, kernel_us), case in small.groupby(["name", "grid_blocks", "kernel_us"], sort=False):
    line = {
        "machine": case["machine"].iloc[0],
        "grid": case["grid"].iloc[0],
        "length (µs)": f"{kernel_us:g}",
        "own time (µs)": "—"
        if case["own_us"].isna().any()
        else text.number(case["own_us"].iloc[0], 2),
    }
    for row in case.itertuples():
        end = ", PDL" if row.pdl else ""
        saved = Quantity(
            median=row.saved_us, low=row.low_us, high=row.high_us, interval="run medians"
        )
        line[f"eager (µs){end}"] = text.number(row.eager_us, 2)
        line[f"graph (µs){end}"] = text.number(row.graph_us, 2)
        line[f"saved (µs){end}"] = text.quantity_with_interval(saved, 2)
    cells.append(line)
SHOWN = ["grid", "length (µs)", "own time (µs)", *TIMES]
listed = pd.DataFrame(cells, columns=["machine", *SHOWN])
again = listed[["machine", "grid"]].eq(listed[["machine", "grid"]].shift()).all(axis=1)
listed["grid"] = listed["grid"].str.replace(" ", "\u00a0").mask(again, "")
save_table("handoff", data, stacked(listed, SHOWN, shown_machines), out)


# %% [markdown]
# Numbers for the prose. A kernel of length zero is left out of what PDL leaves to save: it has no
# work to bring the next one up behind.


# %%
def extent(saved_us: list[float]) -> Quantity:
    """From the smallest to the largest saving."""
    return Quantity(low=min(saved_us), high=max(saved_us), interval="printed range")


facts, plain_extents, pdl_extents = [], {}, {}
for name, document in documents.items():
    key = f"handoff.{machine_key(name)}"
    sizes = {row.argument_bytes for row in document.rows}
    own = [row for row in document.rows if row.argument_bytes == min(sizes)]
    longest_us = max(row.kernel_us for row in own)
    saved = {
        pdl: [row.saved_us.value for row in own if row.pdl == pdl and (row.kernel_us or not pdl)]
        for pdl in (False, True)
    }
    plain_extents[name], pdl_extents[name] = extent(saved[False]), extent(saved[True])
    facts += [
        fact(f"{key}.kernels", document.parameters.kernels),
        fact(f"{key}.process_runs", document.parameters.process_runs),
        fact(f"{key}.longest_us", longest_us, "µs"),
        fact(f"{key}.small_bytes", min(sizes)),
        fact(f"{key}.large_bytes", max(sizes)),
        fact(f"{key}.argument_difference_us", float(size_matters_us[name]), "µs", 2),
        fact(f"{key}.plain_us", plain_extents[name], "µs", 2),
        fact(f"{key}.plain_median_us", median(saved[False]), "µs", 1),
        fact(f"{key}.pdl_us", pdl_extents[name], "µs", 2),
    ]
    shorter = [row.saved_us.value for row in own if not row.pdl and row.kernel_us < longest_us]
    facts.append(fact(f"{key}.plain_shorter_us", extent(shorter), "µs", 2))
    for blocks in dict.fromkeys(row.grid_blocks for row in own):
        of_grid = [row for row in own if row.grid_blocks == blocks]
        grid = f"{key}.{grid_key(name, blocks)}"
        pdl = [row.saved_us.value for row in of_grid if row.pdl and row.kernel_us]
        plain = [row.saved_us.value for row in of_grid if not row.pdl]
        facts += [
            fact(f"{grid}.blocks", blocks),
            fact(f"{grid}.plain_us", extent(plain), "µs", 2),
            fact(f"{grid}.pdl_us", extent(pdl), "µs", 2),
        ]
        for row in of_grid:
            case = f"{grid}.us{row.kernel_us:g}".replace(".us0.", ".us0_")
            case += "_pdl" if row.pdl else "_plain"
            facts += [
                fact(f"{case}_eager_us", row.eager_us, "µs", 2),
                fact(f"{case}_graph_us", row.graph_us, "µs", 2),
                fact(f"{case}_saved_us", row.saved_us, "µs", 2),
            ]
            if row.bare_us:
                own_us = row.bare_us.value
                facts += [
                    fact(f"{case}_own_us", own_us, "µs", 2),
                    fact(f"{case}_eager_gap_us", row.eager_us.value - own_us, "µs", 2),
                    fact(f"{case}_graph_gap_us", row.graph_us.value - own_us, "µs", 2),
                ]

# %% [markdown]
# For scale: the kernels of a published decode step, those with PDL at what they save here and the
# others at what those save here.

# %%
for other, step in load_documents(results, machines, DecodeGraphGain).items():
    for name in documents:
        pdl, plain = pdl_extents[name], plain_extents[name]
        ends = [
            step.pdl_launches * pdl_us + (step.launches - step.pdl_launches) * plain_us
            for pdl_us, plain_us in ((pdl.low, plain.low), (pdl.high, plain.high))
        ]
        scaled = Quantity(low=ends[0], high=ends[1], interval="printed range")
        what = f"handoff.{machine_key(name)}.step_of_{machine_key(other)}_us"
        facts.append(fact(what, scaled, "µs"))
save_facts(facts, Path(out) / "facts" / "handoff.json")
