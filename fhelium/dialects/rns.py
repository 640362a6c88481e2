"""The `rns` dialect: residue polynomials, one op a kernel.

Types name the basis, the number of components and the form of every value, so a lowered module
shows each NTT and each limb. Values with several components are polynomials in the secret key.
ModUp is `project`, `mod_up`, `ntt`; ModDown and a CKKS rescale are `project` to the limbs that go,
`intt`, `mod_up` to those that stay, `ntt`, `mod_down` (Cheon, Han, Kim, Kim and Song, 2018,
section 3; Han and Ki, 2020, section 3).
"""

from abc import ABC
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, i64
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import RewritePattern
from xdsl.traits import Commutative, Pure
from xdsl.utils.exceptions import VerifyException

from fhelium.dialects.ckks_types import KeyType
from fhelium.dialects.rns_types import BasisAttr, Form, FormAttr, ModuliType, PolyType

CONSTANT = IntegerType(1024)
"""Constants are integers before reduction; a scaled scalar may be wider than any machine word."""


def expect(what: str, found: object, expected: object, fix: str) -> None:
    """Raise `VerifyException` when `found` is not `expected`."""
    if found != expected:
        raise VerifyException(f"found {what} {found}, expected {expected}: {fix}")


def expect_subset(what: str, part: BasisAttr, whole: BasisAttr, fix: str) -> None:
    """Raise `VerifyException` when `part` has a limb that `whole` lacks."""
    extra = part.limbs - whole.limbs
    if extra:
        names = ", ".join(sorted(f"{name}[{i}]" for name, i in extra))
        raise VerifyException(f"found {what} with {names}, which its source lacks: {fix}")


class RnsOp(IRDLOperation, HasCanonicalizationPatternsInterface, ABC):
    """Base of the kernels."""

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        from fhelium.dialects.rns_canonicalization import patterns_of

        return patterns_of(cls)


@irdl_op_definition
class ModuliOp(IRDLOperation):
    """The primes of a basis as data, for ops that carry payloads without knowing the parameters."""

    name = "rns.moduli"

    result = result_def(ModuliType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, basis: BasisAttr):
        super().__init__(result_types=[ModuliType(basis)])


class SumOp(RnsOp, ABC):
    """Base of sum and difference: missing components of an operand count as zero."""

    lhs = operand_def(PolyType)
    rhs = operand_def(PolyType)
    result = result_def(PolyType)

    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        left, right = PolyType.of(SSAValue.get(lhs)), PolyType.of(SSAValue.get(rhs))
        components = max(left.components, right.components)
        super().__init__(operands=[lhs, rhs], result_types=[left.replace(components=components)])

    def verify_(self) -> None:
        lhs, rhs, result = PolyType.of(self.lhs), PolyType.of(self.rhs), self.result.type
        expect("rhs", rhs.replace(components=lhs.components), lhs, "use one basis and form")
        components = max(lhs.components, rhs.components)
        expect("result", result, lhs.replace(components=components), "the longer operand decides")


@irdl_op_definition
class AddOp(SumOp):
    """Add modulo each prime."""

    name = "rns.add"

    traits = traits_def(Pure(), Commutative())


@irdl_op_definition
class SubOp(SumOp):
    """Subtract modulo each prime."""

    name = "rns.sub"

    traits = traits_def(Pure())


class SameTypeUnaryOp(RnsOp, ABC):
    """Base of the ops from one polynomial to another of its type."""

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class NegateOp(SameTypeUnaryOp):
    """Negate modulo each prime."""

    name = "rns.negate"

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation):
        super().__init__(operands=[input], result_types=[SSAValue.get(input).type])


@irdl_op_definition
class MulOp(RnsOp):
    """Multiply as polynomials in the secret: a and b components give a + b - 1.

    With one component on a side it is the product by a plaintext, with two on both the tensor
    product of two ciphertexts.
    """

    name = "rns.mul"

    lhs = operand_def(PolyType)
    rhs = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure(), Commutative())
    assembly_format = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        left, right = PolyType.of(SSAValue.get(lhs)), PolyType.of(SSAValue.get(rhs))
        components = left.components + right.components - 1
        super().__init__(operands=[lhs, rhs], result_types=[left.replace(components=components)])

    def verify_(self) -> None:
        lhs, rhs, result = PolyType.of(self.lhs), PolyType.of(self.rhs), self.result.type
        expect("lhs form", lhs.form, Form.EVALUATION, "apply rns.ntt first")
        expect("rhs", rhs.replace(components=lhs.components), lhs, "use one basis and form")
        components = lhs.components + rhs.components - 1
        expect("result", result, lhs.replace(components=components), "components a + b - 1")


class ConstantOp(SameTypeUnaryOp, ABC):
    """Base of the ops with an integer constant, reduced modulo each prime."""

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    constant = prop_def(IntegerAttr.constr(CONSTANT))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $constant attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, constant: int):
        super().__init__(
            operands=[input],
            properties={"constant": IntegerAttr(constant, CONSTANT)},
            result_types=[SSAValue.get(input).type],
        )


@irdl_op_definition
class AddConstantOp(ConstantOp):
    """Add a constant polynomial to component 0."""

    name = "rns.add_constant"


@irdl_op_definition
class MulConstantOp(ConstantOp):
    """Multiply every component by an integer."""

    name = "rns.mul_constant"


class TransformOp(RnsOp, ABC):
    """Base of the number-theoretic transforms."""

    SOURCE: ClassVar[Form]
    TARGET: ClassVar[Form]

    input = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(operands=[input], result_types=[type.replace(form=self.TARGET)])

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect("operand form", input.form, self.SOURCE, f"{self.name} starts from it")
        expect("result", result, input.replace(form=self.TARGET), "only the form changes")


@irdl_op_definition
class NttOp(TransformOp):
    """Negacyclic number-theoretic transform of every limb: coefficients to values."""

    name = "rns.ntt"

    SOURCE: ClassVar[Form] = Form.COEFFICIENT
    TARGET: ClassVar[Form] = Form.EVALUATION


@irdl_op_definition
class InttOp(TransformOp):
    """Inverse transform of every limb: values to coefficients."""

    name = "rns.intt"

    SOURCE: ClassVar[Form] = Form.EVALUATION
    TARGET: ClassVar[Form] = Form.COEFFICIENT


class ReshapeOp(RnsOp, ABC):
    """Base of the ops whose result type says what they select or convert to."""

    input = operand_def(PolyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, basis: BasisAttr):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(operands=[input], result_types=[type.replace(basis=basis)])


@irdl_op_definition
class ProjectOp(ReshapeOp):
    """Select limbs: reduce modulo the product of some of the primes."""

    name = "rns.project"

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect_subset("a result basis", result.basis, input.basis, "project onto limbs it has")
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ModUpOp(ReshapeOp):
    """Base conversion: residues of the centred representative modulo the primes of the result.

    Limbs that operand and result share are copied. The quotient is estimated in float64 (Halevi,
    Polyakov and Shoup, 2019, section 2.2), so the conversion adds no multiple of the source
    modulus.
    """

    name = "rns.mod_up"

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect("operand form", input.form, Form.COEFFICIENT, "apply rns.intt first")
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ModDownOp(RnsOp):
    """Exact division by the primes that go: (input - remainder) / (their product).

    `remainder` is the operand modulo that product, converted to the limbs that stay.
    """

    name = "rns.mod_down"

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(PolyType)
    remainder = operand_def(T)
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $remainder attr-dict `:` type($input) `,` type($remainder)"

    def __init__(self, input: SSAValue | Operation, remainder: SSAValue | Operation):
        super().__init__(operands=[input, remainder], result_types=[SSAValue.get(remainder).type])

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        expect_subset("a result basis", result.basis, input.basis, "divide by limbs it has")
        if len(result.basis) == len(input.basis):
            raise VerifyException(
                "found a result with all limbs of the operand, expected fewer: nothing is divided"
            )
        expect("result", result, input.replace(basis=result.basis), "only the basis changes")


@irdl_op_definition
class ComponentsOp(RnsOp):
    """Select a range of components: `rns.components %x, 2, 3 : !poly3 -> !poly1`."""

    name = "rns.components"

    input = operand_def(PolyType)
    start = prop_def(IntegerAttr.constr(I64))
    stop = prop_def(IntegerAttr.constr(I64))
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = (
        "$input `[` $start `to` $stop `]` attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(self, input: SSAValue | Operation, start: int, stop: int):
        type = PolyType.of(SSAValue.get(input))
        super().__init__(
            operands=[input],
            properties={"start": IntegerAttr(start, i64), "stop": IntegerAttr(stop, i64)},
            result_types=[type.replace(components=stop - start)],
        )

    def verify_(self) -> None:
        input, result = PolyType.of(self.input), self.result.type
        start, stop = self.start.value.data, self.stop.value.data
        if not 0 <= start < stop <= input.components:
            raise VerifyException(
                f"found components [{start} to {stop}], expected a range within the operand's "
                f"[0 to {input.components}]"
            )
        expect("result", result, input.replace(components=stop - start), "only components change")


@irdl_op_definition
class KeyProductOp(RnsOp):
    """Multiply each digit by its part of a switching key and add them all: two components.

    `rns.key_product %d0, %d1 with %key : (!poly, !poly, !ckks.key<..>) -> !poly2`
    """

    name = "rns.key_product"

    digits = var_operand_def(PolyType)
    key = operand_def(KeyType)
    result = result_def(PolyType)

    traits = traits_def(Pure())
    assembly_format = "$digits `with` $key attr-dict `:` functional-type(operands, results)"

    def __init__(self, digits: Sequence[SSAValue], key: SSAValue | Operation):
        type = PolyType.of(digits[0])
        super().__init__(operands=[digits, key], result_types=[type.replace(components=2)])

    def verify_(self) -> None:
        if not self.digits:
            raise VerifyException("found no digits, expected at least one")
        first = PolyType.of(self.digits[0])
        expect("digit components", first.components, 1, "decompose one component at a time")
        expect("digit form", first.form, Form.EVALUATION, "apply rns.ntt first")
        for digit in self.digits:
            expect("a digit", digit.type, first, "all digits have one type")
        expect("result", self.result.type, first.replace(components=2), "a key has two components")


@irdl_op_definition
class AutomorphismOp(SameTypeUnaryOp):
    """Apply X -> X^g to every component: `rns.automorphism %x, 3125 : !poly`.

    In evaluation form it permutes the values; in coefficient form it permutes and negates.
    """

    name = "rns.automorphism"

    T: ClassVar = VarConstraint("T", base(PolyType))

    input = operand_def(T)
    galois_element = prop_def(IntegerAttr.constr(I64))
    result = result_def(T)

    traits = traits_def(Pure())
    assembly_format = "$input `,` $galois_element attr-dict `:` type($result)"

    def __init__(self, input: SSAValue | Operation, galois_element: int):
        super().__init__(
            operands=[input],
            properties={"galois_element": IntegerAttr(galois_element, i64)},
            result_types=[SSAValue.get(input).type],
        )

    def verify_(self) -> None:
        element = self.galois_element.value.data
        if element < 1 or element % 2 == 0:
            raise VerifyException(
                f"found the Galois element {element}, expected an odd positive number"
            )


OPERATIONS: Sequence[type[Operation]] = [
    ModuliOp,
    AddOp,
    SubOp,
    NegateOp,
    MulOp,
    AddConstantOp,
    MulConstantOp,
    NttOp,
    InttOp,
    ProjectOp,
    ModUpOp,
    ModDownOp,
    ComponentsOp,
    KeyProductOp,
    AutomorphismOp,
]
ATTRIBUTES: Sequence[type[Attribute]] = [FormAttr, BasisAttr, PolyType, ModuliType]

RNS = Dialect("rns", list(OPERATIONS), list(ATTRIBUTES))
