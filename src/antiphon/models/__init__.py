"""Models behind one narrow interface. Importing this loads no model library; `load` does."""

from antiphon.models.catalog import load

__all__ = ["load"]
