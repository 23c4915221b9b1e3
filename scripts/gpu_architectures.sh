#!/usr/bin/env bash
# Prints the compute capabilities of this machine's GPUs as the option gpu_architectures takes them
# ("80,90"), those below 8.0 left out; nothing where there is no GPU. Where nvcc does not know one of
# them it prints the option's default, which holds code for later GPUs.
set -euo pipefail
gpus=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
  grep -xE ' *[0-9]+\.[0-9] *' | tr -d ' .' | awk '$1 >= 80' | sort -nu) || true
known=$("$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)" --list-gpu-arch 2>/dev/null) || true
for gpu in $gpus; do
  if ! grep -qx "compute_$gpu" <<<"$known"; then
    echo 80,86,90
    exit
  fi
done
[ -z "$gpus" ] || paste -sd, <<<"$gpus"
