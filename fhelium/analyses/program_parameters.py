"""The parameters of a program, for the passes that can't do without."""

from xdsl.dialects.builtin import ModuleOp

from fhelium.dialects.ckks.parameters import PARAMETERS, ParametersAttr
from fhelium.passes.failure import PassFailure
from fhelium.scheme.parameters import Parameters

CHOSEN_BY = "ckks-default chooses some, for secret tensors secure-default"
"""How a program gets parameters, for a `why`."""


def program_parameters(module: ModuleOp, why: str) -> Parameters:
    """Return the checked parameters of a module; `why` says what they are needed for.

    Raises `PassFailure` for a module without parameters, and for those that the scheme refuses,
    as text that is read may have them.
    """
    attribute = module.attributes.get(PARAMETERS)
    if not isinstance(attribute, ParametersAttr):
        raise PassFailure(
            module,
            f"found {attribute or 'nothing'} for {PARAMETERS} on the module, expected "
            f"#ckks.parameters<..>: {why}",
        )
    try:
        return Parameters.from_attribute(attribute)
    except ValueError as error:
        raise PassFailure(module, f"{PARAMETERS}: {error}") from None
