"""Which ops of ckks have a rule for their error, and what is said of one that has none."""

import pytest
from xdsl.dialects import test
from xdsl.ir import Operation

from fhelium.analyses.error_analysis import ErrorAnalysis
from fhelium.dialects import ckks
from fhelium.passes.failure import PassFailure
from fhelium.scheme.parameters import Parameters


@pytest.mark.parametrize("kind", ckks.OPERATIONS, ids=lambda kind: kind.name)
def test_every_op_has_a_rule(kind: type[Operation], parameters: Parameters) -> None:
    # A rule may stumble over an op without operands; only one that is missing refuses it.
    try:
        ErrorAnalysis(parameters, 1.0).apply(kind.create(), [])
    except PassFailure as failure:
        pytest.fail(failure.message)
    except Exception:
        pass


def test_an_op_without_a_rule_is_refused_by_name(parameters: Parameters) -> None:
    op = test.TestPureOp()
    with pytest.raises(PassFailure) as refused:
        ErrorAnalysis(parameters, 1.0).apply(op, [])
    assert refused.value.operation is op
    assert refused.value.message == (
        "found test.pureop, which has no rule for its error, expected an op of ckks that has one: "
        "add a rule to ErrorAnalysis.apply, or lower the op before ckks-annotate-error"
    )
