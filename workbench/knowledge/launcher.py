"""Writes the plain Python around the kernels: reading shapes, refusing what they can't take, allocating and returning results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from workbench.knowledge.axes import Dim
from workbench.knowledge.program import Access, Output, Program
from workbench.knowledge.scope import Names
from workbench.task import Task

_LETTERS = {1: "N", 2: "M N", 3: "B M N", 4: "B C H W", 5: "B C D H W"}
_SPARE = ("K", "L", "P", "Q", "R", "S", "T", "U", "V")


class Launcher:
    """The function that has the reference's name and arguments. Kernels ask it what to pass.

    Attributes:
        lines: its body so far.
        parameters: tensors that the model holds, arguments after the task's own.
        device: text of the device of the results.
    """

    def __init__(self, task: Task, program: Program, taken: Iterable[str] = (), preferred: Mapping[Dim, str] | None = None) -> None:
        self.task, self.program, self._preferred = task, program, preferred or {}
        given = [spec.name for spec in task.inputs]
        used = [access.input for access in program.accesses if access.input not in given]
        self.parameters = tuple(dict.fromkeys([*used, *(counter for counter in program.counters if counter not in given)]))
        self.names = Names({*given, *self.parameters, *taken})
        self.lines: list[str] = []
        self._size: dict[int, str] = {atom: str(program.sizes[atom]) for atom in program.fixed}
        self._dims: dict[Dim, str] = {}
        self._shape_of: dict[tuple[Dim, ...], str] = {}
        self.device = ""
        self.dtypes = {access.input: access.dtype for access in program.accesses}
        self._read_arguments()

    # -- what kernels ask for -----------------------------------------------------------------------------------------------------

    def size(self, atoms: Iterable[int]) -> str:
        """Text of the number of elements along `atoms`, at run time."""
        whole = tuple(atoms)
        if whole in self._dims:
            return self._dims[whole]
        parts: list[str] = []
        at = 0
        while at < len(whole):
            # The longest stretch that has a name of its own, such as a dimension that other tensors see in parts.
            dim = max((dim for dim in self._dims if dim and whole[at : at + len(dim)] == dim), key=len, default=whole[at : at + 1])
            parts.append(self._dims.get(dim) or self._size[dim[0]])
            at += len(dim)
        return " * ".join(part if " " not in part else f"({part})" for part in parts) or "1"

    def define(self, atom: int, hint: str, text: str) -> str:
        """Names a length that no argument has, computed from others."""
        name = self.names.new(hint)
        self.lines.append(f"{name} = {text}")
        self._size[atom] = name
        return name

    def allocate(self, output: Output, hint: str) -> str:
        """Allocates a result in the order of its memory, and gives its name; that of an argument which it is written into."""
        if output.into:
            return output.into
        name = self.names.new(hint)
        like = self._shape_of.get(output.dims)
        natural = output.order == tuple(sorted(output.order))
        if like is not None and natural and output.dtype_of == like:
            self.lines.append(f"{name} = torch.empty_like({like})")
            return name
        dtype = f"{output.dtype_of}.dtype" if output.dtype_of else f"torch.{output.dtype}"
        shape = shape_text([self.size(output.dims[dim]) for dim in output.order])
        self.lines.append(f"{name} = torch.empty({shape}, dtype={dtype}, device={self.device})")
        return name

    def temporary(self, hint: str, sizes: Sequence[str], dtype: str = "float32") -> str:
        """Allocates memory that one kernel hands to the next."""
        name = self.names.new(hint)
        self.lines.append(f"{name} = torch.empty({shape_text(sizes)}, dtype=torch.{dtype}, device={self.device})")
        return name

    def returned(self, output: Output, name: str) -> str:
        """A result as the reference returns it."""
        if output.order == tuple(sorted(output.order)):
            return name
        back = tuple(output.order.index(dim) for dim in range(len(output.order)))
        return f"{name}.permute{back}"

    # -- the body's beginning -----------------------------------------------------------------------------------------------------

    def _read_arguments(self) -> None:
        entry = self.task.entry
        for spec in self.task.inputs:
            used = any(access.input == spec.name for access in self.program.accesses)
            if not spec.is_tensor and not any(value.input == spec.name for value in self.program.of_kind("scalar")):
                self._refuse(
                    f"{spec.name} != {spec.values.value!r}", f"{spec.name} must be {spec.values.value!r}, for which this was written"
                )
            if used and not self.device:
                self.device = f"{spec.name}.device"
        self.device = self.device or f"{self.parameters[0]}.device"
        for access in self.program.accesses:
            self._read_shape(access, entry)
        done: set[str] = set()
        for access in self.program.accesses:
            if access.input not in done:
                done.add(access.input)
                self._make_dense(access)

    def _read_shape(self, access: Access, entry: str) -> None:
        known_before = all(atom in self._size for dim in access.dims for atom in dim)
        texts: list[str] = []
        unpack: list[str] = []
        letters = _LETTERS.get(len(access.dims), " ".join(f"D{place}" for place in range(len(access.dims)))).split()
        for dim, letter in zip(access.dims, letters, strict=False):
            if not dim:
                texts.append("1")
                unpack.append("_")
            elif all(atom in self._size for atom in dim):
                texts.append(self.size(dim))
                unpack.append("_")
            else:
                name = next(
                    (name for name in (self._preferred.get(dim, letter), *_SPARE) if name not in unpack and self._free(name)), None
                ) or self.names.new(letter)
                unpack.append(name)
                texts.append(self._learn(dim, name))
        if not known_before and access.dims:
            self.lines.append(f"{', '.join(unpack)}{',' if len(unpack) == 1 else ''} = {access.input}.shape")
        self._shape_of.setdefault(access.dims, access.input)
        if known_before or any(text != name for text, name in zip(texts, unpack, strict=True)):
            shape = shape_text(texts)
            self._refuse(f"{access.input}.shape != {shape}", f"{access.input} must have shape {shape}")

    def _free(self, name: str) -> bool:
        taken = self.names.new(name)
        return taken == name

    def _learn(self, dim: Dim, name: str) -> str:
        """Notes the sizes of a dimension's atoms, given the variable that holds its length. Returns what its length must be."""
        self._dims[dim] = name
        unknown = [atom for atom in dim if atom not in self._size and atom not in self.program.fixed]
        for atom in dim:
            if atom in self.program.fixed:
                self._size.setdefault(atom, str(self.program.sizes[atom]))
        if len(dim) == 1 and dim[0] in self.program.fixed:
            return str(self.program.sizes[dim[0]])
        if len(dim) == 1:
            self._size[dim[0]] = name
            return name
        if len(unknown) == 1:
            others = " * ".join(self._size[atom] for atom in dim if atom != unknown[0])
            self._size[unknown[0]] = f"{name} // {others}" if "*" not in others else f"{name} // ({others})"
            return " * ".join(self._size[atom] if atom != unknown[0] else f"({self._size[atom]})" for atom in dim)
        # The op cuts this dimension in several parts whose sizes no argument tells: they stay as captured.
        for atom in unknown:
            self._size[atom] = str(self.program.sizes[atom])
        return str(self.program.elements(dim))

    def _make_dense(self, access: Access) -> None:
        name = access.input
        if not access.dims:
            return
        if access.dense and access.order != tuple(range(len(access.order))):
            self.lines.append(f"{name} = {name}.permute{access.order}.contiguous()  # it is stored in this order: nothing is copied")
        elif not access.dense:
            self.lines.append(f"{name} = {name}.contiguous()  # strided in a way that the kernel can't walk: this copies it")
        else:
            self.lines.append(f"{name} = {name}.contiguous()")

    def _refuse(self, condition: str, message: str) -> None:
        quote = "'" if '"' in message else '"'
        self.lines += [f"if {condition}:", f"    raise ValueError({quote}{self.task.entry}: {message}{quote})"]


def shape_text(sizes: Sequence[str]) -> str:
    """A shape as Python writes it."""
    return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
