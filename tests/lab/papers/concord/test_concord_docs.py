"""What the documents say of CONCORD in figures is what `docs/results` has, or is named as a constant with its reason."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures_of_documents", ROOT / "tools" / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["concord", "ask"])
def test_every_figure_is_held_by_a_result_or_is_a_constant(tool: ModuleType, name: str) -> None:
    assert list(tool.Document(ROOT / "docs" / f"{name}.md").faults()) == []


def test_what_stands_of_concord_in_the_papers_document_is_equal(tool: ModuleType) -> None:
    """Its other papers have registers of their own."""
    document = tool.Document(ROOT / "docs" / "reproduce.md")
    wrong = [fault for fault in document.faults() if "where the results have" in fault or "has no text" in fault]
    assert wrong == []
    assert any("to the letter" in held.text for held in document.held)
