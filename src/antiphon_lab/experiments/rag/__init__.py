"""`antiphon-lab bench rag`."""
