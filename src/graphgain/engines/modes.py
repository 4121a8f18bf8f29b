"""One engine in one mode: its command, its environment, and the folder of what was measured."""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphgain.engines.config import Engine, Mode
from graphgain.engines.model_folder import NAME, make_model_folder, vocabulary_of
from graphgain.engines.points import Sweep
from graphgain.engines.server import LOOPBACK
from graphgain.errors import ConfigError
from graphgain.measuring.packages import package_version

PUBLISHED = ("sglang", "no-prefill-graph")
"""Engine and mode of the published composition: a breakdown's own rows, where it was measured."""


@dataclass(frozen=True)
class Model:
    """What is served: its folder and what requests call it.

    `random`: the weights are made up by the engine. Not `known`: a server that runs already has
    its own, and `folder` only tells the size of a vocabulary.
    """

    folder: Path
    served: str
    vocabulary: int
    random: bool
    known: bool = True

    @property
    def weights(self) -> str | None:
        """What a document says of the weights; None where nobody told."""
        if not self.known:
            return None
        return "random" if self.random else str(self.folder)


def find_model(folder: str, served: str, build: Path) -> Model:
    """The model of the parameter `model`: a folder, or for an empty one random weights with the
    shapes of Qwen3.8-27B. Raises ConfigError."""
    if not folder:
        path = make_model_folder(build / "models" / NAME)
        return Model(path, served or NAME, vocabulary_of(path), random=True)
    path = Path(folder).expanduser().resolve()
    if not path.is_dir():
        raise ConfigError(f"Parameter model: {path} is not a folder.")
    return Model(path, served or path.name, vocabulary_of(path), random=False)


@dataclass(frozen=True, eq=False)
class Chosen:
    """An engine, one of its modes, and the model that it serves."""

    engine: Engine
    mode_name: str
    model: Model

    @property
    def mode(self) -> Mode:
        """The mode's own part of the configuration."""
        return self.engine.modes[self.mode_name]

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"{self.engine.engine}:{self.mode_name}"

    def folder(self, cache: Path, sweep: Sweep, gpu: str | None) -> Path:
        """Where its points are kept: another one for whatever could change them."""
        content = {
            "engine": self.engine.model_dump(mode="json", exclude={"modes", "label", "read_back"}),
            "mode": self.mode.model_dump(mode="json", exclude={"label"}),
            "model": [str(self.model.folder), self.model.served, self.model.random],
            "sweep": [sweep.warmup, sweep.concurrency, sweep.vocabulary],
            "gpu": gpu,
            "package": package_version(self.engine.package) if self.engine.package else None,
        }
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
        return cache / f"{self.engine.engine}-{self.mode_name}-{digest}"

    def command(self, port: int, folder: Path) -> list[str] | None:
        """The whole command line; None for a server that runs already."""
        engine = self.engine
        if engine.command is None:
            return None
        parts = [*engine.command, *engine.arguments]
        if self.model.random:
            if engine.random_weights_arguments is None:
                raise ConfigError(
                    f"{engine.label} cannot run with random weights: give the folder of a model "
                    "(parameter model)."
                )
            parts += engine.random_weights_arguments
        if engine.profiler:
            parts += engine.profiler.arguments
        filled = self._fill([*parts, *self.mode.arguments], port, folder)
        if engine.docker is None:
            return filled
        mount = f"{self.model.folder}:{self.model.folder}:ro"
        scratch = f"{folder.resolve()}:{folder.resolve()}"
        settings = [
            f"--env={name}={value}" for name, value in self.environment(port, folder).items()
        ]
        return [
            *("docker", "run", "--rm", "--init", "--name", self.container(port)),
            *("--gpus", "all", "--network", "host"),
            *("--ipc", "host", "--volume", mount, "--volume", scratch, *settings),
            *(*engine.docker.arguments, engine.docker.image, *filled),
        ]

    def container(self, port: int) -> str:
        """What its container is called."""
        return f"graphgain-{self.engine.engine}-{self.mode_name}-{port}"

    def last(self, port: int) -> list[str]:
        """The command that removes what outlives the command line's process: a container."""
        if self.engine.docker is None:
            return []
        return ["docker", "rm", "--force", self.container(port)]

    def environment(self, port: int, folder: Path) -> dict[str, str]:
        """Variables set for the server, beyond our own environment."""
        found = dict(self.engine.environment)
        if self.engine.profiler:
            found |= self.engine.profiler.environment
        found |= self.mode.environment
        return dict(zip(found, self._fill(list(found.values()), port, folder), strict=True))

    def url(self, port: int) -> str:
        """Where it listens."""
        return (self.engine.url or f"http://{LOOPBACK}:{port}").rstrip("/")

    def _fill(self, parts: list[str], port: int, folder: Path) -> list[str]:
        values: Mapping[str, Any] = {
            "python": "python3" if self.engine.docker else sys.executable,
            "model": self.model.folder,
            "served": self.model.served,
            "host": LOOPBACK,
            "port": port,
            "profile": profile_folder(folder),
            "scratch": (folder / "scratch").resolve(),
        }
        filled = []
        for part in parts:
            for name, value in values.items():
                part = part.replace("{" + name + "}", str(value))
            filled.append(part)
        return filled


def profile_folder(folder: Path) -> Path:
    """Where the engine's profiler writes."""
    return (folder / "profile").resolve()
