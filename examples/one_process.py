"""Both halves of a method in one process, on toy models: the shortest way through Antiphon.

Run it: `python examples/one_process.py`. It writes one answer with `dssd`, then shows that methods are exact by adding up the
probabilities of every branch that their code can take. (`dssd` differs in the eighth digit: its target crosses as float32.)
"""

from collections.abc import Mapping

from antiphon.config import SamplingParams
from antiphon.core.chance import Chance, PhiloxChance
from antiphon.methods import METHODS
from antiphon.methods.base import CloudSide, DeviceSide, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Emitted
from antiphon.methods.verifier import Verifier
from antiphon.models.toy import ToyModel
from antiphon.testing import output_distribution, run_pair
from antiphon.vocabulary import common_vocabulary

DEVICE = ToyModel((b"b", b"", b"a"), seed=1)  # three tokens: b, the end, a
CLOUD = ToyModel((b"ab", b"a", b"", b"c", b"b"), seed=5)  # five: two of them the device does not have
COMMON = common_vocabulary(DEVICE.vocabulary, CLOUD.vocabulary)
SAMPLING = SamplingParams(temperature=1.0)


def answer(name: str, tokens: int, chance: Chance) -> list[Emitted]:
    """The tokens that both halves of a method commit after the prompt "ab"."""
    method = METHODS[name]
    drafter = Drafter(DEVICE, DEVICE.open(), DEVICE.tokenize("ab"), COMMON, SAMPLING)
    verifier = Verifier(CLOUD.open(), CLOUD.tokenize("ab"), COMMON, SAMPLING)
    device = DeviceSide(COMMON, Transcript(COMMON.ends, tokens), chance, drafter)
    cloud = CloudSide(COMMON, Transcript(COMMON.ends, tokens), chance, verifier)
    options = method.options_from({"draft_length": 2, "precision": 32})
    assert method.cloud is not None
    return run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())


def main() -> None:
    for token in answer("dssd", 12, PhiloxChance(5)):
        print(f"{COMMON.pieces[token.number].decode() or '<end>':>5}  {token.kind}")
    cloud = distribution("cloud", 2)
    for name in ("dsd", "dssd"):
        other = distribution(name, 2)
        difference = max(abs(cloud.get(key, 0) - probability) for key, probability in other.items())
        print(f"{len(other)} outcomes of two tokens; {name} and cloud differ by at most {difference:.1e}")


def distribution(name: str, tokens: int) -> Mapping[tuple[int, ...], float]:
    """The probability of every answer, added up over every branch of both halves."""
    return output_distribution(lambda chance: tuple(token.number for token in answer(name, tokens, chance)))


if __name__ == "__main__":
    main()
