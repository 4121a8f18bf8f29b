"""Errors meant for the user: each message is a sentence that says what is wrong and what to do."""


class GraphgainError(Exception):
    """Base of every error that ends a command with a message instead of a traceback."""


class ConfigError(GraphgainError):
    """The configuration names something unknown or impossible."""


class DocumentError(GraphgainError):
    """A result document is missing, broken, or of an unknown schema version."""


class MeasureError(GraphgainError):
    """An experiment could not run, or did not end with a result."""


class MissingToolError(MeasureError):
    """A program or package that an experiment needs was not found."""


class BusyError(MeasureError):
    """The GPU, or the lock that guards it, is held by another process."""


class NotebookError(GraphgainError):
    """A notebook has an unknown parameter, a failing cell, or did not write what it declares."""


class SiteError(GraphgainError):
    """The site's sources or the built site are inconsistent."""


class PublishError(GraphgainError):
    """The built site could not be published; nothing was changed at the destination."""


class TraceError(GraphgainError):
    """A trace cannot be read, or lacks what counting its cached tokens needs."""
