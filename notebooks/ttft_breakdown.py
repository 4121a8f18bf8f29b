# ---
# jupyter:
#   graphgain:
#     title: What a first token's time is made of
#     documents: [ttft_breakdown, ttft, prefill_graph_gain, statements]
#     figures: [ttft_breakdown]
#     tables: [ttft_breakdown, ttft_gaps]
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
# # What a first token's time is made of
#
# Traced requests of engines with and without a graph for prefill: how long the GPU is busy, how
# often the host launches, how far apart the launches are, and what the GPU waits for.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from pathlib import Path

import numpy as np
import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import Fact, fact, machine_key, save_facts
from graphgain.figures import ttft_breakdown
from graphgain.figures.engines import label, place
from graphgain.results.article import Statements
from graphgain.results.forwards import PrefillGraphGain
from graphgain.results.quantity import Quantity
from graphgain.results.serving import BreakdownBeside, BreakdownRow, Ttft, TtftBreakdown
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, printed_fact
from graphgain.tables import stacked

documents = load_documents(results, machines, TtftBreakdown)
sweeps = load_documents(results, machines, Ttft)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %% [markdown]
# A tracer slows the host down. So each traced TTFT stands beside one of the same engine, mode and
# length without a tracer: of requests sent in the same way just before, where they are known, else
# the sweep's.

# %%
swept = {
    (name, row.engine, row.mode, row.isl_tokens): row.ttft_ms.value
    for name, sweep in sweeps.items()
    for row in sweep.rows
}


def busy_percent(row: BreakdownRow, *, printed: bool) -> float:
    """The share of the traced TTFT in which the GPU works. The article prints it; a measured row's
    own leaves out the time before the first launch and after the last operation."""
    share = 100 * row.gpu_busy_ms.value / row.ttft_traced_ms.value
    return row.gpu_busy_percent if printed else share


def optional(quantity: Quantity | None) -> float:
    """A value, NaN where there is none."""
    return np.nan if quantity is None else quantity.value


profiled = [
    (name, part.engine, part.mode, row)
    for name, document in documents.items()
    for part in [
        BreakdownBeside(
            engine=document.parameters.engine, mode=document.parameters.mode, rows=document.rows
        ),
        *(document.beside or []),
    ]
    for row in part.rows
]
rows = pd.DataFrame(
    [
        {
            "slug": name,
            "machine": labels[name],
            "engine": engine,
            "mode": mode,
            "isl_tokens": row.isl_tokens,
            "traced_ms": row.ttft_traced_ms.value,
            "untraced_ms": (
                row.ttft_untraced_ms.value
                if row.ttft_untraced_ms
                else swept.get((name, engine, mode, row.isl_tokens))
            ),
            "swept_ms": swept.get((name, engine, mode, row.isl_tokens)),
            "busy_ms": row.gpu_busy_ms.value,
            "idle_ms": row.ttft_traced_ms.value - row.gpu_busy_ms.value,
            "busy_percent": busy_percent(row, printed=documents[name].kind == "published"),
            "launches": row.launches_per_request,
            "interval_us": row.launch_interval_us.value,
            "graph_launches": row.graph_launches_per_request,
            "kernels": row.kernels_per_request,
            "in_graphs": row.kernels_in_graphs_per_request,
            "interval_median_us": optional(row.launch_interval_median_us),
            "before_ms": optional(row.before_first_launch_ms),
            "waiting_ms": optional(row.waiting_for_host_ms),
            "between_ms": optional(row.between_kernels_ms),
            "after_ms": optional(row.after_last_operation_ms),
        }
        for name, engine, mode, row in profiled
    ],
    columns=[
        *("slug", "machine", "engine", "mode", "isl_tokens", "traced_ms", "untraced_ms"),
        *("swept_ms", "busy_ms", "idle_ms", "busy_percent", "launches", "interval_us"),
        *("graph_launches", "kernels", "in_graphs", "interval_median_us"),
        *("before_ms", "waiting_ms", "between_ms", "after_ms"),
    ],
).astype(
    {name: float for name in ("untraced_ms", "swept_ms", "graph_launches", "kernels", "in_graphs")}
)
# A document's own engine first, the others' modes in the order of every figure.
order = [
    (row.engine != documents[row.slug].parameters.engine, place(row.engine, row.mode))
    for row in rows.itertuples()
]
rows = rows.iloc[sorted(range(len(rows)), key=order.__getitem__)]
data = rows.drop(columns="slug")
data

# %% [markdown]
# Kern's interval is printed in the article's prose only.

# %%
statements = load_documents(results, machines, Statements)
printed = {name: by_name(document) for name, document in statements.items()}
kern = [rows_["kern_prefill_launch_interval_us"].quantity.value for rows_ in printed.values()]
reference = ("Kern", kern[0]) if kern else None
save_figure("ttft_breakdown", lambda: ttft_breakdown.draw(data, reference, shown), data, out)

# %%
COLUMNS = {
    "ISL (tokens)": ("isl_tokens", 0),
    "TTFT, traced (ms)": ("traced_ms", 1),
    "TTFT, untraced (ms)": ("untraced_ms", 1),
    "GPU busy (ms)": ("busy_ms", 1),
    "busy": ("busy_percent", 0),
    "launches": ("launches", 0),
    "interval (µs)": ("interval_us", 1),
}


def table(own: pd.DataFrame, columns: dict[str, tuple[str, int]]) -> pd.DataFrame:
    """Cells of a table: machine, engine, and the columns by title with their digits."""
    cells = pd.DataFrame({"machine": own["machine"]})
    cells["engine"] = [label(row.engine, row.mode) for row in own.itertuples()]
    for title, (column, digits) in columns.items():
        unit = "%" if column == "busy_percent" else ""
        cells[title] = [
            "—" if pd.isna(value) else text.with_unit(text.number(value, digits), unit)
            for value in own[column]
        ]
    return cells


save_table("ttft_breakdown", data, stacked(table(data, COLUMNS), ["engine", *COLUMNS], shown), out)

# %% [markdown]
# What a measured machine's requests are made of beyond the published columns: the time before the
# first launch, idle time of the GPU by what it waits for, and the time after its last operation.

# %%
GAPS = {
    "ISL (tokens)": ("isl_tokens", 0),
    "kernels": ("kernels", 0),
    "in graphs": ("in_graphs", 0),
    "graphs": ("graph_launches", 0),
    "before (ms)": ("before_ms", 1),
    "host late (ms)": ("waiting_ms", 1),
    "between (ms)": ("between_ms", 1),
    "after (ms)": ("after_ms", 1),
}
told = data[data["kernels"].notna()]
own = list(dict.fromkeys(told["machine"])) or shown  # the article has the columns above only
save_table("ttft_gaps", told, stacked(table(told, GAPS), ["engine", *GAPS], own), out)

# %% [markdown]
# ## Two regimes
#
# TTFT ≈ fixed overhead + max(host time to issue, GPU time to compute). In the rows where the GPU is
# nearly always busy the overhead is what the GPU's time leaves over. In the others the TTFT is the
# host's, and nearly the same at every length.

# %%
BOUND_PERCENT = 92  # busy share from which the GPU is taken as the slower side


def regimes(own: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows in which the host sets the time, and those in which the GPU does."""
    by_gpu = own["busy_percent"] >= BOUND_PERCENT
    return {"host": own[~by_gpu], "gpu": own[by_gpu]}


{name: len(part) for name, part in regimes(rows).items()}


# %%
def ends(name: str, values: pd.Series, unit: str, digits: int) -> list[Fact]:
    """The lowest and the highest of some values, as facts `NAME_low` and `NAME_high`."""
    if values.empty:
        return []
    return [
        fact(f"{name}_{end}", float(value), unit, digits)
        for end, value in (("low", values.min()), ("high", values.max()))
    ]


facts = []
for (slug, engine, mode), own in rows.groupby(["slug", "engine", "mode"], sort=False):
    key = f"ttft_breakdown.{machine_key(slug)}"
    if len(rows.loc[rows["slug"] == slug, ["engine", "mode"]].drop_duplicates()) > 1:
        key += f".{engine}_{mode.replace('-', '_')}"
    for row in own.itertuples():
        at = f"{key}.isl{row.isl_tokens}"
        if not pd.isna(row.kernels):
            facts += [
                fact(f"{at}_kernels", int(row.kernels)),
                fact(f"{at}_in_graphs", int(row.in_graphs)),
                fact(f"{at}_graph_launches", int(row.graph_launches)),
                fact(f"{at}_interval_median_us", row.interval_median_us, "µs"),
                fact(f"{at}_waiting_ms", row.waiting_ms, "ms", 1),
                fact(f"{at}_between_ms", row.between_ms, "ms", 1),
            ]
            facts += [
                fact(f"{at}_{name}_ms", value, "ms", 1)
                for name, value in (("before", row.before_ms), ("after", row.after_ms))
                if not np.isnan(value)
            ]
        facts += [
            fact(f"{at}_traced_ms", row.traced_ms, "ms", 1),
            fact(f"{at}_busy_ms", row.busy_ms, "ms", 1),
            fact(f"{at}_busy_percent", row.busy_percent, "%"),
            fact(f"{at}_launches", row.launches),
            fact(f"{at}_interval_us", row.interval_us, "µs", 1),
        ]
        if not pd.isna(row.swept_ms):
            facts.append(fact(f"{at}_swept_ms", row.swept_ms, "ms", 1))
        if not pd.isna(row.untraced_ms):
            facts += [
                fact(f"{at}_untraced_ms", row.untraced_ms, "ms", 1),
                fact(f"{at}_tracing_ms", row.traced_ms - row.untraced_ms, "ms", 1),
                fact(f"{at}_untraced_interval_us", 1000 * row.untraced_ms / row.launches, "µs", 1),
            ]
    part = regimes(own)
    facts += ends(f"{key}.overhead_ms", part["gpu"]["idle_ms"], "ms", 1)
    facts += ends(f"{key}.host_bound_ttft_ms", part["host"]["traced_ms"], "ms", 1)
    facts += ends(f"{key}.host_bound_interval_us", part["host"]["interval_us"], "µs", 1)
    facts += ends(f"{key}.host_bound_tokens", part["host"]["isl_tokens"], "", 0)
    facts += ends(f"{key}.launches", own["launches"], "", 0)
for (slug, isl), own in rows.groupby(["slug", "isl_tokens"]):
    name = f"ttft_breakdown.{machine_key(slug)}.busy_least_{isl}_percent"
    facts.append(fact(name, float(own["busy_percent"].min()), "%"))
for slug, document in load_documents(results, machines, PrefillGraphGain).items():
    row = min(document.rows, key=lambda row: (row.cached_tokens, row.tokens))
    facts.append(
        fact(
            f"ttft_breakdown.{machine_key(slug)}.kern_issue_per_call_us",
            1000 * row.host_issue_ms.value / document.calls_per_forward,
            "µs",
            1,
        )
    )
for slug, known in printed.items():
    facts += [
        printed_fact(f"ttft_breakdown.{machine_key(slug)}.{name}", known[name])
        for name in (
            "breakdown_launch_overhead_us",
            "kern_prefill_launch_interval_us",
            "tldr_sglang_launch_interval_us",
            "tldr_kern_launch_interval_us",
            "tldr_host_bound_tokens",
            "tldr_gpu_busy_percent",
        )
    ]
save_facts(facts, Path(out) / "facts" / "ttft_breakdown.json")
