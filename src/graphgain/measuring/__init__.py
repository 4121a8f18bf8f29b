"""Measuring: everything that needs to run on a bare machine with a GPU, Python and numpy.

Nothing here imports pydantic, PyYAML or Snakemake when it is loaded.
"""

SCHEMA_VERSION = 1
"""Of the documents written here; the models in `graphgain.results` have the same."""
