"""How long a cloud should wait for the nodes of a tree that grows elsewhere (METHODS 3, *Stream*)."""

import math

from antiphon.core.stream import View, Wait

LEVELS = 8
"""Of a tree that a pass goes down, at most, as far as patience is concerned."""
USABLE = 3
"""Levels of a tree that are as full as the first ones below a token that came late: its branches are fewer (measured)."""
FRESH = 4
"""The same where nothing has come between."""
MARGIN = 0.03
"""By so much of its rate must waiting be better: what is known of a link is never exact."""
LEVEL = 1.25
"""Times of a level after which the next one has come, mostly."""
SHORT = 0.2
"""Of a pass: so long a wait costs less than a level brings, where trees are there in time for the next pass (measured)."""


def choose_wait(view: View, price: float, least: float = 0.0) -> Wait:
    """How long to wait behind each verdict for more of a tree, so that time plus price is least a token; in `Wait`, levels.

    view: `stands` is the chance of a level to have the token, `gap` the time of a level. price: of a pass, in seconds. least:
    seconds to wait.
    """
    alone, level = view.seconds(1), LEVEL * view.gap
    if price <= 0:
        # What is drafted while the cloud goes on is of more use than to wait for it; but for one level more.
        pays = view.response <= alone and level <= SHORT * alone
        return Wait(max(least, level if pays else 0.0), view.most)
    waits = [0.0, *(view.response + view.gap * step for step in range(FRESH))]
    best = max((max(least, wait) for wait in waits), key=lambda wait: _rate(view, price, wait))
    worth = _rate(view, price, best) > (1 + MARGIN) * _rate(view, price, 0.0)
    return Wait(best if worth or least > 0 else 0.0, FRESH)


def _rate(view: View, price: float, wait: float) -> float:
    """Tokens a second: passes alone until a tree is there, then one over it, if the tokens so far are its nodes."""
    turn = view.seconds(1) + wait
    alone = math.ceil((view.response - wait) / turn) if view.response > wait and turn > 0 else 0
    ready = (alone * turn + wait - view.response) / view.gap if view.gap > 0 else view.most
    usable = max(0, min(USABLE if alone else FRESH, int(ready + 1e-9) + 1 - alone))
    there = view.stands**alone
    tokens = alone + there * view.tokens(usable)
    time = alone * (turn + price) + there * (wait + view.seconds(usable + 1) + price)
    return tokens / time if time > 0 else tokens
