"""The page and its charts: self-contained, well formed, escaped, and drawn where the numbers say."""

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon_lab.report.charts import Axis, Bar, Series, bars, levels, lines, short
from antiphon_lab.report.exchange import Busy, Flight, Tick, exchange
from antiphon_lab.report.page import (
    Html,
    Page,
    bullets,
    code,
    figure,
    folded,
    note,
    paragraph,
    require_writable,
    side_by_side,
    table,
)

VOID = {"meta", "br", "hr", "img"}


class Checker(HTMLParser):
    """Collects text, and complains where tags do not nest or something would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list) -> None:
        assert tag not in ("script", "link", "iframe", "object")
        assert not {name for name, _ in attrs} & {"src", "href", "onclick", "data"}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(markup: str) -> str:
    """The text of a page."""
    parser = Checker()
    parser.feed(markup)
    parser.close()
    assert not parser.open
    outside = re.sub(r'xmlns="http://www.w3.org/2000/svg"', "", markup)
    assert "http" not in outside
    assert "url(" not in outside
    assert "@import" not in outside
    return parser.text


def shapes(svg: Html, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg.markup).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def told(svg: Html) -> list[str]:
    return [title.text or "" for title in shapes(svg, "title")]


def test_marks_on_a_logarithmic_axis_stand_where_their_powers_are() -> None:
    """39 and 149,119 bytes are four powers of ten apart, and are drawn so; stacked lengths would be broken off alike."""
    rows = [
        Bar("a", (39.0,), "39", (30.0, 50.0)),
        Bar("b", (149_119.0,), "149,119"),
        Bar("c", (3900.0,), "3,900"),
        Bar("d", (0.0,), "0"),
    ]
    drawn = levels(rows, ("bytes",), "bytes a token")
    places = [float(circle.get("cx", "")) for circle in shapes(drawn, "circle")]
    assert len(places) == 3
    low, high, middle = places
    assert low < middle < high
    assert (middle - low) / (high - low) == pytest.approx(2 / math.log10(149_119 / 39), abs=0.01)
    assert told(drawn) == ["a, bytes: 39", "b, bytes: 149k", "c, bytes: 3900"]
    (span,) = [path for path in shapes(drawn, "path") if path.get("class") == "range s0"]
    start, end = map(float, re.findall(r"[MH]([\d.]+)", span.get("d", "")))
    assert start < low < end


def test_parts_of_a_row_have_marks_of_their_own() -> None:
    drawn = levels([Bar("a", (10.0, 1000.0), "1,010")], ("up", "down"), "bytes")
    assert told(drawn)[-2:] == ["a, up: 10", "a, down: 1000"]


def test_the_interval_of_a_bar_is_drawn() -> None:
    drawn = bars([Bar("a", (10.0,), "10", (8.0, 12.0)), Bar("b", (6.0,), "6")], ("x",), "x")
    (span,) = [path for path in shapes(drawn, "path") if path.get("class") == "span"]
    start, end = map(float, re.findall(r"[MH]([\d.]+)", span.get("d", "")))
    one, _ = shapes(drawn, "rect")
    left, wide = float(one.get("x", "")), float(one.get("width", ""))
    assert (start - left) / wide == pytest.approx(0.8, abs=0.01)
    assert (end - left) / wide == pytest.approx(1.2, abs=0.01)


CHART = lines([Series("a & b", ((1.0, 10.0), (2.0, 20.0)), 1, ((8.0, 12.0), (15.0, 25.0)))], Axis("x < y"), Axis("tokens/s"))


def whole() -> Page:
    page = Page("Title <b>", "A lead with `code`.")
    page.section(
        "One",
        paragraph("less < more & `a<b`"),
        note("small"),
        bullets(["first", "second"]),
        code("antiphon <x>"),
        table(["row", "value"], [["a", "1"], ["<b>", "2"]], "a caption"),
    )
    page.section(
        "Two", side_by_side(figure(CHART, "A chart", "its caption"), figure(CHART, "Another")), folded("more", note("in"))
    )
    return page


def test_a_page_is_self_contained_and_escaped() -> None:
    markup = whole().render()
    text = checked(markup)
    assert markup.startswith("<!doctype html>")
    for part in ("Title <b>", "less < more & a<b", "antiphon <x>", "a caption", "its caption", "a & b", "x < y"):
        assert part in text
    assert "<code>a&lt;b</code>" in markup
    assert "prefers-color-scheme: dark" in markup
    assert "width=device-width" in markup


def test_the_same_content_is_the_same_page(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    require_writable(path)
    assert not path.exists()
    whole().write(path)
    assert path.read_text(encoding="utf-8") == whole().render()
    require_writable(path)
    assert path.read_text(encoding="utf-8") == whole().render()


def test_a_page_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    for ask in (require_writable, whole().write):
        with pytest.raises(UsageError, match=r"cannot be written .No such file or directory.: name another file for the page"):
            ask(tmp_path / "nowhere" / "page.html")


def test_a_lone_back_quote_is_a_back_quote() -> None:
    assert paragraph("a ` b").markup == "<p>a ` b</p>"


def test_numbers_stand_to_the_right() -> None:
    markup = table(["row", "note", "value"], [["a", "b", "1"]], texts=2).markup
    assert re.findall(r'<t[hd]( class="number")?>', markup) == ["", "", ' class="number"'] * 2


@given(st.text(), st.text())
def test_any_text_is_shown_as_it_is(title: str, text: str) -> None:
    page = Page("t")
    page.section("", table([title], [[text]]), figure(lines([Series(text, ((0.0, 1.0),))], Axis(title), Axis("y")), "f"))
    Checker().feed(page.render())
    assert "<script" not in page.render()


def test_points_are_drawn_in_proportion() -> None:
    chart = lines([Series("s", ((0.0, 0.0), (1.0, 5.0), (2.0, 10.0)))], Axis("x"), Axis("y"))
    places = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in shapes(chart, "circle")][1:]
    (ax, ay), (bx, by), (cx, cy) = places
    assert bx - ax == pytest.approx(cx - bx, abs=0.2)
    assert ay - by == pytest.approx(by - cy, abs=0.2)
    assert ay > by > cy
    assert told(chart)[1:] == ["s, 0: 0", "s, 1: 5", "s, 2: 10"]


def test_a_logarithmic_axis_has_equal_steps() -> None:
    chart = lines([Series("s", ((1.0, 1.0), (10.0, 1.0), (100.0, 1.0)))], Axis("x", log=True), Axis("y"))
    a, b, c = (float(one.get("cx", "")) for one in shapes(chart, "circle")[1:])
    assert b - a == pytest.approx(c - b, abs=0.2)
    texts = [text.text for text in shapes(chart, "text")]
    assert {"1", "10", "100"} <= set(texts)


def test_an_interval_reaches_from_its_low_to_its_high() -> None:
    (low, high) = (one for one in shapes(CHART, "path") if "range" in one.get("class", ""))
    assert re.fullmatch(r"M[0-9.]+ [0-9.]+V[0-9.]+", low.get("d", ""))
    heights = [tuple(map(float, re.findall(r"[0-9.]+", one.get("d", ""))[1:])) for one in (low, high)]
    assert heights[1][0] - heights[1][1] == pytest.approx(2.5 * (heights[0][0] - heights[0][1]), rel=0.02)


def test_named_places_and_a_single_point() -> None:
    chart = lines([Series("s", ((1.0, 3.0),), hollow=True)], Axis("link", names=("4g", "lan")), Axis("y"))
    assert told(chart)[-1] == "s, lan: 3"
    assert "hollow" in chart.markup


def test_bars_are_stacked_and_broken_where_they_would_dwarf_the_others() -> None:
    rows = [Bar("a", (10.0, 20.0), "30"), Bar("b", (0.0, 15.0), "15"), Bar("c", (4000.0, 20.0), "4020")]
    chart = bars(rows, ("up", "down"), "bits")
    boxes = [(one.get("class", ""), float(one.get("x", "")), float(one.get("width", ""))) for one in shapes(chart, "rect")]
    (_, x, wide), (_, then, more), (_, _, alone), (_, _, broken) = boxes
    assert then == pytest.approx(x + wide, abs=0.2)
    assert more == pytest.approx(2 * wide, abs=0.2)
    assert alone == pytest.approx(1.5 * wide, abs=0.2)
    assert broken == pytest.approx(3 * wide, abs=0.3)  # as long as the longest whole bar
    assert "4020" in [text.text for text in shapes(chart, "text")]
    assert "a, up: 10" in told(chart)


def test_bars_of_nothing_at_all() -> None:
    checked(bars([Bar("a", (0.0,), "0")], ("up",), "bits").markup)
    checked(bars([], ("up",), "bits").markup)


def test_an_exchange_shows_what_happens_until_its_end() -> None:
    chart = exchange(
        [Busy(0.0, 0.1, "draft")],
        [Busy(0.2, 0.4, "verify"), Busy(5.0, 5.1, "late")],
        [Flight(0.1, 0.2, True, "up"), Flight(0.45, 0.55, False, "down")],
        [Tick(0.5, 2, "token"), Tick(0.55, 2, "late")],
        0.5,
    )
    assert sorted(told(chart)) == ["down", "draft", "token", "up", "verify"]
    draft, verify = (float(one.get("width", "")) for one in shapes(chart, "rect") if one.get("height") == "18")
    assert verify == pytest.approx(2 * draft, abs=0.2)
    cut = next(one for one in shapes(chart, "path") if one.findtext("{http://www.w3.org/2000/svg}title") == "down")
    _, _, end, height = (float(number) for number in re.findall(r"[0-9.]+", cut.get("d", "")))
    assert (end, height) == pytest.approx((900 - 26, 109 + 0.5 * (52 - 109)), abs=0.2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.034, "0.034"),
        (7.25, "7.25"),
        (29.96, "30"),
        (215.7, "216"),
        (2307, "2307"),
        (26_543, "26.5k"),
        (1.5e6, "1.5M"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short(value) == text
