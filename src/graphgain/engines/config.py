"""The files below config/engines: how each engine is started, asked and read, in which modes."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Annotated, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from graphgain import strict_yaml
from graphgain.errors import ConfigError
from graphgain.measuring.gpu import find_gpu
from graphgain.measuring.packages import is_importable

ENGINES = Path("config/engines")
Protocol = Literal["openai", "sglang"]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
UrlPath = Annotated[str, Field(pattern=r"^/")]


def _http_url(text: str) -> str:
    try:
        TypeAdapter(HttpUrl).validate_python(text)
    except ValidationError:
        raise ValueError(f"{text!r} is no address such as http://127.0.0.1:8000") from None
    return text.rstrip("/")


def _source(text: str) -> str:
    """`PATH KEY` or `log REGEX`, the expression having a group that is always there."""
    place, _, what = text.partition(" ")
    if not what or not (place == "log" or place.startswith("/")):
        raise ValueError("has to be `/PATH KEY` or `log REGEX`")
    if place == "log":
        try:
            groups = re.compile(what).groups
        except re.error as error:
            raise ValueError(f"{what!r} is no regular expression ({error})") from None
        if not groups:
            raise ValueError(f"{what!r} has no group (...) around the value")
    return text


Source = Annotated[str, AfterValidator(_source)]


class Section(BaseModel):
    """A part of a file; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Health(Section):
    """When a server counts as up: `path` answers 200 within `deadline_s` of the start."""

    path: UrlPath = "/health"
    deadline_s: Annotated[float, Field(gt=0)] = 900


class Docker(Section):
    """An image to run the command in, and further arguments of `docker run`."""

    image: str
    arguments: list[str] = []


class Profiler(Section):
    """How the engine's own torch profiler is switched: where to, and the body that starts it.

    `{profile}` in `arguments`, `environment` and `start_body` is the folder for its traces.
    """

    arguments: list[str] = []
    environment: dict[str, str] = {}
    start: UrlPath = "/start_profile"
    stop: UrlPath = "/stop_profile"
    start_body: str | None = None


class ReadBack(Section):
    """What a server says of itself: a version and settings.

    `version` and the values of `settings` are `PATH KEY` for a key of a JSON answer (dots descend)
    or `log REGEX` for the first group of the last line of the log that matches.
    """

    version: Source | None = None
    settings: dict[str, Source] = {}


class Mode(Section):
    """One way to run an engine: what is added to the engine's own command and environment."""

    label: str
    arguments: list[str] = []
    environment: dict[str, str] = {}


class Engine(Section):
    """One engine. In `command` and all arguments, `{python}`, `{model}`, `{host}`, `{port}`,
    `{served}` (the model's name) and `{scratch}` are filled in.

    An engine without a command is one that runs already, at `url`. `package` is what has to be
    importable where the command starts; `program` what has to be on the PATH.
    `compute_capability` is the only one its kernels run on.
    """

    engine: Slug
    label: str
    protocol: Protocol
    command: Annotated[list[str], Field(min_length=1)] | None = None
    url: Annotated[str, AfterValidator(_http_url)] | None = None
    api_key_environment: str = "OPENAI_API_KEY"
    package: str | None = None
    program: str | None = None
    docker: Docker | None = None
    compute_capability: str | None = None
    arguments: list[str] = []
    random_weights_arguments: list[str] | None = None
    environment: dict[str, str] = {}
    health: Health = Health()
    profiler: Profiler | None = None
    read_back: ReadBack = ReadBack()
    modes: Annotated[dict[Slug, Mode], Field(min_length=1)]

    @model_validator(mode="after")
    def _startable(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("needs either a command that starts it or the url where it runs")
        return self


def load_engines(folder: Path = ENGINES) -> dict[str, Engine]:
    """Every engine by name, in the order of the file names; raises ConfigError."""
    engines: dict[str, Engine] = {}
    for path in sorted(folder.glob("*.yaml")):
        engine = _read(path)
        if engine.engine in engines:
            raise ConfigError(f"{path}: there is another engine {engine.engine!r} in {folder}.")
        engines[engine.engine] = engine
    if not engines:
        raise ConfigError(
            f"{folder}: has no engine (*.yaml); run graphgain in the project's folder."
        )
    return engines


def select(engines: Mapping[str, Engine], wanted: Sequence[str]) -> list[tuple[Engine, str]]:
    """Engine and mode of every `ENGINE[:MODE]`, all of them for none; raises ConfigError."""
    if not wanted:
        return [(engine, mode) for engine in engines.values() for mode in engine.modes]
    chosen: dict[tuple[str, str], tuple[Engine, str]] = {}
    for text in wanted:
        name, _, mode = text.partition(":")
        if name not in engines:
            raise ConfigError(
                f"There is no engine {name!r} in {ENGINES}; there are {', '.join(engines)}."
            )
        engine = engines[name]
        if mode and mode not in engine.modes:
            raise ConfigError(
                f"Engine {name} has no mode {mode!r}; it has {', '.join(engine.modes)}."
            )
        for each in [mode] if mode else engine.modes:
            chosen[name, each] = (engine, each)
    return list(chosen.values())


def unavailable(engine: Engine, compute_capability: str | None) -> str | None:
    """Why an engine cannot be started here: a sentence, or None."""
    if engine.url is not None:
        return None
    if engine.docker is not None:
        return (
            None
            if which("docker")
            else f"{engine.label} is run by docker, which is not on the PATH."
        )
    if engine.package and not is_importable(engine.package):
        return f"{engine.label} is not installed here (Python package {engine.package})."
    if engine.program and which(engine.program) is None:
        return f"{engine.label} is not installed here ({engine.program} is not on the PATH)."
    if engine.compute_capability and engine.compute_capability != compute_capability:
        return (
            f"{engine.label} has kernels for compute capability {engine.compute_capability} only; "
            f"this GPU has {compute_capability or 'none'}."
        )
    return None


def _read(path: Path) -> Engine:
    try:
        return Engine.model_validate(strict_yaml.load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error}).") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None
    except ValidationError as error:
        problems = "; ".join(map(_problem, error.errors()))
        raise ConfigError(f"{path}: {problems}") from None


def _problem(found: ErrorDetails) -> str:
    """What is wrong with a file, in words for who wrote it."""
    place = ".".join(str(part) for part in found["loc"] if part != "[key]")
    if found["type"] == "extra_forbidden":
        return f"{place}: there is no such key"
    if found["type"] == "string_pattern_mismatch" and "[key]" in found["loc"]:
        return f"{place}: a mode's name has small letters, digits and single hyphens only"
    if found["type"].startswith("model_"):
        return f"{place or 'the file'}: has to be a mapping of keys to values"
    return f"{place or 'the file'}: {found['msg'].removeprefix('Value error, ')}"


def missing() -> str | None:
    """Why no engine can be started here: a sentence, or None."""
    device = find_gpu()
    capability = device.facts.get("compute_capability") if device else None
    reasons = [unavailable(engine, capability) for engine in load_engines().values()]
    if None in reasons:
        return None
    return f"No engine of {ENGINES} can be started here: {' '.join(filter(None, reasons))}"


def attached(url: str, protocol: str) -> Engine:
    """A server that runs already; raises ConfigError for an address or protocol that is none."""
    try:
        return Engine.model_validate(
            {
                "engine": "attached",
                "label": "attached server",
                "protocol": protocol,
                "url": url,
                "health": {"path": "/health", "deadline_s": 30},
                "read_back": {
                    "version": "/version version",
                    "settings": {"max_model_len": "/v1/models data.0.max_model_len"},
                },
                "modes": {"default": {"label": "as it runs"}},
            }
        )
    except ValidationError as error:
        raise ConfigError(f"Attached server: {_problem(error.errors()[0])}.") from None
