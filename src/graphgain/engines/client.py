"""The client: the time from sending a prompt to the first event with a token."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import aiohttp

from graphgain.engines.config import Protocol
from graphgain.engines.protocol import Request, RequestError, Usage, event, has_token, usage

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Target:
    """Where requests go; `key` is sent as a bearer token and never shown."""

    url: str
    protocol: Protocol
    key: str | None = None


@dataclass(frozen=True)
class Answer:
    """One answered request: when it was sent, its first token and its end, and what it was.

    Times of day are in ns since the epoch, so that they can be laid beside a trace.
    """

    ttft_ms: float
    sent_ns: int
    first_token_ns: int
    usage: Usage


def send_all(
    target: Target, requests: Sequence[Request], *, concurrency: int = 1, pause_s: float = 0.0
) -> list[Answer]:
    """Send requests in order, `concurrency` at a time and each after a pause; their answers.

    One connection a slot, kept open. Raises RequestError for the first request that fails. Works
    where an event loop runs already, as in a notebook: then in a thread of its own.
    """
    sending = _send_all(target, requests, concurrency, pause_s)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(sending)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, sending).result()


async def _send_all(
    target: Target, requests: Sequence[Request], concurrency: int, pause_s: float
) -> list[Answer]:
    answers: dict[int, Answer] = {}
    waiting = iter(enumerate(requests))
    headers = {"Content-Type": "application/json"}
    if target.key:
        headers["Authorization"] = f"Bearer {target.key}"
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(
        headers=headers, timeout=timeout, connector=connector
    ) as session:

        async def slot() -> None:
            for index, each in waiting:
                if pause_s:
                    await asyncio.sleep(pause_s)
                answers[index] = await _send(session, target, each)

        await asyncio.gather(*(slot() for _ in range(concurrency)))
    return [answers[index] for index in range(len(requests))]


async def _send(session: aiohttp.ClientSession, target: Target, each: Request) -> Answer:
    url = target.url + each.path
    first: float | None = None
    first_ns = 0
    told = Usage()
    sent_ns = time.time_ns()
    sent = time.perf_counter()
    try:
        async with session.post(url, data=each.body) as response:
            if response.status != 200:
                body = await response.text()
                raise RequestError(f"{url} answered {response.status}: {body[:200]!r}.")
            async for line in response.content:
                arrived = time.perf_counter()
                found = event(line)
                if found is None:
                    continue
                if first is None and has_token(target.protocol, found):
                    first, first_ns = arrived, time.time_ns()
                told = _merge(told, usage(target.protocol, found))
    # aiohttp raises ValueError for a line that never ends.
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        what = str(error) or type(error).__name__
        raise RequestError(f"{url} did not answer to the end: {what}.") from None
    if first is None:
        raise RequestError(f"{url} answered without a token.")
    return Answer((first - sent) * 1000, sent_ns, first_ns, told)


def _merge(before: Usage, now: Usage) -> Usage:
    """The later of two statements, field by field."""
    return Usage(
        *(
            new if new is not None else old
            for old, new in (
                (before.prompt_tokens, now.prompt_tokens),
                (before.completion_tokens, now.completion_tokens),
                (before.cached_tokens, now.cached_tokens),
            )
        )
    )
