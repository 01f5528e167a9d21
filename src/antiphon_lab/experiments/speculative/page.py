"""The page of `antiphon-lab bench speculative`: what a person wants to see of a run, in pictures, with the tables below."""

from collections.abc import Callable, Iterator, Sequence

from antiphon.methods.effects import Kind
from antiphon_lab.ends.timeline import Commit, Timeline
from antiphon_lab.experiments.speculative.auto import NEARNESS
from antiphon_lab.experiments.speculative.figures import Figures
from antiphon_lab.experiments.speculative.grid import REFERENCE, TRIPS, Setting
from antiphon_lab.experiments.speculative.run import COSTS, SPEED, WIRE, Report, costs, fastest, speed, wire
from antiphon_lab.links.link import Link
from antiphon_lab.links.traces import mean_rate
from antiphon_lab.report import charts
from antiphon_lab.report.charts import Axis, Bar, Series
from antiphon_lab.report.exchange import Busy, Flight, Tick, exchange
from antiphon_lab.report.origin import Origin
from antiphon_lab.report.page import Html, Page, bullets, code, figure, folded, note, paragraph, side_by_side, table
from antiphon_lab.stats.bootstrap import FEWEST

SHOWN_SECONDS = 0.6
"""Of a timeline, unless a tenth of the answer is longer."""

PARTS = ("up, payload", "up, framing", "down, payload", "down, framing", "opening")
KINDS = {Kind.ACCEPTED: 2, Kind.CORRECTION: 1, Kind.BONUS: 0, Kind.STREAMED: 7, Kind.LOCAL: 4}
"""The colours of tokens by where they came from."""


def page(report: Report, origin: Origin) -> Page:
    """The page of a finished run."""
    plan = report.plan
    time, models = "real" if plan.real else "virtual", (plan.device_model.name, plan.cloud_model.name)
    sizes = f"{_many(plan.asked, 'prompt')}, {_many(plan.seeds, 'seed')}, up to {_many(plan.tokens, 'token')} an answer"
    lead = f"{models[0]} drafts on the device for {models[1]} in the cloud, in {time} time: {sizes}."
    made = Page("Speculative methods over a link", lead)
    made.section("Speed", *_speed(report))
    if any(row.variant == "auto" or row.variant.isdigit() for _, row in report.figures):
        made.section("How far to draft", *_lengths(report))
    made.section("What crosses the link, and what the cloud computes", *_costs(report))
    if report.timelines:
        made.section("One answer, moment by moment", *_timelines(report))
    made.section("All figures", *_tables(report))
    made.section("How it was measured", *_method(report, origin))
    return made


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def colours(report: Report) -> dict[str, int]:
    """A colour for each method; grey for the cloud alone."""
    names = dict.fromkeys(row.family for _, row in report.figures)
    others = [name for name in names if name not in (REFERENCE, TRIPS)]
    return {REFERENCE: 7, TRIPS: 6, **{name: place % 6 for place, name in enumerate(others)}}


def _speed(report: Report) -> Iterator[Html]:
    for group in _groups(report):
        links = [setting.link for setting in group]
        axis, places = swept(links)
        what = f"{group[0].compute.name}, temperature {group[0].temperature:g}"
        if len(group) > 1:
            caption = "Each method with its fastest options on that link; the bars are 95 % intervals."
            yield figure(_curves(report, group, axis, places), f"Tokens a second, {what}", caption)
        else:
            yield figure(
                _speed_bars(report, group[0]), f"Tokens a second, {group[0].name}", "Each method, its fastest options."
            )
    yield note(
        f"`{REFERENCE}` is the large model alone, its tokens streamed: one trip for the whole answer. `{TRIPS}` asks for each "
        "token of it. Seconds count from the question, so they hold the reading of the prompt."
    )


def _groups(report: Report) -> list[list[Setting]]:
    """Settings that differ in the link alone."""
    groups: dict[tuple[str, float], list[Setting]] = {}
    for setting in report.settings:
        groups.setdefault((setting.compute.name, setting.temperature), []).append(setting)
    return list(groups.values())


def swept(links: Sequence[Link]) -> tuple[Axis, list[float]]:
    """The axis on which links differ, and their places: a rate or the round trip if all else is the same, else their names."""
    sides: tuple[tuple[str, Callable[[Link], float]], ...] = (
        ("uplink, Mbit/s", lambda link: mean_rate(link.up.rate) / 1e6),
        ("downlink, Mbit/s", lambda link: mean_rate(link.down.rate) / 1e6),
        ("round trip, ms", lambda link: 1000 * link.round_trip()),
    )
    moving = [(name, [of(link) for link in links]) for name, of in sides if len({round(of(link), 9) for link in links}) > 1]
    if len(links) > 2 and len(moving) == 1 and min(moving[0][1]) > 0:
        name, values = moving[0]
        return Axis(name, log=max(values) / min(values) > 5), values
    return Axis("link", names=tuple(link.name for link in links)), [float(place) for place in range(len(links))]


def _curves(report: Report, group: Sequence[Setting], axis: Axis, places: Sequence[float]) -> Html:
    """Curves along a rate or a round trip; beside each other where links have only names."""
    shade, series = colours(report), []
    best = [fastest(report.rows(setting)) for setting in group]
    for turn, name in enumerate(best[0]):
        aside = 0.5 * (turn + 0.5) / len(best[0]) - 0.25 if axis.names else 0.0
        found = sorted(
            (place + aside, one[name][1].tokens_per_s, one[name][1]) for place, one in zip(places, best, strict=True)
        )
        points = tuple((place, height) for place, height, _ in found)
        ranges = tuple(figures.tokens_per_s_interval or (height, height) for _, height, figures in found)
        series.append(Series(name, points, shade[name], ranges, line=not axis.names, dashed=name in (REFERENCE, TRIPS)))
    return charts.lines(series, axis, Axis("tokens/s"))


def _speed_bars(report: Report, setting: Setting) -> Html:
    rows = [
        Bar(row.name, (figures.tokens_per_s,), f"{figures.tokens_per_s:.1f}", figures.tokens_per_s_interval)
        for row, figures in fastest(report.rows(setting)).values()
    ]
    return charts.bars(rows, ("tokens/s",), "tokens/s")


def _lengths(report: Report) -> Iterator[Html]:
    names = {row.variant for _, row in report.figures if row.variant == "auto" or row.variant.isdigit()}
    axis = Axis("drafts a round", names=tuple(sorted(names, key=lambda name: (name == "auto", name.zfill(2)))))
    yield side_by_side(*(figure(_by_length(report, setting, axis), setting.name) for setting in report.settings))
    if "auto" in names:
        yield note("Hollow marks are the automatic length, which the device chooses anew for each round.")
    if report.nearness:
        near = [[one.setting.name, one.method, *one.cells()] for one in report.nearness]
        yield table(["", "", *NEARNESS], near, "auto beside the best fixed length, answers resampled in pairs", texts=2)
    yield figure(
        _acceptance(report),
        "Drafts that stand, by their place in the round",
        "Of those that were tested; longest fixed length.",
    )


def _by_length(report: Report, setting: Setting, axis: Axis) -> Html:
    shade, rows = colours(report), report.rows(setting)
    series = [
        _level(name, figures, shade[name], len(axis.names))
        for name, (_, figures) in fastest(rows).items()
        if name in (REFERENCE, TRIPS)
    ]
    for name in shade:
        own = {row.variant: figures for row, figures in rows.items() if row.family == name and row.variant in axis.names}
        fixed = [(place, own[variant]) for place, variant in enumerate(axis.names) if variant in own and variant != "auto"]
        chosen = [(place, own[variant]) for place, variant in enumerate(axis.names) if variant in own and variant == "auto"]
        series += [_points(name, part, shade[name], hollow=part is chosen) for part in (fixed, chosen) if part]
    return charts.lines(series, axis, Axis("tokens/s"))


def _level(name: str, figures: Figures, colour: int, places: int) -> Series:
    height = figures.tokens_per_s
    return Series(name, ((0.0, height), (places - 1.0, height)), colour, dashed=True)


def _points(name: str, found: Sequence[tuple[int, Figures]], colour: int, *, hollow: bool) -> Series:
    points = tuple((float(place), figures.tokens_per_s) for place, figures in found)
    ranges = tuple(figures.tokens_per_s_interval or (figures.tokens_per_s,) * 2 for _, figures in found)
    return Series(name, points, colour, ranges, hollow=hollow)


def _acceptance(report: Report) -> Html:
    shade, series, deepest = colours(report), [], 1
    for name in shade:
        rows = [(row, figures) for row, figures in report.rows(report.settings[0]).items() if row.family == name]
        found = max(rows, key=lambda one: (one[0].variant != "auto", len(one[1].acceptance)))
        if rates := found[1].acceptance:
            deepest = max(deepest, len(rates))
            series.append(Series(found[0].name, tuple((float(depth), rate) for depth, rate in enumerate(rates)), shade[name]))
    names = tuple(str(depth + 1) for depth in range(deepest))
    return charts.lines(
        series, Axis("draft of the round", names=names), Axis("stands", low=0.0, high=1.0, form=lambda value: f"{value:.0%}")
    )


def _costs(report: Report) -> Iterator[Html]:
    rows = report.rows(report.settings[0])
    bits = [
        Bar(row.name, tuple(figures.bits.values()), charts.short(sum(figures.bits.values()))) for row, figures in rows.items()
    ]
    work = [
        Bar(row.name, (value,), f"{value:.1f}")
        for row, figures in rows.items()
        if (value := figures.per_token(lambda one: one.cloud_ms)) > 0
    ]
    where = report.settings[0].name
    yield side_by_side(
        figure(
            charts.levels(bits, PARTS, "bits a token"),
            f"Bits a token, {where}",
            "Framing: messages and WebSocket. Opening: of the answer. Written: all together.",
        ),
        figure(
            charts.bars(work, ("milliseconds",), "ms a token"),
            f"The cloud's milliseconds a token, {where}",
            "The prompt included.",
        ),
    )


def _timelines(report: Report) -> Iterator[Html]:
    yield paragraph(
        "Boxes are forward passes, slanted lines are frames from when they are sent until they have arrived, and marks at the "
        "top are tokens: accepted drafts in green, corrections in orange, bonuses in blue, streamed ones in grey."
    )
    lines = list(report.timelines.items())
    until = max(SHOWN_SECONDS, min(line.seconds for _, line in lines) / 10)
    for row, line in lines:
        yield figure(timeline(line, min(until, line.seconds)), f"{row.name}, {report.settings[0].name}", wide=True)


def timeline(line: Timeline, until: float) -> Html:
    """A picture of a timeline's beginning."""
    device, cloud = (
        [Busy(one.start, one.end, f"{one.tokens} tokens, {1000 * (one.end - one.start):.1f} ms") for one in passes]
        for passes in (line.device, line.cloud)
    )
    flights = [
        Flight(one.sent, one.arrived, one.up, f"{8 * one.size} bits, {1000 * (one.arrived - one.sent):.1f} ms")
        for one in line.frames
    ]
    return exchange(device, cloud, flights, [tick for commit in line.commits for tick in _ticks(commit, until)], until)


def _ticks(commit: Commit, until: float) -> Iterator[Tick]:
    """Tokens that came together stand beside each other."""
    kinds = [kind for kind, count in commit.kinds for _ in range(count)]
    for place, kind in enumerate(kinds):
        yield Tick(commit.time + place * until / 140, KINDS[kind], f"{kind.value}, {1000 * commit.time:.0f} ms")


def _tables(report: Report) -> Iterator[Html]:
    headings = ["", *(" ".join(heading.split()) for heading in (*SPEED, *WIRE, *COSTS))]
    for place, setting in enumerate(report.settings):
        rows = [[row.name, *speed(figures), *wire(figures), *costs(figures)] for row, figures in report.rows(setting).items()]
        shown = table(headings, rows, "" if place else setting.name)
        yield shown if place == 0 else folded(setting.name, shown)


def _method(report: Report, origin: Origin) -> Iterator[Html]:
    yield code(origin.command)
    yield note(origin.sentence())
    sources = [f"Link `{link.name}`: {link.source}." for link in dict.fromkeys(setting.link for setting in report.settings)]
    for compute in dict.fromkeys(setting.compute for setting in report.settings):
        sources.append(
            f"Hardware `{compute.name}`: {compute.source}. Draft: {compute.draft.source}. Verify: {compute.verify.source}."
        )
    yield bullets([source.replace("..", ".") for source in sources])
    if not report.plan.real:
        yield note(
            "In virtual time the real models and the real code of both ends run; the clock is charged for forward passes and "
            "for frames, and for nothing else."
        )
    answers = report.plan.asked * report.plan.seeds
    yield note(
        f"Intervals are the middle 95 % of 1,000 resamplings of the answers, {answers} a row; \u00b1 is half of their width. "
        f"Of fewer than {FEWEST} answers there are none."
    )
