"""Antiphon: a small model on a device and a large one in the cloud write one answer together.

Importing this package loads no model library and opens nothing; `antiphon.models.load` and `antiphon.device` do, on call.
"""

__version__ = "0.1.0"
