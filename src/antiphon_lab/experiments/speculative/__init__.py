"""`antiphon-lab bench speculative`."""
