# ---
# jupyter:
#   graphgain:
#     title: How long the first token takes
#     documents: [ttft, statements]
#     figures: [ttft, ttft_long]
#     tables: [ttft, ttft_crossovers]
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
# # How long the first token takes
#
# Median time to first token of cold prefills, one request at a time, for each engine with and
# without its graph for prefill.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from graphgain import text
from graphgain.crossovers import crossovers
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import Fact, fact, machine_key, save_facts
from graphgain.figures import ttft, ttft_long
from graphgain.figures.engines import label
from graphgain.results.article import Statements
from graphgain.results.serving import Ttft
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, printed_fact
from graphgain.tables import stacked

SHORT = 4096  # tokens: the bound that the article calls short

documents = load_documents(results, machines, Ttft)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %%
rows = pd.DataFrame(
    [
        {
            "slug": name,
            "machine": labels[name],
            "engine": row.engine,
            "mode": row.mode,
            "isl_tokens": row.isl_tokens,
            "ttft_ms": row.ttft_ms.value,
            "low_ms": row.ttft_ms.low,
            "high_ms": row.ttft_ms.high,
            "n": row.ttft_ms.n,
            "text": text.quantity_with_interval(row.ttft_ms, 2),
        }
        for name, document in documents.items()
        for row in document.rows
    ],
    columns=[
        *("slug", "machine", "engine", "mode", "isl_tokens"),
        *("ttft_ms", "low_ms", "high_ms", "n", "text"),
    ],
)
# Kern first, then the others, each engine's modes in the order of the document.
order = {"kern": 0, "vllm": 1, "sglang": 2}
rows = rows.sort_values("engine", key=lambda engine: engine.map(order), kind="stable")
data = rows.drop(columns=["slug", "text"])
data.groupby(["machine", "engine", "mode"], sort=False)["isl_tokens"].agg(["count", "min", "max"])

# %% [markdown]
# ## Up to 4k tokens
#
# Where an engine's line is flat, the time does not depend on the work: the host sets it. Where it
# rises, the GPU does.

# %%
short = data[data["isl_tokens"] <= SHORT]
save_figure("ttft", lambda: ttft.draw(short, shown), short, out)

# %% [markdown]
# ## Who is faster, and from where on
#
# Every pair of modes of two different engines is compared at the lengths that both have. Where the
# sign of the difference changes, the crossover is placed by linear interpolation between the two
# lengths. Both directions count.

# %%
found = []
for (slug, machine), own in rows.groupby(["slug", "machine"], sort=False):
    curves = {
        key: curve.set_index("isl_tokens")["ttft_ms"].sort_index()
        for key, curve in own.groupby(["engine", "mode"], sort=False)
    }
    for one, two in combinations(curves, 2):
        if one[0] == two[0]:
            continue
        both = curves[one].index.intersection(curves[two].index)
        pair = [list(curves[key][both]) for key in (one, two)]
        found += [
            {
                "slug": slug,
                "machine": machine,
                "first_engine": one[0],
                "first_mode": one[1],
                "second_engine": two[0],
                "second_mode": two[1],
                "left_tokens": cross.left,
                "right_tokens": cross.right,
                "at_tokens": cross.at,
                "ttft_ms": cross.value,
                "first_below": cross.first_below,
            }
            for cross in crossovers(list(both), *pair)
        ]
crossings = pd.DataFrame(
    found,
    columns=[
        *("slug", "machine", "first_engine", "first_mode", "second_engine", "second_mode"),
        *("left_tokens", "right_tokens", "at_tokens", "ttft_ms", "first_below"),
    ],
)
crossings

# %% [markdown]
# Beyond 4k the lines nearly coincide, so the second panel shows each engine's TTFT relative to the
# first engine's, and only the differences of up to 40 %.

# %%
first_curves = {
    machine: own[own["mode"] == own["mode"].iloc[0]].query("engine == engine.iloc[0]")
    for machine, own in data.groupby("machine", sort=False)
}


def percent_of_first(machine: str, isl_tokens: float, ttft_ms: float) -> float:
    """How much longer than the machine's first engine, which is interpolated, in per cent."""
    curve = first_curves[machine]
    first = np.interp(isl_tokens, curve["isl_tokens"], curve["ttft_ms"])
    return float(100 * (ttft_ms / first - 1))


relative = data.assign(
    percent_of_first=[
        percent_of_first(row.machine, row.isl_tokens, row.ttft_ms) for row in data.itertuples()
    ]
)
marks = crossings.assign(
    percent_of_first=[
        percent_of_first(row.machine, row.at_tokens, row.ttft_ms) for row in crossings.itertuples()
    ]
)
save_figure("ttft_long", lambda: ttft_long.draw(relative, marks, shown), relative, out)

# %% [markdown]
# ## Tables

# %%
columns = list(dict.fromkeys(label(row.engine, row.mode) for row in rows.itertuples()))
cells = rows.assign(
    column=[label(row.engine, row.mode) for row in rows.itertuples()],
    isl=rows["isl_tokens"].map(text.number),
)
wide = (
    cells.pivot_table(
        index=["machine", "isl_tokens", "isl"], columns="column", values="text", aggfunc="first"
    )
    .reindex(columns=columns)
    .fillna("—")
    .reset_index()
    .rename(columns={"isl": "ISL (tokens)"})
)
save_table("ttft", data, stacked(wide, ["ISL (tokens)", *columns], shown), out)

# %%
CROSSED = ["faster before", "faster after", "between (tokens)", "at about (tokens)"]
listed = pd.DataFrame(
    [
        {
            "machine": row.machine,
            "faster before": (names := [first, second])[row.first_below],
            "faster after": names[not row.first_below],
            "between (tokens)": text.span(row.left_tokens, row.right_tokens),
            "at about (tokens)": text.number(round(row.at_tokens, -1)),
        }
        for row in crossings.itertuples()
        for first, second in [
            (
                label(row.first_engine, row.first_mode),
                label(row.second_engine, row.second_mode),
            )
        ]
    ],
    columns=["machine", *CROSSED],
)
save_table("ttft_crossovers", crossings.drop(columns="slug"), stacked(listed, CROSSED, shown), out)

# %% [markdown]
# ## Numbers for the prose
#
# `PAIRS` names an engine's mode with the graph for prefill and the one without. The graph is said
# to help as long as the mode without it takes 5 % longer.

# %%
KERN = ("kern", "default")
PAIRS = {
    "vllm": (("vllm", "piecewise"), ("vllm", "no-piecewise")),
    "sglang": (("sglang", "breakable"), ("sglang", "no-prefill-graph")),
}


def table_facts(key: str, table: pd.DataFrame) -> list[Fact]:
    """Facts of one machine's table: a row a length, a column an (engine, mode)."""
    short = table[table.index <= SHORT]
    facts = [
        fact(f"{key}.lengths", len(table)),
        fact(f"{key}.modes", len(table.columns)),
        fact(f"{key}.values", int(table.notna().sum().sum())),
        fact(f"{key}.shortest_tokens", int(table.index.min())),
        fact(f"{key}.longest_tokens", int(table.index.max())),
    ]
    for (engine, mode), curve in table.items():
        facts += [
            fact(f"{key}.{engine}_{mode.replace('-', '_')}_{isl}_ms", float(ms), "ms", 1)
            for isl, ms in curve.dropna().items()
        ]
    if KERN in table:
        others = table.drop(columns=[KERN]).min(axis=1)
        ahead = table[KERN] < others
        leading = ahead.cummin()
        facts += [
            fact(f"{key}.short_lengths", len(short)),
            fact(f"{key}.kern_first_short", int(ahead[short.index].sum())),
            fact(f"{key}.kern_first_through_tokens", int(table.index[leading].max())),
            fact(
                f"{key}.kern_lead_least_ms",
                float((others - table[KERN])[short.index].min()),
                "ms",
                1,
            ),
            fact(f"{key}.best_over_kern_shortest", float((others / table[KERN]).iloc[0]), "", 1),
            fact(
                f"{key}.kern_over_best_longest_percent",
                float(100 * (table[KERN] / others - 1).iloc[-1]),
                "%",
                1,
            ),
        ]
    if KERN in table and PAIRS["sglang"][0] in table:
        longer = 100 * (table[PAIRS["sglang"][0]] / table[KERN] - 1)
        facts += [
            fact(f"{key}.sglang_over_kern_{isl}_percent", float(longer[isl]), "%")
            for isl in sorted({SHORT, int(table.index.max())})
            if isl in longer
        ]
    for engine, (on, off) in PAIRS.items():
        if on in table and off in table:
            slower = short[off] > 1.05 * short[on]
            facts += [
                fact(
                    f"{key}.{engine}_graph_saves_shortest_ms",
                    float((table[off] - table[on]).iloc[0]),
                    "ms",
                    1,
                ),
                fact(f"{key}.{engine}_graph_helps_through_tokens", int(short.index[slower].max())),
            ]
    steps = short.get(("vllm", "piecewise"), pd.Series(dtype=float)).diff().nlargest(2).sort_index()
    for number, (isl, step) in enumerate(steps.items(), 1):
        before = short.index[short.index.get_loc(isl) - 1]
        facts += [
            fact(f"{key}.vllm_step{number}_ms", float(step), "ms", 1),
            fact(f"{key}.vllm_step{number}_from_tokens", int(before)),
            fact(f"{key}.vllm_step{number}_to_tokens", int(isl)),
        ]
    return facts


# %%
facts = []
for slug, own in rows.groupby("slug", sort=False):
    key = f"ttft.{machine_key(slug)}"
    facts += table_facts(
        key,
        own.pivot_table(
            index="isl_tokens", columns=["engine", "mode"], values="ttft_ms", sort=False
        ).sort_index(),
    )
    facts += [
        fact(f"{key}.requests", documents[slug].parameters.requests_per_length),
        fact(f"{key}.crossovers", int((crossings["slug"] == slug).sum())),
    ]
for slug, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        printed_fact(f"ttft.{machine_key(slug)}.{name}", printed[name])
        for name in ("sweep_tokens", "sweep_figure_tokens", "sweep_kern_fastest_tokens")
    ]
save_facts(facts, Path(out) / "facts" / "ttft.json")
