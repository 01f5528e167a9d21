"""How a race is shown: on a terminal two answers that grow side by side as they came, elsewhere a table of tokens by time.

Behind either who was faster, and by what.
"""

import time
from collections.abc import Callable
from io import StringIO
from itertools import count, takewhile
from pathlib import Path

from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from antiphon import shown
from antiphon.demo.table import STYLES
from antiphon_lab.experiments.race import REFERENCE, Race, Runner
from antiphon_lab.report.screen import table_of

FRAME_SECONDS = 1 / 25
"""Between two pictures; so long may a token be shown late."""

STEPS = 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0
"""Seconds between the rows of a table, the first with which it has at most so many:"""
ROWS = 8

PICTURE_WIDTH = 110
"""Columns of the terminal on a picture."""

Clock = Callable[[], float]
Sleep = Callable[[float], None]


def show(race: Race, console: Console, clock: Clock = time.monotonic, sleep: Sleep = time.sleep) -> None:
    """Replay it on a terminal, or print its table; then who won."""
    console.print(_label(race), style="dim")
    if console.is_terminal:
        _replay(race, console, clock, sleep)
    else:
        console.print(table(race))
    for sentence in verdict(race):
        console.print(sentence, highlight=False, soft_wrap=True)


def picture(race: Race, path: Path) -> None:
    """Write an SVG file: the terminal when the first of them was done, and who won."""
    console = Console(file=StringIO(), record=True, width=PICTURE_WIDTH, force_terminal=True)
    console.print(_label(race), style="dim")
    console.print(frame(race, min(runner.seconds for runner in race.runners.values())))
    for sentence in verdict(race):
        console.print(sentence, highlight=False)
    console.save_svg(str(path), title="antiphon-lab race")


def frame(race: Race, seconds: float) -> RenderableType:
    """What stands on the terminal so many seconds after the question."""
    lanes = Table.grid(expand=True)
    for _ in race.runners:
        lanes.add_column(ratio=1)
    lanes.add_row(*(_lane(race, name, runner, seconds) for name, runner in race.runners.items()))
    return lanes


def table(race: Race) -> Table:
    """Tokens of each by the second."""
    last = max(runner.seconds for runner in race.runners.values())
    step = next((one for one in STEPS if last / one <= ROWS), last / ROWS)
    times = [*takewhile(lambda time: time < last, (step * place for place in count(1))), last]
    rows = {f"{time:.2f} s": [str(runner.tokens_by(time)) for runner in race.runners.values()] for time in times}
    return table_of("Tokens that had come", list(race.runners), rows, "")


def verdict(race: Race) -> list[str]:
    """Who was how much faster, and what it took."""
    ours, theirs, name = race.method.result, race.reference.result, race.plan.method
    what = f"the same {ours.tokens} tokens" if race.same else f"{ours.tokens} other tokens"
    times = f"{race.method.seconds:.2f} s against {race.reference.seconds:.2f} s"
    figures = ours.as_json(), theirs.as_json()
    passes, up, down = (
        [float(str(one[key])) for one in figures]
        for key in ("cloud_passes_per_token", "uplink_bits_per_token", "downlink_bits_per_token")
    )
    return [
        f"{name} wrote {what} {race.faster:.2f} times as fast as the plain stream: {times}.",
        f"Cloud passes a token {passes[0]:.2f} against {passes[1]:.2f}; bits a token up {up[0]:.0f} against {up[1]:.0f}, "
        f"down {down[0]:.0f} against {down[1]:.0f}.",
    ]


def _label(race: Race) -> str:
    plan = race.plan
    models = f"{plan.device_model.name} drafts for {plan.cloud_model.name}"
    where = f"virtual time, at the pace of {plan.compute.name} over {plan.link.name}"
    return f"A race in {where}; {models}, temperature {plan.sampling.temperature:g}."


def _replay(race: Race, console: Console, clock: Clock, sleep: Sleep) -> None:
    last, began = max(runner.seconds for runner in race.runners.values()), clock()
    with Live(frame(race, 0.0), console=console, auto_refresh=False) as live:
        while (now := clock() - began) < last:
            live.update(frame(race, now), refresh=True)
            sleep(min(FRAME_SECONDS, last - now))
        live.update(frame(race, last), refresh=True)


def _lane(race: Race, name: str, runner: Runner, seconds: float) -> Panel:
    text = Text(race.plan.prompt, style="dim")
    for arrival in runner.arrivals:
        if arrival.time <= seconds:
            text.append(shown.block(arrival.text).replace("\n", " "), style=STYLES[arrival.kind])
    tokens, done = runner.tokens_by(seconds), runner.seconds <= seconds
    told = f"{tokens} tokens, {min(seconds, runner.seconds):.2f} s"
    title = f"{name}: the plain stream" if name == REFERENCE else name
    return Panel(text, title=title, subtitle=told, border_style="green" if done else "dim")
