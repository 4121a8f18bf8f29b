"""What our client and `vllm bench serve` themselves take, at servers that let them wait.

The client check of `graphgain ttft` compares the two at an engine, and at a server that answers at
once. A client that has waited may be slower. This prints by how much, for each of them, and no more
exactly than the server's own timer wakes. Needs vLLM beside graphgain:

    python benchmarks/clients.py --wait-ms 0 20 70
"""

import argparse
import asyncio
import multiprocessing
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from graphgain.engines.client import Target
from graphgain.engines.client_check import vllm_bench
from graphgain.engines.points import Sweep, measure_length

_EVENT = b'data: {"choices": [{"index": 0, "text": "x"}]}\n\ndata: [DONE]\n\n'
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
_ANSWER = _HEAD % len(_EVENT) + _EVENT


def main() -> None:
    """Print a line for each wait: the median over turns of what each client takes beyond it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wait-ms", type=float, nargs="+", default=[0.0, 20.0, 70.0])
    parser.add_argument("--isl-tokens", type=int, default=128)
    parser.add_argument("--turns", type=int, default=20)
    chosen = parser.parse_args()
    sweep = Sweep(requests=5, warmup=1, concurrency=1, vocabulary=248_320, served="waits")
    print("wait ms   ours ms   vllm bench serve ms   difference ms (quartiles over turns)")
    with vllm_bench(Path("waits"), sweep) as other:
        for wait_ms in chosen.wait_ms:
            with waiting_server(wait_ms / 1e3) as url:
                target = Target(url, "openai")
                pairs = []
                for turn in range(chosen.turns + 1):
                    mine = measure_length(target, chosen.isl_tokens, sweep, run=2 * turn).ttft_ms
                    theirs = other(target, chosen.isl_tokens, turn)
                    pairs.append((statistics.median(mine), statistics.median(theirs)))
            ours, others = zip(*pairs[1:], strict=True)
            low, middle, high = statistics.quantiles([a - b for a, b in pairs[1:]], n=4)
            print(
                f"{wait_ms:7g}   {statistics.median(ours) - wait_ms:7.2f}"
                f"   {statistics.median(others) - wait_ms:19.2f}"
                f"   {middle:.2f} ({low:.2f} to {high:.2f})",
                flush=True,
            )


@contextmanager
def waiting_server(wait_s: float) -> Iterator[str]:
    """The address of a server, in a process of its own, that answers every request with one token
    after a wait."""
    ours, its = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(wait_s, its), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(wait_s: float, port: Connection) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                _, _, length = head.partition(b"content-length:")
                await reader.readexactly(int(length.split()[0]) if length else 0)
                await asyncio.sleep(wait_s)
                writer.write(_ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


if __name__ == "__main__":
    main()
