"""`antiphon-lab reproduce concord`."""
