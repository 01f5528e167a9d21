"""`antiphon-lab reproduce`: the tables and figures of the papers, with our models (docs/reproduce.md)."""
