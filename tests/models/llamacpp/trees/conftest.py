"""Toys and a tiny llama.cpp model that read trees; no test leaves anything of them taken."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.models.base import Context, Model
from antiphon.models.llamacpp.model import SEQUENCES
from antiphon.models.toy import ToyModel, toy_pieces
from models.llamacpp.trees.shapes import CELLS
from support.tinymodel import load_tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny")


@pytest.fixture
def tiny(folder: Path) -> Iterator[Model]:
    """Its own for every test, so that one that fails with open contexts fails alone."""
    model = load_tiny(folder, context=CELLS)
    yield model
    model.close()


@pytest.fixture(params=["toy", "llamacpp"])
def model(request: pytest.FixtureRequest, tiny: Model) -> Model:
    return tiny if request.param == "llamacpp" else ToyModel(toy_pieces(), context_length=CELLS)


@pytest.fixture
def context(model: Model) -> Iterator[Context]:
    opened = model.open()
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def nothing_leaks(tiny: Any) -> Iterator[None]:
    """Whatever a test did: when its contexts are closed, all sequences and all cells are free again."""
    yield
    assert tiny._pool.free == SEQUENCES
    context = tiny.open()
    context.extend([5] * tiny.context_length)
    context.close()
