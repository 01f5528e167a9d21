"""The methods: one file each, a device half beside a cloud half, both generators without I/O (METHODS 2).

A new method is a new file and a line here, or an entry of one's own mapping handed to `Device` and `Cloud`:
docs/adding-a-method.md.
"""

from collections.abc import Mapping

from antiphon.errors import UsageError
from antiphon.methods.base import Method
from antiphon.methods.baselines.cu_hlm import CU_HLM
from antiphon.methods.baselines.drdg_sw import DRDG_SW
from antiphon.methods.baselines.gr import GR
from antiphon.methods.baselines.tr import TR
from antiphon.methods.baselines.u_hlm import U_HLM
from antiphon.methods.mixture.centralized import CRCG, DRCG
from antiphon.methods.mixture.concord import CONCORD, CONCORD_NOCOMM, CONCORD_NOSYSTEM
from antiphon.methods.mixture.dragon import DRAGON, DRDG_TW
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

_ALL = (CLOUD, DEVICE, COUPLED, COUPLED_TREE, DSD, TSLT, TSLT_TREE, DSSD, XCOSD, XCOSD_E, GR, TR, U_HLM, CU_HLM)

METHODS: Mapping[str, Method] = {method.name: method for method in _ALL}
"""The methods that write answers by the cloud's model, by name."""

_MIXTURES = (CRCG, DRCG, DRDG_SW, DRDG_TW, DRAGON, CONCORD, CONCORD_NOSYSTEM, CONCORD_NOCOMM)

MIXTURES: Mapping[str, Method] = {method.name: method for method in _MIXTURES}
"""The methods that read documents of both ends, by name (METHODS 4)."""

PROBES: Mapping[str, Method] = {PROBE.name: PROBE}
"""What a cloud offers besides: looks at its scores."""


def find(name: str, methods: Mapping[str, Method] = METHODS) -> Method:
    """The method of this name. Raises UsageError, naming those that there are."""
    if name not in methods:
        raise UsageError(f"there is no method {name!r}: use one of {', '.join(sorted(methods))}")
    return methods[name]
