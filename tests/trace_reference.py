"""Counting cached tokens the plain way: JSON, Python sets and lists, one rule after another."""

import json
from collections.abc import Iterable
from typing import Any

Request = dict[str, Any]


def weka_turns(trace: dict[str, Any], mode: str, relative: bool) -> list[tuple[int, Request]]:
    """Stream number and request in the order of counting; the parent is stream 0."""
    turns: list[tuple[tuple[Any, ...], int, Request]] = []
    stream = 0
    for place, entry in enumerate(trace["requests"]):
        if entry["type"] != "subagent":
            turns.append(((entry["t"], place, 0, 0), 0, entry))
            continue
        stream += 1
        start = entry["t"] if relative else 0
        for index, inner in enumerate(entry["requests"]):
            if mode == "shared":
                key = (start + inner["t"], place, stream, index)
            else:
                key = (entry["t"], place, stream, (inner["t"], index))
            turns.append((key, stream, inner))
    turns.sort(key=lambda turn: turn[0])
    return [(number, request) for _, number, request in turns]


def leads(
    turns: Iterable[tuple[int, Request]], mode: str, seen: set[int] | None = None
) -> list[int]:
    """Leading blocks that were there before, turn by turn, by sets alone."""
    sets: dict[int, set[int]] = {0: set() if seen is None else seen}
    found = []
    for stream, request in turns:
        if stream not in sets:
            sets[stream] = {"shared": sets[0], "snapshot": set(sets[0]), "isolated": set()}[mode]
        ids = request.get("hash_ids", [])
        lead = 0
        while lead < len(ids) and ids[lead] in sets[stream]:
            lead += 1
        found.append(lead)
        sets[stream].update(ids)
    return found


def cached_tokens(request: Request, lead: int, block: int, last_block: str) -> tuple[int, int]:
    """Input tokens and cached tokens of one request."""
    tokens = request["in"]
    if last_block == "dropped":
        tokens = tokens // block * block
    allowed = {
        "hashed": lead,
        "full": min(lead, request["in"] // block),
        "dropped": min(lead, request["in"] // block),
        "recomputed": min(lead, max(0, (request["in"] + block - 1) // block - 1)),
    }[last_block]
    return tokens, min(tokens, block * allowed)


def replies(turns: Iterable[tuple[int, Request]]) -> list[int]:
    """Tokens of the response before, where a prompt extends the one before it in its stream."""
    last: dict[int, Request] = {}
    found = []
    for stream, request in turns:
        before, ids = last.get(stream), request.get("hash_ids", [])
        old = before.get("hash_ids", []) if before else []
        extends = bool(old) and ids[: len(old)] == old
        found.append(before["out"] if before and extends else 0)
        last[stream] = request
    return found


def lru_leads(turns: Iterable[tuple[int, Request]], blocks: int) -> list[int]:
    """Leading blocks in a cache of so many blocks: one list, the block used last in front.

    A prompt is looked up, then put in front as a whole, and what is too much falls off the end.
    """
    cache: list[int] = []
    found = []
    for _, request in turns:
        ids = request.get("hash_ids", [])
        held = set(cache)
        lead = 0
        while lead < len(ids) and ids[lead] in held:
            lead += 1
        found.append(lead)
        new = set(ids)
        cache = [*ids, *(old for old in cache if old not in new)][:blocks]
    return found


def read_lines(text: str) -> list[dict[str, Any]]:
    """JSON lines."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]
