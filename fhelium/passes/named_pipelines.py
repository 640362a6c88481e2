"""Pipelines that have a name: from secret tensors to ckks ops without state (`secure-pack`), from
those to a program that can be linked, and the whole way (`secure-default`).

A name stands for its text in every place where a pipeline is written.
"""

from collections.abc import Mapping
from types import MappingProxyType

_ASSIGN = (
    "ckks-insert-mod-switch,ckks-assign-levels,ckks-select-parameters,ckks-assign-scales,"
    "ckks-hoist-rotations"
)
# Kept whole where their temporaries are worth keeping in caches; pointwise ops are fused in `rns`.
_WHOLE_OPS = ("rescale", "relinearize", "relinearize_rescale", "rotate", "rotate_many", "conjugate")
_ASSIGN_WHOLE_OPS = (
    "fhelium-assign-implementations{target=cpu only="
    + ",".join(f'"ckks.{name}"' for name in _WHOLE_OPS)
    + "}"
)

NAMED_PIPELINES: Mapping[str, str] = MappingProxyType(
    {
        "ckks-default": (
            "canonicalize,cse,ckks-merge-rotations,ckks-insert-relinearize{strategy=eager},"
            f"ckks-insert-rescale{{strategy=eager}},{_ASSIGN}"
        ),
        "ckks-lazy": (
            "canonicalize,cse,ckks-merge-rotations,ckks-reorder-sums,"
            "ckks-insert-relinearize{strategy=lazy},"
            f"ckks-insert-rescale{{strategy=lazy}},{_ASSIGN}"
        ),
        "cpu-default": (
            f"canonicalize,cse,ckks-fuse-rescales,{_ASSIGN_WHOLE_OPS},rns-default,rns-fuse,"
            "fhelium-assign-implementations{target=cpu},fhelium-assign-in-place"
        ),
        "rns-default": (
            "canonicalize,cse,convert-ckks-to-rns,cse,rns-hoist-decompositions,"
            "rns-fuse-divisions,rns-merge-transforms,canonicalize,cse"
        ),
        "secure-default": "canonicalize,secure-select-parameters,secure-pack,ckks-lazy",
        "secure-pack": (
            "canonicalize,secure-lower-convolutions,secure-expand-polynomials,cse,"
            "secure-assign-layouts,cse,secure-minimize-conversions,convert-secure-to-ckks,cse,dce"
        ),
    }
)
"""The text of each. No `cse` between the first two of the last passes: it would take two
`ckks.mod_switch` for one while their levels are not assigned. And no `dce` behind the last
two of `rns-default`: nothing is dead when `canonicalize` ends, and `cse` drops an op only where one
on the same operands stays."""
