# ---
# jupyter:
#   graphgain:
#     title: What an agent waits for the first token
#     documents: [agent_workload, ttft]
#     figures: [agent_ttft]
#     tables: [agent_ttft]
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
# # What an agent waits for the first token
#
# A sweep says how long a prompt of each length takes, a trace how often each length occurs.
# Together they say what an agent waits.

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
from graphgain.expected import expected_ttft, ttft_at
from graphgain.facts import fact, machine_key, save_facts
from graphgain.figures import agent_ttft
from graphgain.figures.engines import label, look, place
from graphgain.results.serving import AgentWorkload, Ttft
from graphgain.results.store import load_documents, load_traces, machine_labels
from graphgain.tables import stacked

sweeps = load_documents(results, machines, Ttft)
workloads = load_documents(results, machines, AgentWorkload) | load_traces(results)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %% [markdown]
# The sweep's prompts find nothing in the cache. A request of a trace counts as a prompt of its
# tokens to prefill: the time for attention over what is cached is left out, so these are lower
# bounds. Between two lengths of the sweep TTFT is interpolated, below the shortest it is that of
# the shortest. Requests beyond the longest length are left out of the mean, and it is said how
# many those are. Of a trace of which only a summary is known there is no mean: the median request
# has to do. Modes that the article does not have are left out: they were swept less far, so that
# their means would be of other requests.

# %%
found = []
for machine, sweep in sweeps.items():
    rows = pd.DataFrame(
        [
            (row.engine, row.mode, row.isl_tokens, row.ttft_ms.value)
            for row in sweep.rows
            if not look(row.engine, row.mode).one_more
        ],
        columns=["engine", "mode", "isl_tokens", "ttft_ms"],
    )
    order = [place(row.engine, row.mode) for row in rows.itertuples()]
    rows = rows.iloc[sorted(range(len(rows)), key=order.__getitem__)]
    for slug, workload in workloads.items():
        median = next(row.tokens.value for row in workload.percentiles if row.percentile == 50)
        bins = workload.distribution or []
        for (engine, mode), own in rows.groupby(["engine", "mode"], sort=False):
            own = own.sort_values("isl_tokens")
            lengths, times = list(own["isl_tokens"]), list(own["ttft_ms"])
            expected = expected_ttft(
                lengths,
                times,
                [row.prefill_tokens / row.requests for row in bins],
                [row.requests for row in bins],
            )
            found.append(
                {
                    "slug": machine,
                    "trace_slug": slug,
                    "machine": labels[machine],
                    "trace": workload.parameters.dataset,
                    "engine": engine,
                    "mode": mode,
                    "mean_ms": expected.mean_ms if expected else np.nan,
                    "reached_percent": expected.reached_percent if expected else np.nan,
                    "p50_tokens": median,
                    "p50_ms": ttft_at(lengths, times, median) if median <= lengths[-1] else np.nan,
                }
            )
COLUMNS = ["slug", "trace_slug", "machine", "trace", "engine", "mode"]
NUMBERS = ["mean_ms", "reached_percent", "p50_tokens", "p50_ms"]
waits = pd.DataFrame(found, columns=[*COLUMNS, *NUMBERS])
data = waits.drop(columns=["slug", "trace_slug"])
data

# %%
save_figure("agent_ttft", lambda: agent_ttft.draw(data, shown), data, out)

# %%
SHOWN = ["trace", "engine", "mean (ms)", "median request (ms)", "requests in the mean"]
cells = pd.DataFrame(
    [
        {
            "machine": row.machine,
            "trace": row.trace,
            "engine": label(row.engine, row.mode),
            "mean (ms)": "—" if np.isnan(row.mean_ms) else text.number(row.mean_ms, 1),
            "median request (ms)": "—" if np.isnan(row.p50_ms) else text.number(row.p50_ms, 1),
            "requests in the mean": "—"
            if np.isnan(row.reached_percent)
            else f"{row.reached_percent:.1f}%",
        }
        for row in waits.itertuples()
    ],
    columns=["machine", *SHOWN],
)
save_table("agent_ttft", data, stacked(cells, SHOWN, shown), out)

# %% [markdown]
# ## Numbers for the prose

# %%
facts = []
for row in waits.itertuples():
    key = f"agent_ttft.{machine_key(row.slug)}.{machine_key(row.trace_slug)}"
    mode = f"{row.engine}_{row.mode.replace('-', '_')}"
    if not np.isnan(row.mean_ms):
        facts.append(fact(f"{key}.{mode}_mean_ms", row.mean_ms, "ms"))
    if not np.isnan(row.p50_ms):
        facts.append(fact(f"{key}.{mode}_p50_ms", row.p50_ms, "ms"))
for (machine, slug), own in waits.groupby(["slug", "trace_slug"], sort=False):
    key = f"agent_ttft.{machine_key(machine)}.{machine_key(slug)}"
    means = own.set_index(["engine", "mode"])["mean_ms"].dropna()
    if means.empty:
        continue
    reached = float(own["reached_percent"].iloc[0])
    facts += [
        fact(f"{key}.reached_percent", reached, "%", 1),
        fact(f"{key}.beyond_percent", 100 - reached, "%", 1),
    ]
    graphs = {
        "vllm": (("vllm", "piecewise"), ("vllm", "no-piecewise")),
        "sglang": (("sglang", "breakable"), ("sglang", "no-prefill-graph")),
    }
    facts += [
        fact(f"{key}.{engine}_graph_saves_ms", means[off] - means[on], "ms")
        for engine, (on, off) in graphs.items()
        if on in means and off in means
    ]
    if ("kern", "default") in means:
        kern = means["kern", "default"]
        facts += [
            fact(f"{key}.{engine}_above_kern_ms", means[on] - kern, "ms")
            for engine, (on, _) in graphs.items()
            if on in means
        ]
        facts += [
            fact(f"{key}.{engine}_{mode.replace('-', '_')}_over_kern", ms / kern, "", 1)
            for (engine, mode), ms in means.items()
            if engine != "kern"
        ]
save_facts(facts, Path(out) / "facts" / "agent_ttft.json")
