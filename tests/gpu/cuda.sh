#!/usr/bin/env bash
# What is to be run of CUDA C++ on a machine with an NVIDIA GPU; torch and triton are enough. Prints one verdict a line.
#   PYTHON=python3 bash tests/gpu/cuda.sh [OUT]
set -u
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
OUT=${1:-cuda-figures}
mkdir -p "$OUT"
failed=0

"$PYTHON" -m workbench doctor | grep -i -E "gpu|cuda"

# 1. Verdicts: right, wrong, does not build, illegal address, a hang, a misfit launch. Each in a fresh judge.
"$PYTHON" tests/gpu/judge_cuda.py right right_tuned full:right wrong_factor tail_missing does_not_build illegal_address never_ends \
  wrong_argument right 2>&1 | tee "$OUT/verdicts.txt"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1

# 2. Extensions by nvcc, a minute each: one, a broken one, and one in KernelBench's format.
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  "$PYTHON" tests/gpu/judge_cuda.py load_inline load_inline_broken kernelbench 2>&1 | tee "$OUT/extensions.txt"
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
fi

# 3. The experts in CUDA C++ alone, then beside Triton's and Inductor's own kernels: verdicts, times and shares of the floor.
OPS=softmax_bf16,rmsnorm_bf16,layernorm_bf16,gelu_mul_bf16,cross_entropy_bf16,cumsum_fp32,transpose_add_fp32
OPS=$OPS,mean_square_error_fp32,softmax_long_fp32,layernorm_large_fp32
for backends in cuda both; do
  "$PYTHON" -m workbench bench experts --backends "$backends" --mode quick --evaluations 12 --ops "$OPS" --out "$OUT/experts-$backends" \
    2>&1 | tee "$OUT/experts-$backends.txt"
done

exit $failed
