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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import CodeType
from weakref import WeakSet

import torch
import torch.distributed
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, SSAValue

from fhelium.analyses.rank_dependence import group_key, value_name
from fhelium.backend.process_group import ProcessGroupExecutionResource
from fhelium.backend.rank_watch import RankWatch
from fhelium.backend.resources import BoundResource
from fhelium.backend.torch_family.collectives import agreement, transport
from fhelium.backend.torch_family.collectives.agreement import RankMismatchError, gather_integers
from fhelium.dialects.ckks.parameters import PARAMETERS, parameters_of
from fhelium.dialects.ckks.types import StateType
from fhelium.dialects.core import element_of
from fhelium.dialects.distributed import CollectiveOp, SplitOp
from fhelium.dialects.rns.types import PolyType
from fhelium.frontends.program import Program
from fhelium.scheme.key_identity import KEY_ID_BYTES, ONE_SECRET

TORCH_FOLDER = str(Path(torch.__file__).parent)


class LostRankError(RuntimeError):
    """A collective that another rank did not take part in, within the deadline."""


class UnfinishedRunError(RuntimeError):
    """A group on which a run has begun and has not come to its end."""


_UNDER_WAY: WeakSet[torch.distributed.ProcessGroup] = WeakSet()
"""Groups with a run on this rank, or a failed one: others may wait in a collective of it still."""


Group = tuple[str, ProcessGroupExecutionResource]
"""A group under its names, such as `@world`, or `@a and @b` for a group of two names."""

COMPARISON = "the comparison of programs"


@dataclass(frozen=True)
class SpmdGuard:
    """The guard of one linked program, on each rank.

    Each group is in `groups` once, in an order that ranks share, and in `by_symbol` under all names
    of its resources. `identity` says what the ranks must have in common: a text or its digest a
    part, by its name. The program is the lowered one, so another pipeline or another version of a
    pass is another program.
    """

    groups: tuple[Group, ...]
    by_symbol: Mapping[str, ProcessGroupExecutionResource]
    identity: Mapping[str, str]
    watch: RankWatch = field(repr=False)

    @staticmethod
    def of(
        resources: Sequence[BoundResource], identity: Callable[[], Mapping[str, str]]
    ) -> "SpmdGuard | None":
        """Return the guard of a program on these resources: None when it runs on one rank."""
        sizes = group_sizes(resources)
        by_symbol = {
            resource.symbol: resource.value
            for resource in sorted(resources, key=lambda resource: resource.symbol)
            if isinstance(resource.value, ProcessGroupExecutionResource)
            and sizes.get(resource.symbol, 1) > 1
        }
        if not by_symbol:
            return None
        groups: dict[str, Group] = {}
        for symbol, group in by_symbol.items():
            key = group.process_group.group_name
            names = f"{groups[key][0]} and @{symbol}" if key in groups else f"@{symbol}"
            groups[key] = names, group
        in_order = tuple(group for _, group in sorted(groups.items()))
        return SpmdGuard(in_order, by_symbol, identity(), RankWatch.of_default_group())

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
                    f"found {name} in a run that failed or still goes on, expected a group at "
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
        secret = bytes.fromhex(key_id or "00" * KEY_ID_BYTES)
        for name, group in self.groups:
            what = f"{COMPARISON} in {name}"
            parts = {**self.identity, "its name of the group": name, **inputs}
            digest = hashlib.sha256(json.dumps(parts).encode()).digest()
            _UNDER_WAY.add(group.process_group)
            self.watch.enter(what)
            try:
                row = [self.watch.position.run, *digest, *secret]
                rows = gather_integers(COMPARISON, row, group.device, group)
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
                explain(error, what, members_of(group), self.watch)
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
        with suppress(RuntimeError):
            self.watch.publish(f"identity/{digests[group.rank].hex()}", json.dumps(parts))

        def parts_of(rank: int) -> dict[str, str]:
            key = f"identity/{digests[rank].hex()}"
            return json.loads(self.watch.wait_for(key, group.deadline))

        def told_of(rank: int) -> str:
            difference = f"rank {rank} differs from rank {usual}"
            try:
                return f"{difference} in {_differing(parts_of(usual), parts_of(rank))}"
            except RuntimeError:
                # One of them, or the store, was lost since; that they differ is known.
                return difference

        told = [told_of(rank) for rank, digest in enumerate(digests) if digest != common]
        return (
            f"the ranks of {name} do not run the same: {'; '.join(told)}: start all ranks with "
            "one program, one pipeline and one version of FHElium"
        )

    def watched(
        self, operation: CollectiveOp, call: Callable[..., object]
    ) -> Callable[..., object]:
        """Return the call of a collective that says which rank it failed for."""
        key = group_key(operation.group)
        named = self.by_symbol.get(key) if isinstance(key, str) else None

        def watched(*arguments: object) -> object:
            group = named or part_among(arguments)
            what = f"{operation.name} in {described(operation.group, group)}"
            self.watch.enter(what)
            try:
                return call(*arguments)
            except (ValueError, RuntimeError) as error:
                if group is not None and raised_on_every_rank(error):
                    _UNDER_WAY.discard(group.process_group)
                if isinstance(error, RuntimeError):
                    explain(error, what, members_of(group), self.watch)
                raise

        return watched


def part_among(arguments: Sequence[object]) -> ProcessGroupExecutionResource | None:
    """Return the group among the arguments of a collective, where `dist.split` made it."""
    values = [each.value for each in arguments if isinstance(each, BoundResource)]
    return next((v for v in values if isinstance(v, ProcessGroupExecutionResource)), None)


def described(value: SSAValue, group: ProcessGroupExecutionResource | None) -> str:
    """Return how errors call a group: by the name of its resource, or as a part of one."""
    if isinstance(key := group_key(value), str):
        return f"@{key}"
    whole = value
    while isinstance(whole.owner, SplitOp):
        whole = whole.owner.group
    ranks = ", ".join(str(rank) for rank in members_of(group))
    return f"{value_name(value)}, a part of {described(whole, None)} (ranks {ranks})"


def members_of(group: ProcessGroupExecutionResource | None) -> list[int]:
    """Return the ranks of a group as the default group numbers them: all of it for `None`."""
    if group is None:
        return list(range(torch.distributed.get_world_size()))
    return [group.global_rank(rank) for rank in range(group.size)]


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
        return gather_integers(what, row, group.device, group)
    except RuntimeError as error:
        explain(error, what, range(group.size), RankWatch.of_default_group())
        raise


def raised_by_torch(error: BaseException) -> bool:
    """Return whether torch raised, rather than a check of ours or a region of the program."""
    code = _raising_code(error)
    if code is None:
        return False
    return code.co_filename.startswith(TORCH_FOLDER) or code is transport.finish.__code__


def raised_on_every_rank(error: BaseException) -> bool:
    """Return whether the ranks of a collective agreed to raise: none of them waits in it."""
    code = _raising_code(error)
    return code is not None and code.co_filename == agreement.__file__


def _raising_code(error: BaseException) -> CodeType | None:
    frames = list(traceback.walk_tb(error.__traceback__))
    return frames[-1][0].f_code if frames else None


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
        "version": versions(),
        "parameters": digest_of("" if parameters is None else str(parameters)),
        "program": digest_of("\n".join([bare.text(), *implementations])),
    }


def versions() -> str:
    """Return the versions of FHElium and torch, without that of the device torch was built for."""
    try:
        own = version("fhelium")
    except PackageNotFoundError:
        own = "of a source tree"
    return f"FHElium {own}, torch {torch.__version__.partition('+')[0]}"


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
            f"the ranks of {name} have keys or ciphertexts of several secret keys: {told}: "
            f"{ONE_SECRET}"
        )


def _differing(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Name the parts that differ: the first kind of them that explains the others."""
    names = [n for n in {**expected, **found} if expected.get(n) != found.get(n)]
    if "version" in names:
        names = ["version"]
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
