"""A captured CUDA graph, issued again kernel by kernel from C++: one forward, another host."""

from graphgain.unroll.unrolled import Node, Summary, Unrolled

__all__ = ["Node", "Summary", "Unrolled"]
