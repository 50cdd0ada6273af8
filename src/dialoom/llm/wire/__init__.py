"""What every wire stands on: where a server listens, how it is asked, and how its answer is read."""
