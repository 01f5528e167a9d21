"""Words: the same of a text and of a question, whatever the letters and however they are written."""

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.retrieval.folding import folded
from antiphon.retrieval.sqlite.index import SqliteIndex
from antiphon.retrieval.words import STOP_WORDS, Words, runs
from antiphon_lab.workloads.languages import understood
from retrieval.contract import keys
from retrieval.samples import passage, source

TAKER = Words()


def letters() -> list[str]:
    return [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith("L")]


def words(text: str) -> list[str]:
    return [TAKER.names[number] for number in TAKER.of([text]).numbers]


@pytest.mark.medium
def test_for_every_letter_a_text_is_found_by_its_own_words() -> None:
    """Alone and within a word, in composed and decomposed form: what is asked for is what is indexed."""
    missed = []
    for letter in letters():
        for text in (letter, f"ab{letter}ba", f"{letter}yz"):
            found = runs(text)
            forms = [runs(unicodedata.normalize(form, text)) for form in ("NFC", "NFD")]
            if not found or any(form != found for form in forms):
                missed.append((hex(ord(letter)), text, found, forms))
    assert missed == []


@pytest.mark.slow
def test_for_letters_of_all_scripts_the_index_finds_it(tmp_path: Path) -> None:
    every = letters()
    some = every[::97] + [letter for letter in every if letter in "İıßſǅΐᾳक़ড়שׁאَ한ｶﾞﬁ々ー"]
    texts = {str(number): f"qz{letter}zq {letter}" for number, letter in enumerate(some)}
    with SqliteIndex(tmp_path / "library", create=True) as index:
        index.put(source("a"), [passage(text, key=key) for key, text in texts.items()])
        for key, text in texts.items():
            for form in ("NFC", "NFD"):
                assert key in keys(index, unicodedata.normalize(form, text), 300)


@given(st.text())
def test_folding_again_changes_nothing_and_decomposed_text_is_folded_alike(text: str) -> None:
    assert folded(folded(text)) == folded(text)
    assert runs(unicodedata.normalize("NFD", text)) == runs(text)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("İstanbul limanı", "istanbul"), ("İSTANBUL", "İstanbul"), ("ISPARTA gülü", "ısparta"), ("ﬁrst ofﬁce", "first office"),
        ("exam\u00adple", "example"), ("zero\u200bwidth", "zerowidth"), ("ＦＵＬＬ１２", "full12"), ("H₂O x²", "h2o x2"),
        ("ﾊﾝｶｸｶﾞ", "ハンカクガ"), ("\u1112\u1161\u11ab", "한"), ("مُحَمَّد", "محمد"), ("شَرِكَةٌ", "شركه"), ("שָׁלוֹם", "שלום"),
        ("क़लम", "कलम"), ("Ἀθῆναι", "αθηναι"), ("STRASSE", "straße"), ("Łódź Ørsted", "lodz orsted"), ("٢٠٢٤", "2024"),
        ("naïve café", "naive cafe"), ("kashida ـكـتـاب", "كتاب"), ("x\u0336y", "xy"), ("①", "1"), ("ǆ", "DŽ"),
    ],
)  # fmt: skip
def test_forms_of_one_word_are_one(text: str, question: str) -> None:
    assert set(runs(question)) <= set(runs(text))


def test_questions() -> None:
    ask = TAKER.asked
    assert ask("What is the U.S. capital's NAME, name?") == ["u", "s", "capit", "^capi", "name"]
    assert ask("isn't it vitamin D's? Don’t we'll") == ["vitamin", "^vita", "d", "don"]
    assert ask("who is it") == ["who", "is", "it"]
    assert ask("雨 rain_man") == ["雨", "rain", "man"]
    assert ask("?!") == ask("") == []
    assert len(ask(" ".join(f"w{number}" for number in range(999)))) == 256


def test_texts() -> None:
    assert words("Running lions don't sleep") == ["run", "lion", "don", "sleep"]
    assert words("東京に") == ["東", "京", "に", "東京", "京に"]
    assert words("학교에서") == ["학교", "교에", "에서"]
    assert words("กินข้าว") == ["กิน", "ินข", "นข้", "ข้า", "้าว"]
    assert words("הבית") == ["הבית", "~הבי", "~בית"]
    assert words("iPhone15を買う")[:1] == ["iphone15"]


@given(st.lists(st.text(max_size=30), max_size=6))
def test_texts_may_be_taken_apart_together(texts: list[str]) -> None:
    found, one_by_one = TAKER.of(texts), [words(text) for text in texts]
    names = [TAKER.names[number] for number in TAKER.of(texts).numbers]
    assert names == [word for found_alone in one_by_one for word in found_alone]
    assert found.lengths.tolist() == [len(each) for each in one_by_one]


@given(st.text(max_size=60))
def test_every_word_of_a_question_is_one_of_the_text(text: str) -> None:
    own = set(words(text))
    for word in TAKER.asked(text):
        assert word in own or (word.startswith("^") and any(run.startswith(word[1:]) for run in runs(text)))
    # The stem of another word may be written as a stop word is: "ine" and "in".
    others = set(words(" ".join(run for run in runs(text) if run not in STOP_WORDS)))
    assert STOP_WORDS & set(TAKER.asked(f"{text} zebra")) <= others or not any(run.isascii() for run in runs(text))


def test_a_stem_that_is_written_as_a_stop_word_is_asked_for() -> None:
    assert TAKER.asked("INE zebra")[0] == "in"


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("antiphon.retrieval.words._MOST_KEPT", 50)
    taker = Words()
    for number in range(40):
        found = taker.of([f"lion w{number} x{number}"])
        assert [taker.names[at] for at in found.numbers] == ["lion", f"w{number}", f"x{number}"]
        assert len(taker.names) <= 53
    taker.close()


def test_inflected_forms_in_eight_languages_are_found(tmp_path: Path) -> None:
    found = list(understood(tmp_path / "library"))
    assert len(found) == 8
    for row in found:
        assert row.questions >= 30
        assert row.recall[1] >= 0.9, row
