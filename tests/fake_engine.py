"""A server for tests that behaves like an engine, or misbehaves in one way.

Run as `python fake_engine.py PORT [--protocol sglang] [--fault NAME] [--profile DIR]`.
"""

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = (
    "dies",  # before it listens
    "never healthy",
    "500",  # answers requests with an error
    "garbage",  # streams what is no JSON
    "empty",  # streams no token
    "mid-stream",  # closes the connection before the token
    "error event",
    "cached",  # says that the prompt was cached
    "other length",
    "two tokens",
    "ignores stop",  # SIGTERM, in a child of its own as well
    "no trace",
)


def kineto(requests: int) -> dict[str, object]:
    """A trace of so many requests: three launches and a graph of two kernels each, in µs."""
    events: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 1, "args": {}}]
    for index in range(requests):
        at = 1_000_000.0 * (index + 1)
        for number in range(3):
            correlation = 10 * index + number
            events.append(call("cudaLaunchKernel", at + 100 * number, correlation))
            events.append(operation("kernel", at + 100 * number + 20, 30, correlation))
        correlation = 10 * index + 5
        events.append(call("cudaGraphLaunch", at + 300, correlation))
        events += [
            operation("kernel", at + 320, 40, correlation),
            operation("kernel", at + 370, 40, correlation),
        ]
        events.append(call("cudaDeviceSynchronize", at + 400, 10 * index + 6))
    return {"schemaVersion": 1, "traceEvents": events, "deviceProperties": []}


def call(name: str, ts: float, correlation: int) -> dict[str, object]:
    """A call of the runtime."""
    return {
        "ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 7, "ts": ts, "dur": 5,
        "args": {"correlation": correlation},
    }  # fmt: skip


def operation(category: str, ts: float, dur: float, correlation: int) -> dict[str, object]:
    """An operation of the GPU."""
    return {
        "ph": "X", "cat": category, "name": "k", "pid": 0, "tid": 7, "ts": ts, "dur": dur,
        "args": {"correlation": correlation, "stream": 7},
    }  # fmt: skip


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--protocol", default="openai")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--pid-file", type=Path)
    parser.add_argument("--version", default="1.2.3")
    options = parser.parse_args()
    fault = options.fault
    print("fake engine: loading", flush=True)
    if fault == "dies":
        sys.exit("fake engine: out of memory")
    children = [subprocess.Popen([sys.executable, "-c", CHILD, str(fault)])]
    if fault == "ignores stop":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.pid_file:
        options.pid_file.write_text(f"{os.getpid()} {children[0].pid}")
    profiled = [0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def do_GET(self) -> None:
            if self.path == "/health":
                self.answer(503 if fault == "never healthy" else 200, {})
            elif self.path == "/version":
                self.answer(200, {"version": options.version, "data": [{"max_model_len": 20480}]})
            elif self.path == "/v1/models":
                self.answer(200, {"data": [{"id": "fake-model"}]})
            else:
                self.answer(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/start_profile":
                profiled[0] = 0
                self.answer(200, {})
            elif self.path == "/stop_profile":
                if options.profile and fault != "no trace":
                    text = json.dumps(kineto(profiled[0]), indent=2)
                    path = options.profile / f"{time.time_ns()}.trace.json.gz"
                    path.write_bytes(gzip.compress(text.encode()))
                self.answer(200, {})
            elif fault == "500":
                self.answer(500, {"error": "out of blocks"})
            else:
                profiled[0] += 1
                self.stream(json.loads(body))

        def answer(self, status: int, content: object) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def stream(self, asked: dict[str, object]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if fault == "mid-stream":
                return
            for event in self.events(asked):
                self.wfile.write(b"data: " + event + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")

        def events(self, asked: dict[str, object]) -> list[bytes]:
            if fault == "garbage":
                return [b"<html>"]
            if fault == "error event":
                return [b'{"error": {"message": "aborted"}}']
            prompt = asked.get("prompt") or asked.get("input_ids")
            assert isinstance(prompt, list)
            told = {
                "prompt_tokens": len(prompt) + (fault == "other length"),
                "completion_tokens": 2 if fault == "two tokens" else 1,
            }
            cached = 64 if fault == "cached" else 0
            if options.protocol == "sglang":
                if fault == "empty":
                    return []
                meta = {**told, "cached_tokens": cached}
                return [json.dumps({"output_ids": [5], "text": "", "meta_info": meta}).encode()]
            usage = {**told, "prompt_tokens_details": {"cached_tokens": cached}}
            token = [] if fault == "empty" else [{"choices": [{"index": 0, "text": ""}]}]
            return [json.dumps(each).encode() for each in [*token, {"choices": [], "usage": usage}]]

    print("fake engine: using FAKE attention, capture sizes [1, 2, 4]", flush=True)
    ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


CHILD = """
import signal, sys
if sys.argv[1] == "ignores stop":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""

if __name__ == "__main__":
    main()
