"""`ckks-list-required-keys`: say which keys a program needs."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.passes import ModulePass

from fhelium.dialects.ckks.types import KeyType
from fhelium.dialects.core import ResourceOp
from fhelium.passes.failure import PassFailure

REQUIRED_KEYS = "ckks.required_keys"
"""Module attribute: the type of each switching key that the program uses, by symbol."""


def required_keys(module: ModuleOp) -> dict[str, KeyType]:
    """Return the type of each switching key that some op uses, sorted by symbol.

    Raises `PassFailure` when a symbol stands for two types.
    """
    keys: dict[str, KeyType] = {}
    for op in module.walk():
        if not isinstance(op, ResourceOp) or not isinstance(op.result.type, KeyType):
            continue
        if not op.result.uses:
            continue
        known = keys.setdefault(op.symbol_name, op.result.type)
        if known != op.result.type:
            raise PassFailure(
                op,
                f"found the key @{op.symbol_name} of type {op.result.type}, and before it of type "
                f"{known}: a symbol stands for one key, so rename one of them",
            )
    return dict(sorted(keys.items()))


@dataclass(frozen=True)
class CkksListRequiredKeysPass(ModulePass):
    """Write the switching keys that a program uses on the module, as `ckks.required_keys`.

    The attribute is a dictionary from the symbols of `fhelium.resource` ops to their types. A key
    that no op uses is left out. `fhelium-keys` makes exactly these keys.
    """

    name = "ckks-list-required-keys"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes[REQUIRED_KEYS] = DictionaryAttr(required_keys(op))
