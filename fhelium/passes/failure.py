"""How a pass says that it can't do its whole job."""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException


class PassFailure(PassFailedException):
    """A refusal that names the op it is about; tools print the op's location before it.

    `notes` point at values that explain it, each with a message of its own.
    """

    def __init__(
        self, operation: Operation, message: str, notes: Sequence[tuple[SSAValue, str]] = ()
    ):
        super().__init__(message)
        self.operation = operation
        self.message = message
        self.notes = notes
