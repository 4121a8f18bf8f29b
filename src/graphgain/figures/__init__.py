"""Drawing: one module a figure, functions from plain data to a matplotlib figure."""
