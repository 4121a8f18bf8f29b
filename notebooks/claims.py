# ---
# jupyter:
#   graphgain:
#     title: The article's claims, computed again
#     documents: [statements, launch_floor, decode_graph_gain, handoff, prefill_graph_gain,
#       gemm_host_cost, ffi_launch, launch_paths, gil, ttft, ttft_breakdown]
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
from graphgain.results.launches import FfiLaunch, GemmHostCost, Handoff, LaunchFloor, LaunchPaths
from graphgain.results.serving import Ttft, TtftBreakdown
from graphgain.results.store import load_documents, machine_labels, read_machine
from graphgain.results.threads import Gil
from graphgain.statements import by_name, printed_fact
from graphgain.tables import NOT_MEASURED

MODELS = (
    Statements,
    LaunchFloor,
    DecodeGraphGain,
    Handoff,
    PrefillGraphGain,
    GemmHostCost,
    FfiLaunch,
    LaunchPaths,
    Gil,
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
# Its own data decide on agreement, within the precision in which the article prints. A machine that
# was measured gets a column. What the same computation gives there stands without a verdict, as
# other hardware gives other numbers; only where a claim has a test for other machines is it judged.

# %%
measured = [
    name
    for name in machines
    if name not in stating and read_machine(Path(results) / name).kind == "measured"
]
judged = {name: [] for name in measured}
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
        for other in measured:
            test = claim.elsewhere and claim.elsewhere(evidence[slug], evidence[other])
            found = claim.recompute(evidence[other])
            if test:
                judged[other].append(verdict(test))
                row[labels[other]] = f"**{verdict(test)}**: {test.text}"
            else:
                row[labels[other]] = found.text if found else NOT_MEASURED
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
for name, verdicts in judged.items():
    facts += [
        fact(f"claims.{machine_key(name)}.judged_count", len(verdicts)),
        fact(f"claims.{machine_key(name)}.agree_count", verdicts.count("agrees")),
        fact(f"claims.{machine_key(name)}.differ_count", verdicts.count("differs")),
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
