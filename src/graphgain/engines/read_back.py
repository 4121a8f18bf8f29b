"""What a running server says of itself: its version and the settings that matter."""

import ast
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphgain.engines.config import ReadBack
from graphgain.engines.http import NotAnsweredError, ask
from graphgain.engines.server import Server


def read_settings(
    server: Server, wanted: ReadBack
) -> tuple[str | None, dict[str, Any], dict[str, str]]:
    """Version, settings, and for each setting that was not found the reason."""
    answers: dict[str, Any] = {}
    log = _text(server.log)
    settings: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    sources = dict(wanted.settings)
    if wanted.version:
        sources["version"] = wanted.version
    for name, source in sources.items():
        place, _, what = source.partition(" ")
        try:
            if place == "log":
                settings[name] = from_log(log, what)
            else:
                if place not in answers:
                    answers[place] = json_answer(server.url + place, server.key)
                settings[name] = from_answer(answers[place], what)
        except LookupError as error:
            unavailable[name] = str(error.args[0])
    version = settings.pop("version", None)
    return None if version is None else str(version), settings, unavailable


def from_log(log: str, pattern: str) -> Any:
    """The first group of the last match, as a number, list or word; raises LookupError."""
    matches = list(re.finditer(pattern, log, flags=re.MULTILINE))
    if not matches:
        raise LookupError("the server's log has no such line")
    return _value(matches[-1][1])


def from_answer(answer: Any, key: str) -> Any:
    """The value at a dotted key of a JSON answer; raises LookupError."""
    found = answer
    for part in key.split("."):
        if isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, Mapping) and part in found:
            found = found[part]
        else:
            raise LookupError(f"the server's answer has no {key}")
    if isinstance(found, Mapping):
        return {str(name): value for name, value in found.items()}
    return found


def json_answer(url: str, key: str | None) -> Any:
    """What a server answers, as JSON; raises LookupError."""
    name = url.rpartition("/")[2]
    try:
        return json.loads(ask(url, timeout_s=10, key=key))
    except NotAnsweredError as error:
        raise LookupError(f"{name} was not answered: {error}") from None
    except ValueError:
        raise LookupError(f"{name} was not answered with JSON") from None


def _text(log: Path | None) -> str:
    # Escape sequences colour some loggers' lines.
    return re.sub(r"\x1b\[[0-9;]*m", "", log.read_text(errors="replace")) if log else ""


def _value(text: str) -> Any:
    if re.fullmatch(r"\d{1,3}(,\d{3})+", text):
        return int(text.replace(",", ""))
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text.strip()
    return list(found) if isinstance(found, tuple) else found
