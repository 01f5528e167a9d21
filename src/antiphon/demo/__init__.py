"""`antiphon demo`: two ends on this machine, and a table of methods."""
