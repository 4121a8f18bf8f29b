"""Result documents: the contract between measuring and everything that is drawn or written."""

from graphgain.results.article import Commands, Statements
from graphgain.results.document import SCHEMA_VERSION, Document
from graphgain.results.forwards import DecodeGraphGain, PrefillGraphGain
from graphgain.results.launches import FfiLaunch, GemmHostCost, Handoff, LaunchFloor, LaunchPaths
from graphgain.results.machine import Machine
from graphgain.results.quantity import Quantity
from graphgain.results.serving import AgentWorkload, Ttft, TtftBreakdown
from graphgain.results.threads import Gil

MODELS: dict[str, type[Document]] = {
    "agent_workload": AgentWorkload,
    "launch_floor": LaunchFloor,
    "gemm_host_cost": GemmHostCost,
    "handoff": Handoff,
    "decode_graph_gain": DecodeGraphGain,
    "prefill_graph_gain": PrefillGraphGain,
    "ffi_launch": FfiLaunch,
    "launch_paths": LaunchPaths,
    "gil": Gil,
    "ttft": Ttft,
    "ttft_breakdown": TtftBreakdown,
    "statements": Statements,
    "commands": Commands,
}
"""Every experiment that has a document, in the order of the article."""

__all__ = ["MODELS", "SCHEMA_VERSION", "Document", "Machine", "Quantity"]
