"""Stores on disk: the durable twins of the protocols that other packages define."""
