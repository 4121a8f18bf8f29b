"""How many leading blocks of each request were there before, under each rule about subagents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np
import numpy.typing as npt

from graphgain.errors import TraceError
from graphgain.traces.conversation import Conversation, Request
from graphgain.traces.lru import LruStack
from graphgain.traces.prefixes import ChainError, Path, PrefixTree
from graphgain.traces.rules import Clock, Subagents

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Evidence = Literal["none", "open", "relative"]

_SLACK_S = 1e-6  # times are printed decimal fractions


@dataclass(frozen=True)
class Matched:
    """The requests of one conversation as arrays: the parent's, then each subagent's.

    `lead` has the number of leading blocks seen before, by rule; `reply` the tokens of the response
    before, where a prompt extends the one before it in its stream, else 0. `ranks` has a row
    (request, depth, rank, count) for each run of blocks in the LRU stack of the shared seen-set, as
    `LruStack.use` returns them. `evidence` is what the times say about the subagents' clock:
    that it is relative, nothing ("open"), or that there are no subagents ("none").
    """

    id: str
    where: str
    block_tokens: int
    agents: list[str]
    stream: Ints
    t_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    blocks: Ints
    reply: Ints
    first: int
    lead: dict[Subagents, Ints]
    ranks: Ints
    evidence: Evidence
    clock: Clock


def clock_evidence(conversation: Conversation) -> Evidence:
    """Whether the times inside subagents count from their start, as far as one file can tell.

    A request before its subagent's start can only be relative to that start. The opposite cannot
    be seen: where nothing lies before its start, the times of either clock would look the same.
    """
    subagents = conversation.streams[1:]
    if not subagents:
        return "none"
    before = any(
        request.t_s + _SLACK_S < stream.start_s
        for stream in subagents
        for request in stream.requests
    )
    return "relative" if before else "open"


def match(
    conversation: Conversation,
    modes: Sequence[Subagents],
    clock: Clock = "auto",
    tree: PrefixTree | None = None,
    stack: LruStack | None = None,
    bad: list[str] | None = None,
) -> Matched:
    """Match a conversation under each of the rules `modes` about subagents.

    With clock "auto" the subagents' times are relative where this conversation proves it, else
    absolute. A `tree` and a `stack` that are given hold what came before, and grow (only for the
    rule "shared"). Raises TraceError with file, line and request for hash ids that do not fit;
    where each line is a request of its own and `bad` is a list, such a request is left out and
    listed.
    """
    evidence = clock_evidence(conversation)
    if clock == "auto":
        clock = "relative" if evidence == "relative" else "absolute"
    sizes = [len(stream.requests) for stream in conversation.streams]
    offsets = [0, *accumulate(sizes)]
    total = offsets[-1]
    lead: dict[Subagents, Ints] = {}
    blocks, reply = [0] * total, [0] * total
    ranks: list[tuple[int, int, int, int]] = []
    dropped: list[int] = []
    first: int | None = None
    for mode in modes:
        if len(sizes) == 1 and lead:
            lead[mode] = lead[modes[0]]  # without subagents all rules are one
            continue
        own = [0] * total
        trees = {0: PrefixTree() if tree is None or mode != "shared" else tree}
        uses = (LruStack() if stack is None else stack) if mode == "shared" else None
        last: dict[int, tuple[Path, Request]] = {}
        for stream, index in _turns(conversation, mode, clock):
            request = conversation.streams[stream].requests[index]
            place = offsets[stream] + index
            if stream not in trees:
                trees[stream] = _tree_of_subagent(mode, trees[0])
            try:
                path, own[place] = _add(trees[stream], request, conversation, stream, index)
            except TraceError as error:
                if bad is None or not conversation.request_per_line:
                    raise
                bad.append(str(error))
                dropped.append(place)
                continue
            blocks[place] = path.length
            before = last.get(stream)
            if before is not None and _extends(path, before[0]):
                reply[place] = before[1].output_tokens
            last[stream] = path, request
            first = place if first is None else first
            if uses is not None:
                ranks += [(place, *run) for run in uses.use(path, own[place])]
        lead[mode] = np.array(own, np.int64)
    requests = [request for stream in conversation.streams for request in stream.requests]
    kept = np.delete(np.arange(total), dropped)
    if first is None:
        raise TraceError(f"{conversation.where()}: not one request is left to count.")
    now = np.full(total, -1, np.int64)
    now[kept] = np.arange(len(kept))
    table = np.array(ranks, np.int64).reshape(-1, 4)
    table[:, 0] = now[table[:, 0]]
    return Matched(
        id=conversation.id,
        where=conversation.where(),
        block_tokens=conversation.block_tokens,
        agents=[stream.agent for stream in conversation.streams],
        stream=np.repeat(np.arange(len(sizes)), sizes)[kept],
        t_s=np.array([request.t_s for request in requests], np.float64)[kept],
        input_tokens=np.array([request.input_tokens for request in requests], np.int64)[kept],
        output_tokens=np.array([request.output_tokens for request in requests], np.int64)[kept],
        blocks=np.array(blocks, np.int64)[kept],
        reply=np.array(reply, np.int64)[kept],
        first=int(now[first]),
        lead={mode: own[kept] for mode, own in lead.items()},
        ranks=table,
        evidence=evidence,
        clock=clock,
    )


def _turns(conversation: Conversation, mode: Subagents, clock: Clock) -> Iterator[tuple[int, int]]:
    """Stream and index of each request, in the order in which a rule has them counted.

    That is by time, and at the same time by place in the file. But where a subagent gives nothing
    back it is counted as a whole at its start: only the order of its own requests matters then.
    """
    keys: list[tuple[float, int, int, float, int]] = []
    for number, stream in enumerate(conversation.streams):
        zero_s = stream.start_s if number and clock == "relative" else 0.0
        for index, request in enumerate(stream.requests):
            position = stream.position if number else stream.places[index]
            if number and mode != "shared":
                keys.append((stream.start_s, position, number, request.t_s, index))
            else:
                keys.append((zero_s + request.t_s, position, number, 0.0, index))
    keys.sort()
    for _, _, number, _, index in keys:
        yield number, index


def _tree_of_subagent(mode: Subagents, parent: PrefixTree) -> PrefixTree:
    if mode == "shared":
        return parent
    return parent.copy() if mode == "snapshot" else PrefixTree()


def _add(
    tree: PrefixTree, request: Request, conversation: Conversation, stream: int, index: int
) -> tuple[Path, int]:
    full, rest = divmod(request.input_tokens, conversation.block_tokens)
    try:
        found = tree.add(conversation.streams[stream].ids[index], full, full + bool(rest))
    except ChainError as error:
        raise TraceError(f"{conversation.where(stream, index)}: {error}.") from None
    return found.path, found.lead


def _extends(path: Path, before: Path) -> bool:
    # A node stands for its whole prefix, so the last one decides.
    last = before.length - 1
    return 0 <= last < path.length and path.node(last) == before.node(last)
