"""A product of float32 matrices whose operands are split into bfloat16 parts by a kernel of its own, once, before they are multiplied.

Split where they are multiplied, each tile's parts are made again for each tile that it meets, and pass through registers to shared memory.
"""

from __future__ import annotations

from workbench.knowledge.matmul_writer import MatmulWriter
from workbench.knowledge.module import Kernel, kernel_name

SPLIT_AHEAD = "bf16x6_ahead"
"""The precision's name among the choices."""

PRODUCTS = ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1))
"""Parts of the left and the right operand that are multiplied besides the two largest, the smallest products first."""

_BLOCK = 2048


class PartsWriter(MatmulWriter):
    """Writes the kernels of a product by parts: first the splitting of each operand, then the product."""

    def write(self) -> list[Kernel]:
        operands = dict.fromkeys((self.product.left.input, self.product.right.input))
        self._parts_of = {name: self.launcher.temporary(f"{name}_parts", ["3", f"{name}.numel()"], "bfloat16") for name in operands}
        splitting = self._splitting()
        for name, memory in self._parts_of.items():
            splitting.parameters = [("x_ptr", name), ("parts_ptr", memory), ("size", f"{name}.numel()")]
            splitting.grid = f"(triton.cdiv({name}.numel(), {_BLOCK}),)"
            self.launcher.lines += splitting.launch()
        return [splitting, *super().write()]

    def _splitting(self) -> Kernel:
        doc = "Writes a tensor's three parts one behind the other: its value in bfloat16, that of what is left, and that of the rest."
        kernel = Kernel(kernel_name(self.task, "parts"), doc, "")
        kernel.body = [
            "at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)",
            "mask = at < size",
            "x = tl.load(x_ptr + at, mask=mask, other=0.0)",
            "high = x.to(tl.bfloat16)",
            "rest = x - high.to(tl.float32)",
            "middle = rest.to(tl.bfloat16)",
            "tl.store(parts_ptr + at, high, mask=mask)",
            "tl.store(parts_ptr + size + at, middle, mask=mask)",
            "tl.store(parts_ptr + size + size + at, (rest - middle.to(tl.float32)).to(tl.bfloat16), mask=mask)",
        ]
        kernel.constants, kernel.options = [("BLOCK", str(_BLOCK))], {"num_warps": "8"}
        return kernel

    def _step(self, left: str, right: str, left_mask: str, right_mask: str) -> list[str]:
        lines = [f"left_at = {left}", f"right_at = {right}"]
        for side, operand, mask in (("left", self.product.left.input, left_mask), ("right", self.product.right.input, right_mask)):
            for part in range(3):
                begin = f"{self._parts_of[operand]}_ptr" + f" + {operand}_size" * part
                lines.append(f"{side}_{part} = tl.load({begin} + {side}_at, mask={mask}, other=0.0)")
        for number, (one, two) in enumerate(PRODUCTS):
            lines.append(f"small = tl.dot(left_{one}, right_{two}{', small' if number else ''})")
        return [
            *lines,
            "small = tl.where(small == small, small, 0.0)  # of an infinite operand, whose lower parts are none",
            "acc += tl.dot(left_0, right_0, small)",
        ]

    def _sizes_used(self) -> list[tuple[str, str]]:
        return [(f"{name}_size", f"{name}.numel()") for name in self._parts_of]

    def _memories(self) -> list[str]:
        return list(self._parts_of.values())
