"""The configuration: what is compared, what may be measured, where the site goes."""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphgain import strict_yaml
from graphgain.errors import ConfigError
from graphgain.results.document import Slug

CONFIG = Path("config/config.yaml")


class Section(BaseModel):
    """A part of the configuration; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MachineConfig(Section):
    """This machine, as the folder of its results and the article call it."""

    slug: Slug | None = None
    label: str | None = None
    arch: Annotated[str, Field(pattern=r"^(native|sm_\d+[af]?)$")] = "native"


class SiteConfig(Section):
    """How the site is built."""

    renderer: Literal["auto", "quarto", "pandoc"] = "auto"
    repository: Annotated[str, Field(pattern=r"^https?://")] | None = None


class PublishConfig(Section):
    """Where `publish` puts the built site; `to: null` publishes nowhere."""

    to: Literal["branch", "folder"] | None = None
    remote: str = "origin"
    branch: str = "gh-pages"
    cname: str | None = None
    folder: Path | None = None


class Config(Section):
    """Everything that `config/config.yaml` may say."""

    machines: Literal["all"] | Annotated[list[str], Field(min_length=1)] = "all"
    measure: Literal["auto", "never", "always"] = "auto"
    machine: MachineConfig = MachineConfig()
    experiments: dict[str, dict[str, Any]] = {}
    site: SiteConfig = SiteConfig()
    publish: PublishConfig = PublishConfig()


def check_config(raw: object, origin: str = str(CONFIG)) -> Config:
    """Validate a configuration; raises ConfigError that names the key and the keys known."""
    try:
        return Config.model_validate(raw if raw is not None else {})
    except ValidationError as error:
        raise ConfigError(f"{origin}: {'; '.join(map(_problem, error.errors()))}") from None


def load_config(path: Path = CONFIG) -> Config:
    """Read and validate a configuration file; raises ConfigError."""
    try:
        return check_config(strict_yaml.load(path.read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; run graphgain in the project's folder.") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from None


def select_machines(config: Config, results: Path) -> list[str]:
    """The slugs of the machines to show: all folders, published first, or the configured list.

    Raises ConfigError for a configured machine that has no folder with a `machine.json`.
    """
    found = [path.parent.name for path in results.glob("*/machine.json")]
    if config.machines == "all":
        return sorted(found, key=lambda slug: (not slug.endswith("-published"), slug))
    for slug in config.machines:
        if slug not in found:
            raise ConfigError(
                f"config: machines names {slug!r}, but {results / slug}/machine.json does not "
                f"exist; there are {', '.join(sorted(found)) or 'no machines'}."
            )
    return list(config.machines)


def _problem(error: Any) -> str:
    key = ".".join(str(part) for part in error["loc"]) or "configuration"
    if error["type"] != "extra_forbidden":
        return f"{key}: {error['msg']}"
    section: Any = Config
    for part in error["loc"][:-1]:
        section = section.model_fields[part].annotation
    return f"unknown key {key}; known here are {', '.join(section.model_fields)}"
