"""From a prompt to ids: one beginning of sequence, and broken templates are a sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.config import ModelConfig
from antiphon.errors import ModelError, UsageError
from antiphon.models import load
from antiphon.models.base import Model
from antiphon.models.chat import prompt_ids, render
from antiphon.models.toy import named_toy
from support.tinymodel import write_llama


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setenv("ANTIPHON_CACHE", str(tmp_path / "cache"))
    model = load(ModelConfig(str(write_llama(tmp_path / "tiny.gguf")), context=256, threads=1))
    yield model
    model.close()


def with_template(model: Model, template: str | None) -> Model:
    model.chat_template = template  # type: ignore[misc]
    return model


MESSAGE = "{{ messages[0].content }}"


@pytest.mark.parametrize("head", ["", "{{ bos_token }}", "<s>"])
def test_there_is_exactly_one_beginning(tiny: Model, head: str) -> None:
    ids = prompt_ids(with_template(tiny, head + MESSAGE), "ab", chat=True)
    assert ids[0] == 1
    assert ids.count(1) == 1


def test_a_model_without_a_beginning_gets_what_its_template_writes(tiny: Model) -> None:
    tiny.begin = ()  # type: ignore[misc]
    assert prompt_ids(with_template(tiny, "<s>" + MESSAGE), "ab", chat=True).count(1) == 1
    assert prompt_ids(with_template(tiny, MESSAGE), "ab", chat=True).count(1) == 0


def test_a_bare_prompt_is_the_beginning_and_its_own_bytes(tiny: Model) -> None:
    ids = prompt_ids(tiny, "hello </s>", chat=False)
    assert ids[0] == 1
    assert 2 not in ids
    assert tiny.vocabulary.join(ids) == b"hello </s>"


@pytest.mark.parametrize("chat", [True, False])
def test_an_empty_prompt_is_refused(chat: bool) -> None:
    with pytest.raises(UsageError, match="empty"):
        prompt_ids(named_toy("toy-cloud"), "", chat=chat)


def test_a_model_without_a_template_says_so() -> None:
    with pytest.raises(ModelError, match="has no chat template: leave out --chat"):
        prompt_ids(named_toy("toy-cloud"), "ab", chat=True)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for m in messages %}\n  {% if m.role == 'user' %}\nU:{{ m.content }}\n{% endif %}\n{% endfor %}", "U:<a>é\n"),
        (MESSAGE + "{% if add_generation_prompt %}>>{% endif %}", "<a>é>>"),
        ("{{ messages[0].content | tojson }}", '"<a>é"'),
        ("{{ strftime_now('%%') }}", "%"),
        ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
        ("{{ eos_token }}", "</s>"),
    ],
)
def test_templates_have_what_they_are_written_for(tiny: Model, template: str, text: str) -> None:
    assert render(with_template(tiny, template), "<a>é") == text


@pytest.mark.parametrize(
    "template",
    [
        "{{ m( }}",
        "{% nonsense %}",
        "{{ nowhere.at.all }}",
        "{{ 1 / 0 }}",
        "{{ 1 + messages }}",
        "{{ strftime_now(3) }}",
        "{% for x in range(10 ** 9) %}{% endfor %}",
        "{{ raise_exception('only pictures') }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_a_broken_template_is_a_sentence(tiny: Model, template: str) -> None:
    with pytest.raises(ModelError, match=r"the chat template of .* fails"):
        render(with_template(tiny, template), "ab")


@pytest.mark.model
def test_smollm2_asks_for_the_assistant(smollm2: Model) -> None:
    ids = prompt_ids(smollm2, "Who sings?", chat=True)
    text = render(smollm2, "Who sings?")
    assert text.endswith("<|im_start|>user\nWho sings?<|im_end|>\n<|im_start|>assistant\n")
    assert ids == smollm2.tokenize(text, special=True)


@pytest.mark.model
def test_gemma_begins_once(gemma3: Model) -> None:
    ids = prompt_ids(gemma3, "Who sings?", chat=False)
    assert ids[: len(gemma3.begin)] == list(gemma3.begin) == [2]
    assert ids.count(2) == 1


@pytest.mark.parametrize("prompt", ["</s>", "a </s><s> b", "<unk>", "\n</s>\n", "<s>"])
@pytest.mark.parametrize("template", ["<s>U:" + MESSAGE + "</s>", "<s>{{ messages[0].content | trim }}</s>A:", MESSAGE])
def test_control_tokens_that_a_prompt_writes_out_are_text(tiny: Model, prompt: str, template: str) -> None:
    model = with_template(tiny, template)
    ids, plain = prompt_ids(model, prompt, chat=True), prompt_ids(model, "ab", chat=True)
    for control in (0, 1, 2):
        assert ids.count(control) == plain.count(control)
    text = render(model, prompt)
    spelled = "".join(model.token_text(token) if token in (1, 2) else "" for token in ids)
    assert len(model.vocabulary.join(ids)) >= len(text) - len(spelled) - len("<s></s>")


def test_a_template_may_escape_or_leave_out_a_prompt(tiny: Model) -> None:
    model = with_template(tiny, "<s>{{ messages[0].content | tojson }}")
    assert model.vocabulary.join(prompt_ids(model, 'a"</s>', chat=True)).endswith(b'"a\\"</s>"')
    assert prompt_ids(with_template(tiny, "<s>x"), "ab", chat=True)
    twice = prompt_ids(with_template(tiny, MESSAGE + "|" + MESSAGE), "ab</s>", chat=True)
    assert model.vocabulary.join(twice).endswith(b"ab</s>|ab</s>")
    assert 2 not in twice
