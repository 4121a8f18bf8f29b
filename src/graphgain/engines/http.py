"""Asking a server for its health, its settings and a profile.

Never through a proxy: the server is on this machine or where the user says, and the requests that
are timed take no proxy either.
"""

import http.client
import urllib.error
import urllib.request

_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class NotAnsweredError(Exception):
    """Why a server gave no answer, as the end of a sentence."""


def ask(
    url: str, *, timeout_s: float, method: str = "GET", body: str | None = None, key: str | None
) -> bytes:
    """The body of an answer with status 200; raises NotAnsweredError."""
    headers = {"Content-Type": "application/json"} if body else {}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    try:
        data = body.encode() if body else b"" if method == "POST" else None
        asked = urllib.request.Request(url, data=data, headers=headers, method=method)
        with _OPENER.open(asked, timeout=timeout_s) as answer:
            if answer.status != 200:
                raise NotAnsweredError(f"it answered {answer.status}")
            found: bytes = answer.read()
            return found
    except urllib.error.HTTPError as error:
        raise NotAnsweredError(f"it answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise NotAnsweredError(str(getattr(error.reason, "strerror", error.reason))) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotAnsweredError(str(error) or type(error).__name__) from None
