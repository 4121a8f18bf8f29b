# ---
# jupyter:
#   graphgain:
#     title: The article's claims, computed again
#     documents: [statements, decode_graph_gain, prefill_graph_gain, gemm_host_cost, ffi_launch,
#       launch_paths, ttft, ttft_breakdown]
#     figures: []
#     tables: [claims]
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
# # The article's claims, computed again
#
# Every claim that comes with a number, and what the documents give when it is computed again. The
# rules are in `graphgain.claims`; nothing here is typed in.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from collections import Counter
from pathlib import Path

import pandas as pd

from graphgain.claims import CLAIMS, Evidence, verdict
from graphgain.exhibits import save_table
from graphgain.facts import fact, machine_key, save_facts, words
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain, PrefillGraphGain
from graphgain.results.launches import FfiLaunch, GemmHostCost, LaunchPaths
from graphgain.results.serving import Ttft, TtftBreakdown
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, printed_fact
from graphgain.tables import NOT_MEASURED

MODELS = (
    Statements,
    DecodeGraphGain,
    PrefillGraphGain,
    GemmHostCost,
    FfiLaunch,
    LaunchPaths,
    Ttft,
    TtftBreakdown,
)
labels = machine_labels(results, machines)
loaded = [load_documents(results, machines, model) for model in MODELS]
evidence = {
    name: Evidence(tuple(found[name] for found in loaded if name in found)) for name in machines
}
stating = {name: own.get(Statements) for name, own in evidence.items()}
stating = {name: document for name, document in stating.items() if document}

# %% [markdown]
# The claims are those of the machine whose numbers were published with the article's statements.
# Its own data decide on agreement, within the precision in which the article prints. Any other
# machine that has one of the documents gets a column with what the same computation gives there;
# its hardware differs, so there is no verdict on it.

# %%
rows = []
for slug, document in stating.items():
    printed = by_name(document)
    for claim in CLAIMS:
        finding = claim.recompute(evidence[slug])
        row = {
            "claim": claim.text,
            "printed": "; ".join(printed_fact("", printed[name]).text for name in claim.said)
            or "—",
            "computed again": finding.text if finding else "—",
            "verdict": verdict(finding),
        }
        for other in machines:
            if other not in stating:
                measured = claim.recompute(evidence[other])
                row[labels[other]] = measured.text if measured else NOT_MEASURED
        rows.append(row)
columns = ["claim", "printed", "computed again", "verdict"]
claims = pd.DataFrame(rows, columns=None if rows else columns)
empty = [label for label in claims.columns[4:] if (claims[label] == NOT_MEASURED).all()]
claims.drop(columns=empty)

# %%
missing = pd.DataFrame([["not measured on the machines shown", "—", "—", "—"]], columns=columns)
save_table("claims", claims, claims.drop(columns=empty) if rows else missing, out)

# %% [markdown]
# ## Numbers for the summary

# %%
facts = []
if rows:
    counts = Counter(claims["verdict"])
    facts += [
        fact("claims.count", len(claims)),
        fact("claims.agree_count", counts["agrees"]),
        fact("claims.differ_count", counts["differs"]),
        fact("claims.not_checkable_count", counts["not checkable"]),
    ]
for slug, document in stating.items():
    facts += [
        printed_fact(f"claims.{machine_key(slug)}.{row.name}", row)
        for row in document.rows
        if row.name.startswith("tldr_")
    ]
for document in list(stating.values())[:1]:
    source = document.source
    facts += [
        words("claims.citation_title", source.title),
        words("claims.citation_author", source.author),
        words(
            "claims.citation_date",
            f"{source.published:%B} {source.published.day}, {source.published.year}",
        ),
        words("claims.citation_address", f"<{source.url}>"),
    ]
save_facts(facts, Path(out) / "facts" / "claims.json")
