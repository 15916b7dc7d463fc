"""Advice for CUDA C++: what its compiler says, and the words that differ from Triton's."""

from __future__ import annotations

import re

from workbench.candidate import Evaluation

LABEL = "CUDA C++"
"""The judge's label of a candidate that is written in it."""

_MISFIT = "launch does not fit: "

BUILD = (
    (r"defines no kernel", "KERNELS names a function that the source lacks.",
     "Write the name of the __global__ function, declared extern \"C\" or with its template's arguments."),
    (r"cannot open source file", "It includes a header that is not there.",
     "Include CUDA's own headers only (cuda_bf16.h, cuda_fp16.h, mma.h, cooperative_groups.h, cuda/std/…); there is no torch and no C++ "
     "standard library in this compiler."),
    (r"bytes of shared memory where|uses too much shared", "A block declares more shared memory than a static array may have.",
     "Declare it as extern __shared__, call set_shared_memory_config(bytes) on the kernel and pass shared_mem=bytes at the launch."),
    (r"no (suitable|operator)|more than one (operator|conversion|instance)|ambiguous",
     "It mixes types that do not convert by themselves.",
     "Convert half types by name: __bfloat162float and __float2bfloat16 (__half2float, __float2half), and compute in float."),
    (r"too (many|few) arguments|no instance of", "A function is called with arguments that it does not take.",
     "Make the call agree with the function's declaration, in number, order and type."),
    (r'identifier "[^"]*" is undefined', "It uses a name that is not declared.",
     "Declare the name before its first use, include its header, or give the macro by nvcc_options=[f\"-DNAME={NAME}\"]."),
    (r"expected an?\b|unrecognized token|missing", "The CUDA source is not valid C++.",
     "Mend the syntax at this line and change nothing else."),
    (r"ptxas", "The assembler refuses the kernel.", "Check the inline assembly: instruction, types and the architecture that it needs."),
    (r"SyntaxError|never closed|unexpected indent", "The module is not valid Python.",
     "Return the whole module as plain Python, without prose around it."),
    (r"the module defines no", "The module lacks the function that it must define.",
     "Define the launcher under the reference's own name, with its parameters in order."),
    (r"literal|CUDA source|name its kernels", "The module is not in the form that is asked for.",
     "Write CUDA = r\"\"\"…\"\"\" and KERNELS = (\"name\",) as plain literals at the top level."),
)  # fmt: skip
"""Pattern of the reason, summary, directive."""

LAUNCH = (
    (r"unsupported toolchain|no kernel image|driver version is insufficient", "The driver does not take what the compiler makes.",
     "Nothing in the candidate is wrong: python -m workbench doctor says what to update."),
    (r"arrives as a double", "A float reaches a parameter of another size.", "Declare the parameter double and convert it in the kernel."),
    (r"arrives as a 32-bit int|arrives with 32 bits", "An int reaches a parameter of another size.",
     "Declare the parameter int, and pass tensors as they are, never data_ptr()."),
    (r"arrives as a pointer", "A tensor reaches a parameter that is no pointer.", "Put the arguments into the kernel's own order."),
    (r"is launched with \d+ arguments", "Arguments and parameters do not match.", "Pass every parameter of the kernel once, in its order."),
    (r"set_shared_memory_config", "It asks for more shared memory than was announced.",
     "Call kernel.set_shared_memory_config(bytes) before the launch, with the bytes that the launch asks for."),
    (r"too many resources|does not fit|threads a block", "One block needs more than a multiprocessor has.",
     "Launch fewer threads a block, or bound registers by __launch_bounds__(threads)."),
    (r"invalid (argument|configuration)|grid", "The launch's sizes are not possible.",
     "Give grid and block three sizes each, all at least 1; skip the launch where there is nothing to do."),
    (r"illegal (memory )?access|misaligned|SIGSEGV|signal 11|died", "A kernel touches memory outside of its tensors, or off its alignment.",
     "Test every index against the tensor's real extent, compute offsets in 64 bits where they may exceed 2^31, and load 16 bytes at once "
     "only where address and row length are multiples of 16."),
)  # fmt: skip

_WORDS = (
    (r"halve its block or tile", "halve its tile"),
    (r"double num_warps \(now (\d+)\)", r"double its threads a block (now \1 warps)"),
    (r"tile in registers \(tl\.trans\)", "tile in shared memory"),
    (r"tl\.atomic_add", "atomicAdd"),
    (r"Write the product with tl\.dot on (\w+) tiles of at least 64×64×32 with a float32 accumulator",
     r"Write the product with mma.sync (m16n8k16, \1 operands, float accumulators) on tiles of at least 64×64×32 in shared memory"),
    (r', or where the precision allows it write input_precision="tf32x3"', ""),
    (r"num_warps 8, num_stages 3 or 4 \(now (\d+) warps, \d+ stages\)", r"8 warps and three or four stages of cp.async (now \1 warps)"),
    (r', and strides that the compiler knows to be multiples of 16 \(tl\.multiple_of\)', ", by float4 or uint4 pointers"),
    (r"give masked loads an? other= that is neutral for the reduction: 0 for sums, -inf for maxima",
     "let threads beyond the edge take a neutral value: 0 for sums, -INFINITY for maxima"),
    (r"give masked loads an other= that is neutral for the reduction \(0 for sums, -inf for maxima\)",
     "let threads beyond the edge take a neutral value (0 for sums, -INFINITY for maxima)"),
    (r"give masked loads other=-inf for maxima", "let threads beyond the edge take -INFINITY for maxima"),
    (r", and give masked loads an other= value", ", and test the index"),
    (r", and give masked loads other=", ", and test the index"),
    (r", mask it", ", test the index"),
    (r"Add the mask that is missing: each axis of a load or store needs offsets < its real extent",
     "Add the test that is missing: each axis of a load or store needs index < its real extent"),
    (r"triton\.cdiv\(size, BLOCK\) programs on each axis", "(size + BLOCK - 1) / BLOCK blocks on each axis"),
    (r" \(triton\.cdiv\)", ""),
    (r", and check the mask's other=", ", and put __syncthreads() between writing and reading shared memory"),
    (r"masked lanes", "threads beyond the edge"),
    (r"Check that the result is stored under the mask that it was computed with", "Check that every thread that has a result stores it"),
    (r'Write tl\.dot\(…, input_precision="ieee"\), or "tf32x3" for near-float32 products on tensor cores',
     "Multiply float operands with fmaf, not with TF32 tensor cores"),
    (r"a program id", "a block index"),
    (r", and options \(num_warps, num_stages\) by keyword", ""),
    (r"\bnum_warps\b", "warps a block"),
    (r"\bprograms\b", "blocks"),
    (r"\bprogram\b", "block"),
)  # fmt: skip


def is_cuda(evaluation: Evaluation) -> bool:
    """Whether the candidate is CUDA C++."""
    return LABEL in evaluation.labels or evaluation.reason.startswith(LABEL) or any(item.backend == "cuda" for item in evaluation.resources)


def misfit(evaluation: Evaluation) -> str:
    """What the judge noted of a launch whose arguments are not the kernel's parameters; empty where they are."""
    return next((label.removeprefix(_MISFIT) for label in evaluation.labels if label.startswith(_MISFIT)), "")


def in_cuda(text: str) -> str:
    """Advice that was written for Triton, in CUDA's words."""
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text
