"""Trees of every shape, and what reading them alone gives."""

import numpy as np

from antiphon.models.base import Model

CELLS = 1024


IDS = [3 + 7 * i % 250 for i in range(40)]


BINARY = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
"""A root, then two children of every node, three times."""


SHAPES = {
    "one": [-1],
    "chain": [-1, 0, 1, 2, 3],
    "siblings": [-1] * 6,
    "binary": BINARY,
    "depth first": [-1, 0, 1, 1, 0, 4, -1, 6, 6],
    "two roots": [-1, -1, 0, 1, 0, 1, 2, 3],
    "comb": [-1, 0, 0, 2, 2, 4, 4, 6, 6],
}


ROUNDING = 0.02
"""The tiny model rounds its cache to half precision: passes of other widths differ by up to 0.005. A wrong token makes 0.4."""


def same(found: np.ndarray, wanted: np.ndarray, rounding: float = ROUNDING) -> None:
    np.testing.assert_allclose(found, wanted, atol=rounding)


def read_after(model: Model, ids: list[int]) -> np.ndarray:
    plain = model.open()
    row = plain.extend(ids)
    plain.close()
    return row
