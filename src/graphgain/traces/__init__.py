"""Request traces: how many of their tokens a prefix cache holds, and how many need prefill."""
