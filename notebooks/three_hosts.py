# ---
# jupyter:
#   graphgain:
#     title: One forward, three hosts
#     documents: [decode_graph_gain, prefill_graph_gain, handoff]
#     figures: [three_hosts, kernel_handover]
#     tables: [three_hosts, prefill_hosts, kernel_mix]
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
# # One forward, three hosts
#
# A forward is captured into a graph, and the graph is taken apart: a loop in C++ issues the very
# same kernels one by one. So three hosts run identical work: Python, C++ and a graph. What Python
# costs more than C++ is the host's; what C++ costs more than the graph is the hand-over from kernel
# to kernel, as long as the loop stays ahead of the GPU.

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
from graphgain.figures import kernel_handover, three_hosts
from graphgain.results.forwards import DecodeGraphGain, DecodeStep, PrefillGraphGain, PrefillRow
from graphgain.results.launches import Handoff
from graphgain.results.quantity import Quantity
from graphgain.results.store import load_documents, machine_labels
from graphgain.tables import stacked

HOSTS = {
    "eager": "Python",
    "cpp_eager": "C++",
    "cpp_eager_no_pdl": "C++, no PDL",
    "graph": "graph",
}
FORWARDS = {"lean": "our fused forward", "transformers": "transformers"}
documents = load_documents(results, machines, DecodeGraphGain)
prefills = load_documents(results, machines, PrefillGraphGain)
handoffs = load_documents(results, machines, Handoff)
labels = machine_labels(results, machines)
shown_machines = [labels[name] for name in machines]


# %% [markdown]
# A document holds the step of one implementation and those of others beside it. A published one has
# no C++ loop: Kern launches from Rust, so that its eager mode is the fast host.


# %%
def steps(document: DecodeGraphGain) -> dict[str, DecodeStep]:
    """The steps of a document by engine."""
    return {document.parameters.engine: document, **{one.engine: one for one in document.beside}}


def ms(step: DecodeStep, host: str) -> float | None:
    """The time of a step under a host, or None where it was not run."""
    return next((row.step_ms.value for row in step.rows if row.host == host), None)


forwards = {
    (name, engine): step
    for name, document in documents.items()
    for engine, step in steps(document).items()
}

# %% [markdown]
# The bars. Each begins with the graph's time; then comes what a fast host adds that launches kernel
# by kernel, then what Python adds to that.

# %%
bars = []
for (name, engine), step in forwards.items():
    graph_ms = ms(step, "graph")
    fast_ms = ms(step, "cpp_eager") or ms(step, "eager")
    if graph_ms is None or fast_ms is None:
        continue
    python_ms = ms(step, "eager") if ms(step, "cpp_eager") else None
    forward = f"decode step, {FORWARDS.get(engine, engine)}, {step.launches:,} launches"
    middle = ("handoff", fast_ms - graph_ms)
    issue = f"issued in {step.host_issue_ms.value:.1f}"
    parts = {
        HOSTS["graph"]: ([("graph", graph_ms)], ""),
        HOSTS["cpp_eager"] if python_ms else f"{engine}, eager": (
            [("graph", graph_ms), middle],
            issue,
        ),
    }
    if python_ms:
        rest = ("host", max(0.0, python_ms - fast_ms))
        parts[HOSTS["eager"]] = ([("graph", graph_ms), middle, rest], "")
    for host, (pieces, note) in reversed(parts.items()):
        for part, length in pieces:
            bars.append(
                {
                    "machine": labels[name],
                    "forward": forward,
                    "host": host,
                    "part": part,
                    "ms": length,
                    "total_ms": sum(each for _, each in pieces),
                    "note": note,
                }
            )
bars = pd.DataFrame(bars, columns=["machine", "forward", "host", "part", "ms", "total_ms", "note"])
save_figure("three_hosts", lambda: three_hosts.draw(bars, shown_machines), bars, out)

# %% [markdown]
# Launch by launch, from CUPTI: the time from the predecessor's end to a launch's own end, C++ less
# graph. The first launch has no predecessor.

# %%
later = pd.concat(
    [
        pd.DataFrame(
            {
                "machine": labels[name],
                "forward": f"decode step, {FORWARDS.get(engine, engine)}",
                "pdl": step.launch_times.pdl[1:],
                "later_us": [
                    a - b
                    for a, b in zip(
                        step.launch_times.cpp_eager_us, step.launch_times.graph_us, strict=True
                    )
                ][1:],
            }
        )
        for (name, engine), step in forwards.items()
        if step.launch_times
    ]
    or [pd.DataFrame(columns=["machine", "forward", "pdl", "later_us"])]
)
save_figure("kernel_handover", lambda: kernel_handover.draw(later, shown_machines), later, out)


# %%
def shown(value: Quantity | None, digits: int) -> str:
    """A quantity for a cell."""
    return text.quantity_with_interval(value, digits) if value else "—"


def host_name(step: DecodeStep, host: str) -> str:
    """A host in words; the eager mode of an engine without a C++ loop is that of its own host."""
    own = host == "eager" and ms(step, "cpp_eager") is None
    return "its own host" if own else HOSTS[host]


columns = ["forward", "launches (PDL)", "host", "step (ms)", "GPU (ms)", "host issues (ms)"]
columns += ["GPU idle (µs)", "profiled (ms)"]
cells = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "forward": FORWARDS.get(engine, engine),
            "launches (PDL)": f"{step.launches:,} ({step.pdl_launches:,})",
            "host": host_name(step, row.host),
            "step (ms)": shown(row.step_ms, 2),
            "GPU (ms)": shown(row.gpu_ms, 2),
            "host issues (ms)": shown(
                step.host_issue_ms if row.host == "cpp_eager" else row.issue_ms, 2
            ),
            "GPU idle (µs)": shown(row.idle_us, 0),
            "profiled (ms)": shown(row.profiled_ms, 2),
        }
        for (name, engine), step in forwards.items()
        for row in step.rows
    ],
    columns=["machine", *columns],
)
save_table("three_hosts", cells, stacked(cells, columns, shown_machines), out)


# %% [markdown]
# The kernels of a step: how often each is launched and what its launches take from end to end.


# %%
def short(name: str, length: int = 46) -> str:
    """A kernel's name without its arguments and the names around it."""
    plain = name.removeprefix("void ").partition("<")[0].partition("(")[0].split("::")[-1]
    if "elementwise_kernel" in plain or "reduce_kernel" in plain:
        functor = next(
            (part for part in name.split("::") if "unctor" in part or "_kernel_cuda" in part), ""
        )
        plain += f" ({functor.partition('<')[0].partition('(')[0]})" if functor else ""
    return plain if len(plain) <= length else f"{plain[:length]}…"


MOST = 10
mix_columns = ["forward", "kernel", "launches", "with PDL", "C++ (µs)", "graph (µs)"]
mix = []
for (name, engine), step in forwards.items():
    timed = [kernel for kernel in step.kernels if kernel.graph_us is not None]
    for kernel in sorted(timed, key=lambda kernel: -(kernel.graph_us or 0))[:MOST]:
        mix.append(
            {
                "machine": labels[name],
                "forward": FORWARDS.get(engine, engine),
                "kernel": short(kernel.name),
                "launches": f"{kernel.launches:,}",
                "with PDL": f"{kernel.pdl_launches:,}",
                "C++ (µs)": text.number(kernel.cpp_eager_us or 0),
                "graph (µs)": text.number(kernel.graph_us or 0),
            }
        )
mix = pd.DataFrame(mix, columns=["machine", *mix_columns])
save_table("kernel_mix", mix, stacked(mix, mix_columns, shown_machines), out)


# %% [markdown]
# Short prefills under the three hosts.


# %%
def prefill_rows(document: PrefillGraphGain) -> dict[str, list[PrefillRow]]:
    """The prefills of a document by engine; only those with a C++ loop."""
    found = {document.parameters.engine: document.rows}
    found |= {one.engine: one.rows for one in document.beside}
    return {
        engine: [row for row in rows if row.cpp_eager_ms and row.saved_ms and row.launches]
        for engine, rows in found.items()
    }


prefill_columns = ["forward", "prefill", "launches", "Python (ms)", "C++ (ms)", "graph (ms)"]
prefill_columns += ["saved (ms)", "saved (%)", "per launch (µs)"]
lines = []
for name, document in prefills.items():
    for engine, rows in prefill_rows(document).items():
        for row in rows:
            after = f" after {row.cached_tokens // 1024}k" if row.cached_tokens else ""
            saved_ms = row.saved_ms.value
            lines.append(
                {
                    "machine": labels[name],
                    "forward": FORWARDS.get(engine, engine),
                    "prefill": f"{row.tokens:,}{after}",
                    "launches": f"{row.launches:,}",
                    # Only Python's processes differ by more than the digits shown.
                    "Python (ms)": shown(row.eager_ms, 0),
                    "C++ (ms)": text.quantity(row.cpp_eager_ms, 1),
                    "graph (ms)": text.quantity(row.graph_ms, 1),
                    "saved (ms)": shown(row.saved_ms, 2),
                    "saved (%)": text.number(100 * saved_ms / row.cpp_eager_ms.value, 1),
                    "per launch (µs)": text.number(1000 * saved_ms / row.launches, 2),
                }
            )
lines = pd.DataFrame(lines, columns=["machine", *prefill_columns])
measured = [labels[name] for name in machines if labels[name] in set(lines["machine"])]
save_table("prefill_hosts", lines, stacked(lines, prefill_columns, measured or shown_machines), out)


# %% [markdown]
# Numbers for the prose. Python's time to issue is launching, which is what the C++ loop needs for
# the same launches, and glue, which is the rest. The hand-over microbenchmark predicts what a graph
# saves: launches with and without PDL, each times what one of them saves there.


# %%
def extent(values: list[float]) -> Quantity:
    """Lowest to highest of some values."""
    return Quantity(low=min(values), high=max(values), interval="printed range")


def predicted_us(name: str, step: DecodeStep) -> Quantity | None:
    """What the hand-over microbenchmark lets expect: between its lowest and highest rows."""
    if name not in handoffs:
        return None
    saved = {
        pdl: [row.saved_us.value for row in handoffs[name].rows if row.pdl == pdl and row.kernel_us]
        for pdl in (True, False)
    }
    plain = step.launches - step.pdl_launches
    return extent(
        [step.pdl_launches * end(saved[True]) + plain * end(saved[False]) for end in (min, max)]
    )


facts = []
for (name, engine), step in forwards.items():
    rows = {row.host: row for row in step.rows}
    if not {"eager", "cpp_eager", "graph"} <= set(rows):
        continue
    key = f"three_hosts.{machine_key(name)}.{machine_key(engine)}"
    graph_ms, cpp_ms, python_ms = (
        rows[host].step_ms.value for host in ("graph", "cpp_eager", "eager")
    )
    issue_ms = step.host_issue_ms.value
    facts += [
        fact(f"{key}.launches", step.launches),
        fact(f"{key}.pdl_launches", step.pdl_launches),
        fact(f"{key}.plain_launches", step.launches - step.pdl_launches),
        fact(f"{key}.memsets", step.memsets or 0),
        *(fact(f"{key}.{host}_ms", rows[host].step_ms, "ms", 2) for host in rows),
        fact(f"{key}.issue_ms", step.host_issue_ms, "ms", 2),
        fact(f"{key}.issue_us_per_launch", 1000 * issue_ms / step.launches, "µs", 1),
        fact(f"{key}.gpu_us_per_launch", 1000 * graph_ms / step.launches, "µs", 1),
        fact(f"{key}.issue_percent", 100 * issue_ms / cpp_ms, "%"),
        fact(f"{key}.python_percent", 100 * (python_ms / graph_ms - 1), "%"),
        fact(f"{key}.python_times", python_ms / graph_ms, "", 1),
        fact(f"{key}.saved_percent", 100 * (cpp_ms - graph_ms) / cpp_ms, "%", 1),
    ]
    for what, value in (
        ("issue_range_ms", step.host_issue_ms),
        ("cpp_range_ms", rows["cpp_eager"].step_ms),
        ("python_range_ms", rows["eager"].step_ms),
    ):
        facts.append(fact(f"{key}.{what}", extent(value.runs or [value.value]), "ms", 1))
    if step.saved_us and step.python_saved_us:
        runs = step.saved_us.runs or [step.saved_us.value]
        each = extent([us / step.launches for us in runs])
        facts += [
            fact(f"{key}.saved_range_us", extent(runs), "µs"),
            fact(f"{key}.saved_range_ms", extent([us / 1000 for us in runs]), "ms", 1),
            fact(f"{key}.saved_range_us_per_launch", each, "µs", 2),
        ]
        facts += [
            fact(f"{key}.saved_us", step.saved_us, "µs"),
            fact(f"{key}.saved_ms", step.saved_us.value / 1000, "ms", 2),
            fact(f"{key}.saved_us_per_launch", step.saved_us.value / step.launches, "µs", 2),
            fact(f"{key}.python_saved_ms", step.python_saved_us.value / 1000, "ms", 1),
        ]
        host_ms = python_ms - cpp_ms
        facts.append(fact(f"{key}.python_over_cpp_ms", host_ms, "ms", 1))
    python_issue = rows["eager"].issue_ms
    if python_issue:
        facts += [
            fact(f"{key}.python_issue_ms", python_issue, "ms", 1),
            fact(f"{key}.glue_ms", python_issue.value - issue_ms, "ms", 1),
            fact(f"{key}.glue_percent", 100 * (1 - issue_ms / python_issue.value), "%"),
            fact(f"{key}.python_us_per_launch", 1000 * python_issue.value / step.launches, "µs", 1),
        ]
    no_pdl = rows.get("cpp_eager_no_pdl")
    if no_pdl:
        facts.append(fact(f"{key}.pdl_saved_us", 1000 * (no_pdl.step_ms.value - cpp_ms), "µs"))
    for host in ("eager", "cpp_eager", "graph"):
        row = rows[host]
        if row.idle_us and row.profiled_ms:
            # Rounded here, so that a hair below zero does not show as −0.0.
            over = round(100 * (row.profiled_ms.value / row.step_ms.value - 1), 1) + 0.0
            facts += [
                fact(f"{key}.{host}_idle_us", row.idle_us, "µs"),
                fact(f"{key}.{host}_profiled_ms", row.profiled_ms, "ms", 2),
                fact(f"{key}.{host}_profiler_percent", over, "%", 1),
            ]
    for slower in step.per_kernel:
        kind = "pdl" if slower.pdl else "plain"
        facts.append(fact(f"{key}.slower_{kind}_us", slower.slower_us.value, "µs", 2))
        if slower.slower_us.low is not None and slower.slower_us.high is not None:
            quartiles = extent([slower.slower_us.low, slower.slower_us.high])
            facts.append(fact(f"{key}.slower_{kind}_quartiles_us", quartiles, "µs", 2))
        if slower.total_us is not None:
            facts.append(fact(f"{key}.slower_{kind}_total_us", slower.total_us, "µs"))
    expected = predicted_us(name, step)
    if expected:
        facts.append(fact(f"{key}.predicted_us", expected, "µs"))
        in_ms = Quantity(
            low=expected.low / 1000, high=expected.high / 1000, interval="printed range"
        )
        facts.append(fact(f"{key}.predicted_ms", in_ms, "ms", 1))
    if step.weight_stream:
        stream = step.weight_stream
        facts += [
            fact(f"{key}.weight_gb", stream.weight_gb, "GB", 1),
            fact(f"{key}.copy_tb_s", stream.copy_gb_s.value / 1000, "TB/s", 2),
            fact(f"{key}.floor_ms", stream.floor_ms, "ms", 2),
            fact(f"{key}.graph_over_floor", stream.graph_over_floor, "", 2),
        ]
    document = documents[name]
    if document.parameters.rounds and document.parameters.process_runs:
        n = rows["graph"].step_ms.n or 0
        facts += [fact(f"{key}.samples", n)]
        if document.parameters.cached_tokens and engine == document.parameters.engine:
            facts.append(
                fact(f"three_hosts.{machine_key(name)}.context", document.parameters.cached_tokens)
            )

# %%
for name, document in prefills.items():
    for engine, rows in prefill_rows(document).items():
        if not rows:
            continue
        key = f"three_hosts.{machine_key(name)}.{machine_key(engine)}.prefill"
        saved_ms = [row.saved_ms.value for row in rows]
        facts += [
            fact(f"{key}.launches", extent([row.launches for row in rows])),
            fact(f"{key}.saved_ms", extent(saved_ms), "ms", 2),
            fact(
                f"{key}.per_launch_us",
                extent([1000 * row.saved_ms.value / row.launches for row in rows]),
                "µs",
                2,
            ),
            fact(f"{key}.issue_ms", extent([row.host_issue_ms.value for row in rows]), "ms", 2),
        ]
        for row in rows:
            after = f"_after_{row.cached_tokens // 1024}k" if row.cached_tokens else ""
            point = f"{key}.t{row.tokens}{after}"
            cpp_ms = row.cpp_eager_ms.value
            facts += [
                fact(f"{point}_graph_ms", row.graph_ms, "ms", 1),
                fact(f"{point}_cpp_ms", row.cpp_eager_ms, "ms", 1),
                fact(f"{point}_python_ms", row.eager_ms, "ms", 1),
                fact(f"{point}_saved_ms", row.saved_ms.value, "ms", 2),
                fact(f"{point}_saved_percent", 100 * row.saved_ms.value / cpp_ms, "%", 1),
                fact(f"{point}_issue_ms", row.host_issue_ms, "ms", 2),
                fact(f"{point}_python_over_cpp_ms", row.eager_ms.value - cpp_ms, "ms", 1),
            ]
            if row.cpp_issue_ms:
                facts.append(fact(f"{point}_held_issue_ms", row.cpp_issue_ms, "ms", 2))
save_facts(facts, Path(out) / "facts" / "three_hosts.json")
