"""The `rns` dialect: residue polynomials, one op a kernel.

Types name the basis, the number of components and the form of every value, so a lowered module
shows each NTT and each limb. Values with several components are polynomials in the secret key.
ModUp is `project`, `mod_up`, `ntt`; ModDown and a CKKS rescale are `project` to the limbs that go,
`intt`, `mod_up` to those that stay, `ntt`, `mod_down` (Cheon, Han, Kim, Kim and Song, 2018,
section 3; Han and Ki, 2020, section 3).
"""

from xdsl.ir import Attribute, Dialect, Operation

from fhelium.dialects.rns.arithmetic import (
    AddConstantOp,
    AddOp,
    ComponentsOp,
    ModuliOp,
    MulConstantOp,
    MulOp,
    NegateOp,
    SquareOp,
    SubOp,
    WeightedSumOp,
)
from fhelium.dialects.rns.basis import KeyProductOp, ModDownOp, ModUpOp, ProjectOp, ScaleUpOp
from fhelium.dialects.rns.fusion import FusedOp, YieldOp
from fhelium.dialects.rns.transforms import AutomorphismOp, InttOp, NttOp
from fhelium.dialects.rns.types import BasisAttr, FormAttr, ModuliType, PolyType

OPERATIONS: list[type[Operation]] = [
    ModuliOp,
    AddOp,
    SubOp,
    NegateOp,
    MulOp,
    SquareOp,
    WeightedSumOp,
    AddConstantOp,
    MulConstantOp,
    ComponentsOp,
    NttOp,
    InttOp,
    AutomorphismOp,
    ProjectOp,
    ModUpOp,
    ScaleUpOp,
    ModDownOp,
    KeyProductOp,
]
"""One op a kernel."""
ATTRIBUTES: list[type[Attribute]] = [FormAttr, BasisAttr, PolyType, ModuliType]

RNS = Dialect("rns", [*OPERATIONS, FusedOp, YieldOp], ATTRIBUTES)
