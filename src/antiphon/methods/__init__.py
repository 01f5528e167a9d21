"""The methods: one file each, a device half beside a cloud half, both generators without I/O (METHODS 2).

A new method is a new file and a line here, or an entry of one's own mapping handed to `Device` and `Cloud`:
docs/adding-a-method.md.
"""

from collections.abc import Mapping

from antiphon.errors import UsageError
from antiphon.methods.base import Method
from antiphon.methods.baselines.cu_hlm import CU_HLM
from antiphon.methods.baselines.drcg import DRCG
from antiphon.methods.baselines.drdg_sw import DRDG_SW
from antiphon.methods.baselines.drdg_tw import DRDG_TW
from antiphon.methods.baselines.gr import GR
from antiphon.methods.baselines.tr import TR
from antiphon.methods.baselines.u_hlm import U_HLM
from antiphon.methods.installed import installed
from antiphon.methods.mixture.concord import CONCORD, CONCORD_NOCOMM, CONCORD_NOSYSTEM
from antiphon.methods.mixture.crcg import CRCG
from antiphon.methods.mixture.dragon import DRAGON
from antiphon.methods.probe import PROBE
from antiphon.methods.speculative.cloud_only import CLOUD
from antiphon.methods.speculative.coupled import COUPLED
from antiphon.methods.speculative.coupled_tree import COUPLED_TREE
from antiphon.methods.speculative.device_only import DEVICE
from antiphon.methods.speculative.dsd import DSD
from antiphon.methods.speculative.dssd import DSSD
from antiphon.methods.speculative.tslt import TSLT
from antiphon.methods.speculative.tslt_tree import TSLT_TREE
from antiphon.methods.speculative.xcosd import XCOSD
from antiphon.methods.speculative.xcosd_e import XCOSD_E


def _by_name(*methods: Method) -> Mapping[str, Method]:
    return {method.name: method for method in methods}


METHODS = _by_name(CLOUD, DEVICE, COUPLED, COUPLED_TREE, DSD, TSLT, TSLT_TREE, DSSD, XCOSD, XCOSD_E)
"""The methods that write the cloud model's own answers, by name; beside them `device`, the small model alone."""

MIXTURES = _by_name(CRCG, DRAGON, CONCORD, CONCORD_NOSYSTEM, CONCORD_NOCOMM)
"""The methods that read documents of both ends (METHODS 4); beside them `crcg`, which reads the device's alone."""

BASELINES = _by_name(GR, TR, U_HLM, CU_HLM, DRDG_SW, DRDG_TW, DRCG)
"""What the others are measured against: a cloud offers them where it is told to."""

PROBES = _by_name(PROBE)
"""What a cloud offers besides: looks at its scores."""

OFFERED: Mapping[str, Method] = {**METHODS, **MIXTURES}
"""What a cloud offers of Antiphon's own unless it is told otherwise."""

ALL_METHODS: Mapping[str, Method] = {**OFFERED, **BASELINES}
"""Every method of Antiphon's own that writes answers."""

_TAKEN: Mapping[str, Method] = {**ALL_METHODS, **PROBES}

WITHOUT_DOCUMENTS: Mapping[str, Method] = {name: method for name, method in ALL_METHODS.items() if not method.mixes}
"""What `antiphon generate` runs."""

WITH_DOCUMENTS: Mapping[str, Method] = {name: method for name, method in ALL_METHODS.items() if method.mixes}
"""What `antiphon ask` runs."""


def find(name: str, methods: Mapping[str, Method] | None = None, *, mixes: bool | None = None) -> Method:
    """The method of this name. Raises UsageError, naming those that there are.

    methods: those that count; None for all, those of other distributions too (see `installed`). mixes: only methods that mix
    documents, or only others.
    """
    if methods is None:
        methods = ALL_METHODS if name in ALL_METHODS else {**ALL_METHODS, **installed(_TAKEN)}
    if mixes is not None:
        methods = {one: method for one, method in methods.items() if method.mixes == mixes}
    if name in methods:
        return methods[name]
    require_no_baseline(name)
    raise UsageError(f"there is no method {name!r}: use one of {', '.join(sorted(methods))}")


def offered(*, baselines: bool = False) -> Mapping[str, Method]:
    """What a cloud offers: the methods of Antiphon, with its baselines or without, and those of other distributions."""
    return {**(ALL_METHODS if baselines else OFFERED), **installed(_TAKEN)}


def require_no_baseline(name: str) -> None:
    """Raise UsageError if a method that a cloud does not offer is one that it offers on request."""
    if name in BASELINES:
        raise UsageError(f"{name} is a baseline, which a cloud offers where it was started with `antiphon serve --baselines`")
