"""What is known of X-CoSD's numbers. Of the paper we have a summary without figures; the rest is second-hand and says so."""

SECOND_HAND = "second-hand"
"""What marks the numbers below wherever they are shown."""
EXPLAINED = (
    "Second-hand: told to us by someone who has the paper, the speeds read off a figure; the summary that we have "
    "prints none of these numbers."
)

SPEEDS = "About 45 tokens/s for X-CoSD-E, 35 for Naive, 30 for the server LLM, at 100 Mbit/s and temperature 0.3"
BITS = "266 to 384 bits a token for X-CoSD-E"
LINK = "30 Mbit/s up, 100 to 300 Mbit/s down"
CANDIDATES = "K = 20, M = 10"
TEMPERATURE = 0.3
"""At which those speeds are; ours are compared with them only there."""
