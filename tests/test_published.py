"""The published numbers agree with each other, as far as the article agrees with itself."""

import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

import pytest

from graphgain.results import MODELS, Document, Quantity
from graphgain.results.article import Commands, Statement, Statements
from graphgain.results.forwards import DecodeGraphGain, PrefillGraphGain, PrefillRow
from graphgain.results.launches import FfiLaunch, GemmHostCost, LaunchFloor, LaunchPaths
from graphgain.results.serving import AgentWorkload, BreakdownRow, Ttft, TtftBreakdown
from graphgain.results.store import dump_json, read_document, read_machine
from graphgain.results.threads import Gil

RESULTS = Path(__file__).parents[1] / "results"
GB300 = "gb300-published"
RTX5070TI = "rtx5070ti-published"
DOCUMENTS = sorted(
    path
    for machine in (GB300, RTX5070TI)
    for path in (RESULTS / machine).glob("*.json")
    if path.name != "machine.json"
)
HEADINGS = {
    "TL;DR",
    "AgentX Workload Analysis",
    "Analyzing CUDA Graph’s Impact on Performance",
    "The GPU Kernel ↔ Kernel Bubble",
    "How the Python Inference Ecosystem Launches a Kernel",
    "Short Prefill E2E Test",
    "Appendix: Startup Commands, Benchmark Commands",
}

D = TypeVar("D", bound=Document)


def load(model: type[D], machine: str = GB300) -> D:
    experiment = next(name for name, known in MODELS.items() if known is model)
    document = read_document(RESULTS / machine / f"{experiment}.json")
    assert isinstance(document, model)
    return document


def statement(name: str) -> Statement:
    (row,) = [row for row in load(Statements).rows if row.name == name]
    return row


def said(name: str) -> float:
    """The value of a statement that has one, and no range."""
    quantity = statement(name).quantity
    assert quantity.median is not None and quantity.low is None
    return quantity.median


def bounds(quantity: Quantity | None) -> tuple[float, float]:
    assert quantity is not None and quantity.low is not None and quantity.high is not None
    return quantity.low, quantity.high


def column_sum(values: Iterable[float | None]) -> Decimal:
    return sum((Decimal(str(value)) for value in values), Decimal(0))


# The folders


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_document_is_valid_cited_and_in_canonical_form(path: Path) -> None:
    document = read_document(path)
    assert document.kind == "published"
    assert document.source is not None
    assert document.source.title == "Is What CUDA Graph Saves Really Launch Time?"
    assert document.source.author == "Jinyang Su"
    assert document.source.published.isoformat() == "2026-09-23"
    assert document.source.section in HEADINGS
    assert path.read_text(encoding="utf-8") == dump_json(document)


def test_every_experiment_of_the_article_has_a_document() -> None:
    # `handoff` is this project's own experiment: the article prints no such table.
    assert {p.stem for p in DOCUMENTS if p.parent.name == GB300} == set(MODELS) - {"handoff"}
    assert {p.stem for p in DOCUMENTS if p.parent.name == RTX5070TI} == {"launch_floor"}


@pytest.mark.parametrize(
    ("slug", "label", "gpu", "toolkit"),
    [
        (GB300, "GB300 (published)", "GB300", "13.1"),
        (RTX5070TI, "RTX 5070 Ti (published)", "RTX 5070 Ti", None),
    ],
)
def test_machine_holds_what_is_printed_and_nothing_else(
    slug: str, label: str, gpu: str, toolkit: str | None
) -> None:
    machine = read_machine(RESULTS / slug)
    assert (machine.label, machine.cuda_toolkit) == (label, toolkit)
    assert machine.kind == "published"
    assert machine.source is not None and machine.source.section in HEADINGS
    assert machine.gpu is not None
    assert machine.gpu.model_dump(exclude_none=True) == {"name": gpu}
    unknown = (machine.driver, machine.cpu, machine.python, machine.torch, machine.kernel)
    assert unknown == (None,) * 5


# Launching from C++


def test_launch_floor_of_both_cards() -> None:
    gb300 = {row.path: row for row in load(LaunchFloor).rows}
    rtx = {row.path: row for row in load(LaunchFloor, RTX5070TI).rows}
    assert set(gb300) == set(rtx) == {"driver", "runtime", "graph"}
    assert {row.launches for row in (*gb300.values(), *rtx.values())} == {512}
    assert [row.host_us.median for row in gb300.values()] == [1.252, 1.336, 0.003]
    for rows in (gb300, rtx):
        assert rows["graph"].host_us.value < rows["driver"].host_us.value
        assert rows["driver"].host_us.value < rows["runtime"].host_us.value
    assert bounds(rtx["driver"].host_us) == (2.70, 2.83)
    assert bounds(rtx["runtime"].host_us) == (2.90, 3.04)
    assert {row.host_us.n for row in rtx.values()} == {said("consumer_card_runs")}
    assert load(LaunchFloor, RTX5070TI).parameters.process_runs == said("consumer_card_runs")


def test_gemm_calls_issue_497_of_the_839_kernels() -> None:
    rows = load(GemmHostCost).rows
    assert len(rows) == 7
    assert sum(row.calls_per_step for row in rows) == 305
    gemm_kernels = sum(row.calls_per_step * row.kernels_per_call for row in rows)
    assert gemm_kernels == 497
    assert load(DecodeGraphGain).launches - gemm_kernels == 342


def test_gemm_rows_name_the_projections_that_share_a_shape() -> None:
    for row in load(GemmHostCost).rows:
        assert row.gemm == " / ".join(row.uses)
    shapes = [(row.n, row.k) for row in load(GemmHostCost).rows]
    assert len(set(shapes)) == len(shapes)


def test_gemm_shapes_and_calls_follow_from_the_model() -> None:
    # Geometry of Qwen3.5-27B, which the model shares: 64 layers, each fourth full attention.
    hidden, ffn, vocab, layers = 5120, 17408, 248320, 64
    full, head, q_heads, kv_heads = layers // 4, 256, 24, 4
    linear, qk_width, v_heads, v_head = layers - layers // 4, 16 * 128, 48, 128
    attention, v_width = q_heads * head, v_heads * v_head
    assert {row.gemm: (row.n, row.k, row.calls_per_step) for row in load(GemmHostCost).rows} == {
        "in_proj_ba": (2 * v_heads, hidden, linear),
        "o_proj / out_proj": (hidden, attention, full + linear),
        "down_proj": (hidden, ffn, layers),
        "qkv_proj": (2 * attention + 2 * kv_heads * head, hidden, full),
        "in_proj_qkvz": (2 * qk_width + 2 * v_width, hidden, linear),
        "gate_up": (2 * ffn, hidden, layers),
        "lm_head": (vocab, hidden, 1),
    }
    assert attention == v_width  # which is why o_proj and out_proj share a row


def test_gemm_host_time_leaves_a_plausible_cost_for_the_other_launches() -> None:
    rows = load(GemmHostCost).rows
    gemm_us = sum(row.calls_per_step * row.host_us.value for row in rows)
    assert round(gemm_us) == 1757
    decode = load(DecodeGraphGain)
    per_other_launch_us = (decode.host_issue_ms.value * 1000 - gemm_us) / 342
    assert round(per_other_launch_us, 2) == 2.17
    # More than an empty kernel, less than a cuBLAS call with one kernel.
    floor = max(row.host_us.value for row in load(LaunchFloor).rows)
    cheapest = min(row.host_us.value for row in rows)
    assert floor < per_other_launch_us < cheapest


def test_a_second_kernel_costs_about_one_launch() -> None:
    rows = load(GemmHostCost).rows
    one = [row.host_us.value for row in rows if row.kernels_per_call == 1]
    two = [row.host_us.value for row in rows if row.kernels_per_call == 2]
    assert min(one) == said("gemm_one_kernel_reference_us")
    assert {int(us) for us in one} == {said("gemm_one_kernel_us")}
    assert {int(us) for us in two} == {said("gemm_split_k_us")}
    launch = next(part for part in load(GemmHostCost).split if part.part == "launch")
    assert min(two) - max(one) == pytest.approx(launch.host_us.value, abs=0.5)


def test_host_loops_are_timed_as_the_listings_say() -> None:
    timed = [
        (load(LaunchFloor).parameters, 512, None),
        (load(LaunchFloor, RTX5070TI).parameters, 512, 4),
        (load(GemmHostCost).parameters, 256, None),
        (load(FfiLaunch).parameters, 512, 2),
    ]
    for parameters, launches, process_runs in timed:
        assert (parameters.launches, parameters.process_runs) == (launches, process_runs)
        assert (parameters.rounds, parameters.warmup_rounds) == (200, 20)


def test_split_repeats_the_prose_and_exceeds_the_table() -> None:
    split = {part.part: part.host_us for part in load(GemmHostCost).split}
    assert list(split) == ["algorithm_choice", "driver_queries", "library_code", "launch"]
    for part, quantity in split.items():
        assert quantity == statement(f"gemm_{part}_us").quantity
    # Kept as printed: four rounded parts add up to more than any call with one kernel.
    total = sum(quantity.value for quantity in split.values())
    single = [r.host_us.value for r in load(GemmHostCost).rows if r.kernels_per_call == 1]
    assert round(total, 1) == 4.8
    assert total > max(single)


# Decode and prefill


def test_decode_document_repeats_the_prose() -> None:
    decode = load(DecodeGraphGain)
    assert decode.parameters.tokens == 1
    eager, graph = decode.rows
    assert (eager.host, graph.host) == ("eager", "graph")
    assert eager.step_ms == statement("bubble_eager_ms").quantity
    assert eager.idle_us == statement("bubble_eager_idle_us").quantity
    assert graph.step_ms == statement("bubble_graph_ms").quantity
    assert graph.idle_us == statement("bubble_graph_idle_us").quantity
    assert decode.saved_us == statement("bubble_saved_us").quantity
    assert decode.host_issue_ms == statement("decode_host_issue_ms").quantity
    assert decode.pdl_launches == said("bubble_pdl_launches")
    launches = [r for r in load(Statements).rows if r.unit == "kernels" and r.printed == "839"]
    assert len(launches) == 7
    assert {row.quantity.median for row in launches} == {decode.launches}


def test_decode_difference_and_printed_saving_agree_within_rounding() -> None:
    decode = load(DecodeGraphGain)
    eager, graph = (row.step_ms.value for row in decode.rows)
    difference_us = (eager - graph) * 1000
    assert round(difference_us) == 290
    assert decode.saved_us is not None and decode.saved_us.value == 283
    # Each step time is rounded to 10 µs, so their difference may be off by 10 µs.
    assert abs(difference_us - decode.saved_us.value) <= 10


def test_saving_per_kernel_covers_the_saving_of_the_step() -> None:
    decode = load(DecodeGraphGain)
    per_kernel = {row.pdl: row.slower_us for row in decode.per_kernel}
    plain = decode.launches - decode.pdl_launches
    assert plain == 21
    assert per_kernel[True] == statement("bubble_slower_us").quantity
    assert per_kernel[False] == statement("bubble_slower_without_pdl_us").quantity
    low, high = bounds(per_kernel[True])
    without_pdl = per_kernel[False].value
    total_us = [decode.pdl_launches * us + plain * without_pdl for us in (low, high)]
    assert decode.saved_us is not None
    assert total_us[0] < said("bubble_summed_us") < decode.saved_us.value < total_us[1]
    assert bounds(statement("tldr_handoff_saved_us").quantity) == (low, without_pdl)


def test_host_time_of_a_decode_step_by_kernel() -> None:
    decode = load(DecodeGraphGain)
    per_kernel_us = decode.host_issue_ms.value * 1000 / decode.launches
    assert round(per_kernel_us) == said("decode_host_per_kernel_us")


def test_unfused_step_multiplies_out() -> None:
    product_us = said("bubble_unfused_launches") * said("bubble_unfused_per_kernel_us")
    assert product_us / 1000 == pytest.approx(said("bubble_unfused_saved_ms"))


def test_prefill_has_nine_rows_three_of_them_after_cached_tokens() -> None:
    rows = [(row.tokens, row.cached_tokens) for row in load(PrefillGraphGain).rows]
    assert rows == [
        *[(tokens, 0) for tokens in (128, 256, 384, 512, 768, 1024)],
        *[(256, cached * 1024) for cached in (4, 16, 32)],
    ]


@pytest.mark.parametrize(
    "row", load(PrefillGraphGain).rows, ids=lambda row: f"{row.tokens}+{row.cached_tokens}"
)
def test_prefill_columns_follow_from_one_difference(row: PrefillRow) -> None:
    # Two times rounded to 0.01 ms leave their difference open by 0.01 ms either way. Some
    # difference in that range must give both printed columns, each to its last digit.
    calls = load(PrefillGraphGain).calls_per_forward
    assert row.saved_percent_printed is not None and row.per_call_us_printed is not None
    eager_ms, difference_ms = row.eager_ms.value, row.eager_ms.value - row.graph_ms.value
    ranges_ms = [
        (difference_ms - 0.01, difference_ms + 0.01),
        tuple((row.saved_percent_printed + half) * eager_ms / 100 for half in (-0.05, 0.05)),
        tuple((row.per_call_us_printed + half) * calls / 1000 for half in (-0.005, 0.005)),
    ]
    assert max(low for low, _ in ranges_ms) < min(high for _, high in ranges_ms)


def test_prefill_columns_close_directly_in_seven_rows() -> None:
    document = load(PrefillGraphGain)
    assert document.calls_per_forward == 4 + 48 * 20 + 16 * 10 + 3
    off = {}
    for row in document.rows:
        saved_ms = row.eager_ms.value - row.graph_ms.value
        saved_percent = round(100 * saved_ms / row.eager_ms.value, 1)
        per_call_us = round(1000 * saved_ms / document.calls_per_forward, 2)
        if (saved_percent, per_call_us) != (row.saved_percent_printed, row.per_call_us_printed):
            off[row.tokens, row.cached_tokens] = (saved_percent, per_call_us)
    # Printed are (1.7, 0.65) and (3.2, 0.63): off by one in the last digit, from rounded times.
    assert off == {(1024, 0): (1.8, 0.66), (256, 32768): (3.3, 0.63)}


def test_prefill_host_time_stays_ahead_of_the_gpu() -> None:
    document = load(PrefillGraphGain)
    for row in document.rows:
        assert row.host_issue_ms.value < row.graph_ms.value
    # The two long prefills: the same number of launches waits, as behind a full queue.
    waiting = [
        round((1 - row.host_issue_ms.value / row.eager_ms.value) * document.calls_per_forward)
        for row in document.rows
        if row.tokens >= 768
    ]
    assert waiting == [988, 988]


# Launching from Python


def test_tvm_ffi_repeats() -> None:
    document = load(FfiLaunch)
    rows = {row.path: row.host_us for row in document.rows}
    assert set(rows) == {"python_tvm_ffi", "cpp_loop", "graph"}
    runs = {}
    for path, quantity in rows.items():
        assert quantity.interval == "printed repeats"
        assert quantity.runs is not None and len(quantity.runs) == quantity.n == 2
        assert quantity.median == quantity.runs[0]
        assert bounds(quantity) == (min(quantity.runs), max(quantity.runs))
        runs[path] = quantity.runs
    for python, loop in zip(runs["python_tvm_ffi"], runs["cpp_loop"], strict=True):
        assert round(python - loop, 1) == said("ffi_extra_us")
    extra = statement("ffi_tensor_arguments_extra_us").quantity
    assert document.tensor_arguments_extra_us == extra


def test_integration_paths_multiply_out() -> None:
    paths = {row.path: row.host_us for row in load(LaunchPaths).rows}
    assert len(paths) == 5
    assert paths.pop("other_warm_jit") == statement("paths_other_jit_us").quantity
    worst = max((q for q in paths.values() if q is not None), key=lambda q: q.value)
    assert worst is paths["jit_torch_op"]
    low, high = bounds(worst)
    worst_us = said("paths_worst_us")
    assert low <= worst_us <= high
    assert round(worst_us * said("paths_launches") / 1000, 1) == said("paths_issue_ms")
    assert worst_us * said("paths_unfused_launches") / 1000 == said("paths_unfused_issue_ms")
    assert said("paths_unfused_launches") == said("bubble_unfused_launches")
    assert said("paths_decode_forward_ms") == said("bubble_eager_ms")


def test_integration_paths_keep_ranges_and_file_counts() -> None:
    rows = {row.path: row for row in load(LaunchPaths).rows}
    assert bounds(rows["tvm_ffi"].host_us) == (2.39, 2.45)
    assert bounds(rows["jit_cached"].host_us) == (2.65, 2.72)
    assert bounds(rows["jit_torch_op"].host_us) == (7.87, 8.01)
    assert bounds(rows["aot_torch_library"].host_us) == (4.16, 4.27)
    assert (rows["jit_cached"].files, rows["jit_torch_op"].files) == (76, 32)
    assert load(LaunchPaths).parameters is None


def test_thread_census_and_switch_interval() -> None:
    gil = load(Gil)
    census = {(entry.process, entry.when is None): entry for entry in gil.census}
    assert len(census) == len(gil.census) == 5
    assert census["http + tokenizer", True].threads == said("threads_http_tokenizer")
    assert census["scheduler + worker", True].threads == said("threads_scheduler_worker")
    assert census["scheduler + worker", False].threads == said("threads_hicache_extra")
    unknown = {entry.process for entry in gil.census if entry.threads is None}
    assert unknown == {"detokenizer", "compilation"}
    issuing = {entry.process for entry in gil.census if entry.issues_kernels}
    assert issuing == {"scheduler + worker"}
    assert gil.rows == []
    waits = ["gil_wait_ms", "gil_sleep_ms", "gil_release_within_ms", "gil_drop_request_ms"]
    assert {said(name) for name in waits} == {gil.parameters.switch_interval_ms} == {5}


# Requests


def test_ttft_covers_the_grid_that_the_benchmark_loop_runs() -> None:
    rows = load(Ttft).rows
    grid = [*range(128, 4097, 128), *range(5120, 16385, 1024)]
    assert len(grid) == 44
    assert Counter((row.engine, row.mode) for row in rows) == {
        ("kern", "default"): 44,
        ("vllm", "piecewise"): 44,
        ("vllm", "no-piecewise"): 44,
        ("sglang", "breakable"): 44,
        ("sglang", "no-prefill-graph"): 44,
    }
    for mode in {(row.engine, row.mode) for row in rows}:
        assert [row.isl_tokens for row in rows if (row.engine, row.mode) == mode] == grid
    (loop,) = [row.command for row in load(Commands).rows if row.purpose == "benchmark"]
    sequences = re.findall(r"\$\(seq (\d+) (\d+) (\d+)\)", loop)
    printed = [n for a, s, z in sequences for n in range(int(a), int(z) + 1, int(s))]
    assert printed == grid


def test_ttft_parameters_are_those_of_the_benchmark_loop() -> None:
    (loop,) = [row.command for row in load(Commands).rows if row.purpose == "benchmark"]
    options = dict(re.findall(r"--([a-z-]+) (\d+)\b", loop))
    parameters = load(Ttft).parameters
    assert parameters.requests_per_length == int(options["num-prompts"])
    assert parameters.warmup_requests == int(options["num-warmups"])
    assert parameters.concurrency == int(options["max-concurrency"]) == said("tldr_concurrency")
    assert parameters.output_tokens == int(options["random-output-len"])
    assert {row.ttft_ms.n for row in load(Ttft).rows} == {parameters.requests_per_length}


def test_ttft_column_sums() -> None:
    # Added up from the printed table: a changed digit anywhere shows.
    columns: dict[str, list[float | None]] = {}
    for row in load(Ttft).rows:
        columns.setdefault(f"{row.engine} {row.mode}", []).append(row.ttft_ms.median)
    assert {mode: column_sum(values) for mode, values in columns.items()} == {
        "kern default": Decimal("7513.57"),
        "vllm piecewise": Decimal("8277.37"),
        "vllm no-piecewise": Decimal("8630.19"),
        "sglang breakable": Decimal("9366.97"),
        "sglang no-prefill-graph": Decimal("9948.36"),
    }


def test_column_sums_of_the_small_tables() -> None:
    gemm, prefill = load(GemmHostCost).rows, load(PrefillGraphGain).rows
    assert column_sum(row.host_us.median for row in gemm) == Decimal("39.52")
    assert column_sum(row.host_issue_ms.median for row in prefill) == Decimal("31.91")
    assert column_sum(row.saved_percent_printed for row in prefill) == Decimal("28.8")
    breakdown = load(TtftBreakdown).rows
    assert column_sum(row.ttft_traced_ms.median for row in breakdown) == Decimal("1940.2")
    assert column_sum(row.gpu_busy_ms.median for row in breakdown) == Decimal("1647.8")
    assert column_sum(row.launch_interval_us.median for row in breakdown) == Decimal("1123.7")
    assert sum(row.launches_per_request for row in breakdown) == 12165


def test_kern_answers_first_up_to_the_length_that_is_claimed() -> None:
    fastest = {}
    rows = load(Ttft).rows
    for isl in {row.isl_tokens for row in rows}:
        at_isl = [row for row in rows if row.isl_tokens == isl]
        fastest[isl] = min(at_isl, key=lambda row: row.ttft_ms.value).engine
    claimed = said("sweep_kern_fastest_tokens")
    assert claimed == 4096
    assert {engine for isl, engine in fastest.items() if isl <= claimed} == {"kern"}
    # and not everywhere, so the claim's bound says something
    assert fastest[16384] == "vllm"


def test_ttft_of_sglang_is_kept_traced_and_untraced() -> None:
    (untraced,) = [
        row.ttft_ms.value
        for row in load(Ttft).rows
        if (row.engine, row.mode, row.isl_tokens) == ("sglang", "no-prefill-graph", 128)
    ]
    assert untraced == 101.94
    assert load(TtftBreakdown).rows[0].isl_tokens == 128
    assert load(TtftBreakdown).rows[0].ttft_traced_ms.value == 142.0


@pytest.mark.parametrize("row", load(TtftBreakdown).rows, ids=lambda row: str(row.isl_tokens))
def test_breakdown_columns_follow_from_each_other(row: BreakdownRow) -> None:
    # The TTFT is a median over requests and the interval an average, so the quotient closes
    # within 0.7 µs only: at most 0.9 % of the interval, far above the rounding of 0.1 ms.
    interval_us = row.ttft_traced_ms.value * 1000 / row.launches_per_request
    assert interval_us == pytest.approx(row.launch_interval_us.value, abs=0.7)
    # The share closes exactly over the average duration, launches × interval.
    duration_ms = row.launches_per_request * row.launch_interval_us.value / 1000
    assert round(100 * row.gpu_busy_ms.value / duration_ms) == row.gpu_busy_percent


def test_busy_share_over_the_median_ttft_misses_one_row() -> None:
    off = {
        row.isl_tokens: round(100 * row.gpu_busy_ms.value / row.ttft_traced_ms.value)
        for row in load(TtftBreakdown).rows
        if round(100 * row.gpu_busy_ms.value / row.ttft_traced_ms.value) != row.gpu_busy_percent
    }
    assert off == {3072: 90}


def test_breakdown_has_seven_rows() -> None:
    isl = [row.isl_tokens for row in load(TtftBreakdown).rows]
    assert isl == [128, 1024, 2048, 3072, 4096, 8192, 16384]


def test_busy_share_below_3k_spans_the_printed_range() -> None:
    rows = load(TtftBreakdown).rows
    bound = said("tldr_host_bound_tokens")
    below = [row.gpu_busy_percent for row in rows if row.isl_tokens < bound]
    printed = bounds(statement("tldr_gpu_busy_percent").quantity)
    assert (min(below), max(below)) == printed == (19, 63)
    (at_bound,) = [row.gpu_busy_percent for row in rows if row.isl_tokens == bound]
    assert at_bound == 91


def test_agent_workload_repeats_the_prose() -> None:
    workload = load(AgentWorkload)
    (median,) = workload.percentiles
    (share,) = workload.shares
    assert workload.cache_hit_percent == said("tldr_cache_hit_percent") == 98.3
    assert workload.parameters.block_tokens == said("agentx_block_tokens")
    assert median.percentile == said("agentx_median_percent")
    assert median.tokens == statement("agentx_prefill_tokens_p50").quantity
    assert share.tokens == said("agentx_short_prefill_tokens")
    assert share.percent == said("agentx_short_prefill_percent")


# The prose


def test_statement_and_command_names_are_unique() -> None:
    for rows in (load(Statements).rows, load(Commands).rows):
        assert max(Counter(row.name for row in rows).values()) == 1


def test_statements_and_commands_name_sections_of_the_article() -> None:
    assert {row.section for row in load(Statements).rows} == HEADINGS
    assert {row.section for row in load(Commands).rows} <= HEADINGS


def read_number(text: str, unit: str) -> set[float]:
    """What a printed number may mean: k is 1000, or for a length in tokens 1024."""
    if not text.endswith("k"):
        return {float(text)}
    number = float(text[:-1])
    return {number * 1000, number * 1024} if unit == "tokens" else {number * 1000}


@pytest.mark.parametrize("row", load(Statements).rows, ids=lambda row: row.name)
def test_statement_holds_the_printed_number(row: Statement) -> None:
    low, *high = re.split("[–-]", row.printed)
    if high:
        # In a range such as 0-16k the unit stands at the end only.
        assert bounds(row.quantity)[0] in read_number(low, row.unit)
        assert bounds(row.quantity)[1] in read_number(high[0], row.unit)
        assert row.quantity.interval == "printed range"
    else:
        assert row.quantity.low is None
        assert row.quantity.median in read_number(low, row.unit)


def test_tokens_in_whole_thousands_are_lengths_of_the_sweep() -> None:
    for row in load(Statements).rows:
        if row.unit == "tokens" and re.fullmatch(r"\d+k", row.printed):
            assert row.quantity.value in {r.isl_tokens for r in load(Ttft).rows}


def test_contradictions_are_kept() -> None:
    intervals = {row.isl_tokens: row.launch_interval_us.value for row in load(TtftBreakdown).rows}
    host_bound = [us for isl, us in intervals.items() if isl <= said("tldr_host_bound_tokens")]
    assert (min(host_bound), max(host_bound)) == (77.5, 83.5)
    assert said("tldr_sglang_launch_interval_us") == 74
    assert said("breakdown_launch_overhead_us") == 70
    assert said("tldr_kern_launch_interval_us") == 3.4
    assert said("kern_prefill_launch_interval_us") == 3.3
    assert said("tldr_short_prefill_percent") == 85
    assert said("agentx_short_prefill_percent") == 85.2
    saved = ("tldr_graph_saved_us", "bubble_saved_us", "bubble_summed_us", "bubble_bought_us")
    assert [said(name) for name in saved] == [283, 283, 280, 300]
    assert [said(name) for name in ("tldr_decode_gpu_ms", "decode_forward_ms")] == [9.9, 9.9]
    assert said("bubble_eager_ms") == 9.91
    # The sweep is called 0–16k and begins at 128.
    assert bounds(statement("sweep_tokens").quantity)[0] == 0
    assert min(row.isl_tokens for row in load(Ttft).rows) == 128


def test_about_is_marked() -> None:
    approximate = {row.name for row in load(Statements).rows if row.quantity.approximate}
    assert {"tldr_sglang_launch_interval_us", "bubble_bought_us", "ffi_extra_us"} <= approximate
    exact = {"tldr_graph_saved_us", "bubble_graph_idle_us", "breakdown_launch_overhead_us"}
    assert not exact & approximate


def test_commands_start_three_engines_compile_two_programs_and_run_the_sweep() -> None:
    commands = load(Commands).rows
    assert Counter(row.purpose for row in commands) == {"start": 3, "compile": 2, "benchmark": 1}
    by_name = {row.name: row.command for row in commands}
    assert by_name["kern"].startswith("kern-serve \\\n")
    assert "sglang.launch_server" in by_name["sglang"]
    assert "vllm serve" in by_name["vllm"]
    for name in ("launch_min", "cublas_min"):
        assert by_name[name].startswith("nvcc -O2 ")
        assert f"-o {name} {name}.cu" in by_name[name]
