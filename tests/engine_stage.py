"""A project with a fake engine, and a fake engine that runs."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphgain.engines import server as servers
from graphgain.engines.points import Sweep
from graphgain.engines.server import await_health, free_port, started
from graphgain.experiments import EXPERIMENTS

FAKE = Path(__file__).parent / "fake_engine.py"
SWEEP = Sweep(requests=3, warmup=1, concurrency=1, vocabulary=5000, served="fake")
Serve = Callable[..., AbstractContextManager[str]]
"""Runs the fake engine with arguments; its address."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers are asked for their health more often than real ones need to be."""
    monkeypatch.setattr(servers, "_POLL_S", 0.02)


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """A fake engine that runs."""

    @contextmanager
    def running(*arguments: str) -> Iterator[str]:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = [sys.executable, str(FAKE), str(port), *arguments]
        with started("fake", command, url, tmp_path / "log") as server:
            await_health(server, "/health", 60)
            yield url

    return running


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one fake engine in two modes, and the shapes of a small model."""
    monkeypatch.chdir(tmp_path)
    shapes = tmp_path / "config/engines/models/qwen3.8-27b/config.json"
    shapes.parent.mkdir(parents=True)
    shapes.write_text(json.dumps({"text_config": {"vocab_size": 5000}}))
    write_engine(tmp_path)
    return tmp_path


def write_engine(root: Path, **changes: Any) -> None:
    engine = {
        "engine": "fake",
        "label": "Fake",
        "protocol": "openai",
        "command": ["{python}", str(FAKE), "{port}", "--profile", "{profile}"],
        "random_weights_arguments": [],
        "profiler": {},
        "read_back": {
            "version": "/version version",
            "settings": {
                "max_model_len": "/version data.0.max_model_len",
                "attention": r"log using (\w+) attention",
                "capture_sizes": r"log capture sizes (\[.*\])",
                "kv_cache": r"log kv cache (\d+)",
                "nothing": "/version nothing.here",
            },
        },
        "modes": {
            "on": {"label": "with graph"},
            "off": {"label": "without", "environment": {"GRAPH": "{served}"}},
        },
        **changes,
    }
    (root / "config/engines/fake.yaml").write_text(yaml.safe_dump(engine, sort_keys=False))


def parameters(**changes: Any) -> dict[str, Any]:
    return {
        **EXPERIMENTS["ttft"].parameters,
        "lengths": [8, 16],
        "requests": 3,
        "profile_lengths": [8],
        "profile_requests": 2,
        **changes,
    }
