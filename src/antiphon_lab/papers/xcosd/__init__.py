"""`antiphon-lab reproduce x-cosd`."""
