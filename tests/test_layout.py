"""The house keeps its measures: folders of few files, files and functions of few lines, a folder of tests for each package."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

FILES_OF_A_FOLDER = 16
LINES_OF_A_FILE = 350
LINES_OF_A_FUNCTION, MEDIAN, NINE_OF_TEN = 41, 3, 11

ELSEWHERE = {
    "antiphon/demo": "cli",
    "antiphon/device/output": "device",
    "antiphon/methods/baselines": "methods",
    "antiphon_lab/cli": "lab",
    "antiphon_lab/papers/xcosd": "lab/papers",
}
"""Packages whose tests stand in another folder, beside those of what runs them."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines from the first statement after the docstring to the last."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


def functions() -> Iterator[tuple[str, int]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{named(path)}:{node.lineno} {node.name}", body_lines(node)


def test_a_folder_has_few_files() -> None:
    counted = Counter(named(path.parent) for path in (*SOURCES, *TESTS))
    assert {folder: count for folder, count in counted.items() if count > FILES_OF_A_FOLDER} == {}


def test_a_file_has_few_lines() -> None:
    counted = {named(path): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: count for path, count in counted.items() if count > LINES_OF_A_FILE} == {}


def test_a_function_has_few_lines() -> None:
    counted = dict(functions())
    assert {name: lines for name, lines in counted.items() if lines > LINES_OF_A_FUNCTION} == {}
    assert median(counted.values()) <= MEDIAN
    assert quantiles(counted.values(), n=10)[-1] <= NINE_OF_TEN


def test_a_package_has_a_folder_of_tests() -> None:
    for package in sorted({path.parent for path in SOURCES}):
        name = str(package.relative_to(ROOT / "src"))
        mirror = ELSEWHERE.get(name) or name.replace("antiphon_lab", "lab").removeprefix("antiphon").lstrip("/")
        assert list((ROOT / "tests" / mirror).rglob("test_*.py")), f"src/{name} has no tests in tests/{mirror}"


def test_how_much_is_comment(record_property: pytest.FixtureRequest) -> None:
    """Told, not asked for: how many of the product's lines that are not empty are comments."""
    lines = [line.strip() for path in SOURCES if "antiphon_lab" not in path.parts for line in path.read_text().splitlines()]
    share = sum(line.startswith("#") for line in lines) / sum(map(bool, lines))
    print(f"{share:.1%} of the product's lines are comments")
    record_property("comment_share", share)
