"""Benches: every figure is a ratio in one run against a named rival or a plain-Python floor."""
