"""What a method needs of the cloud's engine, and what an engine offers: a cloud announces the methods that fit."""

from enum import StrEnum


class Need(StrEnum):
    """One thing that a cloud's half asks for, beside passes over chains of drafts.

    WINNERS: which token wins at a position, the likeliest or that of a race. CHOSEN_PROBS: the probabilities of tokens that it
    names. DISTRIBUTIONS: those of all tokens. TREE: passes over a tree of drafts. DOCUMENTS: what a library found.
    """

    WINNERS = "winners"
    CHOSEN_PROBS = "chosen probabilities"
    DISTRIBUTIONS = "whole distributions"
    TREE = "a tree"
    DOCUMENTS = "documents"


EVERYTHING = frozenset(Need) - {Need.DOCUMENTS}
"""What an engine offers that gives out its logits; documents are a library's affair."""

OVER_CHAINS = EVERYTHING - {Need.TREE}
"""What passes over chains can give: what a method is taken to need that does not say."""
