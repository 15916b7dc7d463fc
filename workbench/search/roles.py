"""What the islands are for: few and different, each with an aim of its own."""

from __future__ import annotations

from workbench.brief import Role

ROLES: tuple[Role, ...] = (
    Role(
        name="fusion and launches",
        aim="do the whole op in as few launches as possible, and keep intermediate results out of device memory",
        hints=(
            "fuse elementwise work into the kernel that produces or consumes it",
            "one program can own a whole row where the row fits in registers or shared memory",
            "a launch costs about as much as moving a few megabytes",
        ),
    ),
    Role(
        name="memory traffic and layout",
        aim="move each byte once, in wide and coalesced accesses",
        hints=(
            "make the innermost index run along the contiguous dimension, 16 bytes a thread",
            "a pass that reads the input again costs its whole traffic again unless L2 still holds it",
            "mark data that is used once for early eviction, and keep what is shared",
        ),
    ),
    Role(
        name="tiles and parameters",
        aim="choose tile sizes, warps and stages that fill the card without spilling",
        hints=(
            "expose the sizes that matter in TUNE, two to four values each",
            "enough programs for two waves, enough bytes in flight for each multiprocessor",
            "watch registers: a spill is traffic",
        ),
    ),
    Role(
        name="instructions and algorithm",
        aim="do less arithmetic, or the same on faster units, by a better algorithm",
        hints=(
            "one-pass formulations: online softmax, Welford, algebraic rewriting",
            "tensor cores for products, with accumulation in float32",
            "split a long reduction over several programs when there are too few rows",
        ),
    ),
)
"""The four islands of a run by default, in the order in which they get their turns."""

EVERYTHING = Role(
    name="everything",
    aim="make it faster",
    hints=tuple(role.hints[0] for role in ROLES),
)
"""The only island of a search without islands: the roles take turns on it."""
