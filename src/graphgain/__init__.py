"""graphgain: what CUDA Graph saves, measured, and the article rebuilt from the measurements."""

__version__ = "0.1.0"
