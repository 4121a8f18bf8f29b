"""An axis of prompt lengths in octaves: short lengths, close together, get the room they need."""

from collections.abc import Iterable

from matplotlib.axes import Axes


def in_octaves(axes: Axes, lengths: Iterable[int]) -> None:
    """Give an x axis of tokens a logarithmic scale with a tick at the shortest of the lengths and
    at each doubling of it, up to the longest. At least one length, all above zero."""
    ordered = sorted(int(length) for length in lengths)
    shortest, longest = ordered[0], ordered[-1]
    doubled = [shortest << octave for octave in range((longest // shortest).bit_length())]
    axes.set_xscale("log", base=2)
    axes.set_xlim(shortest / 1.1, 1.1 * longest)
    axes.set_xticks(doubled, [f"{length:,}" for length in doubled], fontsize=9.5)
    axes.minorticks_off()
