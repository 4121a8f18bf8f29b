# ---
# jupyter:
#   graphgain:
#     title: What a graph saves in a decode step
#     documents: [decode_graph_gain, statements]
#     figures: [decode_graph_gain]
#     tables: [decode_graph_gain]
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
# # What a graph saves in a decode step
#
# The same kernels, once launched one by one and once replayed as a graph. If the host needs less
# time to issue the step than the GPU needs to execute it, the queue is never empty, and what the
# graph still saves is saved on the GPU.

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
from graphgain.figures import decode_graph_gain
from graphgain.results.article import Statements
from graphgain.results.forwards import DecodeGraphGain, DecodeRow
from graphgain.results.store import load_documents, machine_labels
from graphgain.statements import by_name, statement_fact
from graphgain.tables import side_by_side

HOSTS = {
    "eager": "eager launches",
    "cpp_eager": "eager launches\nfrom C++",
    "cpp_eager_no_pdl": "eager launches\nfrom C++, no PDL",
    "graph": "graph replay",
}
documents = load_documents(results, machines, DecodeGraphGain)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]

# %% [markdown]
# What is compared with the graph is the fastest host that launches kernel by kernel: the C++ loop
# where it was measured, else the engine's own eager mode.


# %%
def fast_eager(document: DecodeGraphGain) -> DecodeRow:
    """The step under the fastest host that launches kernel by kernel."""
    eager = [row for row in document.rows if row.host != "graph"]
    return min(eager, key=lambda row: row.step_ms.value)


def graph(document: DecodeGraphGain) -> DecodeRow | None:
    """The step as a graph."""
    return next((row for row in document.rows if row.host == "graph"), None)


def saved_us(document: DecodeGraphGain) -> float | None:
    """What the graph saves: as stated, or else the difference of the two step times."""
    if document.saved_us is not None:
        return document.saved_us.value
    replay = graph(document)
    if replay is None:
        return None
    return 1000 * (fast_eager(document).step_ms.value - replay.step_ms.value)


def issue_share(document: DecodeGraphGain) -> float:
    """The host's issue time in percent of the step."""
    return 100 * document.host_issue_ms.value / fast_eager(document).step_ms.value


# %% [markdown]
# Durations: the time in which the host issues the step, and the step itself under each host. The
# figure is about the published step; measured ones, which run under more hosts, have a figure of
# their own.

# %%
printed = {name: document for name, document in documents.items() if document.kind == "published"}
drawn_machines = [labels[name] for name in machines if name in printed] or shown_machines
times = pd.DataFrame(
    [
        row
        for name, document in printed.items()
        for row in [
            {
                "machine": labels[name],
                "kind": "issue",
                "label": f"host issues\n{document.launches} launches",
                "ms": document.host_issue_ms.value,
                "note": f"{issue_share(document):.0f}% of the step, then the host is ahead"
                if issue_share(document) < 100
                else "longer than the step: the GPU waits",
            },
            *(
                {
                    "machine": labels[name],
                    "kind": row.host,
                    "label": HOSTS[row.host],
                    "ms": row.step_ms.value,
                    "note": f"GPU idle {row.idle_us.value:.0f} µs" if row.idle_us else "",
                }
                for row in document.rows
            ),
        ]
    ],
    columns=["machine", "kind", "label", "ms", "note"],
)
times

# %% [markdown]
# The gain, added up twice. From above: the part of it in which the GPU was clearly idle, and the
# rest, which must lie in the hand-over from each kernel to the next. From below: the kernels with
# and without PDL, each times how much later it ends without the graph.

# %%
gains = []
for name, document in printed.items():
    saved, replay, eager = saved_us(document), graph(document), fast_eager(document)
    machine = labels[name]
    if saved and replay and replay.idle_us and eager.idle_us:
        idle = eager.idle_us.value - replay.idle_us.value
        bar = f"measured:\n{saved:.0f} µs"
        gains += [
            (machine, bar, "idle", f"{idle:.0f} less idling", idle, idle),
            (
                machine,
                bar,
                "handoff",
                f"{saved - idle:.0f} faster hand-over, kernel to kernel",
                *[saved - idle] * 2,
            ),
        ]
    plain = document.launches - document.pdl_launches
    for slower in sorted(document.per_kernel, key=lambda row: row.pdl):
        count = document.pdl_launches if slower.pdl else plain
        each = slower.slower_us
        low, high = (count * (each.value if end is None else end) for end in (each.low, each.high))
        gains.append(
            (
                machine,
                "from the\nper-kernel\nnumbers",
                "pdl" if slower.pdl else "no_pdl",
                f"{count} with{'' if slower.pdl else 'out'} PDL × {text.quantity(each, 1)}"
                f" = {text.span(low, high)}",
                low,
                high,
            )
        )
gains = pd.DataFrame(gains, columns=["machine", "bar", "part", "label", "low_us", "high_us"])
gains

# %%
save_figure(
    "decode_graph_gain",
    lambda: decode_graph_gain.draw(times, gains, drawn_machines),
    pd.concat(
        [
            times[["machine", "kind", "ms"]].assign(low_us=None, high_us=None),
            gains.rename(columns={"part": "kind"})[["machine", "kind", "low_us", "high_us"]],
        ]
    )
    if printed
    else times,
    out,
)


# %%
def host_name(document: DecodeGraphGain, row: DecodeRow) -> str:
    """A host in words: the fastest one that launches kernel by kernel stands beside the same of
    another machine, whatever language it is written in."""
    if row is fast_eager(document):
        return HOSTS["eager"]
    return "Python" if row.host == "eager" else HOSTS[row.host].replace("\n", " ")


def described(document: DecodeGraphGain) -> list[tuple[str, str]]:
    """Lines of the table for one machine: what, and its value as text."""
    lines = [
        ("launches in one step", text.number(document.launches)),
        ("of them with PDL", text.number(document.pdl_launches)),
        ("host time to issue them", text.quantity_with_interval(document.host_issue_ms, 2, "ms")),
    ]
    for row in document.rows:
        host = host_name(document, row)
        lines.append((f"step, {host}", text.quantity_with_interval(row.step_ms, 2, "ms")))
        if row.idle_us:
            idle = text.quantity_with_interval(row.idle_us, 0, "µs")
            about = "about " if row.idle_us.approximate else ""
            lines.append((f"GPU clearly idle, {host}", about + idle))
    for row in document.per_kernel:
        about = "about " if row.slower_us.approximate else ""
        what = f"later end of a kernel with{'' if row.pdl else 'out'} PDL, eager against graph"
        lines.append((what, about + text.quantity(row.slower_us, 1, "µs")))
    saved = saved_us(document)
    if saved is not None:
        lines.append(("saved by the graph", text.with_unit(text.number(saved), "µs")))
    return lines


cells = pd.DataFrame(
    [
        {"decode step": what, "machine": labels[name], "text": shown}
        for name, document in documents.items()
        for what, shown in described(document)
    ]
)
data = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "host": row.host,
            "step_ms": row.step_ms.value,
            "idle_us": row.idle_us.value if row.idle_us else None,
            "host_issue_ms": document.host_issue_ms.value,
            "launches": document.launches,
            "pdl_launches": document.pdl_launches,
            "saved_us": saved_us(document),
        }
        for name, document in documents.items()
        for row in document.rows
    ]
)
save_table("decode_graph_gain", data, side_by_side(cells, ["decode step"], shown_machines), out)

# %% [markdown]
# Numbers for the prose.

# %%
facts = []
for name, document in documents.items():
    key = f"decode_graph_gain.{machine_key(name)}"
    saved, replay, eager = saved_us(document), graph(document), fast_eager(document)
    host_ms, plain = document.host_issue_ms, document.launches - document.pdl_launches
    facts += [
        fact(f"{key}.launches", document.launches),
        fact(f"{key}.pdl_launches", document.pdl_launches),
        fact(f"{key}.plain_launches", plain),
        fact(f"{key}.host_issue_ms", host_ms, "ms", 1),
        fact(f"{key}.issue_us_per_launch", 1000 * host_ms.value / document.launches, "µs", 2),
        fact(f"{key}.gpu_us_per_launch", 1000 * eager.step_ms.value / document.launches, "µs", 1),
        fact(f"{key}.issue_percent", issue_share(document), "%"),
    ]
    for row in document.rows:
        facts.append(fact(f"{key}.{row.host}_ms", row.step_ms, "ms", 2))
        if row.idle_us:
            facts.append(fact(f"{key}.{row.host}_idle_us", row.idle_us, "µs"))
    for row in document.per_kernel:
        facts.append(
            fact(f"{key}.slower_{'pdl' if row.pdl else 'plain'}_us", row.slower_us, "µs", 1)
        )
    if saved is not None and replay is not None:
        steps_us = 1000 * (eager.step_ms.value - replay.step_ms.value)
        facts += [
            fact(f"{key}.saved_us", saved, "µs"),
            fact(f"{key}.saved_percent", saved / (10 * eager.step_ms.value), "%", 1),
            fact(f"{key}.saved_us_per_launch", saved / document.launches, "µs", 2),
            fact(f"{key}.step_difference_us", steps_us, "µs"),
        ]
        if name in printed and eager.idle_us and replay.idle_us:
            idle = eager.idle_us.value - replay.idle_us.value
            facts += [
                fact(f"{key}.idle_saved_us", idle, "µs"),
                fact(f"{key}.handoff_us", saved - idle, "µs"),
                fact(f"{key}.handoff_percent", 100 * (1 - idle / saved), "%"),
            ]
for machine, rows in gains[gains["part"].isin(["pdl", "no_pdl"])].groupby("machine"):
    key = next(machine_key(name) for name in documents if labels[name] == machine)
    for end in ("low", "high"):
        total = rows[f"{end}_us"].sum()
        facts.append(fact(f"decode_graph_gain.{key}.summed_{end}_us", total, "µs"))

# %% [markdown]
# What the article says in words, and its estimate for a step with less fusion.

# %%
for name, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        statement_fact(f"decode_graph_gain.{machine_key(name)}.said_{short}", printed[statement])
        for short, statement in {
            "sum_us": "bubble_summed_us",
            "gain_us": "bubble_bought_us",
            "handoff_us": "tldr_handoff_saved_us",
            "unfused_launches": "bubble_unfused_launches",
            "unfused_us_per_launch": "bubble_unfused_per_kernel_us",
            "unfused_ms": "bubble_unfused_saved_ms",
        }.items()
    ]
save_facts(facts, Path(out) / "facts" / "decode_graph_gain.json")
