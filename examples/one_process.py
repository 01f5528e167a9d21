"""Both halves of a method in one process, on toy models: the shortest way through Antiphon.

Run it: `python examples/one_process.py`. It writes one answer with `dssd`, then shows that the method is exact by adding up
the probabilities of every branch that its code can take.
"""

from antiphon.config import ChainOptions, SamplingParams
from antiphon.core.chance import Chance, PhiloxChance
from antiphon.core.enumeration import output_law
from antiphon.methods import METHODS
from antiphon.methods.base import CloudSide, DeviceSide, Transcript
from antiphon.methods.drafter import Drafter
from antiphon.methods.effects import Emitted
from antiphon.methods.pair import run_pair
from antiphon.methods.verifier import Verifier
from antiphon.models.toy import ToyModel
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
    options = ChainOptions(draft_length=2) if method.drafts else method.options()
    assert method.cloud is not None
    return run_pair(method.device(device, options).run(), method.cloud(cloud, options).run())


def main() -> None:
    for token in answer("dssd", 12, PhiloxChance(seed=5)):
        print(f"{COMMON.pieces[token.number].decode() or '<end>':>5}  {token.kind}")
    laws = {
        name: output_law(lambda chance, name=name: tuple(t.number for t in answer(name, 2, chance)))  # type: ignore[misc]
        for name in ("cloud", "dssd")
    }
    difference = max(abs(laws["cloud"].get(key, 0) - probability) for key, probability in laws["dssd"].items())
    print(f"{len(laws['dssd'])} outcomes of two tokens; dssd and cloud differ by at most {difference:.1e}")


if __name__ == "__main__":
    main()
