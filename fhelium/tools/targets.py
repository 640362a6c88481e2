"""How programs go out."""

from collections.abc import Callable

from xdsl.utils.target import Target


def get_all_targets() -> dict[str, Callable[[], type[Target]]]:
    """Return a factory for each target under its command-line name."""

    def get_fhelium_mlir() -> type[Target]:
        from fhelium.tools.aliased_mlir import AliasedMLIRTarget

        return AliasedMLIRTarget

    def get_kernel() -> type[Target]:
        from fhelium.tools.kernel_targets import KernelTarget

        return KernelTarget

    def get_cost() -> type[Target]:
        from fhelium.tools.cost_target import CostTarget

        return CostTarget

    def get_dot() -> type[Target]:
        from fhelium.tools.dot_target import DotTarget

        return DotTarget

    def get_svg() -> type[Target]:
        from fhelium.tools.svg_target import SvgTarget

        return SvgTarget

    return {
        "cost": get_cost,
        "dot": get_dot,
        "fhelium-mlir": get_fhelium_mlir,
        "kernel": get_kernel,
        "svg": get_svg,
    }
