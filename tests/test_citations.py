"""What docstrings, comments, tests and documents cite is there: sections of docs/methods.md, of papers, and other documents.

One form: METHODS with the number of a section, and the name of a heading in it after a comma; a paper by its short name, with a
section, a figure, a theorem or an algorithm; a document by its path, with the anchor of a heading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from antiphon.methods import BASELINES, MIXTURES
from antiphon.methods import METHODS as METHODS_BY_NAME

ROOT = Path(__file__).resolve().parents[1]
PLACES = ("src", "tests", "examples", "tools", "docs")
OWN = Path("tests/test_citations.py")

METHODS = re.compile(r"METHODS (\d)((?:, \d)*)(?:, ([^\n]+(?:\n[^\n]+)?))?")
SECTION = r"(?:\d(?:\.\d)?|[IV]+(?:-[A-E])?|[A-E](?:\.\d)?)(?![\w.]*[\w])"
PAPER = re.compile(rf"\b(TSLT|X-CoSD|CONCORD|DRAGON|DSSD) ({SECTION}(?:, {SECTION})*)")
DOCUMENT = re.compile(r"\b(docs/[\w.-]+\.md)(#[\w-]+)?")
LINK = re.compile(r"\]\(([\w./-]*)(#[\w-]+)?\)")
STANDARD = re.compile(r"(?:RFCs? |\barXiv[: ]+)(\d{4}(?:\.\d{5})?)")
NOWHERE = re.compile(r"\b(DESIGN|FACTS)\b|\bMETHODS'")


@dataclass
class Page:
    """The headings of a document: their anchors, and the names of those in each numbered section."""

    anchors: set[str] = field(default_factory=set)
    names: dict[str, set[str]] = field(default_factory=dict)


@cache
def page(path: Path) -> Page:
    found, section = Page(), ""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for marks, heading in re.findall(r"^(#+) (.+)$", text, re.MULTILINE):
        found.anchors.add("#" + re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-"))
        if marks == "##":
            section = heading.partition(".")[0]
        plain = re.sub(r"^\d\. |^The |`", "", heading).lower()
        found.names.setdefault(section, set()).update(re.split(r"[:,] ", plain))
    return found


def listed() -> dict[str, set[str]]:
    """Of each paper of the sources, the sections that are listed."""
    rows = re.findall(r"^\| ([\w-]+) \| .+ \| (.*)\|$", (ROOT / "docs/methods.md").read_text(), re.MULTILINE)
    return {name: {item.split()[0] for item in items.split("; ") if item.strip()} for name, items in rows}


def wrong(text: str, path: Path) -> Iterator[str]:
    """What a text of the file at `path` cites and is nowhere."""
    methods, papers = page(ROOT / "docs/methods.md"), listed()
    for cited in METHODS.finditer(text):
        yield from _unnamed(cited, methods)
    for name, sections in PAPER.findall(text):
        yield from (f"{name} {one}" for one in sections.split(", ") if one not in papers.get(name, ()))
    for document, anchor in DOCUMENT.findall(text):
        yield from _unresolved(ROOT / document, anchor)
    if path.suffix == ".md":
        for target, anchor in LINK.findall(text):
            yield from _unresolved(path.parent / target if target else path, anchor)
    sources = (ROOT / "docs/methods.md").read_text().partition("\n## Sources\n")[2]
    yield from (number for number in STANDARD.findall(text) if number not in sources)
    yield from (f"{gone.group()}, which is no document here" for gone in NOWHERE.finditer(text))


def _unnamed(cited: re.Match[str], methods: Page) -> Iterator[str]:
    first, others, said = cited.groups()
    yield from (f"METHODS {one}" for one in (first, *others.split(", ")[1:]) if one not in methods.names)
    said = re.sub(r"^the ", "", " ".join((said or "").replace("`", "").replace("*", "").split()).lower())
    if said and not any(re.match(rf"{re.escape(name)}(?!\w)", said) for name in methods.names.get(first, ())):
        yield f"METHODS {first}, {said[:40]}"


def _unresolved(target: Path, anchor: str) -> Iterator[str]:
    if not target.exists():
        yield f"{target.name}, which does not exist"
    elif anchor and anchor not in page(target).anchors:
        yield f"{target.name}{anchor}, which has no such heading"


def files() -> list[Path]:
    found = [path for place in PLACES for ending in ("py", "md", "mjs") for path in (ROOT / place).rglob(f"*.{ending}")]
    return [ROOT / "README.md", *(path for path in sorted(found) if path.relative_to(ROOT) != OWN)]


def test_every_citation_leads_somewhere() -> None:
    found = {str(path.relative_to(ROOT)): [*wrong(path.read_text(encoding="utf-8"), path)] for path in files()}
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_there_are_citations_of_every_section() -> None:
    """So that the patterns above cannot have stopped finding any."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in files() if path.suffix == ".py")
    assert {number for number, *_ in METHODS.findall(code)} == set("012345")
    assert {name for name, _ in PAPER.findall(code)} == {"TSLT", "X-CoSD", "CONCORD"}


def test_every_method_has_a_heading_of_its_own() -> None:
    named = set().union(*page(ROOT / "docs/methods.md").names.values())
    assert {*METHODS_BY_NAME, *MIXTURES, *BASELINES} - named == set()


@pytest.mark.parametrize(
    "text",
    [
        "METHODS 6",
        "METHODS 2, 7",
        "METHODS 2, hybrid grafting",
        "METHODS 0, TSLT",
        "TSLT 4.7",
        "TSLT 3, 9",
        "CONCORD VI-A",
        "X-CoSD E",
        "docs/nothing.md",
        "docs/methods.md#7-nothing",
        "arXiv 1234.56789",
        "RFC 9999",
        "(DESIGN, the seams)",
        "(FACTS)",
        "METHODS' rule",
    ],
)
def test_a_wrong_citation_is_seen(text: str) -> None:
    assert len([*wrong(f'"""As it should be ({text})."""', OWN)]) == 1


@pytest.mark.parametrize(
    "text",
    ["METHODS 2, 3)", "METHODS 2, token tree; TSLT 4)", "METHODS 3, coupled\ndrafting)", "X-CoSD 4, B, C)", "CONCORD IV-C)",
     "docs/methods.md#sources", "RFC 6455, 5.2", "arXiv 2606.15179"],
)  # fmt: skip
def test_a_right_citation_is_found(text: str) -> None:
    assert [*wrong(f'"""As it should be ({text}."""', OWN)] == []
