"""Forwards of one language model, written for measuring: what runs, and what a step changes."""
