"""Pages, charts, and where figures come from."""
