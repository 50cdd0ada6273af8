"""Stores on disk: twins of the protocols that the layers below define."""
