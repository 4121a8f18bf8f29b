"""The command `trace`. It imports what it needs when it runs: other commands do without msgspec."""

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from graphgain.errors import TraceError
from graphgain.traces.rules import DEFAULT, EXPLAINED, Clock, Rules, Subagents

if TYPE_CHECKING:
    from argparse import ArgumentParser, _SubParsersAction

    from graphgain.traces.corpus import Corpus, Plan
    from graphgain.traces.counting import Counted
    from graphgain.traces.sources import SourceFile

_REQUEST_COLUMNS = (
    *("conversation", "agent", "t_s"),
    *("input_tokens", "cached_tokens", "prefill_tokens", "output_tokens"),
)
_EPILOG = (
    "Formats are told by content: weka/AgentX, Mooncake, and logs with token ids; plain, gzip, xz, "
    "zstd or Parquet. Parquet, zstd and hf:// need the extra graphgain[traces]."
)


def add_commands(commands: "_SubParsersAction[ArgumentParser]") -> None:
    """Add `trace` to the command line."""
    trace = commands.add_parser(
        "trace",
        help="count the tokens that a request trace needs to prefill",
        epilog=_EPILOG,
    )
    trace.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a file, folder, glob, https address, or hf://datasets/OWNER/NAME[@REV][/FILE]",
    )
    rules = trace.add_argument_group("what counts as cached")
    for name, values in EXPLAINED.items():
        said = "; ".join(f"{value}: {text}" for value, text in values.items())
        rules.add_argument(
            f"--{name.replace('_', '-')}",
            choices=list(values),
            default=getattr(DEFAULT, name),
            help=f"{said} (default: {getattr(DEFAULT, name)})".replace("%", "%%"),
        )
    rules.add_argument(
        "--subagent-clock",
        choices=get_args(Clock),
        default="auto",
        help="what the times inside a subagent count from: its start, or that of the trace; auto: "
        "its start if any request of the corpus would otherwise lie before it (default: auto)",
    )
    rules.add_argument(
        "--log-block-tokens", type=int, default=16, metavar="N", help="block of token logs (16)"
    )
    reading = trace.add_argument_group("reading")
    reading.add_argument("--skip-bad", action="store_true", help="leave out and list what is bad")
    reading.add_argument("--jobs", type=int, metavar="N", help="processes (default: all cores)")
    reading.add_argument("--no-cache", action="store_true", help="neither use nor keep a result")
    reading.add_argument("--quiet", action="store_true", help="no progress bar")
    writing = trace.add_argument_group("writing")
    writing.add_argument(
        "--out", type=Path, metavar="DIR", help="write DIR/agent_workload.json; DIR is trace-NAME"
    )
    writing.add_argument("--title", help="what the document calls the data set")
    writing.add_argument("--url", help="where the data set is to be had")
    writing.add_argument("--licence", help="its licence")
    writing.add_argument("--note", action="append", default=[], help="kept with the document")
    writing.add_argument("--requests", type=Path, metavar="CSV", help="one row a request")
    writing.add_argument("--to-workload", type=Path, metavar="JSON", help="a weighted sweep")
    writing.add_argument("--points", type=int, default=32, help="points of the sweep (32)")
    trace.set_defaults(command=_trace)


def _trace(options: argparse.Namespace) -> None:
    from graphgain.files import write_atomically
    from graphgain.measuring.provenance import now_utc
    from graphgain.traces.counting import count
    from graphgain.traces.workload import workload_text

    started_at = now_utc()
    rules = Rules(**{name: getattr(options, name) for name in EXPLAINED})
    _check(options)
    files, ignored = _files(options.sources)
    corpus, hashes = _matched(files, _plan(options, rules), options)
    counted = count(corpus, rules)
    print(_summary(corpus, counted, rules))
    for name in ignored:
        print(f"ignored, no data by its name: {name}")
    for reason in corpus.skipped:
        print(f"skipped: {reason}")
    if options.requests:
        write_atomically(options.requests, _request_rows(corpus, counted))
    if options.to_workload:
        dataset = options.title or ", ".join(options.sources)
        text = workload_text(counted, rules, dataset, options.points)
        write_atomically(options.to_workload, text)
    if options.out:
        _write_document(options, corpus, rules, files, hashes, started_at)


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not fit together, before anything is read."""
    if options.out and not (options.out.name.startswith("trace-") and options.title):
        raise TraceError("--out needs a folder named trace-NAME, and a --title.")
    if options.out and not (options.url or options.sources[0].startswith(("https://", "hf://"))):
        raise TraceError("--out needs --url: where others find the data set.")
    if options.jobs is not None and options.jobs < 1:
        raise TraceError(f"--jobs {options.jobs}: at least one process is needed.")
    if options.points < 1 or options.log_block_tokens < 1:
        raise TraceError("--points and --log-block-tokens are at least 1.")


def _files(sources: list[str]) -> "tuple[list[SourceFile], list[str]]":
    from graphgain.traces.sources import find

    found = [find(source) for source in sources]
    by_path = {file.path.resolve(): file for one in found for file in one.files}
    return list(by_path.values()), [name for one in found for name in one.ignored]


def _plan(options: argparse.Namespace, rules: Rules) -> "Plan":
    from graphgain.traces.corpus import Plan

    modes: tuple[Subagents, ...] = (rules.subagents,)
    if options.out and rules.seen == "conversation":
        modes = (rules.subagents, *(m for m in get_args(Subagents) if m != rules.subagents))
    if rules.seen == "global" and rules.subagents != "shared":
        raise TraceError("--seen global goes with --subagents shared: there is only one seen-set.")
    return Plan(
        modes=modes,
        seen=rules.seen,
        clock=options.subagent_clock,
        skip_bad=options.skip_bad,
        log_block_tokens=options.log_block_tokens,
    )


def _matched(
    files: "list[SourceFile]", plan: "Plan", options: argparse.Namespace
) -> "tuple[Corpus, list[str]]":
    """The corpus, kept from an earlier run or matched now, and the files' hashes."""
    from tqdm import tqdm

    from graphgain.traces import kept
    from graphgain.traces.corpus import default_jobs, match_corpus
    from graphgain.traces.provenance import file_hash

    hashes = [] if options.no_cache and not options.out else [file_hash(f.path) for f in files]
    where = kept.place(hashes, [file.name for file in files], plan)
    corpus = None if options.no_cache else kept.load(where)
    if corpus is not None:
        return corpus, hashes
    hidden = options.quiet or not sys.stderr.isatty()
    with tqdm(unit="B", unit_scale=True, desc="counting", disable=hidden) as bar:
        corpus = match_corpus(files, plan, options.jobs or default_jobs(), bar.update)
    if not options.no_cache:
        try:
            kept.save(corpus, where)
        except OSError as error:
            print(f"graphgain: the result is not kept: {error}", file=sys.stderr)
    return corpus, hashes


def _summary(corpus: "Corpus", counted: "Counted", rules: Rules) -> str:
    from graphgain.traces import statistics

    prefill = counted.prefill_tokens
    subagent = int((corpus.stream[counted.request] > 0).sum())
    lines = [
        f"{len(corpus.ids):,} conversations, {len(prefill):,} requests "
        f"({subagent:,} of subagents), {', '.join(corpus.formats)}, "
        f"blocks of {corpus.block_tokens} tokens",
        "rules: "
        + ", ".join(f"{name} {getattr(rules, name)}" for name in EXPLAINED)
        + f"; subagents' clock: {corpus.clock}",
        f"input {int(counted.input_tokens.sum()):,} tokens, cached "
        f"{int(counted.cached_tokens.sum()):,} ({counted.hit_percent:.2f} %), to prefill "
        f"{int(prefill.sum()):,} (mean {prefill.mean():,.0f} a request)",
        "tokens to prefill: "
        + ", ".join(
            f"p{percent} {statistics.percentile(prefill, percent):,.0f}"
            for percent in statistics.PERCENTILES
        ),
        "requests with at most: "
        + ", ".join(
            f"{bound // 1024}k {statistics.share(prefill, bound)[0]:.1f} %"
            for bound in statistics.SHORT_TOKENS
        ),
    ]
    if rules.subagents == "shared" and rules.outputs == "uncached":
        from graphgain.traces.counting import cache_curve

        curve = cache_curve(corpus, rules)
        sizes = [1 << step for step in range(14, 24, 2)]
        scope = "all conversations" if rules.seen == "global" else "each conversation"
        lines.append(
            f"hit rate of an LRU cache for {scope}: "
            + ", ".join(f"{size >> 10:,}k tokens {curve.at(size):.1f} %" for size in sizes)
        )
    return "\n".join(lines)


def _request_rows(corpus: "Corpus", counted: "Counted") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_REQUEST_COLUMNS)
    for place, tokens, cached in zip(
        counted.request.tolist(),
        counted.input_tokens.tolist(),
        counted.cached_tokens.tolist(),
        strict=True,
    ):
        conversation = int(corpus.conversation[place])
        agent = corpus.agents[conversation][int(corpus.stream[place])]
        row = [corpus.ids[conversation], agent, float(corpus.t_s[place]), tokens, cached]
        writer.writerow([*row, tokens - cached, int(corpus.output_tokens[place])])
    return text.getvalue()


def _write_document(
    options: argparse.Namespace,
    corpus: "Corpus",
    rules: Rules,
    files: "list[SourceFile]",
    hashes: list[str],
    started_at: str,
) -> None:
    from graphgain.results.serving import TraceFile
    from graphgain.results.store import write_document
    from graphgain.traces.document import Origin, workload_document

    address = options.url or options.sources[0].replace("hf://", "https://huggingface.co/", 1)
    document = workload_document(
        corpus,
        rules,
        options.out.name,
        Origin(options.title, address, options.licence),
        [
            TraceFile(name=Path(file.name).name, sha256=digest, size_bytes=file.path.stat().st_size)
            for file, digest in zip(files, hashes, strict=True)
        ],
        started_at,
        options.note,
    )
    path = options.out / "agent_workload.json"
    write_document(path, document)
    print(f"wrote {path}")
