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
OURS = (_chain("tslt"), _chain("coupled"), Entrant("coupled-tree", "coupled-tree"))
WRITTEN = (*PAPER, *OURS)
"""Those that write answers of their own."""
TIMED = (CLOUD, ASKED, *PAPER[1:], *OURS)

BY_LENGTH = ("dssd", "xcosd", "xcosd-e", "coupled")
"""Methods that are also measured with other numbers of drafts a round."""
