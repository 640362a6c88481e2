"""One rule for each torch operator that has a meaning on secrets: `RULES` is what is supported."""

from collections.abc import Mapping

from fhelium.frontends.capture.operators import activations, elementwise, linear, shapes
from fhelium.frontends.capture.operators.instead import INSTEAD as INSTEAD
from fhelium.frontends.capture.operators.rules import Rule

RULES: Mapping[str, Rule] = {
    **elementwise.RULES,
    **activations.RULES,
    **linear.RULES,
    **shapes.RULES,
}
"""Rules by the name of the operator, such as `aten.linear.default`."""
