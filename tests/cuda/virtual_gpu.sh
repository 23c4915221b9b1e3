#!/usr/bin/env bash
# The GPU tests, the wrappers of kernels/device.cuh, and sums and a training in one to four processes, on a
# machine that executes the PTX of the built programs on the CPU. Closes, as the test programs do, with
# their numbers.
#
#   virtual_gpu.sh MACHINE one|two   the folder with its build.sh; BAMTRAIN_SOURCE and BAMTRAIN_BUILD
#                                    as the tests have them
#
# Runs in another order of operations, blocks and warps than that of the calls, with the rounding of
# Hopper's tensor cores, without the cases that take longest; "two": all of them, at the same time in
# the order of the calls with products in fp32, every kernel launched, and device memory protected.
set -euo pipefail
machine=$(realpath -m "${1:?expected the folder of the machine}")
orders=("VGPU_SEED=7 VGPU_MMA=90") cases=()
case ${2:?expected one or two} in
  one) cases=('~[long]') ;;
  two) orders+=("VGPU_SEED=0") ;;
  *) echo "virtual_gpu.sh: expected \"one\" or \"two\" orders, found \"$2\"" >&2; exit 2 ;;
esac
build=${BAMTRAIN_BUILD:?}
if [ ! -x "$machine/build.sh" ] || [ ! -d "$build" ]; then
  echo "virtual_gpu.sh: expected $machine/build.sh and the build folder $build, found one of them missing" >&2
  exit 2
fi
cd "${BAMTRAIN_SOURCE:?}"
PROGRAMS="tests/cuda/test_cuda_gpu tests/cuda/on_processes_gpu" "$machine/build.sh" "$build" \
  >"$build/virtual_gpu.log" 2>&1 || { tail -50 "$build/virtual_gpu.log" >&2; exit 1; }
export LD_LIBRARY_PATH=$build/virtual_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A Hopper, which takes the intermediate code of older ones.
export VGPU_CC=90

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
running=()
for i in "${!orders[@]}"; do
  # shellcheck disable=SC2086  # settings
  env ${orders[$i]} VGPU_THREADS=1 OMP_NUM_THREADS=1 VGPU_STATS="$work/kernels-$i" \
    "$build/tests/cuda/test_cuda_gpu.vgpu" "${cases[@]}" >"$work/order-$i" 2>&1 &
  running+=($!)
done
never=0 ended=0
for i in "${!orders[@]}"; do
  wait "${running[$i]}" || ended=$?
  echo "== ${orders[$i]}"
  cat "$work/order-$i"
  touch "$work/kernels-$i"
  launched=$(grep -cE '^ *[1-9]' "$work/kernels-$i") || true
  unused=$(grep -E '^ *0 ' "$work/kernels-$i") || true
  echo "kernels that these tests launch: $launched; that they do not: ${unused:-none}"
  if [ "$launched" -eq 0 ] || { [ "$2" = two ] && [ -n "$unused" ]; }; then never=1; fi
done
[ "$ended" -eq 0 ] || exit "$ended"
# Device memory that the host cannot reach.
if [ "$2" = two ]; then
  VGPU_PROTECT=1 "$build/tests/cuda/test_cuda_gpu.vgpu" "linear*,adaptive*,rotation*,models with the entropy*"
fi

# What it computes for the wrappers of kernels/device.cuh, which the engine must compute too.
mkdir -p "$work/tests/golden"
"$build/tests/cuda/record_wrappers.vgpu" "$work/tests/golden/wrappers.txt"
BAMTRAIN_SOURCE=$work "$build/tests/engine/test_engine" "the engine reproduces*"

python3 - "$work/train.bin" <<'PY'
import struct, sys
tokens, token, state, ids = 40000, 1, 1, bytearray()
for n in range(tokens):
    state = (state * 1103515245 + 12345) % 2**31
    token = 0 if n % 500 == 0 else 1 + (5 * token + (state >> 29)) % 64
    ids += struct.pack("<H", token)
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253) + ids)
PY
passed=0 failed=$never
check() {  # what it was, its output and its exit status
  if [ "$3" -eq 0 ] && grep -q "^rank 0: 0 failures$" "$2"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $1, exit status $3"
    cat "$2" "$work/errors"
  fi
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1 VGPU_MEMORY_MB=3000
for n in 1 2 3 4; do
  on() { VGPU_COUNT=$n VGPU_THREADS=1 mpirun --oversubscribe -np "$n" "$build/tests/cuda/on_processes_gpu.vgpu" "$@"; }
  on sums 1024 >"$work/sums-$n" 2>"$work/errors" && ended=0 || ended=$?
  check "sums over $n processes" "$work/sums-$n" "$ended"
  on train configs/quickstart.json device=cuda "data.train=$work" data.val= data.document_start=0 \
    eval.every=0 eval.tokens=0 'eval.lengths=[]' checkpoint.every=0 train.steps=3 \
    train.precision=bf16 train.tokens_per_step=512 train.micro_batch=2 train.lanes=4 \
    >"$work/train-$n" 2>"$work/errors" && ended=0 || ended=$?
  check "a training in $n processes" "$work/train-$n" "$ended"
  grep -E "^step |^state " "$work/train-$n" >"$work/result-$n" || true
  if cmp -s "$work/result-1" "$work/result-$n" && [ -s "$work/result-$n" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $n processes train to other bits than one"
  fi
done
# Steps of one micro-batch, recorded whole; their sequences have several lengths.
n=1
on train configs/tasks/copy-reduced.json device=cuda 'data.train={"task":"copy","length":[1,20]}' \
  data.val= eval.every=0 checkpoint.every=0 train.steps=5 schedule.warmup_steps=2 train.micro_batch=4 \
  train.sequences_per_step=4 train.precision=bf16 >"$work/whole" 2>"$work/errors" && ended=0 || ended=$?
check "a training with steps of one micro-batch" "$work/whole" "$ended"
echo "test cases: $((passed + failed)) | $passed passed | $failed failed"
exit $((failed > 0))
