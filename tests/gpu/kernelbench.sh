#!/usr/bin/env bash
# The experts on KernelBench's level 1, on a machine with an NVIDIA GPU; torch and triton are enough. About twenty minutes on an H200 with
# 16 cores. First the tasks of up to 4 GiB, many at a time, then those of more, which need most of the card's memory each. Each table is
# written after each task, so that what is cut short is kept, and rows are printed as they come.
#   PYTHON=python3 bash tests/gpu/kernelbench.sh CHECKOUT [OUT] [SECONDS]
set -u
cd "$(dirname "$0")/../.."
PYTHON=${PYTHON:-python3}
CHECKOUT=${1:?name a checkout of KernelBench}
OUT=${2:-kernelbench-figures}
END=$((SECONDS + ${3:-1200}))
# torch.compile as it is by default: products and convolutions from the libraries, without a search that takes minutes a task.
export TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS=ATEN TORCHINDUCTOR_MAX_AUTOTUNE_CONV_BACKENDS=ATEN

# In the order of what there is to learn; those that torch.compile brings to the floor by itself come last.
SMALL=40,1,6,14,13,2,9,54,50,57,61,72,77,82,42,44,95,98,100,99,83,85,86,71,75,81,70,16,3,10,7,8,15,17,18
SMALL=$SMALL,55,56,58,59,60,62,64,65,66,67,68,69,73,74,78,79,80,11,12,88
LARGE=23,36,38,39,34,35,45,46,43,41,97,89,91,92,93,90,33,63,76,84,87,94,96,51,47,53,37,24,49,52,48,4,5,26,25,22,21,20,19,27,28,29,30,31,32

mkdir -p "$OUT/small" "$OUT/large"
sweep() { # NAME JOBS TASKS
  left=$((END - SECONDS))
  [ "$left" -gt 20 ] || return
  timeout "$left" "$PYTHON" -m workbench bench experts --kernelbench "$CHECKOUT" --backends both --evaluations 3 --jobs "$2" \
    --tasks "$3" --out "$OUT/$1" 2>&1 >/dev/null | cut -c1-240
}
sweep small 9 "$SMALL"
sweep large 3 "$LARGE"
tail -n 2 "$OUT"/*/level1.md
