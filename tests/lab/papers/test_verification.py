"""The papers test drafts one after the other, and so do the rows that reproduce them (METHODS 2, block verification)."""

import pytest

from antiphon.methods import find
from antiphon_lab.papers.answers import Options
from antiphon_lab.papers.tslt.run import KINDS
from antiphon_lab.papers.xcosd.entrants import TIMED

ROWS = {(row.method, row.options) for row in (*KINDS, *TIMED) if row.method in ("dsd", "tslt")}


@pytest.mark.parametrize(("method", "given"), sorted(ROWS), ids=str)
def test_a_row_of_a_paper_tests_token_by_token(method: str, given: Options) -> None:
    assert find(method).options_from(dict(given)).verification == "token"


def test_the_rows() -> None:
    assert {method for method, _ in ROWS} == {"dsd", "tslt"}
    assert len(ROWS) >= 6
