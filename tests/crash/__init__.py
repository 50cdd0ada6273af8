"""Programs that are killed while they write, and what must be there afterwards."""
