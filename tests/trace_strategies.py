"""Conversations for property tests: prompts that continue, branch off, or start anew."""

from itertools import count
from typing import Any

from hypothesis import strategies as st

BLOCK = 4


@st.composite
def prompts(draw: st.DrawFn, size: int) -> list[dict[str, Any]]:
    """Requests whose hash ids are chained: each begins like an earlier one, then has new ids."""
    fresh = count(1)
    made: list[list[int]] = []
    requests = []
    for _ in range(size):
        base = draw(st.sampled_from(made)) if made and draw(st.booleans()) else []
        if made and draw(st.integers(0, 2)):
            base = made[-1]
        kept = draw(st.integers(0, len(base)))
        ids = [*base[:kept], *(next(fresh) for _ in range(draw(st.integers(0, 4))))]
        # A layout with an id for the partial last block, or one without; or no partial block.
        partial = draw(st.integers(1 - BLOCK if ids else 0, BLOCK - 1))
        # An id with a partial block behind it would be another block: ids end a prompt then only
        # if nobody continues it, which the counting does not know of and need not.
        made.append(ids)
        requests.append(
            {
                "type": draw(st.sampled_from("ns")),
                "t": draw(st.integers(0, 6)),
                "in": BLOCK * len(ids) + partial,
                "out": draw(st.integers(0, 9)),
                "hash_ids": ids,
            }
        )
    return requests


@st.composite
def traces(draw: st.DrawFn, name: str = "one") -> dict[str, Any]:
    """A weka conversation: some of its requests are in subagents."""
    requests = draw(prompts(draw(st.integers(1, 14))))
    entries: list[dict[str, Any]] = []
    for request in requests:
        where = draw(st.integers(0, 3))
        open_agents = [entry for entry in entries if entry["type"] == "subagent"]
        if where == 0:
            entries.append(
                {"type": "subagent", "t": draw(st.integers(0, 6)), "agent_id": f"a{len(entries)}"}
                | {"requests": [request]}
            )
        elif where == 1 and open_agents:
            draw(st.sampled_from(open_agents))["requests"].append(request)
        else:
            entries.append(request)
    return {"id": name, "block_size": BLOCK, "hash_id_scope": "local", "requests": entries}
