# ---
# jupyter:
#   graphgain:
#     title: What other Python threads do to a launch
#     documents: [gil, statements]
#     figures: [gil]
#     tables: [gil_threads, gil_intervals]
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
# # What other Python threads do to a launch
#
# One lock lets one thread at a time run Python. This notebook plays its rules through for two
# threads, counts the threads of a server, and shows measured intervals where there are any.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from graphgain import text
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import fact, machine_key, save_facts, words
from graphgain.figures import gil
from graphgain.gil_policy import launcher_and_computing_thread, two_computing_threads
from graphgain.results.article import Statements
from graphgain.results.store import load_documents, machine_labels
from graphgain.results.threads import Gil
from graphgain.statements import by_name, printed_fact
from graphgain.tables import stacked

documents = load_documents(results, machines, Gil)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %% [markdown]
# ## The rules, played through
#
# The switch interval comes from the document of the first machine that has one. All other lengths
# are chosen so that the picture can be read.

# %%
first = next(iter(documents.values()), None)
switch_ms = first.parameters.switch_interval_ms if first else 0.0
computing = two_computing_threads(switch_ms) if first else []
launching = launcher_and_computing_thread(switch_ms) if first else []
spans = pd.DataFrame(
    [
        {"what": f"rule: {scenario}", **asdict(span)}
        for scenario, list_of_spans in (("A computes", computing), ("A launches", launching))
        for span in list_of_spans
    ],
    columns=["what", "thread", "state", "start_ms", "end_ms"],
)
spans

# %% [markdown]
# ## Measured intervals
#
# A launcher thread makes short calls with the lock released, beside threads that only compute.

# %%
measured = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "background_threads": row.background_threads,
            "call_us": row.spin_us,
            "p50_us": row.interval_us.value,
            "p90_us": row.p90_us,
            "p99_us": row.p99_us,
            "max_us": row.max_us,
            "share_over_1ms_percent": row.share_over_1ms_percent,
            "text": text.quantity_with_interval(row.interval_us, 1),
        }
        for name, document in documents.items()
        for row in document.rows
    ],
    columns=[
        *("machine", "background_threads", "call_us", "p50_us", "p90_us", "p99_us", "max_us"),
        *("share_over_1ms_percent", "text"),
    ],
).astype({"p99_us": float})
measured.drop(columns="text")

# %% [markdown]
# The figure has one length of call a machine, the shortest; the table has all.

# %%
shortest = measured[measured["call_us"] == measured.groupby("machine")["call_us"].transform("min")]
data = pd.concat([spans, shortest.drop(columns="text").assign(what="measured intervals")])
save_figure(
    "gil",
    lambda: (
        gil.draw(computing, launching, switch_ms, shortest, shown)
        if first
        else gil.draw_nothing(shown)
    ),
    data,
    out,
)

# %%
INTERVALS = ["call (µs)", "background threads", "p50 (µs)", "p90 (µs)", "p99 (µs)", "over 1 ms"]
listed = pd.DataFrame(
    [
        [
            *(row.machine, f"{row.call_us:g}", str(row.background_threads), row.text),
            text.number(row.p90_us, 1),
            "—" if pd.isna(row.p99_us) else text.number(row.p99_us, 1),
            f"{row.share_over_1ms_percent:.1f}%",
        ]
        for row in measured.itertuples()
    ],
    columns=["machine", *INTERVALS],
)
save_table("gil_intervals", measured.drop(columns="text"), stacked(listed, INTERVALS, shown), out)

# %% [markdown]
# ## The threads of a server

# %%
census = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "process": row.process,
            "when": row.when,
            "threads": row.threads,
            "issues_kernels": row.issues_kernels,
        }
        for name, document in documents.items()
        for row in document.census
    ],
    columns=["machine", "process", "when", "threads", "issues_kernels"],
).astype({"threads": "Int64"})
THREADS = ["process", "Python threads", "issues kernels"]
counted = pd.DataFrame(
    [
        [
            row.machine,
            f"{row.process}, {row.when}" if pd.notna(row.when) else row.process,
            "not given" if pd.isna(row.threads) else f"{'+' * pd.notna(row.when)}{row.threads}",
            "yes" if row.issues_kernels else "no",
        ]
        for row in census.itertuples()
    ],
    columns=["machine", *THREADS],
)
save_table("gil_threads", census, stacked(counted, THREADS, shown), out)

# %% [markdown]
# ## Numbers for the prose

# %%
facts = []
for name, document in documents.items():
    key = f"gil.{machine_key(name)}"
    facts += [
        fact(f"{key}.switch_interval_ms", document.parameters.switch_interval_ms, "ms"),
        words(f"{key}.python", document.parameters.python),
    ]
    issuing = [row for row in document.census if row.issues_kernels and row.threads]
    if issuing:
        facts += [
            fact(f"{key}.threads_most", sum(row.threads for row in issuing)),
        ]
    for row in document.rows:
        case = f"{key}.call{row.spin_us:g}_beside{row.background_threads}".replace("us.", "us_")
        facts += [
            fact(f"{case}_p50_us", row.interval_us, "µs", 1),
            fact(f"{case}_p90_us", row.p90_us, "µs", 1),
            fact(f"{case}_over_1ms_percent", row.share_over_1ms_percent, "%", 1),
        ]
for name, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        printed_fact(f"gil.{machine_key(name)}.{statement}", printed[statement])
        for statement in (
            "threads_http_tokenizer",
            "processes_per_card",
            "threads_scheduler_worker",
            "threads_hicache_extra",
            "gil_wait_ms",
        )
    ]
save_facts(facts, Path(out) / "facts" / "gil.json")
