"""The group of ranks that collectives run on."""

from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed

SHORTEST_DEADLINE, LONGEST_DEADLINE = timedelta(milliseconds=1), timedelta(seconds=1e9)
"""Torch counts whole milliseconds, and fewer nanoseconds than an int64 holds."""


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
    def deadline(self) -> timedelta:
        """Return how long one message of the group may take; a collective sends up to three."""
        return self.process_group._get_backend(self.device).options._timeout

    def set_deadline(self, deadline: timedelta) -> None:
        """Set how long one message of the group may take, for all that use the group.

        A part of it, which `dist.split` makes, follows when the program splits it again.
        Raises `TypeError` unless it is a `timedelta`, and `ValueError` unless it is between a
        millisecond and 10^9 seconds.
        """
        if not isinstance(deadline, timedelta):
            raise TypeError(f"the deadline is a {type(deadline).__name__}, expected a timedelta")
        if not SHORTEST_DEADLINE <= deadline <= LONGEST_DEADLINE:
            raise ValueError(
                f"the deadline is {deadline.total_seconds():g} s, expected 0.001 to 1e+09 s"
            )
        torch.distributed.distributed_c10d._set_pg_timeout(deadline, self.group)

    @property
    def rank(self) -> int:
        """Return this process's rank within the selected group."""
        return torch.distributed.get_rank(self.group)

    @property
    def size(self) -> int:
        """Return the number of participating group ranks."""
        return torch.distributed.get_world_size(self.group)

    @property
    def process_group(self) -> torch.distributed.ProcessGroup:
        """Return the selected group, also where it is the default one."""
        group = self.group or torch.distributed.group.WORLD
        assert group is not None
        return group

    @property
    def device(self) -> torch.device:
        """Return where messages without a payload travel: on CUDA in a group of NCCL."""
        if "nccl" in self._transports.values():
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")

    def carrier(self, device: torch.device) -> torch.device:
        """Return the device by which a payload on `device` travels: itself where it can."""
        return device if device.type in self._transports else self.device

    @property
    def _transports(self) -> dict[str, str]:
        """The transport of each type of device, from a text such as `cpu:gloo,cuda:nccl`."""
        config = torch.distributed.get_backend_config(self.group)
        return dict(entry.split(":", 1) for entry in config.split(","))

    def part(self, members: tuple[int, ...], name: str) -> "ProcessGroupExecutionResource":
        """Return a new group of some ranks, in that order, which all of them ask for.

        It has the timeout of this one. Its members give it one `name`, new to this group. (The
        names that `torch.distributed.new_group` makes up count the groups of each process, so ranks
        that have made more of them than others would wait for each other under several names.)
        """
        c10d = torch.distributed.distributed_c10d
        ranks = [self.global_rank(rank) for rank in members]
        group, _ = c10d._new_process_group_helper(
            len(members),
            members.index(self.rank),
            ranks,
            torch.distributed.get_backend_config(self.group),
            c10d._get_default_store(),
            f"{self.process_group.group_name}/{name}",  # pyright: ignore[reportArgumentType]
            timeout=self.deadline,
        )
        assert isinstance(group, torch.distributed.ProcessGroup), "this rank is one of its members"
        c10d._world.pg_group_ranks[group] = {rank: place for place, rank in enumerate(ranks)}
        return ProcessGroupExecutionResource(group)

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
