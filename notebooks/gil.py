# ---
# jupyter:
#   graphgain:
#     title: What other Python threads do to a launch
#     documents: [gil, statements]
#     figures: [gil, gil_intervals, gil_levers, gil_lock_step]
#     tables: [gil_threads, gil_intervals, gil_levers, gil_gpu]
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
# threads, counts the threads of a server, and shows what a launcher thread was measured to suffer
# beside others: how long its intervals are, what changes them, and what becomes of ranks that wait
# for each other.

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
from graphgain.figures import gil, gil_intervals, gil_levers, gil_lock_step
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

save_figure(
    "gil",
    lambda: gil.draw(computing, launching, switch_ms) if first else gil.draw_nothing(shown),
    spans,
    out,
)

# %% [markdown]
# ## Measured intervals
#
# A launcher thread makes short calls with the lock released. Every row is beside another number or
# kind of threads, all with the same length of call. A distribution is known as far as its number of
# intervals tells it, and so is a percentile.


# %%
def crowd(document):
    """The rows of the document's own Python with the usual call, none or other threads beside."""
    usual = document.parameters
    return [
        row
        for row in document.rows
        if (row.spin_us, row.switch_interval_ms, row.gil, row.python)
        == (usual.spin_us, usual.switch_interval_ms, "released", usual.python)
    ]


curves = pd.DataFrame(
    [
        (labels[name], row.background, row.background_threads, us, 100 * (1 - probability))
        for name, document in documents.items()
        for row in crowd(document)
        for probability, us in zip(document.probabilities, row.quantiles_us, strict=True)
        if us is not None
    ],
    columns=["machine", "background", "threads", "us", "longer_percent"],
)
switches = {
    labels[name]: document.parameters.switch_interval_ms for name, document in documents.items()
}
save_figure("gil_intervals", lambda: gil_intervals.draw(curves, switches, shown), curves, out)


# %%
def micro(value):
    """Microseconds with as many decimals as can be read, or a dash where there are none."""
    if value is None or pd.isna(value):
        return "—"
    return text.number(value, 1 if value < 1000 else 0)


def measures(row):
    """What a row says of its intervals."""
    return {
        "n": row.interval_us.n,
        "p50_us": row.interval_us.value,
        "p99_us": row.p99_us,
        "p999_us": row.p999_us,
        "max_us": row.max_us,
        "interrupted_percent": row.share_interrupted_percent,
        "interruption_us": row.interruption_us.value if row.interruption_us else None,
        "calls_per_s": row.calls_per_s.value,
    }


def cells_of(row):
    """The same as texts."""
    return {
        "p50 (µs)": micro(row.interval_us.value),
        "p99 (µs)": micro(row.p99_us),
        "p99.9 (µs)": micro(row.p999_us),
        "max (µs)": micro(row.max_us),
        "interrupted": f"{row.share_interrupted_percent:.2g}%",
        "calls/s": text.number(row.calls_per_s.value),
    }


KIND = {"none": "none", "compute": "computing", "poll": "polling", "io": "short I/O"}
NUMBERS = ["p50 (µs)", "p99 (µs)", "p99.9 (µs)", "max (µs)", "interrupted", "calls/s"]
rows = [(name, row) for name, document in documents.items() for row in crowd(document)]
measured = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "background": row.background,
            "threads": row.background_threads,
            **measures(row),
        }
        for name, row in rows
    ],
    columns=[
        *("machine", "background", "threads", "n", "p50_us", "p99_us", "p999_us", "max_us"),
        *("interrupted_percent", "interruption_us", "calls_per_s"),
    ],
)
listed = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "beside": f"{row.background_threads} {KIND[row.background]}"
            if row.background_threads
            else "none",
            **cells_of(row),
        }
        for name, row in rows
    ],
    columns=["machine", "beside", *NUMBERS],
)
save_table("gil_intervals", measured, stacked(listed, ["beside", *NUMBERS], shown), out)

# %% [markdown]
# ## What can be changed
#
# One computing thread beside the launcher, and one thing different: the length of the call, the
# switch interval, whether the call releases the lock at all, the Python. What counts is how many
# calls a second are left, beside the same launcher alone.

# %%
LENGTH, SWITCH, KEPT, PYTHON = "length of the call", "switch interval", "lock kept", "Python"


def alone_of(document, row):
    """The row with the same call and the same Python, and no thread beside it."""
    for other in document.rows:
        if other.background_threads == 0 and (other.spin_us, other.gil, other.python) == (
            row.spin_us,
            row.gil,
            row.python,
        ):
            return other
    return None


def group_of(document, row):
    """Which lever a row beside one computing thread is about, and what it is called."""
    usual = document.parameters
    if row.python != usual.python:
        free = ", free-threaded" if row.free_threaded else ""
        return PYTHON, f"Python {row.python}{free}"
    if row.gil == "kept":
        return KEPT, f"lock kept in {row.spin_us:g} µs"
    if row.switch_interval_ms != usual.switch_interval_ms:
        return SWITCH, f"switch interval {row.switch_interval_ms:g} ms"
    if row.spin_us == usual.spin_us:
        return LENGTH, f"call of {row.spin_us:g} µs (as above)"
    return LENGTH, f"call of {row.spin_us:g} µs"


beside_one = [
    (name, row, alone, *group_of(document, row))
    for name, document in documents.items()
    for row in document.rows
    if row.background == "compute"
    and row.background_threads == 1
    and (alone := alone_of(document, row)) is not None
]
levers = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "group": group,
            "label": label,
            "rate_percent": 100 * row.calls_per_s.value / alone.calls_per_s.value,
            "low_percent": 100
            * (row.calls_per_s.low or row.calls_per_s.value)
            / alone.calls_per_s.value,
            "high_percent": 100
            * (row.calls_per_s.high or row.calls_per_s.value)
            / alone.calls_per_s.value,
            "spin_us": row.spin_us,
            **measures(row),
        }
        for name, row, alone, group, label in beside_one
    ],
    columns=[
        *("machine", "group", "label", "rate_percent", "low_percent", "high_percent", "spin_us"),
        *measured.columns[3:],
    ],
)
levers = levers.sort_values(
    ["group", "spin_us"],
    key=lambda column: (
        column.map([LENGTH, SWITCH, KEPT, PYTHON].index) if column.name == "group" else column
    ),
    kind="stable",
)
save_figure("gil_levers", lambda: gil_levers.draw(levers, shown), levers, out)

# %%
LEVERS = ["setting", "p99.9 (µs)", "interrupted", "calls/s", "of the rate alone"]
listed = [
    {
        "machine": labels[name],
        "setting": label,
        **cells_of(row),
        "of the rate alone": f"{100 * row.calls_per_s.value / alone.calls_per_s.value:.2g}%",
    }
    for name, row, alone, _, label in sorted(
        beside_one, key=lambda one: [LENGTH, SWITCH, KEPT, PYTHON].index(one[3])
    )
]
not_found = [
    {
        "machine": labels[name],
        "setting": f"Python {one.release.rstrip('t')}"
        + (", free-threaded" if one.free_threaded else ""),
        **dict.fromkeys(LEVERS[1:], "—"),
        "p99.9 (µs)": one.skipped,
    }
    for name, document in documents.items()
    for one in document.interpreters
    if one.skipped
]
listed = pd.DataFrame([*listed, *not_found], columns=["machine", *LEVERS])
save_table("gil_levers", levers, stacked(listed, LEVERS, shown), out)

# %% [markdown]
# ## Ranks in lock-step
#
# The step of a group is that of its slowest rank. From the measured steps of single ranks, groups
# of every size are drawn; two real processes with a barrier check the pair.

# %%
BACKGROUNDS = {"poll": "beside {} polling threads", "compute": "beside {} computing threads"}


def beside(row):
    """The background of a group of ranks in words."""
    words_for = BACKGROUNDS.get(row.background, "beside {} threads").format(row.background_threads)
    return words_for.removesuffix("s") if row.background_threads == 1 else words_for


steps = pd.DataFrame(
    [
        (labels[name], beside(row), row.ranks, row.source, row.n, percentile, us)
        for name, document in documents.items()
        for row in document.lock_step
        for percentile, us in (("p50", row.p50_us), ("p90", row.p90_us), ("p99", row.p99_us))
    ],
    columns=["machine", "background", "ranks", "source", "n", "percentile", "us"],
).astype({"us": float})
save_figure("gil_lock_step", lambda: gil_lock_step.draw(steps, shown), steps, out)

# %% [markdown]
# ## Real launches, and what the GPU idles
#
# Kernels of known length, launched through tvm-ffi a step at a time; the GPU is the slower side.

# %%
gpu_rows = [(name, row) for name, document in documents.items() for row in document.gpu]
GPU = ["beside", "lock in the call", "p50 (µs)", "p99 (µs)", "max (µs)", "step (ms)", "GPU idle"]
launched = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "background": row.background,
            "threads": row.background_threads,
            "gil": row.gil,
            **measures(row),
            "step_us": row.step_us.value,
            "gpu_idle_percent": row.gpu_idle_percent.value,
        }
        for name, row in gpu_rows
    ],
    columns=[
        *("machine", "background", "threads", "gil", *measured.columns[3:]),
        *("step_us", "gpu_idle_percent"),
    ],
)
listed = pd.DataFrame(
    [
        [
            labels[name],
            f"{row.background_threads} {KIND[row.background]}"
            if row.background_threads
            else "none",
            row.gil,
            *(micro(us) for us in (row.interval_us.value, row.p99_us, row.max_us)),
            text.number(row.step_us.value / 1000, 2),
            f"{row.gpu_idle_percent.value:.0f}%",
        ]
        for name, row in gpu_rows
    ],
    columns=["machine", *GPU],
)
save_table("gil_gpu", launched, stacked(listed, GPU, shown), out)

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
    alone = next((row for row in crowd(document) if not row.background_threads), None)
    for row in crowd(document):
        case = f"{key}.{row.background}{row.background_threads}"
        facts += [
            fact(f"{case}_p50_us", row.interval_us, "µs", 1),
            fact(f"{case}_calls_per_s", row.calls_per_s.value),
            fact(f"{case}_interrupted_percent", row.share_interrupted_percent, "%", 2),
            fact(f"{case}_max_ms", row.max_us / 1000, "ms", 0),
        ]
        facts += [
            fact(f"{case}_{percent}_us", us, "µs", 0)
            for percent, us in (("p99", row.p99_us), ("p999", row.p999_us))
            if us is not None
        ]
        if row.interruption_us:
            facts.append(fact(f"{case}_interruption_ms", row.interruption_us.value / 1000, "ms", 1))
        if row.interruption_mode_us:
            facts.append(fact(f"{case}_mode_ms", row.interruption_mode_us / 1000, "ms", 1))
        if alone:
            rate = row.calls_per_s.value / alone.calls_per_s.value
            digits = 0 if rate > 0.1 else 1
            facts.append(fact(f"{case}_rate_percent", 100 * rate, "%", digits))
    for of, row, without, group, _ in beside_one:
        if of != name or (group == LENGTH and row.spin_us == document.parameters.spin_us):
            continue
        version = "_".join(row.python.split(".")[:2]) + "t" * row.free_threaded
        lever = {
            LENGTH: f"call{row.spin_us:g}",
            SWITCH: f"switch{row.switch_interval_ms:g}",
            KEPT: f"kept{row.spin_us:g}",
            PYTHON: f"python{version}",
        }[group].replace(".", "_")
        rate = row.calls_per_s.value / without.calls_per_s.value
        facts += [
            fact(f"{key}.{lever}_rate_percent", 100 * rate, "%", 0 if rate > 0.1 else 1),
            fact(f"{key}.{lever}_interrupted_percent", row.share_interrupted_percent, "%", 2),
        ]
        if row.interruption_us:
            facts.append(
                fact(f"{key}.{lever}_interruption_ms", row.interruption_us.value / 1000, "ms", 1)
            )
    differences = [
        abs(row.above_bare_loop_percent.value)
        for row in document.rows
        if row.above_bare_loop_percent and row.gil == "released"
    ]
    if differences:
        facts.append(fact(f"{key}.bare_loop_off_percent", max(differences), "%", 1))
    for row in document.lock_step:
        case = f"{key}.{row.background}{row.background_threads}_{row.source}{row.ranks}"
        facts += [
            fact(f"{case}_{percent}_ms", us / 1000, "ms", 2)
            for percent, us in (("p50", row.p50_us), ("p90", row.p90_us), ("p99", row.p99_us))
            if us is not None
        ]
    if document.gpu:
        kernel = document.gpu[0].gpu_us_per_kernel
        facts.append(fact(f"{key}.gpu_kernel_us", kernel.value, "µs", 0))
    for row in document.gpu:
        case = f"{key}.gpu_{row.background}{row.background_threads}_{row.gil}"
        facts += [
            fact(f"{case}_idle_percent", row.gpu_idle_percent.value, "%"),
            fact(f"{case}_step_ms", row.step_us.value / 1000, "ms", 1),
            fact(f"{case}_interrupted_percent", row.share_interrupted_percent, "%", 2),
        ]
    if document.parameters.spin_us is not None:
        facts.append(fact(f"{key}.call_us", document.parameters.spin_us, "µs"))
    if document.parameters.calls_per_step is not None:
        facts.append(fact(f"{key}.calls_per_step", document.parameters.calls_per_step))
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
