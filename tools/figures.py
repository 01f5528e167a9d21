"""Figures of the documents: each is held equal to one in `docs/results`, or is named as a constant with its reason.

    python tools/figures.py            what is not held, and what is not equal
    python tools/figures.py --write    also puts the results' figures into the documents

A document has a register, `docs/figures/NAME.toml`, or several, `NAME.PART.toml`:

    [[held]]                                       # text with figures of `docs/results/x-cosd.json`; else `{tslt: PATH ...`
    of = "x-cosd"
    each = ["dssd", "xcosd"]                       # optional: once for each of these, as {row}
    text = "| `{row}` | {loads[name={row},task=all].up.mean | .1f} |"

    [[constant]]                                   # figures that were not measured; `section` takes all below a heading
    text = "33 ms a pass"
    reason = "what the profile charges"

A figure is `{PATH | FORM}`: PATH leads into the JSON by keys, `[2]` and `[key=value,key=value]`, may be `PATH / PATH` or
`PATH * 100`; FORM is Python's. `ci FORM` also writes the interval of a mean: `1.38 (1.29 to 1.47)`. Elsewhere than in code,
links and addresses, what has a unit and what stands in a table below its heading is a figure.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, REGISTERS = ROOT / "docs" / "results", ROOT / "docs" / "figures"
FEW = "n too small"
"""What is written for the interval of a mean that has none."""

_PLACE = re.compile(r"\{([^{}|]+)\|\s*(ci )?([^{}]*)\}")
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")
_NUMBER = r"(?<![\w.,])[-+±]?\.?\d(?:[\d,]*\d)?(?:\.\d+)?"
_UNITS = (
    "ms|s|seconds?|minutes?|hours?|%|times|tokens|tokens/s|queries/s|tok/s|bits?|kbit|Mbit|Gbit|[kMG]bit/s|bytes?|[KMG]B|[KMG]iB|"
    "messages|passes|logits?|entries|points?|trips"
)
_WITH_UNIT = re.compile(rf"{_NUMBER}(?: (?:to|and|or) {_NUMBER})*\s(?:{_UNITS})(?![\w/])")
_CELL = re.compile(_NUMBER)
_CODE = re.compile(r"^```.*?^```|^    [^\n]+$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|https?://\S+", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Held:
    """A text of a document with figures. pattern: finds it, whatever the figures are; values: what they should be."""

    text: str
    pattern: re.Pattern[str]
    values: tuple[str, ...]


class Document:
    """A document with its register."""

    def __init__(self, path: Path) -> None:
        self.path, self.text = path, path.read_text(encoding="utf-8")
        self.held: list[Held] = []
        self.constants: list[dict[str, str]] = []
        for register in sorted((*REGISTERS.glob(f"{path.stem}.toml"), *REGISTERS.glob(f"{path.stem}.*.toml"))):
            found = tomllib.loads(register.read_text(encoding="utf-8"))
            self.held += [held for entry in found.get("held", ()) for held in _held(entry)]
            self.constants += found.get("constant", [])

    def faults(self) -> Iterator[str]:
        """What is wrong, a sentence each."""
        for held in self.held:
            match = held.pattern.search(self.text)
            if match is None:
                yield f"has no text {held.text!r}"
            elif match.groups() != held.values:
                yield f"has {match.group()!r}, where the results have {', '.join(held.values)}"
        for constant in self.constants:
            if not constant.get("reason"):
                yield f"a constant without a reason: {constant}"
            if not list(self._constant(constant)):
                yield f"has no constant {constant.get('text') or constant.get('section')!r}"
        for number, figure in self.unheld():
            yield f"line {number}: {figure!r} is held by no result, and is no constant"

    def unheld(self) -> Iterator[tuple[int, str]]:
        """Figures that nothing is said of, by line."""
        known = [match.span() for held in self.held for match in held.pattern.finditer(self.text)]
        known += [span for constant in self.constants for span in self._constant(constant)]
        for match in sorted(figures(self.text), key=lambda match: match.start()):
            if not any(start <= match.start() and match.end() <= end for start, end in known):
                yield self.text.count("\n", 0, match.start()) + 1, match.group()

    def written(self) -> str:
        """The text with the results' figures in it."""
        text = self.text
        for held in self.held:
            if match := held.pattern.search(text):
                for place in range(len(held.values), 0, -1):
                    start, end = match.span(place)
                    text = text[:start] + held.values[place - 1] + text[end:]
        return text

    def _constant(self, constant: dict[str, str]) -> Iterator[tuple[int, int]]:
        if heading := constant.get("section"):
            start = re.search(rf"^(#+) {re.escape(heading)}\n", self.text, re.MULTILINE)
            if start is not None:
                level = len(start[1])
                end = re.search(rf"^#{{1,{level}}} ", self.text[start.end() :], re.MULTILINE)
                yield start.end(), start.end() + end.start() if end else len(self.text)
        else:
            yield from (match.span() for match in re.finditer(_loosely(constant["text"]), self.text))


def figures(text: str) -> Iterator[re.Match[str]]:
    """What in a document is a figure."""
    plain = _CODE.sub(lambda match: re.sub(r"[^\n]", "\x00", match.group()), text)
    yield from _WITH_UNIT.finditer(plain)
    for row in re.finditer(r"^ *\|.*\|$(?!\n *\| ?-)", plain, re.MULTILINE):  # a heading is no figure
        yield from _CELL.finditer(plain, row.start(), row.end())


def _held(entry: dict[str, Any]) -> Iterator[Held]:
    rows = entry.get("each", [""])
    for row in rows:
        text = entry["text"].replace("{row}", row)
        parts, values, last = [], [], 0
        for place in _PLACE.finditer(text):
            parts.append(_loosely(text[last : place.start()]))
            name, colon, path = place[1].strip().rpartition(":")
            values.append(_value(name if colon else entry["of"], path.strip(), place[3].strip(), bool(place[2])))
            last = place.end()
        found = r"([^|\n]{1,60}?)(?![.,]?\d)".join([*parts, _loosely(text[last:])])
        yield Held(text, re.compile(found), tuple(values))


def _loosely(text: str) -> str:
    """A pattern of a text however its lines are broken."""
    return r"\s+".join(map(re.escape, re.split(r"\s+", text)))


def _value(name: str, path: str, form: str, interval: bool) -> str:
    if interval:
        mean = at(name, path)
        value, ends = (mean["mean"], mean["interval"]) if isinstance(mean, dict) else (mean, at(name, f"{path}_interval"))
        return f"{value:{form}} ({FEW if ends is None else f'{ends[0]:{form}} to {ends[1]:{form}}'})"
    above, slash, below = path.partition(" / ")
    if slash:
        return format(at(name, above) / at(name, below), form)
    path, _, factor = path.partition(" * ")
    value = at(name, path)
    return format(value * float(factor) if factor else value, form) if form else str(value)


def at(name: str, path: str) -> Any:
    """What is in `docs/results/NAME.json` at a path. Raises KeyError or LookupError with the path where nothing is."""
    value = _results(name)
    for key, choice in _STEP.findall(path.strip()):
        try:
            value = value[key.strip()] if key else _chosen(value, choice)
        except (LookupError, TypeError, StopIteration) as error:
            raise LookupError(f"docs/results/{name}.json has nothing at {path!r}, step {key or choice!r}") from error
    return value


def _chosen(rows: Any, choice: str) -> Any:
    if "=" not in choice:
        return rows[int(choice)]
    wanted = dict(part.split("=", 1) for part in re.split(r",(?=[\w.]+=)", choice))
    return next(row for row in rows if all(str(_field(row, name)) == value for name, value in wanted.items()))


def _field(row: Any, name: str) -> Any:
    """Of an object, by a name with dots; of a pair `x` is its first half."""
    if isinstance(row, list):
        return row[0] if name == "x" else None
    first, _, rest = name.partition(".")
    return _field(row.get(first, {}), rest) if rest else row.get(first)


@cache
def _results(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def documents() -> list[Path]:
    """The README and all of `docs`."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    """Say what is wrong; 1 if anything is."""
    wrong = 0
    for path in documents():
        document = Document(path)
        if "--write" in sys.argv[1:] and document.written() != document.text:
            path.write_text(document.written(), encoding="utf-8")
            document = Document(path)
        for fault in document.faults():
            sys.stderr.write(f"{path.relative_to(ROOT)} {fault}\n")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
