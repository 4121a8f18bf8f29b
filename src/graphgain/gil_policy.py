"""CPython's rules for passing the GIL on, played through for two threads.

The rules, as the article tells them for Python 3.12: nobody is preempted; a thread that wants the
lock sleeps for one switch interval; if the holder has not released it by then, the sleeper sets the
holder's drop request, which the holder obeys at its next checkpoint by handing over; a lock that is
released earlier goes to the sleeper at once; there are no priorities.
"""

from dataclasses import dataclass
from typing import Literal

State = Literal["runs", "waits", "launches"]


@dataclass(frozen=True)
class Span:
    """What one thread does from `start_ms` to `end_ms`."""

    thread: str
    state: State
    start_ms: float
    end_ms: float


def wait_ms(switch_ms: float, released_after_ms: float | None, checkpoint_ms: float) -> float:
    """How long a thread waits for a lock that it starts to want now.

    The holder releases it by itself after `released_after_ms` (None: never), or hands it over
    `checkpoint_ms` after the drop request, whichever is first.
    """
    forced_ms = switch_ms + checkpoint_ms
    return forced_ms if released_after_ms is None else min(released_after_ms, forced_ms)


def two_computing_threads(switch_ms: float) -> list[Span]:
    """Thread A computes; B wants the lock a little later, computes shortly and releases it."""
    asked_ms, checkpoint_ms, short_ms = 0.2 * switch_ms, 0.06 * switch_ms, 0.6 * switch_ms
    handed_ms = asked_ms + wait_ms(switch_ms, None, checkpoint_ms)
    returned_ms = handed_ms + wait_ms(switch_ms, short_ms, checkpoint_ms)
    end_ms = returned_ms + 0.6 * switch_ms
    return [
        Span("A", "runs", 0, handed_ms),
        Span("B", "waits", asked_ms, handed_ms),
        Span("A", "waits", handed_ms, returned_ms),
        Span("B", "runs", handed_ms, returned_ms),
        Span("A", "runs", returned_ms, end_ms),
    ]


def launcher_and_computing_thread(switch_ms: float, launches: int = 3) -> list[Span]:
    """Thread A prepares a launch, releases the lock for it, and wants it back at once; B computes.

    Whenever A releases the lock, B is waiting and takes it.
    """
    prepare_ms, launch_ms, checkpoint_ms = 0.14 * switch_ms, 0.05 * switch_ms, 0.02 * switch_ms
    spans, now = [], 0.0
    for number in range(launches):
        released = now + prepare_ms
        spans += [
            Span("B", "waits", now, released),
            Span("A", "runs", now, released),
            Span("A", "launches", released, released + launch_ms),
        ]
        if number == launches - 1:
            break
        now = released + launch_ms + wait_ms(switch_ms, None, checkpoint_ms)
        spans += [
            Span("A", "waits", released + launch_ms, now),
            Span("B", "runs", released, now),
        ]
    return spans
