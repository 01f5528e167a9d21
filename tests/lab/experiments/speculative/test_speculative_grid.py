"""What `bench speculative` runs: rows in settings, the keys of answers, and the axis along which links differ."""

from dataclasses import replace
from pathlib import Path

from antiphon.config import ModelConfig
from antiphon.core.stream import AUTO, LOCKSTEP
from antiphon.methods import find
from antiphon_lab.experiments.speculative.grid import Ask, Row, Setting, asks_of, rows_of, settings_of
from antiphon_lab.experiments.speculative.page import swept
from antiphon_lab.hardware.profiles import parse_compute
from antiphon_lab.links.notation import parse_link
from lab.speculative_plan import PROMPTS, plan


def test_the_rows_of_a_plan(tmp_path: Path) -> None:
    asked = plan(tmp_path, methods=("cloud", "dssd", "u-hlm", "tslt-tree", "device"), expansions=("2,2", "4"))
    names = [row.name for row in rows_of(asked)]
    assert names == ["cloud", "cloud-trips", "dssd 2", "dssd auto", "u-hlm", "tslt-tree 2,2", "tslt-tree 4", "device"]
    assert len(asks_of(asked, list(PROMPTS[:3]))) == len(names) * 2 * 3 * 4


def test_rows_of_the_stream_and_of_lockstep(tmp_path: Path) -> None:
    """Lengths and `auto` beside the best of them are about lockstep; in a stream there is one row a patience."""
    asked = plan(tmp_path, methods=("dssd", "coupled"), patiences=("auto", "lockstep", "0", "50"))
    rows = {row.name: row for row in rows_of(asked)}
    assert list(rows)[2:] == [
        "dssd 2",
        "dssd auto",
        "coupled",
        "coupled lockstep 2",
        "coupled lockstep auto",
        "coupled 0 ms",
        "coupled 50 ms",
    ]
    assert {rows[name].family for name in ("coupled", "coupled 0 ms")} == {"coupled"}
    assert {rows[name].family for name in ("coupled lockstep 2", "coupled lockstep auto")} == {"coupled lockstep"}
    made = {name: find("coupled").options_from(dict(row.options)) for name, row in rows.items() if row.method == "coupled"}
    waits = {name: options.patience for name, options in made.items()}
    assert waits == {
        "cloud-trips": LOCKSTEP,
        "coupled": AUTO,
        "coupled lockstep 2": LOCKSTEP,
        "coupled lockstep auto": LOCKSTEP,
        "coupled 0 ms": 0,
        "coupled 50 ms": 50,
    }


def test_a_tree_without_an_expansion_is_the_methods_own(tmp_path: Path) -> None:
    rows = rows_of(plan(tmp_path, methods=("tslt-tree",), expansions=()))
    assert rows[2] == Row("tslt-tree")


def test_a_key_tells_all_that_an_answer_depends_on(tmp_path: Path) -> None:
    base = plan(tmp_path)
    ask = Ask(Row("dssd", "2", (("draft_length", 2),)), settings_of(base)[0], 0, "the ", 1)
    setting = ask.setting
    others = [
        replace(ask, text="then "),
        replace(ask, seed=2),
        replace(ask, row=Row("dssd", "3", (("draft_length", 3),))),
        replace(ask, row=Row("xcosd", "2", (("draft_length", 2),))),
        replace(ask, setting=replace(setting, temperature=0.5)),
        replace(ask, setting=replace(setting, compute=parse_compute("a100-7b,further=1ms"))),
        replace(ask, setting=replace(setting, link=parse_link("x-cosd@100,rtt=1ms"))),
    ]
    keys = [one.key(base) for one in (ask, *others)]
    keys += [
        ask.key(replace(base, tokens=17)),
        ask.key(replace(base, real=True)),
        ask.key(replace(base, device_model=ModelConfig("x"))),
    ]
    assert len(set(keys)) == len(keys)
    assert ask.key(replace(base, prompts=4, seeds=9, methods=())) == ask.key(base)


def test_jitter_differs_from_answer_to_answer_but_not_from_row_to_row(tmp_path: Path) -> None:
    base = plan(tmp_path)
    setting = Setting(parse_link("4g"), base.computes[0], 1.0)
    asks = [Ask(row, setting, prompt, "the ", 1) for row in rows_of(base)[:2] for prompt in (0, 1)]
    times = [ask.trial(8).link.channels(0)[0].arrival(100, 0.0) for ask in asks]
    assert times[0] == times[2] != times[1] == times[3]


def test_the_axis_of_several_links() -> None:
    rates = [parse_link(f"tslt@{rate}") for rate in (1, 5, 50)]
    axis, places = swept(rates)
    assert (axis.label, axis.log, places) == ("uplink, Mbit/s", True, [1, 5, 50])
    axis, places = swept([parse_link(f"concord@{trip}") for trip in (20, 30, 50)])
    assert (axis.label, axis.log, places) == ("round trip, ms", False, [20, 30, 50])
    axis, places = swept([parse_link("4g"), parse_link("lan"), parse_link("wifi")])
    assert (axis.names, places) == (("4g", "lan", "wifi"), [0, 1, 2])
