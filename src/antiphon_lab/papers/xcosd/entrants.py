"""Who takes part in X-CoSD's comparison: the paper's methods by their names here, and ours."""

from dataclasses import dataclass

from antiphon_lab.papers.answers import Options

DRAFTS = 2
"""Drafts a round of the paper's comparison, N."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A row of the tables. paper: what the paper calls it; empty for ours. each_asked: see `answers.Ask`."""

    name: str
    method: str
    options: Options = ()
    paper: str = ""
    each_asked: bool = False


def _chain(method: str, paper: str = "") -> Entrant:
    return Entrant(method, method, (("draft_length", DRAFTS),), paper)


def _in_lockstep(method: str, *options: tuple[str, bool | int | str]) -> Entrant:
    return Entrant(f"{method}, lockstep", method, (*options, ("patience", "lockstep")))


LITERAL = "xcosd-e, as the paper"
"""With as many candidates as the paper has, drawn as it draws them."""
CLOUD = Entrant("cloud", "cloud", paper="Server LLM")
ASKED = Entrant("cloud-trips", "cloud", each_asked=True)
PAPER = (
    CLOUD,
    _chain("dssd", "Naive"),
    _chain("dsd", "UL"),
    _chain("xcosd", "X-CoSD"),
    _chain("xcosd-e", "X-CoSD-E"),
    Entrant(LITERAL, "xcosd-e", (("candidates", 20), ("draft_length", DRAFTS), ("as_paper", True)), "X-CoSD-E, K = 20"),
    _chain("gr", "GR"),
    _chain("tr", "TR"),
    Entrant("u-hlm", "u-hlm", paper="U-HLM"),
)
CHAIN = _in_lockstep("coupled", ("draft_length", DRAFTS))
TREE = _in_lockstep("coupled-tree", ("expansion", "2,2,2"))
OURS = (_chain("tslt"), CHAIN, TREE)
WRITTEN = (*PAPER, *OURS)
"""Those whose answers are written once, whatever the link."""
STREAM, TREE_STREAM = Entrant("coupled", "coupled"), Entrant("coupled-tree", "coupled-tree")
"""What they send, and when, hangs on the link, and their text on nothing: it is the one of `cloud`."""
TIMED = (CLOUD, ASKED, *PAPER[1:], *OURS, STREAM, TREE_STREAM)
LOADED = (*WRITTEN, STREAM, TREE_STREAM)
"""Those whose bits are counted."""

BY_LENGTH = ("dssd", "xcosd", "xcosd-e", CHAIN.name)
"""Methods that are also measured with other numbers of drafts a round."""
