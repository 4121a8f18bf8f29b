"""Many conversations: read and matched, in several processes, and put together."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Skipped
from graphgain.traces.lru import LruStack
from graphgain.traces.matching import Floats, Ints, Matched, match
from graphgain.traces.pieces import Format, Piece, cut, read
from graphgain.traces.prefixes import PrefixTree
from graphgain.traces.rules import Clock, Seen, Subagents
from graphgain.traces.sources import SourceFile

Progress = Callable[[int], None]
"""Called with the number of bytes of a file that were dealt with."""

_SMALL_BYTES = 16 << 20  # below that, starting processes takes longer than they save


@dataclass(frozen=True)
class Plan:
    """What is to be matched, and how the files are read."""

    modes: tuple[Subagents, ...] = ("shared",)
    seen: Seen = "conversation"
    clock: Clock = "auto"
    skip_bad: bool = False
    log_block_tokens: int = 16


@dataclass(frozen=True)
class Corpus:
    """All requests as arrays, conversation after conversation; see `Matched` for the columns.

    `conversation` and `stream` number the conversations, and each one's agents; `first` marks the
    first request of each conversation. `clock` is what was taken for the subagents' times.
    """

    ids: list[str]
    agents: list[list[str]]
    formats: list[Format]
    block_tokens: int
    clock: str
    conversation: Ints
    stream: Ints
    t_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    blocks: Ints
    reply: Ints
    first: Ints
    lead: dict[Subagents, Ints]
    ranks: Ints
    skipped: list[str]


def match_corpus(
    files: Iterable[SourceFile], plan: Plan, jobs: int = 1, progress: Progress | None = None
) -> Corpus:
    """Match every conversation of some files.

    Raises TraceError for the first thing that is bad, or with `plan.skip_bad` lists it. With clock
    "auto" one conversation that proves the subagents' times to be relative decides for all of them;
    where others were taken as absolute by then, everything is read a second time.
    """
    files = list(files)
    found, skipped, formats = _run(files, plan, jobs, progress)
    kept = _without_repeated_ids(found, plan.skip_bad, skipped)
    if not kept:
        reasons = f" {skipped[0].reason}" if skipped else ""
        raise TraceError(f"there is no conversation to count in these files.{reasons}")
    evidence = {matched.evidence for matched in kept}
    if plan.clock == "auto" and evidence >= {"relative", "open"}:
        again = match_corpus(files, replace(plan, clock="relative"), jobs, progress)
        return replace(again, clock="relative, found")
    used = {matched.clock for matched in kept if matched.evidence != "none"}
    how = "found" if plan.clock == "auto" else "given"
    clock = f"{used.pop()}, {how}" if used else "none"
    return _join(kept, formats, clock, [one.reason for one in skipped])


def default_jobs() -> int:
    """The processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(
    files: list[SourceFile], plan: Plan, jobs: int, progress: Progress | None
) -> tuple[list[Matched], list[Skipped], list[Format]]:
    formats: list[Format] = []
    skipped: list[Skipped] = []

    def pieces() -> Iterator[Piece]:
        for file in files:
            for piece in cut(file, plan.skip_bad):
                if isinstance(piece, Skipped):
                    skipped.append(piece)
                else:
                    if piece.format not in formats:
                        formats.append(piece.format)
                    yield piece

    matched: list[Matched] = []
    size = sum(file.path.stat().st_size for file in files)
    if plan.seen == "global":
        results = _match_globally(pieces(), plan)
    elif jobs > 1 and size > _SMALL_BYTES:
        results = _match_in_processes(pieces(), plan, jobs)
    else:
        results = ((piece, match_piece(piece, plan)) for piece in pieces())
    for piece, result in results:
        skipped += [one for one in result if isinstance(one, Skipped)]
        matched += [one for one in result if isinstance(one, Matched)]
        if progress:
            progress(piece.size_bytes)
    return matched, skipped, formats


def match_piece(
    piece: Piece,
    plan: Plan,
    tree: PrefixTree | None = None,
    stack: LruStack | None = None,
) -> list[Matched | Skipped]:
    """Read and match what one piece holds."""
    by_session = plan.seen == "conversation"
    results: list[Matched | Skipped] = []
    for one in read(piece, plan.skip_bad, plan.log_block_tokens, by_session):
        results += [one] if isinstance(one, Skipped) else _match(one, plan, tree, stack)
    return results


def _match(
    conversation: Conversation, plan: Plan, tree: PrefixTree | None, stack: LruStack | None
) -> list[Matched | Skipped]:
    bad: list[str] | None = [] if plan.skip_bad else None
    if plan.seen == "global" and not conversation.shared_ids:
        raise TraceError(
            f"{conversation.where()}: its hash ids are local, so that they cannot be compared with "
            "those of other conversations; count with --seen conversation."
        )
    try:
        matched = match(conversation, plan.modes, plan.clock, tree, stack, bad)
    except TraceError as error:
        if not plan.skip_bad or tree is not None:
            raise  # a seen-set that others share cannot forget what it has of this conversation
        return [Skipped(str(error))]
    return [*map(Skipped, bad or ()), matched]


def _match_globally(
    pieces: Iterable[Piece], plan: Plan
) -> Iterator[tuple[Piece, list[Matched | Skipped]]]:
    tree, stack = PrefixTree(), LruStack()
    for piece in pieces:
        yield piece, match_piece(piece, plan, tree, stack)


def _match_in_processes(
    pieces: Iterable[Piece], plan: Plan, jobs: int
) -> Iterator[tuple[Piece, list[Matched | Skipped]]]:
    """In the order of the pieces, of which no more are in memory than keep the processes busy."""
    context = multiprocessing.get_context("spawn")
    waiting: deque[tuple[Piece, Future[list[Matched | Skipped]]]] = deque()
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        try:
            for piece in pieces:
                waiting.append((piece.without_text(), pool.submit(match_piece, piece, plan)))
                if len(waiting) >= 2 * jobs:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _without_repeated_ids(
    found: list[Matched], skip_bad: bool, skipped: list[Skipped]
) -> list[Matched]:
    kept: dict[str, Matched] = {}
    for one in found:
        if one.id not in kept:
            kept[one.id] = one
            continue
        reason = (
            f"{one.where}: the conversation {one.id!r} is in {kept[one.id].where} already; "
            "counted twice, it would find itself in the cache."
        )
        if not skip_bad:
            raise TraceError(reason)
        skipped.append(Skipped(reason))
    return list(kept.values())


def _join(kept: list[Matched], formats: list[Format], clock: str, skipped: list[str]) -> Corpus:
    block_tokens = kept[0].block_tokens
    for one in kept:
        if one.block_tokens != block_tokens:
            raise TraceError(
                f"{one.where}: blocks of {one.block_tokens} tokens, and of {block_tokens} in "
                f"{kept[0].where}; count them separately."
            )
    sizes = [len(one.t_s) for one in kept]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    first = np.zeros(int(offsets[-1]), np.int64)
    first[[int(offset) + one.first for offset, one in zip(offsets, kept, strict=False)]] = 1
    ranks = [
        one.ranks + np.array([offset, 0, 0, 0], np.int64)
        for offset, one in zip(offsets, kept, strict=False)
    ]

    def column(name: str) -> Any:
        return np.concatenate([getattr(one, name) for one in kept])

    return Corpus(
        ids=[one.id for one in kept],
        agents=[one.agents for one in kept],
        formats=formats,
        block_tokens=block_tokens,
        clock=clock,
        conversation=np.repeat(np.arange(len(kept)), sizes),
        stream=column("stream"),
        t_s=column("t_s"),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        blocks=column("blocks"),
        reply=column("reply"),
        first=first,
        lead={mode: np.concatenate([one.lead[mode] for one in kept]) for mode in kept[0].lead},
        ranks=np.concatenate(ranks),
        skipped=skipped,
    )
