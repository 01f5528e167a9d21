"""The index of a device: one SQLite file."""
