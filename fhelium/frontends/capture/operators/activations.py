"""Rules for activations: the polynomial that the caller chose, with its error."""

from collections.abc import Mapping

from fhelium.dialects import secure
from fhelium.dialects.secure.arithmetic import Basis
from fhelium.frontends.capture.approximation import FUNCTIONS, Approximation
from fhelium.frontends.capture.builder import Call, RefusedError, Secret
from fhelium.frontends.capture.operators.rules import Rule


def _approximation(call: Call, function: str) -> Approximation:
    """Return the caller's choice for this very module, or for all activations of its kind."""
    chosen, path, name = call.builder.activations, call.path(), function.removesuffix("_tanh")
    for known in (path, name):
        if known in chosen:
            return chosen[known]
    here = f", or for this one alone, {{{path!r}: ...}}" if path else ""
    raise RefusedError(
        f"found no polynomial for it, expected one: pass activations={{{name!r}: "
        f"Approximation(degree=7, interval=(-4, 4))}} with the interval of its inputs{here}"
    )


def _approximated(call: Call, function: str) -> Secret:
    x = call.secret("self")
    fitted = _approximation(call, function).fit(FUNCTIONS[function])
    operation = secure.PolynomialOp(
        x.value, fitted.coefficients, Basis.CHEBYSHEV, fitted.interval, function, fitted.error
    )
    return call.result(call.builder.emit(operation))


def gelu(call: Call) -> Secret:
    """GELU, exact or by its tanh formula as the model says."""
    exact = call.arguments["approximate"] == "none"
    return _approximated(call, "gelu" if exact else "gelu_tanh")


RULES: Mapping[str, Rule] = {
    "aten.gelu.default": gelu,
    "aten.relu.default": lambda call: _approximated(call, "relu"),
    "aten.sigmoid.default": lambda call: _approximated(call, "sigmoid"),
    "aten.silu.default": lambda call: _approximated(call, "silu"),
    "aten.tanh.default": lambda call: _approximated(call, "tanh"),
}
