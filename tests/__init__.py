"""The tests of dialoom; `promises.py` says which requirement each carries."""
