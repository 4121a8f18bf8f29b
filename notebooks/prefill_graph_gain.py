# ---
# jupyter:
#   graphgain:
#     title: What a graph would save in a short prefill
#     documents: [prefill_graph_gain]
#     figures: [prefill_graph_gain, prefill_queue]
#     tables: [prefill_graph_gain]
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
# # What a graph would save in a short prefill
#
# A prefill of a few hundred tokens takes tens of milliseconds. If the host keeps ahead of the GPU,
# the graph can save only a fixed amount per launch, so its share shrinks as the prefill grows.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from pathlib import Path

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts, words
from graphgain.figures import prefill_graph_gain, prefill_queue
from graphgain.results.forwards import PrefillGraphGain
from graphgain.results.quantity import Quantity
from graphgain.results.store import load_documents, machine_labels
from graphgain.tables import stacked

documents = load_documents(results, machines, PrefillGraphGain)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# What is saved is the difference between kernel-by-kernel launches from the fastest host (the C++
# loop where it was measured, else the engine's own eager mode) and the graph; per call, that
# difference is divided by the calls of the forward. Where a source prints these two itself, its own
# number is kept: it comes from times that are not rounded yet.
#
# The host time is that of the run that was timed, which a full launch queue may have held back.
# `waiting_launches` estimates how many launches the GPU had not reached when the host was done: the
# GPU is taken to work through them evenly, so the share is one minus host time over eager time.

# %%
COLUMNS = [
    *("name", "machine", "tokens", "cached_tokens", "graph_ms", "eager_ms", "host_issue_ms"),
    *("launches", "saved_ms", "saved_percent", "per_call_us", "waiting_launches"),
]
records = []
for name, document in documents.items():
    for row in document.rows:
        eager_ms = (row.cpp_eager_ms or row.eager_ms).value
        saved_ms = row.saved_ms.value if row.saved_ms else eager_ms - row.graph_ms.value
        launches = row.launches or document.calls_per_forward
        issue_ms = (row.cpp_issue_ms or row.host_issue_ms).value
        busy = min(1.0, issue_ms / eager_ms)
        records.append(
            {
                "name": name,
                "machine": labels[name],
                "tokens": row.tokens,
                "cached_tokens": row.cached_tokens,
                "graph_ms": row.graph_ms.value,
                "eager_ms": eager_ms,
                "host_issue_ms": issue_ms,
                "launches": launches,
                "saved_ms": saved_ms,
                "saved_percent": row.saved_percent_printed or 100 * saved_ms / eager_ms,
                "per_call_us": row.per_call_us_printed or 1000 * saved_ms / launches,
                "waiting_launches": (1 - busy) * launches,
            }
        )
rows = pd.DataFrame(records, columns=COLUMNS)
rows.drop(columns="name")

# %%
save_figure(
    "prefill_graph_gain",
    lambda: prefill_graph_gain.draw(rows, shown_machines),
    rows[["machine", "tokens", "cached_tokens", "saved_ms", "saved_percent"]],
    out,
)

# %% [markdown]
# The host needs the same time for every length, until the number of launches that wait reaches a
# ceiling. From there on it is held back by the GPU.

# %%
save_figure(
    "prefill_queue",
    lambda: prefill_queue.draw(rows, shown_machines),
    rows[["machine", "tokens", "cached_tokens", "eager_ms", "host_issue_ms", "waiting_launches"]],
    out,
)


# %%
def prefill_name(tokens: int, cached_tokens: int) -> str:
    """`256 after 4k` for a prefill behind cached tokens."""
    after = f" after {cached_tokens // 1024}k cached" if cached_tokens else ""
    return f"{text.number(tokens)} tokens{after}"


digits = {"graph (ms)": ("graph_ms", 2), "eager (ms)": ("eager_ms", 2)}
digits |= {"saved (ms)": ("saved_ms", 2), "saved (%)": ("saved_percent", 1)}
digits |= {"saved per call (µs)": ("per_call_us", 2), "host issues (ms)": ("host_issue_ms", 2)}
cells = pd.DataFrame(
    [
        {
            "machine": row["machine"],
            "prefill": prefill_name(row["tokens"], row["cached_tokens"]),
            **{
                shown: text.number(row[column], places)
                for shown, (column, places) in digits.items()
            },
        }
        for row in records
    ]
)
save_table(
    "prefill_graph_gain",
    rows.drop(columns="name"),
    stacked(cells, ["prefill", *digits], shown_machines),
    out,
)

# %% [markdown]
# Numbers for the prose. A prefill counts as held back by the launch queue when its host time is
# more than a tenth above the shortest one of the same machine.


# %%
def extent(values: pd.Series) -> Quantity:
    """Lowest to highest of some values."""
    return Quantity(low=values.min(), high=values.max(), interval="printed range")


facts = []
for name, own in rows.groupby("name", sort=False):
    key = f"prefill_graph_gain.{machine_key(name)}"
    held_back = own["host_issue_ms"] > 1.1 * own["host_issue_ms"].min()
    free, full = own[~held_back], own[held_back]
    launches = int(own["launches"].iloc[0])
    facts += [
        fact(f"{key}.calls", launches),
        fact(f"{key}.prefills", len(own)),
        fact(f"{key}.graph_ms", extent(own["graph_ms"]), "ms", 2),
        fact(f"{key}.eager_ms", extent(own["eager_ms"]), "ms", 2),
        fact(f"{key}.saved_us", extent(1000 * own["saved_ms"].round(2)), "µs"),
        fact(f"{key}.saved_percent", extent(own["saved_percent"]), "%", 1),
        fact(f"{key}.per_call_us", extent(own["per_call_us"]), "µs", 2),
        fact(f"{key}.free_host_issue_ms", extent(free["host_issue_ms"]), "ms", 2),
        fact(f"{key}.issue_us_per_call", extent(1000 * free["host_issue_ms"] / launches), "µs", 1),
        fact(f"{key}.free_waiting", extent(free["waiting_launches"])),
    ]
    if not full.empty:
        facts += [
            fact(f"{key}.full_host_issue_ms", extent(full["host_issue_ms"]), "ms", 2),
            fact(f"{key}.full_waiting", extent(full["waiting_launches"])),
            fact(f"{key}.free_tokens", int(free["tokens"].max())),
            words(f"{key}.full_tokens", " and ".join(text.number(n) for n in full["tokens"])),
        ]
    behind = own[own["cached_tokens"] > 0]
    if not behind.empty:
        facts += [
            fact(f"{key}.cached_length", int(behind["tokens"].iloc[0])),
            words(f"{key}.most_cached", f"{behind['cached_tokens'].max() // 1024}k"),
        ]
    for row in own.to_dict("records"):
        cached = f"_after_{row['cached_tokens'] // 1024}k" if row["cached_tokens"] else ""
        point = f"{key}.t{row['tokens']}{cached}"
        facts += [
            fact(f"{point}_eager_ms", row["eager_ms"], "ms", 2),
            fact(f"{point}_saved_percent", row["saved_percent"], "%", 1),
            fact(f"{point}_saved_us", 1000 * row["saved_ms"], "µs"),
            fact(f"{point}_waiting", row["waiting_launches"]),
            fact(f"{point}_host_issue_ms", row["host_issue_ms"], "ms", 2),
        ]
save_facts(facts, Path(out) / "facts" / "prefill_graph_gain.json")
