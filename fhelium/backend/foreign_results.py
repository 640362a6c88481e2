"""Results of implementations that do not come with FHElium, held against the types of their op.

What FHElium brings is tested to return what its ops say, so that its calls cost nothing more. One
of a third party is looked at on each call: a wrong kind, dtype or shape is an error of its op, and
not of the one that takes the result. Residues are not read here, which would take as long as an
addition.
"""

from collections.abc import Callable

from xdsl.ir import Operation

from fhelium.backend.registry import OperationImplementation
from fhelium.backend.values import check_result
from fhelium.scheme.parameters import Parameters


def comes_with_fhelium(implementation: OperationImplementation) -> bool:
    """Return whether the class of an implementation is one of FHElium's own."""
    return type(implementation).__module__.startswith("fhelium.")


def with_checked_results(
    call: Callable[..., object], operation: Operation, name: str, parameters: Parameters | None
) -> Callable[..., object]:
    """Return a call of implementation `name` whose results are checked each time.

    It raises `TypeError` for another kind or dtype, and `ValueError` for another shape.
    """
    types = operation.result_types

    def checked(*operands: object) -> object:
        results = call(*operands)
        each = (results,) if len(types) == 1 else results
        assert isinstance(each, tuple)
        for i, (result, type) in enumerate(zip(each, types, strict=True)):
            check_result(result, type, parameters, f"result {i} of {name!r}")
        return results

    return checked if types else call
