"""Texts that both models read in one process: prompts from a file, and the probs of the next token at successive positions."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from antiphon.config import SamplingParams
from antiphon.core.chance import PhiloxChance, Place, Role
from antiphon.core.distributions import Logits, Probs, process
from antiphon.errors import UsageError
from antiphon.methods.drafter import on_common
from antiphon.models.base import Model, spell
from antiphon.models.chat import prompt_ids
from antiphon.vocabulary import CommonVocabulary

LONG = 400
"""Characters above which a line is an article's paragraph."""
PROMPT = 200
"""Characters of a prompt at most; it ends with a whole word."""


def read_prompts(path: Path, count: int) -> list[str]:
    """The beginnings of `count` long lines, evenly spread over the file. Raises UsageError if it has not as many."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): --data names a text file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}): --data names a text file") from error
    found = [line.strip() for line in lines if len(line.strip()) > LONG]
    if not found:
        raise UsageError(
            f"{path} has no line of over {LONG} characters: --data names a text such as WikiText-2's wiki.test.raw"
        )
    if count > len(found):
        raise UsageError(f"--prompts must be at most {len(found)}, the lines of over {LONG} characters, not {count}")
    return [_beginning(found[place * len(found) // count]) for place in range(count)]


def _beginning(line: str) -> str:
    return line[: PROMPT + 1].rpartition(" ")[0] or line[:PROMPT]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both models, and what they call tokens by."""

    cloud: Model
    device: Model
    common: CommonVocabulary
    sampling: SamplingParams

    def target(self, logits: Logits) -> Probs:
        """The cloud's distribution by wire number, as `methods.verifier` makes it."""
        return process(logits[-1], self.sampling)[self.common.cloud_ids]

    def distribution(self, logits: Logits) -> Probs:
        """The device's distribution over the common vocabulary, as `methods.drafter` makes it."""
        return process(logits[-1][self.common.device_ids], on_common(self.sampling, self.common))

    def spelled(self, number: int) -> list[int]:
        """The device's ids of a token; none for one that has no bytes."""
        if number < self.common.size and self.common.device_ids is not None:
            return [int(self.common.device_ids[number])]
        return spell(self.device, self.common.pieces[number])


def distributions(pair: Pair, prompt: str, positions: int, seed: int) -> Iterator[tuple[Probs, Probs]]:
    """Target and draft probs at successive positions; the token of each is drawn from the target; an end ends them."""
    chance = PhiloxChance(seed)
    with closing(pair.cloud.open()) as cloud, closing(pair.device.open()) as device:
        wanted = cloud.extend(prompt_ids(pair.cloud, prompt, chat=False))
        drafted = device.extend(prompt_ids(pair.device, prompt, chat=False))
        for position in range(positions):
            target = pair.target(wanted)
            yield target, pair.distribution(drafted)
            number = chance.at(Place(position), Role.TARGET).categorical(target)
            if number in pair.common.ends or position + 1 == positions:
                break
            wanted = cloud.extend([int(pair.common.cloud_ids[number])])
            if tokens := pair.spelled(number):
                drafted = device.extend(tokens)
