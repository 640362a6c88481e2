"""What FHElium adds to every xDSL tool, through the `xdsl.universe` entry point."""

from xdsl.universe import Universe

from fhelium.dialects import get_all_dialects
from fhelium.frontends import get_all_frontends
from fhelium.passes import get_all_passes
from fhelium.tools.targets import get_all_targets

FHELIUM_UNIVERSE = Universe(
    all_dialects=get_all_dialects(),
    all_frontends=get_all_frontends(),
    all_passes=get_all_passes(),
    all_targets=get_all_targets(),
)
