"""A server that answers every request with one token at once: what is left is the client's cost.

Run as `python -m graphgain.engines.null_server`; prints its port and ends with standard input.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from graphgain.engines.client import Target
from graphgain.engines.points import Sweep, measure_length
from graphgain.measuring.process import child_environment, python_module

_EVENTS = (
    {"choices": [{"index": 0, "text": "x"}]},
    {"choices": [], "usage": {"completion_tokens": 1}},
)
_STREAM = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in _EVENTS)
_BODY = _STREAM + b"data: [DONE]\n\n"
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "
    + str(len(_BODY)).encode()
    + b"\r\n\r\n"
    + _BODY
)


def client_cost(lengths: Sequence[int], requests: int, vocabulary: int) -> list[dict[str, Any]]:
    """The ClientCost of each length, measured against a null server of our own."""
    sweep = Sweep(requests, warmup=5, concurrency=1, vocabulary=vocabulary, served="null")
    with null_server() as url:
        return [
            {
                "isl_tokens": isl,
                "ttft_ms": measure_length(Target(url, "openai"), isl, sweep, run=0).quantity(),
            }
            for isl in lengths
        ]


@contextmanager
def null_server() -> Iterator[str]:
    """The address of a null server in a process of its own."""
    process = subprocess.Popen(
        python_module(__name__),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
        start_new_session=True,  # Ctrl-C is ours to handle; it ends with its standard input
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ]
            length = lengths[0] if lengths else 0  # of a GET
            await reader.readexactly(length)
            writer.write(_ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
