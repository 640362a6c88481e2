"""What a program can say: one dialect a module, loaded only when a tool asks for it."""

from collections.abc import Callable

from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Return a factory for each dialect under its IR name."""

    def get_ckks() -> Dialect:
        from fhelium.dialects.ckks import CKKS

        return CKKS

    def get_dist() -> Dialect:
        from fhelium.dialects.distributed import Dist

        return Dist

    def get_fhelium() -> Dialect:
        from fhelium.dialects.core import Fhelium

        return Fhelium

    def get_mem() -> Dialect:
        from fhelium.dialects.memory import Mem

        return Mem

    def get_rns() -> Dialect:
        from fhelium.dialects.rns import RNS

        return RNS

    def get_secure() -> Dialect:
        from fhelium.dialects.secure import Secure

        return Secure

    return {
        "ckks": get_ckks,
        "dist": get_dist,
        "fhelium": get_fhelium,
        "mem": get_mem,
        "rns": get_rns,
        "secure": get_secure,
    }
