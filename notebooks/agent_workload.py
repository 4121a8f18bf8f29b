# ---
# jupyter:
#   graphgain:
#     title: How much of an agent's input needs prefill
#     documents: [agent_workload, statements]
#     figures: [prefill_tokens, cache_curve]
#     tables: [agent_workload, workload_variants]
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
from graphgain.figures import cache_curve, prefill_tokens
from graphgain.results.article import Statements
from graphgain.results.serving import AgentWorkload
from graphgain.results.store import load_documents, load_traces, machine_labels
from graphgain.statements import by_name, printed_fact
from graphgain.tables import NOT_MEASURED
from graphgain.traces.rules import EXPLAINED

published = load_documents(results, machines, AgentWorkload)
traces = load_traces(results)
documents = published | traces
labels = machine_labels(results, machines)
titles = {name: document.parameters.dataset for name, document in documents.items()}
shown = [*titles.values(), *(labels[name] for name in machines if name not in published)]

# %% [markdown]
# A percentile and a share say the same thing from two sides: so many per cent of the requests have
# at most so many tokens to prefill. Each is one point of the cumulative distribution.

# %%
hits = pd.DataFrame(
    [
        {"machine": titles[name], "percent": document.cache_hit_percent}
        for name, document in documents.items()
    ],
    columns=["machine", "percent"],
)
points = pd.DataFrame(
    [
        {
            "machine": titles[name],
            "tokens": row.tokens.value,
            "percent": row.percentile,
            "approximate": row.tokens.approximate,
        }
        for name, document in published.items()
        for row in document.percentiles
    ]
    + [
        {
            "machine": titles[name],
            "tokens": row.tokens,
            "percent": row.percent,
            "approximate": False,
        }
        for name, document in published.items()
        for row in document.shares
    ],
    columns=["machine", "tokens", "percent", "approximate"],
)
points

# %% [markdown]
# The published summary gives two points. A curve through two points would be invented, so the
# figure shows the points and shades what they leave open. Of the traces that this project counted
# itself every request is known; a document keeps them in eight bins an octave.


# %%
def curve(name: str, document: AgentWorkload) -> pd.DataFrame:
    """The cumulative distribution of one trace at the bounds of its bins."""
    bins = pd.DataFrame([row.model_dump() for row in document.distribution or []])
    at = {row.percentile: row.tokens.value for row in document.percentiles}
    return pd.DataFrame(
        {
            "machine": titles[name],
            "tokens": bins["at_most_tokens"],
            "percent": 100 * bins["requests"].cumsum() / bins["requests"].sum(),
            "approximate": False,
            "name": f"{titles[name]}: {text.number(at[50])} / {text.number(at[85])}",
        }
    )


curves = pd.concat([curve(*one) for one in traces.items()]) if traces else None
labelled = points.assign(
    text=[
        f"{row.percent:g} % of requests:\n≤ {'about ' * row.approximate}"
        f"{text.number(row.tokens)} tokens"
        for row in points.itertuples()
    ],
    name=[
        f"{row.machine}: "
        + " / ".join(
            "about " * other.approximate + text.number(other.tokens)
            for other in points[points["machine"] == row.machine].itertuples()
        )
        for row in points.itertuples()
    ],
)
known = [points] if curves is None else [points, curves.drop(columns="name")]
data = pd.concat(
    [
        hits.assign(quantity="input tokens found in the prefix cache"),
        pd.concat(known).assign(quantity="requests with at most `tokens` to prefill"),
    ]
).reindex(columns=["machine", "quantity", "tokens", "percent", "approximate"])
data = data.rename(columns={"machine": "trace"})
save_figure("prefill_tokens", lambda: prefill_tokens.draw(hits, labelled, shown, curves), data, out)

# %% [markdown]
# ## What is known, side by side

# %%
rows = pd.DataFrame(
    [
        {"trace": titles[name], "quantity": what, "value": value}
        for name, document in documents.items()
        for what, value in [
            ("input tokens found in the cache", f"{document.cache_hit_percent:.1f}%"),
            *(
                (
                    f"tokens to prefill, p{row.percentile:g}",
                    "about " * row.tokens.approximate + text.quantity(row.tokens),
                )
                for row in document.percentiles
            ),
            *(
                (
                    f"requests with at most {text.number(row.tokens)} tokens to prefill",
                    f"{row.percent:.1f}%",
                )
                for row in document.shares
            ),
            *(
                (
                    f"tokens to prefill that requests above {text.number(row.tokens)} hold",
                    f"{100 - row.prefill_percent:.1f}%",
                )
                for row in document.shares
                if row.tokens in (4096, 16384) and row.prefill_percent is not None
            ),
        ]
    ],
    columns=["trace", "quantity", "value"],
)
# Counted traces have all quantities, so theirs is the order.
whole = rows["trace"].isin([titles[name] for name in traces])
order = list(dict.fromkeys([*rows.loc[whole, "quantity"], *rows["quantity"]]))
wide = rows.pivot(index="quantity", columns="trace", values="value").reindex(
    index=order, columns=list(titles.values())
)
absent = pd.DataFrame([dict.fromkeys(["quantity", *shown], NOT_MEASURED)])
save_table(
    "agent_workload",
    rows,
    wide.fillna("not printed").reset_index() if documents else absent,
    out,
)

# %% [markdown]
# ## Other rules
#
# What counts as cached is a choice. Each row changes one rule of those that the published summary
# is taken to follow, and the article's numbers stand above for comparison.

# %%
COLUMNS = ["trace", "rule", "cached", "median (tokens)", "requests ≤ 4,096"]
DEFAULTS = {name: next(iter(values)) for name, values in EXPLAINED.items()}
counted = [
    {
        "trace": titles[name],
        "rule": ", ".join(
            f"{rule.replace('_', ' ')}: {value}"
            for rule, value in variant.rules.model_dump().items()
            if value != DEFAULTS[rule]
        )
        or "as the summary",
        "cached": f"{variant.cache_hit_percent:.2f}%",
        "median (tokens)": text.number(variant.p50_tokens),
        "requests ≤ 4,096": f"{variant.at_most_4096_percent:.1f}%",
        "percent": variant.cache_hit_percent,
        "p50_tokens": variant.p50_tokens,
        "mean_tokens": variant.mean_tokens,
    }
    for name, document in traces.items()
    for variant in document.variants or []
]
summaries = [
    {
        "trace": titles[name],
        "rule": "the published summary",
        "cached": f"{document.cache_hit_percent:g}%",
        "median (tokens)": " ".join(
            "about " * row.tokens.approximate + text.quantity(row.tokens)
            for row in document.percentiles
            if row.percentile == 50
        ),
        "requests ≤ 4,096": " ".join(
            f"{row.percent:g}%" for row in document.shares if row.tokens == 4096
        ),
        "percent": document.cache_hit_percent,
    }
    for name, document in published.items()
]
variants = pd.DataFrame(
    summaries + counted, columns=[*COLUMNS, "percent", "p50_tokens", "mean_tokens"]
)
listed = variants[COLUMNS].assign(trace=variants["trace"].mask(variants["trace"].duplicated(), ""))
save_table(
    "workload_variants",
    variants.drop(columns="cached"),
    listed if len(listed) else pd.DataFrame([dict.fromkeys(COLUMNS, NOT_MEASURED)]),
    out,
)

# %% [markdown]
# ## A cache that ends
#
# The hit rates above are those of a cache that forgets nothing. One that evicts the block
# used least recently needs room for what an agent comes back to. A stack distance gives all sizes
# in one pass. Each conversation has a cache of its own; the chat service has one for everybody.

# %%
sizes = pd.DataFrame(
    [
        {"trace": titles[name], "cache_tokens": row.cache_tokens, "percent": row.cache_hit_percent}
        for name, document in traces.items()
        for row in document.cache_curve or []
    ],
    columns=["trace", "cache_tokens", "percent"],
)
save_figure("cache_curve", lambda: cache_curve.draw(sizes, shown), sizes, out)

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
for name, document in traces.items():
    key = f"agent_workload.{machine_key(name)}"
    totals = document.totals
    facts += [
        fact(f"{key}.conversations", totals.conversations),
        fact(f"{key}.requests", totals.requests),
        fact(f"{key}.subagent_requests", totals.subagent_requests),
        fact(f"{key}.mean_tokens", totals.prefill_tokens / totals.requests),
    ]
    for share in document.shares:
        facts += [
            fact(f"{key}.above_{share.tokens}_tokens_percent", 100 - share.prefill_percent, "%"),
        ]
    hits_at = {row.cache_tokens: row.cache_hit_percent for row in document.cache_curve or []}
    facts += [
        fact(f"{key}.cache_{tokens}_percent", hits_at[tokens], "%", 1)
        for tokens in (65536, 262144, 1048576)
        if tokens in hits_at
    ]
    facts += [
        fact(f"{key}.cache_{size}", tokens)
        for size, tokens in (("small", 65536), ("large", 262144))
        if tokens in hits_at
    ]
    for variant in document.variants or []:
        changed = [
            f"{rule}_{value}"
            for rule, value in variant.rules.model_dump().items()
            if value != DEFAULTS[rule]
        ]
        for one in changed:
            facts += [
                fact(f"{key}.{one}.hit_percent", variant.cache_hit_percent, "%", 1),
                fact(f"{key}.{one}.p50_tokens", variant.p50_tokens),
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
