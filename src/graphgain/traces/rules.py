"""What counts as cached: the rules by name, and the default of each.

The defaults are those behind the published summary of AgentX's corpus (hit rate 98.3 %): one
seen-set a conversation, shared by the parent and its subagents in time order, the leading run of
known blocks, first requests included, outputs not counted as cached.
"""

from dataclasses import dataclass
from typing import Literal

Seen = Literal["conversation", "global"]
Subagents = Literal["shared", "snapshot", "isolated"]
Outputs = Literal["uncached", "cached"]
LastBlock = Literal["hashed", "full", "recomputed", "dropped"]
FirstRequests = Literal["in", "out"]
Clock = Literal["auto", "relative", "absolute"]

EXPLAINED: dict[str, dict[str, str]] = {
    "seen": {
        "conversation": "each conversation has a seen-set of its own",
        "global": "one seen-set, conversation after conversation; needs ids that compare",
    },
    "subagents": {
        "shared": "a subagent and its parent share the seen-set, requests in time order",
        "snapshot": "a subagent starts from a copy of its parent's set, and gives nothing back",
        "isolated": "a subagent starts from nothing, and gives nothing back",
    },
    "outputs": {
        "uncached": "a response is prefilled when it comes back in the next prompt",
        "cached": "the response before is cached where a prompt extends the one before: an upper"
        " bound, as thinking is dropped and tool calls are encoded anew",
    },
    "last_block": {
        "hashed": "a partial last block is cached where it has an id that was seen",
        "full": "only full blocks are cached",
        "recomputed": "the last block, full or not, is always prefilled, as engines do",
        "dropped": "a partial last block is left out of the input as well",
    },
    "first_requests": {
        "in": "the first request of a conversation is counted like any other",
        "out": "it fills the cache, but is left out of the statistics",
    },
}
"""Each rule's values, the default first."""


@dataclass(frozen=True)
class Rules:
    """One way of counting; every field is a key of EXPLAINED."""

    seen: Seen = "conversation"
    subagents: Subagents = "shared"
    outputs: Outputs = "uncached"
    last_block: LastBlock = "hashed"
    first_requests: FirstRequests = "in"


DEFAULT = Rules()
