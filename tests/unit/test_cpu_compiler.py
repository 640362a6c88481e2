"""Machine code in memory and on disk."""

import errno
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from test_cpu_transforms import MACHINE, needs_fma, random, ring_of

import fhelium
from fhelium.kernels import pointwise
from fhelium.kernels.cpu import cache, compiler, launch, operations, sources, threads
from fhelium.kernels.cpu.builder import KernelBuilder
from fhelium.kernels.cpu.catalogue import BUILDERS, KernelSpec
from fhelium.kernels.cpu.host import vector_width, widest_allowed
from fhelium.kernels.cpu.residues import Modulus, Residue
from fhelium.kernels.ntt import ntt

ADD = KernelSpec("add", (), 1)
SIZES: dict[str, tuple[int, ...]] = {
    "ntt": (64,),
    "intt": (64,),
    "multiply": (2, 2),
    "square": (2,),
    "weighted_sum": (2, 2),
    "mod_up": (3,),
    "fused": (2, 2, 1, 2, 3, 0, 1, 0, 2, 0, 3),
    "from_doubles": (2,),
    "embedding": (64,),
    "split": (64,),
    "overflow": (2,),
    "key_switch": (64, 2, 1, 2, 4),
    "divide": (64, 2),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "fhelium" / "kernels"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record every compilation."""
    calls: list[Any] = []
    optimized = compiler.optimized

    def record(*arguments: Any) -> Any:
        calls.append(arguments)
        return optimized(*arguments)

    monkeypatch.setattr(compiler, "optimized", record)
    return calls


@pytest.mark.parametrize("name", BUILDERS)
def test_every_kernel_is_valid_ir_without_vector_calls(name: str) -> None:
    module = KernelSpec(name, SIZES.get(name, ()), 4).build()
    module.verify()
    text = str(module)
    assert "fast" not in text.replace("fastmath<none>", "")
    assert "contract" not in text


@needs_fma
def test_code_is_kept_and_taken_from_the_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MACHINE is not None
    calls = counted(monkeypatch)
    code = compiler.object_code(ADD, MACHINE)
    assert compiler.object_code(ADD, MACHINE) == code
    assert len(calls) == 1
    (entry,) = folder.iterdir()
    assert entry.name == compiler.cache_key(ADD, MACHINE)
    for each in (folder, folder.parent):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700


def test_builders_are_those_of_the_sources() -> None:
    """Code on disk is named by the sources, so another builder may not take a name."""
    with pytest.raises(TypeError, match="does not support item assignment"):
        BUILDERS["add"] = BUILDERS["subtract"]  # pyright: ignore[reportIndexIssue]


@needs_fma
def test_code_of_sources_that_are_not_known_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MACHINE is not None
    monkeypatch.setattr(compiler, "SOURCES_DIGEST", None)
    calls = counted(monkeypatch)
    for _ in range(2):
        assert compiler.object_code(ADD, MACHINE)
    assert len(calls) == 2
    assert not folder.exists()


def test_sources_are_known_if_they_did_not_change_while_they_were_imported(tmp_path: Path) -> None:
    assert sources.digest_of(tmp_path) is None, "there are none, as in an archive"
    (tmp_path / "a.py").write_text("x = 1")
    before = sources.digest_of(tmp_path)
    assert before is not None
    assert compiler.digest_of_imported(before, tmp_path) == before
    (tmp_path / "a.py").write_text("x = 2")
    assert compiler.digest_of_imported(before, tmp_path) is None
    assert compiler.digest_of_imported(None, tmp_path) is None
    assert compiler.SOURCES_DIGEST == sources.BEFORE_IMPORT


EDITED = """
import pathlib, sys
import fhelium.kernels.cpu
early = sorted(name for name in sys.modules if name.startswith("fhelium.kernels.cpu."))
assert early == ["fhelium.kernels.cpu.sources"], early
source = pathlib.Path(fhelium.kernels.cpu.__file__).parent / "elementwise.py"
assert source.is_relative_to(pathlib.Path.cwd()), "a copy"
if sys.argv[1] == "during":
    source.write_text(source.read_text() + "# edited")
from fhelium.kernels.cpu import compiler
from fhelium.kernels.cpu.catalogue import KernelSpec
from fhelium.kernels.cpu.host import Host
if sys.argv[1] == "after":
    source.write_text(source.read_text() + "# edited")
print(compiler.cache_key(KernelSpec("add", (), 1), Host("x", "", 1)))
"""


def test_sources_that_are_edited_later_do_not_name_what_was_imported(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "backend", "frontends", "tools", "passes")
    shutil.copytree(Path(fhelium.__path__[0]), tmp_path / "fhelium", ignore=ignored)

    def key(when: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", EDITED, when],
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    first = key("never")
    assert key("after") == first
    second = key("never")
    assert second.endswith(".o")
    assert second != first
    assert key("during") == "None"


@needs_fma
@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_entry_is_compiled_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    assert MACHINE is not None
    compiler.object_code(ADD, MACHINE)
    (entry,) = folder.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    calls = counted(monkeypatch)
    compiler.object_code(ADD, MACHINE)
    assert len(calls) == 1
    assert entry.read_bytes() == whole


@needs_fma
def test_a_cache_that_cannot_be_used_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MACHINE is not None
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert compiler.object_code(ADD, MACHINE)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users")
def test_entries_of_other_users_are_ignored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("key", b"code")
    assert cache.load("key") == b"code"
    monkeypatch.setattr(cache.os, "getuid", lambda: os.geteuid() + 1)
    assert cache.load("key") is None


@needs_fma
def test_a_renamed_entry_is_not_another_kernel(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is that of its code, and its code has the functions that are asked for."""
    assert MACHINE is not None
    short, long = (KernelSpec("ntt", (degree,), 1) for degree in (4, 8))
    compiler.object_code(short, MACHINE)
    (entry,) = folder.iterdir()
    key = compiler.cache_key(long, MACHINE)
    assert key is not None
    entry.rename(folder / key)
    calls = counted(monkeypatch)
    compiler.object_code(long, MACHINE)
    assert len(calls) == 1


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users")
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entries_that_others_can_write_are_ignored(folder: Path, mode: int) -> None:
    cache.store("key", b"code")
    (folder / "key").chmod(0o644)
    assert cache.load("key") == b"code"
    (folder / "key").chmod(mode)
    assert cache.load("key") is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no users")
@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
@pytest.mark.parametrize("above", [False, True])
def test_folders_that_others_can_write_are_no_cache(folder: Path, mode: int, above: bool) -> None:
    cache.store("key", b"code")
    assert cache.load("key") == b"code"
    (folder.parent if above else folder).chmod(mode)
    assert cache.load("key") is None
    cache.store("other", b"code")
    assert not (folder / "other").exists()


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links are followed")
@pytest.mark.parametrize("linked", ["fhelium/kernels/key", "fhelium/kernels", "fhelium"])
def test_links_are_not_followed(folder: Path, tmp_path: Path, linked: str) -> None:
    """They may lead to a file of this user whose content somebody else made."""
    cache.store("key", b"code")
    (tmp_path / linked).rename(tmp_path / "elsewhere")
    (tmp_path / linked).symlink_to(tmp_path / "elsewhere")
    assert (folder / "key").exists()
    assert cache.load("key") is None


def _make_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
@pytest.mark.parametrize(
    "make", [os.mkfifo, Path.mkdir, _make_loop, lambda path: path.symlink_to("/dev/zero")]
)
@needs_fma
def test_what_is_no_file_is_no_entry(folder: Path, make: Callable[[Path], None]) -> None:
    assert MACHINE is not None
    folder.parent.mkdir(mode=0o700)
    folder.mkdir(mode=0o700)
    key = compiler.cache_key(ADD, MACHINE)
    assert key is not None
    make(folder / key)
    assert compiler.object_code(ADD, MACHINE)
    assert not [path for path in folder.iterdir() if path.name.startswith(cache.WRITING)]


def test_a_file_larger_than_the_folder_is_no_entry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store("key", b"code")
    monkeypatch.setattr(cache, "FOLDER_BYTES", cache.DIGEST_BYTES)
    assert cache.load("key") is None


@needs_fma
def test_a_full_disk_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    assert MACHINE is not None
    monkeypatch.setattr(cache.os, "replace", full)
    assert compiler.object_code(ADD, MACHINE)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_named_like_an_entry_does_not_stop_the_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "FOLDER_BYTES", 200)
    cache.store("b.o", bytes(100))
    (folder / "a.o" / "b").mkdir(parents=True)
    os.utime(folder / "a.o", (0, 0))
    for name in ("b.o", "c.o", "d.o"):
        cache.store(name, bytes(100))
    assert sorted(path.name for path in folder.iterdir()) == ["a.o", "d.o"]


def test_a_relative_cache_folder_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.cache_folder() == Path.home() / ".cache" / "fhelium" / "kernels"


def test_a_relative_home_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("here"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RuntimeError, match="found the home folder here, expected an absolute path"):
        cache.cache_folder()
    cache.store("key", b"code")
    assert cache.load("key") is None
    assert list(tmp_path.iterdir()) == []


@needs_fma
def test_the_key_tells_cpus_and_kernels_apart() -> None:
    assert MACHINE is not None
    keys = {
        compiler.cache_key(spec, machine)
        for spec in (ADD, KernelSpec("add", (), 2), KernelSpec("ntt", (8,), 1))
        for machine in (MACHINE, replace(MACHINE, name="x"), replace(MACHINE, features="-fma"))
    }
    assert len(keys) == 9


@needs_fma
def test_several_processes_share_the_cache(folder: Path) -> None:
    program = (
        "from fhelium.kernels.cpu import host, loader\n"
        "from fhelium.kernels.cpu.catalogue import KernelSpec\n"
        "loader.compiled(KernelSpec('negate', (), 1), host.host())\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in running] == [0, 0, 0]
    (entry,) = folder.iterdir()
    assert cache.load(entry.name)


@needs_fma
def test_printing_a_kernel_does_not_import_torch() -> None:
    program = (
        "import sys\n"
        "from fhelium.tools.opt import main\n"
        "main(['-t', 'kernel{kernel=add form=assembly}'])\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input="module {}", text=True, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert "add_share" in done.stdout


def test_the_generator_refuses_what_could_be_inexact() -> None:
    b = KernelBuilder("test", 4)
    m = Modulus.load(b, b.arguments, 0)
    wide = Residue(m.q, Fraction(4))
    with pytest.raises(ValueError, match=r"may reach 8.000 q, expected less than 8 q"):
        m.add(wide, wide)
    assert m.accumulate(wide, wide).bound < 5
    assert m.multiply(wide, m.q, m.q).bound < m.multiply(wide, m.q).bound < Fraction(201, 100)


def test_vector_widths() -> None:
    assert vector_width("x86_64", {"fma", "avx2", "avx512f", "avx512dq", "avx512vl"}) == 8
    assert vector_width("x86_64", {"fma", "avx2", "avx512f"}) == 4
    assert vector_width("x86_64", {"fma"}) == 1
    assert vector_width("x86_64", {"avx2"}) is None
    assert vector_width("aarch64", set()) == 2
    assert vector_width("riscv64", set()) is None


NARROW = """
import hashlib, torch
from fhelium.kernels.cpu import compiler, loader, operations
from fhelium.kernels.cpu.host import host
from fhelium.kernels.ring import Ring
from fhelium.scheme.primes import ntt_primes

ring, limbs = Ring(64, ntt_primes(40, 64, 2)), (0, 1)
x = torch.arange(2 * 2 * 64).view(2, 2, 64) * (1 << 30)
result = operations.multiply(ring, limbs, operations.ntt(ring, limbs, x), x)
widths = {spec.width for spec, _ in loader._compiled}
print(host().width, widths, hashlib.sha256(result.numpy().tobytes()).hexdigest())
"""


@needs_fma
def test_the_environment_limits_the_width_of_vectors(folder: Path) -> None:
    """Bits stay the same. The cache of the two is shared."""
    assert MACHINE is not None

    def run(width: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", NARROW],
            env={**os.environ, "FHELIUM_VECTOR_WIDTH": width},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    narrow, wide = run("1"), run("8")
    assert narrow[:2] == ["1", "{1}"]
    assert wide[:2] == [str(MACHINE.width), f"{{{MACHINE.width}}}"]
    assert narrow[2] == wide[2]


@pytest.mark.parametrize("text", ["3", "0", "-1", "16", "two", " 4", "4.0"])
def test_other_widths_in_the_environment_are_refused(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("FHELIUM_VECTOR_WIDTH", text)
    with pytest.raises(
        ValueError,
        match=f"found FHELIUM_VECTOR_WIDTH={text}, expected one of 1, 2, 4, 8: set it to one of th",
    ):
        widest_allowed()


@needs_fma
def test_threads_share_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    ring, limbs = ring_of(1 << 12), (0, 1, 3)
    x = random(ring, limbs, 3)
    expected = [pointwise.add(ring, limbs, x, x), operations.ntt(ring, limbs, x)]
    before = torch.get_num_threads()
    shared: list[int] = []
    run = launch.run_shared

    def record(share: int, words: int, count: int) -> None:
        shared.append(count)
        run(share, words, count)

    monkeypatch.setattr(launch, "run_shared", record)
    try:
        for count in (2, 3):
            torch.set_num_threads(count)
            found = [operations.add(ring, limbs, x, x), operations.ntt(ring, limbs, x)]
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    finally:
        torch.set_num_threads(before)
    assert set(shared) <= {2}, "36,864 words are worth two threads"


def test_several_python_threads_may_compute_at_once() -> None:
    ring, limbs = ring_of(256), (0, 1, 3)
    x = random(ring, limbs, 2)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: operations.ntt(ring, limbs, x), range(16)))
    finally:
        torch.set_num_threads(before)
    expected = ntt(ring, limbs, x)
    assert all(torch.equal(each, expected) for each in found)


def test_small_work_and_forked_processes_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert threads.thread_count(8, threads.WORDS_A_THREAD) == 1
        assert threads.thread_count(1, 1 << 30) == 1
        monkeypatch.setattr(threads, "is_forked", lambda: True)
        assert threads.thread_count(8, 1 << 30) == 1
    finally:
        torch.set_num_threads(before)


def _child(connection: Any) -> None:
    ring, limbs = ring_of(1 << 12), (0, 1, 3)
    torch.set_num_threads(1)
    x = random(ring, limbs, 3)
    connection.send(
        bool(torch.equal(operations.intt(ring, limbs, operations.ntt(ring, limbs, x)), x))
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_kernels_run_after_a_fork() -> None:
    context = multiprocessing.get_context("fork")
    ring, limbs = ring_of(1 << 12), (0, 1, 3)
    operations.ntt(ring, limbs, random(ring, limbs, 3))
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender,))
    process.start()
    try:
        assert receiver.poll(60)
        assert receiver.recv() is True
    finally:
        process.join(timeout=10)
        if process.is_alive():
            process.kill()


def test_the_folder_is_bounded_by_what_was_used_last(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = cache.DIGEST_BYTES + 100
    monkeypatch.setattr(cache, "FOLDER_BYTES", 3 * entry)
    for age, key in enumerate(["c.o", "b.o", "a.o"]):
        cache.store(key, bytes(100))
        os.utime(folder / key, (1000 - age, 1000 - age))
    assert cache.load("a.o"), "the oldest, until it is used"
    cache.store("d.o", bytes(100))
    assert sorted(path.name for path in folder.iterdir()) == ["a.o", "c.o", "d.o"]
    cache.store("large.o", bytes(10 * entry))
    assert [path.name for path in folder.iterdir()] == ["large.o"], "what was just stored stays"


def test_other_files_of_the_folder(folder: Path) -> None:
    """Files that are being written stay, unless they were left behind; so do those of others."""
    cache.store("a.o", b"code")
    for name, modified in [(".writing-now", None), (".writing-old", (0, 0)), ("notes", (0, 0))]:
        (folder / name).write_bytes(b"")
        os.utime(folder / name, modified)
    cache.store("b.o", b"code")
    assert sorted(path.name for path in folder.iterdir()) == [
        *(".writing-now", "a.o", "b.o", "notes")
    ]


def _store_many(name: str) -> bool:
    for number in range(100):
        cache.store(f"{name}-{number}.o", bytes(1000))
        cache.load(f"{name}-{number // 2}.o")
    return cache.load(f"{name}-99.o") in (None, bytes(1000))


def test_several_processes_bound_the_folder_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "FOLDER_BYTES", 5000)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map_async(_store_many, ["x", "y", "z"]).get(timeout=60) == [True] * 3
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5000
