# ---
# jupyter:
#   graphgain:
#     title: How much of an agent's input needs prefill
#     documents: [agent_workload, statements]
#     figures: [prefill_tokens]
#     tables: [agent_workload]
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
# # How much of an agent's input needs prefill
#
# An agent sends its whole history with each request, and a prefix cache already holds nearly all of
# it. What is left to prefill is short. Here is what is known of its distribution.

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
from graphgain.figures import prefill_tokens
from graphgain.results.article import Statements
from graphgain.results.serving import AgentWorkload
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, printed_fact
from graphgain.tables import stacked

documents = load_documents(results, machines, AgentWorkload)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %% [markdown]
# A percentile and a share say the same thing from two sides: so many per cent of the requests have
# at most so many tokens to prefill. Each is one point of the cumulative distribution.

# %%
hits = pd.DataFrame(
    [
        {"machine": labels[name], "percent": document.cache_hit_percent}
        for name, document in documents.items()
    ],
    columns=["machine", "percent"],
)
points = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "tokens": row.tokens.value,
            "percent": row.percentile,
            "approximate": row.tokens.approximate,
        }
        for name, document in documents.items()
        for row in document.percentiles
    ]
    + [
        {
            "machine": labels[name],
            "tokens": row.tokens,
            "percent": row.percent,
            "approximate": False,
        }
        for name, document in documents.items()
        for row in document.shares
    ],
    columns=["machine", "tokens", "percent", "approximate"],
)
points

# %% [markdown]
# The published summary gives two points. A curve through two points would be invented, so the
# figure shows the points and shades what they leave open.

# %%
labelled = points.assign(
    text=[
        f"{row.percent:g} % of requests:\n≤ {'about ' * row.approximate}"
        f"{text.number(row.tokens)} tokens"
        for row in points.itertuples()
    ]
)
data = pd.concat(
    [
        hits.assign(quantity="input tokens found in the prefix cache"),
        points.assign(quantity="requests with at most `tokens` to prefill"),
    ]
).reindex(columns=["machine", "quantity", "tokens", "percent", "approximate"])
save_figure("prefill_tokens", lambda: prefill_tokens.draw(hits, labelled, shown), data, out)

# %%
ROWS = ["trace", "known quantity", "value"]
rows = pd.DataFrame(
    [
        {"machine": labels[name], "trace": document.parameters.dataset, "known quantity": what}
        | {"value": value}
        for name, document in documents.items()
        for what, value in [
            ("input tokens found in the cache", f"{document.cache_hit_percent:g}%"),
            *(
                (
                    f"tokens to prefill, p{row.percentile:g}",
                    "about " * row.tokens.approximate + text.quantity(row.tokens),
                )
                for row in document.percentiles
            ),
            *(
                (f"requests with at most {text.number(row.tokens)} tokens", f"{row.percent:g}%")
                for row in document.shares
            ),
        ]
    ],
    columns=["machine", *ROWS],
)
save_table("agent_workload", data, stacked(rows, ROWS, shown), out)

# %% [markdown]
# Numbers for the prose. The article's own rounding is kept beside the value: it prints 85 % in its
# summary and 85.2 % in the section.

# %%
facts = []
for name, document in documents.items():
    key = f"agent_workload.{machine_key(name)}"
    hit = document.cache_hit_percent
    facts += [
        fact(f"{key}.cache_hit_percent", hit, "%", 1),
        fact(f"{key}.cache_miss_percent", 100 - hit, "%", 1),
        fact(f"{key}.block_tokens", document.parameters.block_tokens),
    ]
    for row in document.percentiles:
        facts.append(fact(f"{key}.p{row.percentile:g}_tokens", row.tokens))
    for share in document.shares:
        facts += [
            fact(f"{key}.share_{share.tokens}_percent", share.percent, "%", 1),
            fact(f"{key}.longer_than_{share.tokens}_percent", 100 - share.percent, "%", 1),
        ]
for name, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        printed_fact(f"agent_workload.{machine_key(name)}.{statement}", printed[statement])
        for statement in (
            "tldr_short_prefill_percent",
            "agentx_median_percent",
            "agentx_prefill_tokens_p50",
            "agentx_short_prefill_percent",
            "agentx_short_prefill_tokens",
        )
    ]
save_facts(facts, Path(out) / "facts" / "agent_workload.json")
