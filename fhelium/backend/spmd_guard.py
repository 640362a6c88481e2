"""What keeps ranks together while a program runs: they compare it first, and fail together.

Before the first collective of a run, the ranks of each group compare what they run. When a
collective fails because another rank is gone or elsewhere, the error names the op, the group and,
where it can be known, the rank.
"""

import hashlib
import json
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakSet

import torch
import torch.distributed
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from fhelium.analyses.rank_dependence import group_key
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family.collectives import agreement
from fhelium.backend.torch_family.collectives.agreement import gather_integers
from fhelium.dialects.ckks.parameters import PARAMETERS, parameters_of
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import element_of
from fhelium.dialects.distributed import CollectiveOp
from fhelium.dialects.rns.types import PolyType
from fhelium.frontends.program import Program
from fhelium.scheme.key_identity import KEY_ID_BYTES, ONE_SECRET

TORCH_FOLDER = str(Path(torch.__file__).parent)


class LostRankError(RuntimeError):
    """A collective that another rank did not take part in, within the deadline."""


class RankMismatchError(RuntimeError):
    """Ranks that are about to run different programs."""


class UnfinishedRunError(RuntimeError):
    """A group on which a run has begun and has not come to its end."""


_UNDER_WAY: WeakSet[torch.distributed.ProcessGroup] = WeakSet()
"""Groups with a run on this rank, or a failed one: others may wait in a collective of it still."""


Group = tuple[str, ProcessGroupExecutionResource]


@dataclass(frozen=True)
class SpmdGuard:
    """The guard of one linked program, on each rank.

    `identity` says what the ranks must have in common: a digest a part, by its name. The program is
    the lowered one, so another pipeline or another version of a pass is another program.
    """

    groups: tuple[Group, ...]
    identity: Mapping[str, str]
    watch: RankWatch = field(repr=False)

    @staticmethod
    def of(
        resources: Sequence[BoundResource], identity: Callable[[], Mapping[str, str]]
    ) -> "SpmdGuard | None":
        """Return the guard of a program on these resources: None when it runs on one rank."""
        sizes = group_sizes(resources)
        groups: dict[torch.distributed.ProcessGroup, Group] = {}
        for resource in resources:
            if sizes.get(resource.symbol, 1) > 1:
                group = resource.value
                assert isinstance(group, ProcessGroupExecutionResource)
                groups.setdefault(group.process_group, (resource.symbol, group))
        if not groups:
            return None
        return SpmdGuard(tuple(groups.values()), identity(), RankWatch.of_default_group())

    @contextmanager
    def run(self) -> Iterator[None]:
        """Watch over one run: what it raises is known to the other ranks.

        Raises `UnfinishedRunError` for a group of a run that failed after the ranks had agreed,
        unless they all raised in one collective: others may wait in that run still, and its
        messages would meet those of this one.
        """
        for name, group in self.groups:
            if group.process_group in _UNDER_WAY:
                raise UnfinishedRunError(
                    f"found @{name} in a run that failed or still goes on, expected a group at "
                    "rest: run one program at a time, and after a failure end all ranks and start "
                    "them again"
                )
        self.watch.begin()
        try:
            yield
        except BaseException as error:
            self.watch.report("raised", describe(error))
            raise
        else:
            _UNDER_WAY.difference_update({group.process_group for _, group in self.groups})
        finally:
            self.watch.end()

    def agree(self, inputs: Mapping[str, str], key_id: str | None) -> None:
        """Compare programs and inputs, by name, and the secret of the keys with the other ranks.

        Raises `RankMismatchError` on every rank when one differs, and `LostRankError`.
        """
        parts = {**self.identity, **inputs}
        digest = hashlib.sha256(json.dumps(parts).encode()).digest()
        secret = bytes.fromhex(key_id or "00" * KEY_ID_BYTES)
        for name, group in self.groups:
            _UNDER_WAY.add(group.process_group)
            try:
                row = [self.watch.position.run, *digest, *secret]
                rows = gather_integers(row, group.device, group)
                self.watch.number(max(run for run, *_ in rows))
                found = [bytes(rest[: len(digest)]) for _, *rest in rows]
                if any(each != digest for each in found):
                    raise RankMismatchError(self.difference(name, group, found, parts))
                _check_one_secret(name, [bytes(rest[len(digest) :]) for _, *rest in rows])
            except RankMismatchError:
                # All ranks of the group raise it: none goes on to a collective of the program.
                _UNDER_WAY.discard(group.process_group)
                raise
            except RuntimeError as error:
                self.explain(error, "the comparison of programs", name, group)
                raise

    def difference(
        self,
        name: str,
        group: ProcessGroupExecutionResource,
        digests: Sequence[bytes],
        parts: Mapping[str, str],
    ) -> str:
        """Return how ranks differ from most of the others, the same text on every rank."""
        common, _ = Counter(digests).most_common(1)[0]
        usual = digests.index(common)
        self.watch.publish(f"identity/{digests[group.rank].hex()}", json.dumps(parts))

        def parts_of(rank: int) -> dict[str, str]:
            key = f"identity/{digests[rank].hex()}"
            return json.loads(self.watch.wait_for(key, group.deadline))

        expected = parts_of(usual)
        told = [
            f"rank {rank} differs from rank {usual} in {_differing(expected, parts_of(rank))}"
            for rank, digest in enumerate(digests)
            if digest != common
        ]
        return (
            f"the ranks of @{name} do not run the same: {'; '.join(told)}: start all ranks with "
            "one program, one pipeline and one version of FHElium"
        )

    def watched(
        self, operation: CollectiveOp, call: Callable[..., object]
    ) -> Callable[..., object]:
        """Return the call of a collective that says which rank it failed for."""
        what, key = operation.name, group_key(operation.group)
        name = key if isinstance(key, str) else None
        group = dict(self.groups).get(name or "")
        enter = self.watch.enter

        def watched(*arguments: object) -> object:
            enter(what)
            try:
                return call(*arguments)
            except (ValueError, RuntimeError) as error:
                if group is not None and raised_on_every_rank(error):
                    _UNDER_WAY.discard(group.process_group)
                if isinstance(error, RuntimeError):
                    self.explain(error, what, name, group)
                raise

        return watched

    def explain(
        self,
        error: RuntimeError,
        what: str,
        name: str | None,
        group: ProcessGroupExecutionResource | None,
    ) -> None:
        """Raise `LostRankError` for an error of the transport; leave others alone."""
        members = range(self.watch.size)
        if group is not None:
            members = [group.global_rank(rank) for rank in range(group.size)]
        where = "a part of a group" if name is None else f"@{name}"
        explain(error, f"{what} in {where}", members, self.watch)


def explain(error: RuntimeError, what: str, members: Collection[int], watch: RankWatch) -> None:
    """Raise `LostRankError` for an error of the transport; leave others alone."""
    if not raised_by_torch(error):
        return
    watch.report("lost", what)
    reason = str(error).strip().splitlines()[0].rpartition("] ")[2]
    raise LostRankError(
        f"{what} failed on rank {watch.rank}: {watch.explain(members)} ({reason})"
    ) from error


def meet(what: str) -> None:
    """Wait until all ranks of the default group are here. Raises `LostRankError`."""
    compare(what, [])


def compare(what: str, row: Sequence[int]) -> list[list[int]]:
    """Return the numbers of all ranks of the default group, as many of each.

    Raises `LostRankError`, which says that they came together for `what`.
    """
    if not torch.distributed.is_initialized() or torch.distributed.get_world_size() == 1:
        return [list(row)]
    group = ProcessGroupExecutionResource()
    try:
        rows = gather_integers([0, *row], group.device, group)
    except RuntimeError as error:
        explain(error, what, range(group.size), RankWatch.of_default_group())
        raise
    return [each[1:] for each in rows]


def raised_by_torch(error: BaseException) -> bool:
    """Return whether torch raised, rather than a check of ours or a region of the program."""
    return _raising_file(error).startswith(TORCH_FOLDER)


def raised_on_every_rank(error: BaseException) -> bool:
    """Return whether the ranks of a collective agreed to raise: none of them waits in it."""
    return _raising_file(error) == agreement.__file__


def _raising_file(error: BaseException) -> str:
    frames = list(traceback.walk_tb(error.__traceback__))
    return frames[-1][0].f_code.co_filename if frames else ""


def describe(error: BaseException) -> str:
    """Return what other ranks are told of an error, in one line."""
    notes = " ".join(getattr(error, "__notes__", []))
    text = " ".join(f"raised {type(error).__name__}: {error} {notes}".split())
    return text.removesuffix(":")


def program_identity(program: Program, implementations: Sequence[str]) -> dict[str, str]:
    """Return what ranks that run one lowered program have in common, by name."""
    parameters = parameters_of(program.module)
    bare = program.clone()
    bare.module.attributes.pop(PARAMETERS, None)
    return {
        "parameters": digest_of("" if parameters is None else str(parameters)),
        "program": digest_of("\n".join([bare.text(), *implementations])),
    }


def input_signature(value: object, type: Attribute) -> str:
    """Return what the ranks' values of one input have in common.

    Sizes that the type leaves open may differ from rank to rank, and so may a batch.
    """
    if not isinstance(value, torch.Tensor):
        return value.__class__.__name__
    element = element_of(type)
    lead = type.get_shape() if isinstance(type, TensorType) else ()
    tail = value.shape[-3:] if isinstance(element, StateType | PolyType) else ()
    sizes = ["?" if size == DYNAMIC_INDEX else str(size) for size in (*lead, *tail)]
    return f"{value.dtype} [{', '.join(sizes)}]"


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _check_one_secret(name: str, secrets: Sequence[bytes]) -> None:
    """Raise `RankMismatchError` for ranks with keys or ciphertexts of several secrets.

    Zeros stand for what does not say whose it is.
    """
    known = {rank: secret for rank, secret in enumerate(secrets) if any(secret)}
    if len({*known.values()}) > 1:
        told = ", ".join(f"rank {rank} {secret.hex()[:8]}" for rank, secret in known.items())
        raise RankMismatchError(
            f"the ranks of @{name} have keys or ciphertexts of several secret keys: {told}: "
            f"{ONE_SECRET}"
        )


def _differing(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Name the parts that differ; of a program that differs, its inputs say nothing more."""
    names = [n for n in {**expected, **found} if expected.get(n) != found.get(n)]
    own = [f"its {name}" for name in names if name in ("parameters", "program")]
    return ", ".join(own) or ", ".join(
        f"{name}: {found.get(name)}, expected {expected.get(name)}" for name in names
    )


def group_sizes(resources: Iterable[BoundResource]) -> dict[str, int]:
    """Return the number of ranks of each group, by its name; nothing before ranks have met."""
    if not torch.distributed.is_initialized():
        return {}
    return {
        resource.symbol: resource.value.size
        for resource in resources
        if isinstance(resource.value, ProcessGroupExecutionResource)
    }
