"""The numbers that CONCORD prints in its section V, by row, in the paper's own rounding; what it only draws is not here."""

from collections.abc import Mapping

Numbers = Mapping[str, str]

F1: Numbers = {"dragon": "26.8 ±0.8", "concord": "26.7 ±0.6"}
EM: Numbers = {"dragon": "16.9 ±0.5", "concord": "16.7 ±0.5"}
QUERIES: Numbers = {"dragon": "0.782 ±0.006", "concord": "1.295 ±0.004"}
QUESTION_BYTES: Numbers = {"dragon": "253,479.7 ±1,748.7", "concord": "282.7 ±25.3"}
"""Figure 3: Natural Questions."""

PERPLEXITY: Numbers = {"drdg-tw": "17.016", "dragon": "17.016", "concord": "17.016"}
"""Table I; `crcg` and `drcg` have more."""

TEXT_SPEED: Numbers = {"dragon": "9.29", "concord": "20.00"}
TEXT_BYTES: Numbers = {"dragon": "243,640.3", "concord": "160.9"}
"""Figure 4: WikiText-2."""

ABLATION_QUERIES: Numbers = {"dragon": "0.765", "concord-nosystem": "1.123", "concord-nocomm": "1.083", "concord": "1.286"}
ABLATION_SHARE: Numbers = {"concord-nosystem": "1.000"}
ABLATION_BYTES: Numbers = {
    "dragon": "256,517.7",
    "concord-nosystem": "331.0",
    "concord-nocomm": "4,981.6",
    "concord": "261.0",
}
"""Figure 5, on 100 questions."""

FIRST_TOKEN: Numbers = {"dragon": "456.6 / 576.7", "concord": "96.1 / 152.2"}
BETWEEN_TOKENS: Numbers = {"dragon": "78.5 / 151.6", "concord": "35.2 / 92.0"}
MESSAGES: Numbers = {"dragon": "23.24", "concord": "28.77"}
CASE_BYTES: Numbers = {"dragon": "204,000", "concord": "270"}
"""Figure 6 and the text beside it; P50 and P90 in milliseconds."""

TWO_MACHINES: Mapping[tuple[str, str], str] = {
    ("nq", "native"): "1.66",
    ("nq", "delay and jitter"): "1.36",
    ("wikitext", "native"): "2.27",
    ("wikitext", "delay and jitter"): "1.85",
}
"""Figure 7: how many times the throughput of `dragon`."""
TWO_MACHINES_BYTES: Numbers = {"dragon": "198,000 to 252,000", "concord": "168.6 to 353.5"}
"""Over all four settings."""

ALONE, CHANGED, CERTIFIED, FORCED = "21.66 ±1.55", "22.29 ±1.33", "99.98 ±0.03", "0.017 ±0.030"
"""Table II, in per cent: of all tokens, then of those with evidence."""
