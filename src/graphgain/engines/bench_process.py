"""`vllm bench serve`, run after run in one process.

Starting it takes 20 s, a run 0.1 s besides its requests.

Run as `python -m graphgain.engines.bench_process`: every line of standard input is a JSON list of
the command's arguments, and is answered with a line {"error": null or a sentence} after that run,
until standard input ends. What the command prints goes to standard error.
"""

import argparse
import importlib
import json
import os
import sys
from typing import Any


def main() -> None:
    """Answer lines until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    bench: Any = importlib.import_module("vllm.benchmarks.serve")
    parser = argparse.ArgumentParser(prog="vllm bench serve")
    bench.add_cli_args(parser)
    for line in sys.stdin:
        error = None
        try:
            bench.main(parser.parse_args(json.loads(line)))
        except (Exception, SystemExit) as problem:
            error = f"{type(problem).__name__}: {problem}"
        print(json.dumps({"error": error}), file=answers, flush=True)


if __name__ == "__main__":
    main()
