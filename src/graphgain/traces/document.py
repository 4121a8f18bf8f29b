"""The document `agent_workload` of a trace."""

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from graphgain.measuring.packages import package_version
from graphgain.measuring.provenance import command_line, git_state, now_utc
from graphgain.results.document import Provenance
from graphgain.results.quantity import Quantity
from graphgain.results.serving import (
    AgentWorkload,
    CachePoint,
    CountingRules,
    PrefillBin,
    TokenPercentile,
    TokenShare,
    TraceFile,
    WorkloadParameters,
    WorkloadTotals,
    WorkloadVariant,
)
from graphgain.traces import statistics
from graphgain.traces.corpus import Corpus
from graphgain.traces.counting import Counted, cache_curve, count
from graphgain.traces.provenance import ROOT, counting_hash, counting_sources
from graphgain.traces.rules import Rules


@dataclass(frozen=True)
class Origin:
    """Where a trace comes from."""

    dataset: str
    url: str
    licence: str | None


def workload_document(
    corpus: Corpus,
    rules: Rules,
    slug: str,
    origin: Origin,
    files: Sequence[TraceFile],
    started_at: str,
    notes: Iterable[str] = (),
) -> AgentWorkload:
    """Everything that is said about a trace, under the rules and beside other ones."""
    counted = count(corpus, rules)
    prefill = counted.prefill_tokens
    sources = counting_sources()
    commit, dirty = git_state(sources)
    return AgentWorkload(
        schema_version=1,
        experiment="agent_workload",
        machine=slug,
        kind="measured",
        provenance=Provenance(
            started_at=datetime.fromisoformat(started_at),
            ended_at=datetime.fromisoformat(now_utc()),
            command=command_line(),
            git_commit=commit,
            git_dirty=dirty,
            source_hash=counting_hash(),
            sources=[path.relative_to(ROOT).as_posix() for path in sources],
            parameters=asdict(rules),
            versions={
                "python": platform.python_version(),
                "numpy": package_version("numpy"),
                "msgspec": package_version("msgspec"),
            },
            process_runs=1,
        ),
        notes=list(notes),
        parameters=WorkloadParameters(
            dataset=origin.dataset,
            dataset_url=origin.url,
            block_tokens=corpus.block_tokens,
            licence=origin.licence,
            formats=list(corpus.formats),
            files=list(files),
            rules=CountingRules(**asdict(rules)),
            subagent_clock=corpus.clock,
        ),
        cache_hit_percent=round(counted.hit_percent, 4),
        percentiles=[
            TokenPercentile(
                percentile=percent,
                tokens=Quantity(median=statistics.percentile(prefill, percent), n=len(prefill)),
            )
            for percent in statistics.PERCENTILES
        ],
        shares=[_share(counted, bound) for bound in statistics.SHORT_TOKENS],
        totals=_totals(corpus, counted),
        distribution=[PrefillBin(**asdict(one)) for one in statistics.histogram(prefill)],
        cache_curve=_curve(corpus, rules),
        variants=[_variant(*one) for one in statistics.variants(corpus, rules)],
        skipped=corpus.skipped,
    )


def _share(counted: Counted, bound: int) -> TokenShare:
    requests, tokens = statistics.share(counted.prefill_tokens, bound)
    return TokenShare(tokens=bound, percent=round(requests, 4), prefill_percent=round(tokens, 4))


def _totals(corpus: Corpus, counted: Counted) -> WorkloadTotals:
    return WorkloadTotals(
        conversations=len(corpus.ids),
        requests=len(counted.request),
        subagent_requests=int((corpus.stream[counted.request] > 0).sum()),
        input_tokens=int(counted.input_tokens.sum()),
        cached_tokens=int(counted.cached_tokens.sum()),
        prefill_tokens=int(counted.prefill_tokens.sum()),
        output_tokens=int(corpus.output_tokens[counted.request].sum()),
    )


def _curve(corpus: Corpus, rules: Rules) -> list[CachePoint] | None:
    """The curve, for the rules that it has a meaning under."""
    if rules.subagents != "shared" or rules.outputs != "uncached":
        return None
    points = statistics.cache_points(cache_curve(corpus, rules))
    return [CachePoint(cache_tokens=size, cache_hit_percent=round(hit, 4)) for size, hit in points]


def _variant(rules: Rules, counted: Counted) -> WorkloadVariant:
    prefill = counted.prefill_tokens
    return WorkloadVariant(
        rules=CountingRules(**asdict(rules)),
        requests=len(prefill),
        cache_hit_percent=round(counted.hit_percent, 4),
        p50_tokens=statistics.percentile(prefill, 50),
        mean_tokens=round(float(prefill.mean()), 3),
        at_most_4096_percent=round(statistics.share(prefill, 4096)[0], 4),
    )
