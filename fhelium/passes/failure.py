"""How a pass says that it can't do its whole job."""

from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException


class PassFailure(PassFailedException):
    """A refusal that names the op it is about; tools print the op's location before it."""

    def __init__(self, operation: Operation, message: str):
        super().__init__(message)
        self.operation = operation
        self.message = message
