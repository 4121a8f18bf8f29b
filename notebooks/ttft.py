# ---
# jupyter:
#   graphgain:
#     title: How long the first token takes
#     documents: [ttft, prefill_graph_gain, statements]
#     figures: [ttft, ttft_modes, ttft_long]
#     tables: [ttft, ttft_crossovers, ttft_fit, ttft_engines, ttft_client]
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
# # How long the first token takes
#
# Median time to first token of cold prefills, one request at a time, for each engine with and
# without its graph for prefill.

# %% tags=["parameters"]
machines = ["gb300-published", "rtx5070ti-published"]
results = "results"
out = "build"

# %%
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from graphgain import text
from graphgain.crossovers import crossovers
from graphgain.exhibits import save_figure, save_table
from graphgain.facts import Fact, fact, machine_key, save_facts, words
from graphgain.figures import ttft, ttft_long
from graphgain.figures.engines import engine_name, label, look, place
from graphgain.median import median_interval
from graphgain.results.article import Statements
from graphgain.results.forwards import PrefillGraphGain
from graphgain.results.serving import ClientCheck, Ttft
from graphgain.results.store import load_documents, machine_labels
from graphgain.serving_fit import captured_tokens, parted
from graphgain.statements import by_name, printed_fact
from graphgain.tables import stacked

SHORT = 4096  # tokens: the bound that the article calls short
WELL_FITTED_PERCENT = 3  # median difference up to which a fit is drawn

documents = load_documents(results, machines, Ttft)
labels = machine_labels(results, machines)
shown = [labels[name] for name in machines]

# %%
rows = pd.DataFrame(
    [
        {
            "slug": name,
            "machine": labels[name],
            "engine": row.engine,
            "mode": row.mode,
            "isl_tokens": row.isl_tokens,
            "ttft_ms": row.ttft_ms.value,
            "low_ms": row.ttft_ms.low,
            "high_ms": row.ttft_ms.high,
            "n": row.ttft_ms.n,
            "text": text.quantity_with_interval(row.ttft_ms, 2),
        }
        for name, document in documents.items()
        for row in document.rows
    ],
    columns=[
        *("slug", "machine", "engine", "mode", "isl_tokens"),
        *("ttft_ms", "low_ms", "high_ms", "n", "text"),
    ],
)
# Kern first, then the others, an engine's modes side by side.
order = [place(row.engine, row.mode) for row in rows.itertuples()]
rows = rows.iloc[sorted(range(len(rows)), key=order.__getitem__)]
data = rows.drop(columns=["slug", "text"])


def is_more(table: pd.DataFrame) -> np.ndarray:
    """Which rows are of modes that the article does not have; they have a figure of their own."""
    pairs = zip(table["engine"], table["mode"], strict=True)
    more = [look(engine, str(mode).partition(" ")[0]).one_more for engine, mode in pairs]
    return np.array(more, dtype=bool)


more = is_more(data)

# A measured machine may be several nodes of one kind. What the host sets is comparable on one only.
cards = {
    (name, run.engine, run.mode): run.card
    for name, document in documents.items()
    for run in sorted(document.engines or [], key=lambda run: place(run.engine, run.mode))
}
nodes = {
    name: list(dict.fromkeys(card for (slug, *_), card in cards.items() if slug == name))
    for name in documents
}


def node(slug: str, engine: str, mode: str) -> int | None:
    """The number of a mode's node among its machine's; None where there is only one, or where the
    document does not tell."""
    own, key = nodes[slug], (slug, engine, mode)
    return own.index(cards[key]) + 1 if len(own) > 1 and key in cards else None


data.groupby(["machine", "engine", "mode"], sort=False)["isl_tokens"].agg(["count", "min", "max"])

# %% [markdown]
# ## Host or GPU
#
# TTFT = fixed + max(host, GPU): a level as long as the host is the slower one, a line once the GPU
# is. A mode whose engine says up to which size it captured graphs is two modes: prompts above that
# size run without a graph, and are fitted by themselves.

# %%
limits = pd.DataFrame(
    [
        {
            "slug": name,
            "machine": labels[name],
            "engine": run.engine,
            "mode": run.mode,
            "tokens": tokens,
        }
        for name, document in documents.items()
        for run in document.engines or []
        if (tokens := captured_tokens(run.settings))
    ],
    columns=["slug", "machine", "engine", "mode", "tokens"],
)
captured = {(row.slug, row.engine, row.mode): row.tokens for row in limits.itertuples()}
parts = []
for (slug, machine, engine, mode), curve in rows.groupby(
    ["slug", "machine", "engine", "mode"], sort=False
):
    limit = captured.get((slug, engine, mode))
    for part in parted(list(curve["isl_tokens"]), list(curve["ttft_ms"]), limit):
        found = part.model
        parts.append(
            {
                "slug": slug,
                "machine": machine,
                "engine": engine,
                "mode": mode,
                "part": part.which,
                "first_tokens": part.lengths[0],
                "last_tokens": part.lengths[-1],
                "lengths": len(part.lengths),
                "level_ms": part.level_ms,
                "intercept_ms": found.intercept_ms if found else np.nan,
                "slope_ms_per_1k": found.slope_ms_per_1k if found else np.nan,
                "knee_tokens": found.knee_tokens if found else np.nan,
                "residual_percent": part.residual_percent,
            }
        )
FIT = [
    *("slug", "machine", "engine", "mode", "part", "first_tokens", "last_tokens", "lengths"),
    *("level_ms", "intercept_ms", "slope_ms_per_1k", "knee_tokens", "residual_percent"),
]
fits = pd.DataFrame(parts, columns=FIT).astype({name: float for name in FIT[8:]})
fits.drop(columns="slug")

# %% [markdown]
# The fused forward without any engine is the line that a fast host draws on a measured machine: the
# same model in this project's own process, its launches issued by a C++ loop.

# %%
floor = pd.DataFrame(
    [
        {
            "slug": name,
            "machine": labels[name],
            "engine": "lean",
            "mode": "cpp_eager",
            "isl_tokens": row.tokens,
            "ttft_ms": row.cpp_eager_ms.value,
            "low_ms": row.cpp_eager_ms.low,
            "high_ms": row.cpp_eager_ms.high,
            "n": row.cpp_eager_ms.n,
        }
        for name, document in load_documents(results, list(documents), PrefillGraphGain).items()
        for row in document.rows
        if document.parameters.engine == "lean" and row.cached_tokens == 0 and row.cpp_eager_ms
    ],
    columns=[column for column in rows.columns if column != "text"],
)

# %% [markdown]
# ## Up to 4k tokens
#
# Where an engine's line is flat, the time does not depend on the work: the host sets it. Where it
# rises, the GPU does. Dotted: the fits, where they describe the data.

# %%
drawn = [
    {
        "machine": row.machine,
        "engine": row.engine,
        "mode": f"{row.mode} {row.part}",
        "isl_tokens": tokens,
        "ttft_ms": np.nanmax(
            [row.level_ms, row.intercept_ms + row.slope_ms_per_1k * tokens / 1024]
        ),
    }
    for row in fits.itertuples()
    if not row.residual_percent > WELL_FITTED_PERCENT
    for tokens in np.linspace(row.first_tokens, min(row.last_tokens, SHORT), 120)
    if row.first_tokens <= SHORT
]
curve_columns = ["machine", "engine", "mode", "isl_tokens", "ttft_ms"]
fitted = pd.DataFrame(drawn, columns=curve_columns)
short = pd.concat([data[~more], floor.drop(columns="slug")]) if len(floor) else data[~more]
short = short[short["isl_tokens"] <= SHORT]
main = (fitted[~is_more(fitted)], limits[~is_more(limits)])
save_figure("ttft", lambda: ttft.draw(short, *main, shown), short, out)

# %% [markdown]
# What else an engine can be told, beside its own two modes: a panel an engine.

# %%
with_more = rows[more][["slug", "engine"]].drop_duplicates()
modes = rows[rows["isl_tokens"] <= SHORT].merge(with_more, on=["slug", "engine"])
modes["node"] = [node(row.slug, row.engine, row.mode) for row in modes.itertuples()]
modes["machine"] = [
    f"{row.machine}: {engine_name(row.engine)}" for row in modes[["machine", "engine"]].itertuples()
]
modes = modes.drop(columns=["slug", "text"])
nothing = (fitted.iloc[:0], limits.iloc[:0])
those = list(dict.fromkeys(modes["machine"])) or shown
save_figure("ttft_modes", lambda: ttft.draw(modes, *nothing, those, octaves=True), modes, out)

# %% [markdown]
# ## Who is faster, and from where on
#
# Every pair of modes of two different engines on one node is compared at the lengths that both
# have. Where the sign of the difference changes, the crossover is placed by linear interpolation
# between the two lengths. Both directions count.

# %%
found = []
for (slug, machine), own in rows[~more].groupby(["slug", "machine"], sort=False):
    curves = {
        key: curve.set_index("isl_tokens")["ttft_ms"].sort_index()
        for key, curve in own.groupby(["engine", "mode"], sort=False)
    }
    for one, two in combinations(curves, 2):
        if one[0] == two[0] or node(slug, *one) != node(slug, *two):
            continue
        both = curves[one].index.intersection(curves[two].index)
        pair = [list(curves[key][both]) for key in (one, two)]
        found += [
            {
                "slug": slug,
                "machine": machine,
                "first_engine": one[0],
                "first_mode": one[1],
                "second_engine": two[0],
                "second_mode": two[1],
                "left_tokens": cross.left,
                "right_tokens": cross.right,
                "at_tokens": cross.at,
                "ttft_ms": cross.value,
                "first_below": cross.first_below,
            }
            for cross in crossovers(list(both), *pair)
        ]
crossings = pd.DataFrame(
    found,
    columns=[
        *("slug", "machine", "first_engine", "first_mode", "second_engine", "second_mode"),
        *("left_tokens", "right_tokens", "at_tokens", "ttft_ms", "first_below"),
    ],
)
crossings

# %% [markdown]
# Beyond 4k the lines nearly coincide, so the second panel shows each engine's TTFT relative to the
# first engine's, and only the differences of up to 40 %.

# %%
compared = data[~more]
first_curves = {
    machine: own[own["mode"] == own["mode"].iloc[0]].query("engine == engine.iloc[0]")
    for machine, own in compared.groupby("machine", sort=False)
}


def percent_of_first(machine: str, isl_tokens: float, ttft_ms: float) -> float:
    """How much longer than the machine's first engine, which is interpolated, in per cent."""
    curve = first_curves[machine]
    first = np.interp(isl_tokens, curve["isl_tokens"], curve["ttft_ms"], right=np.nan)
    return float(100 * (ttft_ms / first - 1))


relative = compared.assign(
    percent_of_first=[
        percent_of_first(row.machine, row.isl_tokens, row.ttft_ms) for row in compared.itertuples()
    ]
)
marks = crossings.assign(
    percent_of_first=[
        percent_of_first(row.machine, row.at_tokens, row.ttft_ms) for row in crossings.itertuples()
    ]
)
save_figure("ttft_long", lambda: ttft_long.draw(relative, marks, shown), relative, out)

# %% [markdown]
# ## Tables

# %%
columns = list(dict.fromkeys(label(row.engine, row.mode) for row in rows.itertuples()))
cells = rows.assign(
    column=[label(row.engine, row.mode) for row in rows.itertuples()],
    isl=rows["isl_tokens"].map(text.number),
)
wide = (
    cells.pivot_table(
        index=["machine", "isl_tokens", "isl"], columns="column", values="text", aggfunc="first"
    )
    .reindex(columns=columns)
    .fillna("—")
    .reset_index()
    .rename(columns={"isl": "ISL (tokens)"})
)
save_table("ttft", data, stacked(wide, ["ISL (tokens)", *columns], shown), out)

# %%
CROSSED = ["faster before", "faster after", "between (tokens)", "at about (tokens)"]
listed = pd.DataFrame(
    [
        {
            "machine": row.machine,
            "faster before": (names := [first, second])[row.first_below],
            "faster after": names[not row.first_below],
            "between (tokens)": text.span(row.left_tokens, row.right_tokens),
            "at about (tokens)": text.number(round(row.at_tokens, -1)),
        }
        for row in crossings.itertuples()
        for first, second in [
            (
                label(row.first_engine, row.first_mode),
                label(row.second_engine, row.second_mode),
            )
        ]
    ],
    columns=["machine", *CROSSED],
)
# Where every engine was on a node of its own, there is nothing to compare.
compared_here = [
    labels[name]
    for name in machines
    if name not in documents or (crossings["slug"] == name).any() or len(nodes[name]) < 2
]
save_table(
    "ttft_crossovers",
    crossings.drop(columns="slug"),
    stacked(listed, CROSSED, compared_here),
    out,
)

# %% [markdown]
# The fits as a table, and what measured engines said of themselves.

# %%
NAMES = {"captured": "up to the captured size", "above": "above the captured size", "all": "all"}
FITTED = ["engine", "lengths (tokens)", "level (ms)", "line (ms per 1,024 tokens)",
          "line at 0 (ms)", "level up to (tokens)", "off by (median)"]  # fmt: skip
listed = pd.DataFrame(
    [
        {
            "machine": row.machine,
            "engine": label(row.engine, row.mode),
            "lengths (tokens)": text.span(row.first_tokens, row.last_tokens),
            "level (ms)": "—" if np.isnan(row.level_ms) else text.number(row.level_ms, 1),
            "line (ms per 1,024 tokens)": "—"
            if np.isnan(row.slope_ms_per_1k)
            else text.number(row.slope_ms_per_1k, 1),
            "line at 0 (ms)": "—"
            if np.isnan(row.intercept_ms)
            else text.number(row.intercept_ms, 1),
            "level up to (tokens)": "—"
            if np.isnan(row.knee_tokens)
            else text.number(round(row.knee_tokens, -1)),
            "off by (median)": "—"
            if np.isnan(row.residual_percent)
            else f"{row.residual_percent:.1f}%",
        }
        for row in fits.itertuples()
    ],
    columns=["machine", *FITTED],
)
save_table("ttft_fit", fits.drop(columns="slug"), stacked(listed, FITTED, shown), out)

# %%
# Engines call some settings differently; the first one that is there counts.
SAID = {
    "graphs": ("cudagraph_mode", "prefill_graph"),
    "largest captured (tokens)": ("capture_sizes",),
    "attention": ("attention",),
    "linear attention": ("linear_attention",),
    "prefix cache": ("prefix_caching", "radix_cache_disabled"),
    "tokens of one forward": ("chunk_tokens",),
}


def said(names: tuple[str, ...], settings: dict[str, object]) -> str:
    """A setting as a cell."""
    name = next((name for name in names if settings.get(name) is not None), names[0])
    value = settings.get(name)
    if name == "capture_sizes" and isinstance(value, list):
        value = max(value, default=None)
    if isinstance(value, bool):
        return "on" if value != name.endswith("_disabled") else "off"
    if isinstance(value, int):
        return text.number(value)
    return "—" if value is None else str(value).replace("_", " ").lower()


RUN = ["engine", "node", "version", "start (s)", *SAID]
runs = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "engine": label(run.engine, run.mode),
            "node": str(node(name, run.engine, run.mode) or "—"),
            "version": run.version or "—",
            "start (s)": "—" if run.start_s is None else text.number(run.start_s),
            **{title: said(names, run.settings) for title, names in SAID.items()},
        }
        for name, document in documents.items()
        for run in sorted(document.engines or [], key=lambda run: place(run.engine, run.mode))
    ],
    columns=["machine", *RUN],
)
if (runs["node"] == "—").all():
    runs, RUN = runs.drop(columns="node"), [name for name in RUN if name != "node"]
own = list(dict.fromkeys(runs["machine"])) or shown  # the article does not tell this of its own
save_table("ttft_engines", runs, stacked(runs, RUN, own), out)

# %% [markdown]
# What the client takes by itself, against a server that answers at once, and what another client
# measured on the same server by turns, and then at that other one. A turn of one client and the
# next turn of the other follow each other within a second; the median of their differences is what
# counts.


# %%
def interval_text(turns: list[float]) -> str:
    """The 95 % interval of the median of the differences; how many turns, where those are too few
    to have one."""
    interval = median_interval(turns)
    if interval is None:
        return f"{len(turns)} turns only"
    low, high = (text.number(bound, 1) for bound in interval)
    return f"{low} to {high}"


def alone_apart(check: ClientCheck) -> list[float]:
    """How much longer this client takes by itself than the other one, in ms, turn by turn."""
    both = (check.ours_alone_ms, check.other_alone_ms)
    ours, other = ((alone.runs or []) if alone else [] for alone in both)
    return [mine - theirs for mine, theirs in zip(ours, other, strict=True)]


ALONE = "a server that answers at once"
CLIENT = ["what", "tokens", "this client (ms)", "other (ms)", "difference (ms)", "95% interval"]
checks = [
    (name, check)
    for name, document in documents.items()
    for check in sorted(
        document.client_check or [], key=lambda check: place(check.engine, check.mode)
    )
]
clients = pd.DataFrame(
    [
        {
            "machine": labels[name],
            "what": ALONE,
            "tokens": text.number(cost.isl_tokens),
            "this client (ms)": text.quantity_with_interval(cost.ttft_ms, 2),
            "other (ms)": "—",
            "difference (ms)": "—",
            "95% interval": "—",
        }
        for name, document in documents.items()
        for cost in document.client_cost or []
    ]
    + [
        {
            "machine": labels[name],
            "what": f"{label(check.engine, check.mode)}: {check.other}",
            "tokens": text.number(check.isl_tokens),
            "this client (ms)": text.quantity(check.ours_ms, 1),
            "other (ms)": text.quantity(check.other_ms, 1),
            "difference (ms)": text.number(check.difference_ms.value, 1),
            "95% interval": interval_text(check.difference_ms.runs or []),
        }
        for name, check in checks
    ]
    + [
        {
            "machine": labels[name],
            "what": f"{ALONE}: {check.other}",
            "tokens": text.number(check.isl_tokens),
            "this client (ms)": text.quantity(check.ours_alone_ms, 2),
            "other (ms)": text.quantity(check.other_alone_ms, 2),
            "difference (ms)": text.number(float(np.median(apart)), 1),
            "95% interval": interval_text(apart),
        }
        for name, check in checks
        if (apart := alone_apart(check))
    ],
    columns=["machine", *CLIENT],
)
save_table("ttft_client", clients, stacked(clients, CLIENT, own), out)

# %% [markdown]
# ## Numbers for the prose
#
# `PAIRS` names an engine's mode with the graph for prefill and the one without. The graph is said
# to help as long as the mode without it takes 5 % longer.

# %%
KERN = ("kern", "default")
PAIRS = {
    "vllm": (("vllm", "piecewise"), ("vllm", "no-piecewise")),
    "sglang": (("sglang", "breakable"), ("sglang", "no-prefill-graph")),
}


def table_facts(key: str, table: pd.DataFrame) -> list[Fact]:
    """Facts of one machine's table: a row a length, a column an (engine, mode)."""
    short = table[table.index <= SHORT]
    facts = [
        fact(f"{key}.lengths", len(table)),
        fact(f"{key}.modes", len(table.columns)),
        fact(f"{key}.values", int(table.notna().sum().sum())),
        fact(f"{key}.shortest_tokens", int(table.index.min())),
        fact(f"{key}.longest_tokens", int(table.index.max())),
    ]
    for (engine, mode), curve in table.items():
        facts += [
            fact(f"{key}.{engine}_{mode.replace('-', '_')}_{isl}_ms", float(ms), "ms", 1)
            for isl, ms in curve.dropna().items()
        ]
    if KERN in table:
        others = table.drop(columns=[KERN]).min(axis=1)
        ahead = table[KERN] < others
        leading = ahead.cummin()
        facts += [
            fact(f"{key}.short_lengths", len(short)),
            fact(f"{key}.kern_first_short", int(ahead[short.index].sum())),
            fact(f"{key}.kern_first_through_tokens", int(table.index[leading].max())),
            fact(
                f"{key}.kern_lead_least_ms",
                float((others - table[KERN])[short.index].min()),
                "ms",
                1,
            ),
            fact(f"{key}.best_over_kern_shortest", float((others / table[KERN]).iloc[0]), "", 1),
            fact(
                f"{key}.kern_over_best_longest_percent",
                float(100 * (table[KERN] / others - 1).iloc[-1]),
                "%",
                1,
            ),
        ]
    if KERN in table and PAIRS["sglang"][0] in table:
        longer = 100 * (table[PAIRS["sglang"][0]] / table[KERN] - 1)
        facts += [
            fact(f"{key}.sglang_over_kern_{isl}_percent", float(longer[isl]), "%")
            for isl in sorted({SHORT, int(table.index.max())})
            if isl in longer
        ]
    for engine, (on, off) in PAIRS.items():
        if on in table and off in table:
            # As far as it helps at every length: behind that a difference is the machine's noise.
            slower = (short[off] > 1.05 * short[on]).cummin()
            facts += [
                fact(
                    f"{key}.{engine}_graph_saves_shortest_ms",
                    float((table[off] - table[on]).iloc[0]),
                    "ms",
                    1,
                ),
                fact(f"{key}.{engine}_graph_helps_through_tokens", int(short.index[slower].max())),
            ]
    steps = short.get(("vllm", "piecewise"), pd.Series(dtype=float)).diff().nlargest(2).sort_index()
    for number, (isl, step) in enumerate(steps.items(), 1):
        before = short.index[short.index.get_loc(isl) - 1]
        facts += [
            fact(f"{key}.vllm_step{number}_ms", float(step), "ms", 1),
            fact(f"{key}.vllm_step{number}_from_tokens", int(before)),
            fact(f"{key}.vllm_step{number}_to_tokens", int(isl)),
        ]
    return facts


# %%
facts = []
for slug, own in rows.groupby("slug", sort=False):
    key = f"ttft.{machine_key(slug)}"
    facts += table_facts(
        key,
        own.pivot_table(
            index="isl_tokens", columns=["engine", "mode"], values="ttft_ms", sort=False
        ).sort_index(),
    )
    facts += [
        fact(f"{key}.requests", documents[slug].parameters.requests_per_length),
        fact(f"{key}.crossovers", int((crossings["slug"] == slug).sum())),
    ]
for row in fits.itertuples():
    key = f"ttft.{machine_key(row.slug)}.fit_{row.engine}_{row.mode.replace('-', '_')}_{row.part}"
    facts += [
        fact(f"{key}_{name}", float(value), unit, digits)
        for name, value, unit, digits in (
            ("level_ms", row.level_ms, "ms", 1),
            ("slope_ms_per_1k", row.slope_ms_per_1k, "ms", 1),
            ("intercept_ms", row.intercept_ms, "ms", 1),
            ("knee_tokens", row.knee_tokens, "", 0),
            ("residual_percent", row.residual_percent, "%", 1),
        )
        if not np.isnan(value)
    ]
levels = {
    (row.slug, row.engine, row.mode): row.level_ms
    for row in fits.itertuples()
    if row.part in ("all", "captured")
}
for slug in documents:
    for engine, (on, off) in PAIRS.items():
        saved_ms = levels.get((slug, *off), np.nan) - levels.get((slug, *on), np.nan)
        if not np.isnan(saved_ms):
            key = f"ttft.{machine_key(slug)}.{engine}_graph_lowers_level_ms"
            facts.append(fact(key, float(saved_ms), "ms", 1))
for row in limits.itertuples():
    key = f"ttft.{machine_key(row.slug)}.{row.engine}_{row.mode.replace('-', '_')}"
    own = rows[(rows["slug"] == row.slug) & (rows["engine"] == row.engine)]
    above = own.loc[(own["mode"] == row.mode) & (own["isl_tokens"] > row.tokens), "isl_tokens"]
    facts += [
        fact(f"{key}_captured_tokens", int(row.tokens)),
        fact(f"{key}_first_above_tokens", int(above.min())),
    ]
for row in floor.itertuples():
    facts.append(
        fact(f"ttft.{machine_key(row.slug)}.floor_{row.isl_tokens}_ms", row.ttft_ms, "ms", 1)
    )
beside = data[~more].merge(floor, on=["machine", "isl_tokens"], suffixes=("", "_floor"))
for (slug, isl), own in beside.groupby(["slug", "isl_tokens"]):
    times = own["ttft_ms"] / own["ttft_ms_floor"]
    key = f"ttft.{machine_key(slug)}.floor_times"
    facts += [
        fact(f"{key}_least_{isl}", float(times.min()), "", 1),
        fact(f"{key}_most_{isl}", float(times.max()), "", 1),
    ]
for slug, document in documents.items():
    key = f"ttft.{machine_key(slug)}"
    versions = {run.engine: run.version for run in document.engines or [] if run.version}
    facts += [words(f"{key}.{engine}_version", version) for engine, version in versions.items()]
    costs = [cost.ttft_ms.value for cost in document.client_cost or []]
    if costs:
        facts.append(fact(f"{key}.client_cost_ms", max(costs), "ms", 2))
    for check in document.client_check or []:
        turns = check.difference_ms.runs or []
        interval = median_interval(turns)
        if interval is None:
            continue
        at = f"{key}.check_{check.engine}_{check.mode.replace('-', '_')}_{check.isl_tokens}"
        facts += [
            fact(f"{at}_difference_ms", float(np.median(turns)), "ms", 1),
            fact(f"{at}_less_ms", -float(np.median(turns)), "ms", 1),
            fact(f"{at}_turns", len(turns)),
            *(
                fact(f"{at}_{name}_ms", value, "ms", 1)
                for name, value in zip(("low", "high"), interval, strict=True)
            ),
            fact(
                f"{at}_less_percent", -100 * float(np.median(turns)) / check.other_ms.value, "%", 1
            ),
            *(
                fact(f"{at}_less_alone_ms", -float(np.median(apart)), "ms", 1)
                for apart in [alone_apart(check)]
                if apart
            ),
            fact(f"{at}_ours_ms", check.ours_ms.value, "ms", 1),
            fact(f"{at}_other_ms", check.other_ms.value, "ms", 1),
            fact(
                f"{at}_at_most_percent",
                100 * max(map(abs, interval)) / check.other_ms.value,
                "%",
                1,
            ),
        ]
    facts += [
        fact(f"{key}.node_{engine}_{mode.replace('-', '_')}", number)
        for (name, engine, mode) in cards
        if name == slug and (number := node(slug, engine, mode))
    ]
for slug, document in load_documents(results, machines, Statements).items():
    printed = by_name(document)
    facts += [
        printed_fact(f"ttft.{machine_key(slug)}.{name}", printed[name])
        for name in ("sweep_tokens", "sweep_figure_tokens", "sweep_kern_fastest_tokens")
    ]
save_facts(facts, Path(out) / "facts" / "ttft.json")
