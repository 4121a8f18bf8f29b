"""Why a fact about the machine could not be read: kept as data, not shown as an error."""


class Unavailable(Exception):
    """A tool, library or query gave no answer; the message is the reason to record."""
