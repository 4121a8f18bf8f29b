"""Result documents as text, and the check that needs pydantic where there is one."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphgain.errors import MeasureError
from graphgain.files import write_atomically
from graphgain.measuring.packages import is_importable

_NUMBER = r"(?:-?[\d.eE+-]+|null)"
_NUMBER_LIST = re.compile(rf"\[\s+({_NUMBER}(?:,\s+{_NUMBER})*)\s+\]")


def document_text(document: Mapping[str, Any]) -> str:
    """JSON with two spaces, a list of numbers and nulls on one line. Raises ValueError for NaN."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return _NUMBER_LIST.sub(lambda match: f"[{' '.join(match[1].split())}]", text) + "\n"


def write_checked(path: Path, document: Mapping[str, Any]) -> None:
    """Validate a document (or a `machine.json`) and write it atomically.

    Raises MeasureError where it is invalid or cannot be written; the old file is then untouched.
    Without pydantic it is written unchecked, and standard error says so.
    """
    if is_importable("pydantic"):
        _validate(path, document)
    else:
        print(
            f"graphgain: {path} was not validated, as pydantic is not installed here; "
            "`graphgain import` does it where it is.",
            file=sys.stderr,
        )
    try:
        write_atomically(path, document_text(document))
    except OSError as error:
        raise MeasureError(
            f"{path}: could not be written ({error.strerror}); "
            "what was there before is unchanged. Make room or get permission, then measure again."
        ) from None


def _validate(path: Path, document: Mapping[str, Any]) -> None:
    from pydantic import ValidationError

    from graphgain.results import MODELS, Machine

    model = Machine if path.name == "machine.json" else MODELS[document["experiment"]]
    try:
        # As it will be read: from JSON, so that a tuple or a numpy number is caught here.
        model.model_validate_json(document_text(document))
    except (ValidationError, ValueError, TypeError) as error:
        raise MeasureError(
            f"{path}: was not written, because the measurement made an invalid document: {error}"
        ) from None
