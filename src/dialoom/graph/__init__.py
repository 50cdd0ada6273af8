"""The engine: nodes read and write channels in supersteps, each committed as one checkpoint."""
