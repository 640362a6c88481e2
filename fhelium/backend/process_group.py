"""The group of ranks that collectives run on."""

from dataclasses import dataclass

import torch
import torch.distributed


@dataclass(frozen=True)
class ProcessGroupExecutionResource:
    """Expose one initialized rank-local process group to Backend operations.

    group=None names PyTorch's default process group. Ranks represented by distributed IR are
    process-group ranks; conversion to a global rank occurs only when a PyTorch collective requires
    it.

    Raises `RuntimeError` when `torch.distributed` is not available or not initialized, and
    `TypeError` when `group` is neither a process group nor None.
    """

    group: torch.distributed.ProcessGroup | None = None

    def __post_init__(self) -> None:
        if not torch.distributed.is_available():
            raise RuntimeError("this build of torch has no torch.distributed: install one that has")
        if not torch.distributed.is_initialized():
            raise RuntimeError(
                "torch.distributed is not initialized: call "
                "torch.distributed.init_process_group first, for instance under torchrun"
            )
        if self.group is not None and not isinstance(self.group, torch.distributed.ProcessGroup):
            raise TypeError(
                f"group is a {type(self.group).__name__}, expected a "
                "torch.distributed.ProcessGroup or None for the default group"
            )

    @property
    def rank(self) -> int:
        """Return this process's rank within the selected group."""
        return torch.distributed.get_rank(self.group)

    @property
    def size(self) -> int:
        """Return the number of participating group ranks."""
        return torch.distributed.get_world_size(self.group)

    def global_rank(self, group_rank: int) -> int:
        """Map one group-relative rank to its process-global rank.

        Raises `IndexError` for a rank that the group does not have.
        """
        if not 0 <= group_rank < self.size:
            raise IndexError(
                f"rank {group_rank} is outside the group, expected 0 to {self.size - 1}"
            )
        if self.group is None:
            return group_rank
        return torch.distributed.get_global_rank(self.group, group_rank)
