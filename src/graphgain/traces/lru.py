"""Stack distances of a cache that evicts the least recently used block, for all its sizes at once.

Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 9 (1970): a
cache of k blocks holds the k topmost of one stack, so the rank of a block in the stack says which
sizes hold it. A prompt puts its blocks on top, its first block uppermost: a prefix is evicted from
its end, as engines do, which free a request's blocks in reverse order.

In a tree of prefixes a block was used last no earlier than the blocks behind it. So the blocks of a
prompt that nobody used since are the end of the prompt, and the stack is a pile of such ends, one a
prompt. A rank is a sum over the ends above, which a Fenwick tree answers in logarithmic time.
"""

import numpy as np

from graphgain.traces.prefixes import Path


class LruStack:
    """The stack, prompt after prompt."""

    def __init__(self) -> None:
        self._last_use = np.empty(0, dtype=np.int32)  # by node: the prompt that used it last
        self._ends = _Fenwick()  # by prompt: how many of its blocks nobody used since

    def use(self, path: Path, lead: int) -> list[tuple[int, int, int]]:
        """Use the blocks of a prompt, of which the first `lead` were used before.

        Returns where those were: (depth, rank, count) says that the blocks at depth, depth + 1, …
        were the rank-th, the following, … of the stack. Ranks count from one.
        """
        if path.ranges:
            self._reserve(path.ranges[-1][1])
        runs = [
            (depth, self._ends.total - self._ends.sum_through(user) + 1, count, user)
            for depth, count, user in self._last_users(path, lead)
        ]
        for *_, count, user in runs:
            self._ends.add(user, -count)
        now = self._ends.append(path.length)
        for start, end in path.ranges:
            self._last_use[start:end] = now
        return [run[:3] for run in runs]

    def _last_users(self, path: Path, lead: int) -> list[tuple[int, int, int]]:
        """Depth, number and last user of each run of leading blocks that have the same one."""
        if not lead:
            return []
        uses = self._last_use
        last = int(uses[path.node(lead - 1)])
        if uses[path.ranges[0][0]] == last:  # users never get later along a path
            return [(0, lead, last)]
        users = np.concatenate([uses[start:end] for start, end in path.head(lead).ranges])
        starts = [0, *(np.flatnonzero(users[1:] != users[:-1]) + 1).tolist()]
        ends = [*starts[1:], lead]
        return [
            (start, end - start, int(users[start])) for start, end in zip(starts, ends, strict=True)
        ]

    def _reserve(self, nodes: int) -> None:
        if nodes > len(self._last_use):
            grown = np.full(max(2 * len(self._last_use), nodes), -1, dtype=np.int32)
            grown[: len(self._last_use)] = self._last_use
            self._last_use = grown


class _Fenwick:
    """Sums over the beginnings of a list that grows (Fenwick, Software: Practice and Experience
    24 (1994)); `_tree[i]` holds the sum of the last `i & -i` values before place i."""

    def __init__(self) -> None:
        self._tree = [0]
        self.total = 0

    def append(self, value: int) -> int:
        """Add a value at the end and return its index."""
        place = len(self._tree)
        below, step = value, place - 1
        while step > place - (place & -place):
            below += self._tree[step]
            step -= step & -step
        self._tree.append(below)
        self.total += value
        return place - 1

    def add(self, index: int, change: int) -> None:
        """Change the value at an index."""
        self.total += change
        place = index + 1
        while place < len(self._tree):
            self._tree[place] += change
            place += place & -place

    def sum_through(self, index: int) -> int:
        """The sum of the values up to and including the one at an index."""
        place, total = index + 1, 0
        while place:
            total += self._tree[place]
            place -= place & -place
        return total
