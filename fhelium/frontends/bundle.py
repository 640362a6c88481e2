"""A program in two files: its text, and its materials beside it.

Both are untrusted when they are read: the text is parsed and verified, nothing is unpickled, and
every material is compared with the type that the text gives it.
"""

from pathlib import Path
from types import MappingProxyType

import torch
from xdsl.dialects.builtin import Float64Type, TensorType

from fhelium.dialects.core import MaterialOp
from fhelium.frontends.diagnostics import Fault, ProgramError, place_of
from fhelium.frontends.program import Program
from fhelium.scheme import files
from fhelium.scheme.atomic_file import write_atomically
from fhelium.scheme.ciphertext import Ciphertext, Plaintext
from fhelium.scheme.parameters import Parameters


def _paths(stem: Path) -> tuple[Path, Path]:
    """Return the two files of a bundle; a stem may have dots of its own.

    Raises `ValueError` for a stem without a name.
    """
    if stem.name in ("", ".."):
        raise ValueError(
            f"found the path '{stem}', expected one that ends in a name, as in build/model: the "
            "files are that and .mlir or .safetensors"
        )
    return stem.with_name(f"{stem.name}.mlir"), stem.with_name(f"{stem.name}.safetensors")


def _material_ops(program: Program) -> list[MaterialOp]:
    return [op for op in program.module.walk() if isinstance(op, MaterialOp)]


def save(program: Program, stem: Path) -> None:
    """See `Program.save`."""
    text_path, materials_path = _paths(stem)
    materials: dict[str, files.Storable] = {}
    for name in dict.fromkeys(operation.symbol_name for operation in _material_ops(program)):
        if name not in program.materials:
            raise ValueError(
                f"material @{name} has no value, expected one in Program.materials: save it with "
                "the program"
            )
        value = program.materials[name]
        if not isinstance(value, torch.Tensor | Ciphertext | Plaintext):
            raise TypeError(
                f"material @{name} is a {type(value).__name__}, expected a tensor, a Plaintext or "
                "a Ciphertext"
            )
        materials[name] = value
    text = program.text().encode("utf-8")
    if materials:
        files.save(materials_path, materials)
    else:
        materials_path.unlink(missing_ok=True)  # of a program that was there before
    write_atomically(text_path, text, mode=0o666)


def load(stem: Path, parameters: Parameters | None) -> Program:
    """See `Program.load`."""
    text_path, materials_path = _paths(stem)
    program = Program.from_file(text_path)
    program.verify()
    wanted = _material_ops(program)
    materials: dict[str, object] = {}
    if wanted and materials_path.exists():
        materials.update(files.load(materials_path, parameters))
    faults: list[Fault] = []
    for operation in wanted:
        message = _mismatch(operation, materials, materials_path)
        if message is not None:
            faults.append(Fault(message, place_of(operation, program.sources)))
    unknown = materials.keys() - {operation.symbol_name for operation in wanted}
    if unknown:
        names = ", ".join(f"@{name}" for name in sorted(unknown))
        faults.append(
            Fault(f"{materials_path} holds {names}, which no fhelium.material of the text names")
        )
    if faults:
        raise ProgramError(faults)
    return Program(program.module, program.sources, MappingProxyType(materials))


def _mismatch(operation: MaterialOp, materials: dict[str, object], path: Path) -> str | None:
    """Return why a material does not fit its op, or None. Other types are the linker's to check."""
    name, type = operation.symbol_name, operation.result.type
    if name not in materials:
        return f"material @{name} is not in {path}: save program and materials together"
    if not isinstance(type, TensorType) or not isinstance(type.element_type, Float64Type):
        return None
    value = materials[name]
    if not isinstance(value, torch.Tensor):
        return f"material @{name} is a {value.__class__.__name__} in {path}, expected a tensor"
    if value.dtype != torch.float64:
        return (
            f"material @{name} has dtype {value.dtype} in {path}, expected torch.float64: convert "
            "it with .to(torch.float64)"
        )
    if tuple(value.shape) != type.get_shape():
        return (
            f"material @{name} has shape {list(value.shape)} in {path}, expected "
            f"{list(type.get_shape())}"
        )
    return None
