"""One self-contained page of HTML: sections of text, tables and figures, in light and dark, on a wide screen and on a phone.

    page = Page("What was measured", "One sentence of what it shows.")
    page.section("Speed", paragraph("..."), table(["method", "tokens/s"], [["cloud", "30"]]), side_by_side(figure(svg, "...")))
    page.write(Path("page.html"))

A block is an `Html`; the functions below make blocks of plain text, which they escape. Figures are inline SVG, such as those of
`antiphon_lab.report.charts`, which take their colours from the page. Nothing is fetched from anywhere. The same content is the
same page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from antiphon import __version__
from antiphon.errors import UsageError

_ANOTHER = "name another file for the page"


@dataclass(frozen=True, slots=True)
class Html:
    """Markup that goes into a page as it is."""

    markup: str


def paragraph(text: str) -> Html:
    """A paragraph; `words` between back quotes are set as code."""
    return Html(f"<p>{_inline(text)}</p>")


def note(text: str) -> Html:
    """A paragraph in small print: how something was measured, what it leaves out."""
    return Html(f'<p class="note">{_inline(text)}</p>')


def bullets(items: Sequence[str]) -> Html:
    """A list of sentences."""
    return Html("<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>")


def code(text: str) -> Html:
    """Lines of code, such as the command that made the page."""
    return Html(f"<pre>{escape(text)}</pre>")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", *, texts: int = 1) -> Html:
    """A table; the first `texts` columns are set to the left, the others to the right. It scrolls where it is too wide."""
    head = "".join(f"<th{_side(place, texts)}>{_inline(heading)}</th>" for place, heading in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(f"<td{_side(place, texts)}>{_inline(cell)}</td>" for place, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    title = f"<caption>{_inline(caption)}</caption>" if caption else ""
    return Html(
        f'<div class="wide" tabindex="0"><table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def figure(svg: Html, title: str, caption: str = "", *, wide: bool = False) -> Html:
    """A picture with a title above and a caption below. wide: it keeps its width, and scrolls on a narrow screen."""
    below = f"<figcaption>{_inline(caption)}</figcaption>" if caption else ""
    kind = ' class="wide" tabindex="0"' if wide else ""
    return Html(f"<figure><h3>{_inline(title)}</h3><div{kind}>{svg.markup}</div>{below}</figure>")


def side_by_side(*blocks: Html) -> Html:
    """Blocks beside each other where there is room, below each other where there is none."""
    return Html('<div class="grid">' + "".join(block.markup for block in blocks) + "</div>")


def folded(summary: str, *blocks: Html) -> Html:
    """Blocks that are shown when their summary is clicked."""
    return Html(f"<details><summary>{_inline(summary)}</summary>" + "".join(block.markup for block in blocks) + "</details>")


class Page:
    """A page that grows section by section. lead: what it shows, in a sentence or two."""

    def __init__(self, title: str, lead: str = "") -> None:
        self._title, self._lead = title, lead
        self._sections: list[str] = []

    def section(self, heading: str, *blocks: Html) -> None:
        """Add a section; without a heading if that is empty."""
        title = f"<h2>{_inline(heading)}</h2>" if heading else ""
        self._sections.append("<section>" + title + "\n".join(block.markup for block in blocks) + "</section>")

    def render(self) -> str:
        """The page."""
        lead = f'<p class="lead">{_inline(self._lead)}</p>' if self._lead else ""
        head = f'<meta charset="utf-8">\n{_VIEWPORT}\n<title>{escape(self._title)}</title>\n<style>{_STYLE}</style>'
        body = "\n".join([f"<header><h1>{_inline(self._title)}</h1>{lead}</header>", *self._sections])
        footer = f"<footer>Antiphon {escape(__version__)}</footer>"
        page = f"<head>\n{head}\n</head>\n<body>\n<main>\n{body}\n{footer}\n</main>\n</body>"
        return f'<!doctype html>\n<html lang="en">\n{page}\n</html>\n'

    def write(self, path: Path) -> None:
        """Write the page into a file. Raises UsageError."""
        try:
            path.write_text(self.render(), encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error, _ANOTHER) from error


def require_writable(path: Path, advice: str = _ANOTHER) -> None:
    """Raises UsageError if nothing can be written into this file; leaves what is there as it is. For before long work."""
    absent = not path.exists()
    try:
        path.open("ab").close()
        if absent:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error, advice) from error


def _unwritable(path: Path, error: OSError, advice: str) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror}): {advice}")


def _side(place: int, texts: int) -> str:
    return "" if place < texts else ' class="number"'


def _inline(text: str) -> str:
    """Plain text as markup; what is between back quotes as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a back quote without its other one
        return escape(text)
    return "".join(part if place % 2 == 0 else f"<code>{part}</code>" for place, part in enumerate(parts))


_VIEWPORT = (
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">'
)

COLOURS = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1f2328; --faint: #5b6470; --line: #d9dee4; --panel: #f6f8fa;
  --c0: #0072b2; --c1: #d55e00; --c2: #008a66; --c3: #b0528c; --c4: #8a6a00; --c5: #3a8fc4; --c6: #6b57b8; --c7: #6b7280; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #14171b; --ink: #e6e9ed; --faint: #9aa4b0; --line: #333b45; --panel: #1c2127;
  --c0: #56b4e9; --c1: #f28e4b; --c2: #35c79a; --c3: #e58fc4; --c4: #e0b84a; --c5: #8fcdf2; --c6: #ab9bf0; --c7: #a3acb8; } }
"""
"""Of pages and pictures, in light and dark."""

_PAGE_STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; line-height: 1.3; margin: 0 0 .4rem; }
p, ul { max-width: 46rem; margin: .6rem 0; }
.lead { font-size: 1.1rem; }
.note, figcaption, footer, caption { color: var(--faint); font-size: .875rem; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .6rem .8rem; overflow-x: auto; }
.wide { overflow-x: auto; }
.wide > svg { min-width: 44rem; }
figure > div:not(.wide) > svg { max-width: 36rem; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
td:first-child { white-space: nowrap; }
th { font-weight: 600; white-space: pre-line; vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
td.number { white-space: nowrap; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 1.2rem 1.6rem; }
figure { margin: .8rem 0; min-width: 0; }
figcaption { margin-top: .3rem; }
svg { display: block; width: 100%; height: auto; }
details { margin: .6rem 0; }
summary { cursor: pointer; }
"""

CHART_STYLE = (
    "".join(f".s{place} {{ stroke: var(--c{place}); }} .f{place} {{ fill: var(--c{place}); }}\n" for place in range(8))
    + """svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .small { font-size: 11px; }
svg .quiet { fill: var(--faint); }
svg .axis { stroke: var(--faint); fill: none; }
svg .rule { stroke: var(--line); fill: none; }
svg .curve { fill: none; stroke-width: 2; }
svg .hollow { fill: var(--paper); stroke-width: 2; }
svg .range { stroke-width: 1.5; opacity: .55; }
svg .span { stroke: var(--ink); stroke-width: 1.5; }
svg .halo { stroke: var(--paper); stroke-width: 1; }
svg .pale { opacity: .45; }
"""
)
"""Of charts, wherever they are."""

_STYLE = COLOURS + _PAGE_STYLE + CHART_STYLE
