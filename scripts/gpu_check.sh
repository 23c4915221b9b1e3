#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with a GPU. Nothing is built: the programs come
# from a build folder ($BUILD, default build/), made here or elsewhere (see gpu_bundle.sh).
#
#   scripts/gpu_check.sh [--small] [--out DIR] [STAGE ...]
#
#   tests      every operation and whole models against the fp64 reference; sums over processes
#   goldens    records tests/golden/wrappers.txt: what the GPU computes for each wrapper of device.cuh
#   check      two steps of BAM 120M, every operation beside the CPU's (device "check")
#   parity     a small model trained on the CPU and on the GPU: the loss curves compared
#   two        the same run on one GPU and on two: the same bits; "not run" where there is one
#   bench      attention and training steps
#   peer       PyTorch's step and attention beside them, where there is one
#   ncu        Nsight Compute's full set of the kernels that take most of a step
#   sanitize   memcheck, synccheck and racecheck of compute-sanitizer on a small set of the tests
#
# Without stages: all of them, in this order. Each runs alone; but for peer, which may take the 10
# minutes of its limits, it ends within 9 minutes, and later with --small. DIR (default
# out/gpu) gets the machine, a log per stage and the measurements; a table of stages is printed last.
# The exit code is 1 where a stage failed, 9 where there is no GPU; a stage that is not run says why. --small takes 3 steps of parity and
# few small shapes of bench, for a machine that executes a GPU's instructions on the CPU. What
# LD_LIBRARY_PATH names goes before the libraries that are found here.
set -uo pipefail
from=$PWD
cd "$(dirname "$0")/.." || exit
build=${BUILD:-build}
out=out/gpu
stages=()
not_run=77  # what a stage returns where the machine lacks what it takes
small=false
while [ $# -gt 0 ]; do
  case $1 in
    --out) [ $# -gt 1 ] || { echo "gpu_check.sh: --out: expected a folder, found none" >&2; exit 2; }; out=$(cd "$from" && realpath -m "$2"); shift 2 ;;
    tests | goldens | check | parity | two | bench | peer | ncu | sanitize) stages+=("$1"); shift ;;
    --small) small=true; shift ;;
    -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu_check.sh: expected a stage (tests, goldens, check, parity, two, bench, peer, ncu, sanitize), --out or --small, found $1" >&2; exit 2 ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=(tests goldens check parity two bench peer ncu sanitize)
if [ -z "$out" ] || ! mkdir -p "$out"; then
  echo "gpu_check.sh: --out: expected a folder, or a name that one can have, found \"$out\"" >&2
  exit 2
fi
export PATH="$PATH:/usr/local/cuda/bin"  # compute-sanitizer's, on many machines

# Where this project's programs, and they alone, find a bundle's libraries; and cuBLASLt and NCCL,
# those that the program names, where the system's loader does not know them, as Python's packages
# bring them.
libraries=()
[ ! -d lib ] || libraries+=("$PWD/lib")
for soname in $(grep -aoE 'lib(cublasLt|nccl)\.so\.[0-9]+' "$build/src/bamtrain" 2>/dev/null | sort -u); do
  ! ldconfig -p 2>/dev/null | grep -qF "$soname " || continue
  for folder in $(tr ':' ' ' <<<"${LD_LIBRARY_PATH:-}"); do
    [ ! -e "$folder/$soname" ] || continue 2
  done
  [ ! -e "/usr/local/cuda/lib64/$soname" ] || { libraries+=(/usr/local/cuda/lib64); continue; }
  folder=$(python3 - "$soname" <<'PY' 2>/dev/null
import glob, os, sys, nvidia
for root in nvidia.__path__:
    for file in sorted(glob.glob(f"{root}/**/{sys.argv[1]}", recursive=True))[:1]:
        print(os.path.dirname(file))
PY
  )
  if [ -n "$folder" ]; then
    libraries+=("$folder")
  else
    echo "gpu_check.sh: $soname: found neither by the loader, in /usr/local/cuda/lib64 nor among Python's packages; LD_LIBRARY_PATH may name its folder" >&2
  fi
done
own() {
  local paths
  paths=$(IFS=:; echo "${libraries[*]}")
  LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$paths" "$@"
}

if ! nvidia-smi >"$out/nvidia-smi.txt" 2>&1; then
  echo "gpu_check.sh: expected a GPU that nvidia-smi lists, found none (see $out/nvidia-smi.txt): run it on a machine with one" >&2
  exit 9
fi
{
  date -u +%Y-%m-%dT%H:%M:%SZ
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem,memory.total,power.limit --format=csv
  uname -srm
  grep -m1 'model name' /proc/cpuinfo
  own "$build/src/bamtrain" --version
  cat COMMIT 2>/dev/null || git rev-parse HEAD
  nvcc --version | tail -2
} >"$out/machine.txt" 2>&1

require_program() {
  [ -x "$1" ] && return
  echo "expected the program $1, found none: build with CUDA (meson setup build -Dcuda=enabled)"
  return 1
}

run_tests() {
  require_program "$build/tests/cuda/test_cuda_gpu" || return
  require_program "$build/tests/cuda/on_processes_gpu" || return
  own timeout -k 10 60 "$build/tests/cuda/on_processes_gpu" sums 1024 || return
  own timeout -k 10 450 "$build/tests/cuda/test_cuda_gpu"
}

# Random tokens in place of a run's data: $1 the file, $2 the vocabulary.
write_random_shard() {
  python3 - "$1" "$2" <<'PY'
import random, struct, sys
rng, tokens = random.Random(1), 100000
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253))
    f.write(b"".join(struct.pack("<H", rng.randrange(int(sys.argv[2]))) for _ in range(tokens)))
PY
}

run_check() {
  require_program "$build/src/bamtrain" || return
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # this folder
  trap "rm -rf '$work'" RETURN
  write_random_shard "$work/train.bin" 32768 || return
  own timeout -k 10 500 "$build/src/bamtrain" --config configs/bam-120m.json --set device=check \
    --set out_dir="$work/out" --set data.train="$work" --set data.val= --set data.document_start=1 \
    --set eval.every=0 --set eval.tokens=0 --set 'eval.lengths=[]' --set checkpoint.every=0 \
    --set checkpoint.keep_every=0 --set train.micro_batch=2 --set train.tokens_per_step=2048 \
    --set train.steps=2 --set log.every=1
}

run_goldens() {
  require_program "$build/tests/cuda/record_wrappers" || return
  own timeout -k 10 60 "$build/tests/cuda/record_wrappers" "$out/wrappers.txt" || return
  if [ -f tests/golden/wrappers.txt ]; then
    # The first lines name the device.
    if ! diff <(grep -v '^#' tests/golden/wrappers.txt) <(grep -v '^#' "$out/wrappers.txt") >"$out/wrappers.diff"; then
      echo "other words than tests/golden/wrappers.txt: see $out/wrappers.diff"
      return 1
    fi
    echo "as tests/golden/wrappers.txt has it"
  else
    echo "new: copy $out/wrappers.txt to tests/golden/ and run test_engine, which compares the engine with it"
  fi
}

run_sanitize() {
  require_program "$build/tests/cuda/test_cuda_gpu" || return
  command -v compute-sanitizer >/dev/null || { echo "expected compute-sanitizer on PATH, found none"; return 1; }
  local tool
  for tool in memcheck synccheck racecheck; do
    echo "== $tool"
    own timeout -k 10 170 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$build/tests/cuda/test_cuda_gpu" "attention*,norms*,embedding*,cross*,activations*" || return 1
  done
}

# The quickstart's model on tokens that a rule makes, which a model learns within these steps, in fp32
# and bf16. A CPU without bf16 products computes in fp32 beside a GPU in bf16.
run_parity() {
  require_program "$build/src/bamtrain" || return
  local work device precision own_precision steps=40
  local size=()
  if $small; then
    steps=3
    size=(--set train.tokens_per_step=1024)
  fi
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # this folder
  trap "rm -rf '$work'" RETURN
  python3 - "$work" <<'PY' || return 1
import struct, sys
tokens = 400000
state, token, ids = 1, 1, bytearray()
for n in range(tokens):
    state = (state * 1103515245 + 12345) % 2**31
    token = 0 if n % 500 == 0 else 1 + (5 * token + (state >> 29)) % 64
    ids += struct.pack("<H", token)
with open(sys.argv[1] + "/train.bin", "wb") as f:
    f.write(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253) + ids)
PY
  for precision in fp32 bf16; do
    for device in cpu cuda; do
      own_precision=$precision
      if [ $device = cpu ] && ! grep -qm1 avx512 /proc/cpuinfo; then own_precision=fp32; fi
      own timeout -k 10 110 "$build/src/bamtrain" --config configs/bench-small.json --set device="$device" \
        --set out_dir="$work/$device-$precision" --set data.train="$work" --set data.val= \
        --set data.document_start=0 --set eval.every=0 --set eval.tokens=0 --set 'eval.lengths=[]' \
        --set checkpoint.every=0 --set train.steps="$steps" --set log.every=1 \
        --set train.precision="$own_precision" "${size[@]}" || return 1
      cp "$work/$device-$precision/metrics.jsonl" "$out/parity-$device-$precision.jsonl"
    done
  done
  # They differ by the order of sums, and in bf16 by roundings, which 40 steps of training multiply.
  python3 - "$out" "$steps" <<'PY'
import json, sys
failed, steps = False, int(sys.argv[2])
for precision, limit in ("fp32", 1e-3), ("bf16", 1e-2):
    read = lambda d: [json.loads(l)["loss"] for l in open(f"{sys.argv[1]}/parity-{d}-{precision}.jsonl")]
    cpu, cuda = read("cpu"), read("cuda")
    worst = max(abs(a - b) / a for a, b in zip(cpu, cuda))
    print(f"{precision}: loss {cpu[0]:.4f} to {cpu[-1]:.4f} on the CPU, {cuda[0]:.4f} to {cuda[-1]:.4f} on "
          f"the GPU; largest relative difference of a step's loss {worst:.2e} (limit {limit})")
    learned = steps < 40 or cpu[-1] < cpu[0] - 1
    failed |= not (len(cpu) == len(cuda) == steps and worst < limit and learned)
sys.exit(failed)
PY
}

# Gradients that are summed during the backward pass and after it, on one GPU and on two, which divide
# the optimizer's state in the first case.
run_two() {
  require_program "$build/src/bamtrain" || return
  local gpus work n overlap name launcher digests
  gpus=$(nvidia-smi -L | grep -c .)
  [ "$gpus" -ge 2 ] || { echo "not run: it takes two GPUs, found $gpus"; return $not_run; }
  command -v mpirun >/dev/null || { echo "not run: it takes mpirun on PATH"; return $not_run; }
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # this folder
  trap "rm -rf '$work'" RETURN
  write_random_shard "$work/train.bin" 4096 || return
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  for n in 1 2; do
    for overlap in true false; do
      name=$n-$overlap launcher=()
      [ $n -eq 1 ] || launcher=(mpirun -np $n)
      own timeout -k 10 120 "${launcher[@]}" "$build/src/bamtrain" --config configs/quickstart.json \
        --set device=cuda out_dir="$work/$name" data.train="$work/train.bin" data.val= \
        data.document_start=0 eval.every=0 eval.tokens=0 'eval.lengths=[]' checkpoint.every=0 \
        schedule.warmup_steps=1 train.steps=5 train.precision=bf16 train.lanes=4 \
        train.overlap=$overlap train.shard_optimizer=$overlap || return
      cat "$work/$name/checkpoint-00000005/"{model,optimizer}.safetensors | sha256sum |
        tee -a "$work/digests"
    done
  done
  digests=$(sort -u "$work/digests" | wc -l)
  [ "$digests" -eq 1 ] && return
  echo "expected the same state of all four runs, found $digests"
  return 1
}

# A part of a stage: its name, seconds, a file for its standard output, and what it runs. What fails is
# reported, and the parts after it run all the same. The first argument: own, or env for a program of
# others, which has its own libraries.
part() {
  local run=$1 name=$2 seconds=$3 file=$4 code
  shift 4
  "$run" timeout -k 10 "$seconds" "$@" >>"$file"
  code=$?
  [ $code -eq 0 ] || echo "$name: FAILED, code $code (124: past its $seconds s)"
  return $code
}

run_bench() {
  require_program "$build/bench/cuda" || return
  local config content seconds result=0 sampler
  : >"$out/attention.jsonl"
  : >"$out/step.jsonl"
  : >"$out/normalizers.jsonl"
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active \
    --format=csv -lms 500 >"$out/clocks.csv" 2>&1 &
  sampler=$!
  local limits=() attention=() attention_seconds=120 normalizers=(--length 2048 --length 16384)
  local steps=("bam-120m.json --batch 64 --length 512" "bam-432m.json --batch 32 --length 512"
    "bam-1.1b.json --batch 8 --length 2048")
  if $small; then
    limits=(--product 256 --array 65536)
    attention=(--length 128 --tokens 256 --head-dim 64 --head-dim 48) attention_seconds=500
    normalizers=(--length 128 --tokens 256)
    steps=("bam-120m.json --batch 1 --length 64 --micro-batches 1")
  fi
  part own attention "$attention_seconds" "$out/attention.jsonl" "$build/bench/cuda" "${limits[@]}" attention \
    "${attention[@]}" || result=1
  for content in 1 4; do  # logits for which few tiles are dead, and most
    part own "normalizers" "$attention_seconds" "$out/normalizers.jsonl" "$build/bench/cuda" "${limits[@]}" \
      attention "${normalizers[@]}" --head-dim 64 --form none --form table+scale --content $content \
      --normalizer softmax --normalizer general --normalizer entmax-1.5 --normalizer sparsemax \
      --normalizer entmax-1.7 --normalizer topk-32 || result=1
    part own "stick-breaking" "$attention_seconds" "$out/normalizers.jsonl" "$build/bench/cuda" "${limits[@]}" \
      attention "${normalizers[@]}" --head-dim 64 --form none --form table --content $content \
      --normalizer softmax --normalizer stick-breaking || result=1
  done
  for config in "${steps[@]}"; do
    seconds=30
    [[ $config != bam-1.1b* ]] || seconds=90
    ! $small || seconds=500
    # shellcheck disable=SC2086  # a name and options
    part own "step $config" "$seconds" "$out/step.jsonl" "$build/bench/cuda" "${limits[@]}" step \
      --config configs/$config || result=1
  done
  kill $sampler 2>/dev/null
  wait $sampler 2>/dev/null
  python3 scripts/gpu_table.py "$out/attention.jsonl" "$out/step.jsonl" | tee "$out/table.md"
  return $result
}

# The step first: what it compiles is what is compared.
run_peer() {
  local result=0
  touch "$out/attention.jsonl" "$out/step.jsonl"
  part env "PyTorch with FlexAttention" 120 "$out/peer.txt" python3 -c \
    'import torch, torch.nn.attention.flex_attention; print(torch.__version__)'
  case $? in
    0) ;;
    124 | 137) return 1 ;;
    *) echo "no PyTorch with FlexAttention here: nothing to compare with"; return 0 ;;
  esac
  part env "PyTorch, step" 240 "$out/step.jsonl" python3 scripts/gpu_peer.py step \
    --config configs/bam-120m.json --batch 64 --length 512 || result=1
  part env "PyTorch, attention" 240 "$out/attention.jsonl" python3 scripts/gpu_peer.py attention || result=1
  python3 scripts/gpu_table.py "$out/attention.jsonl" "$out/step.jsonl" | tee "$out/table.md"
  return $result
}

run_ncu() {
  require_program "$build/bench/cuda" || return
  command -v ncu >/dev/null || { echo "expected ncu on PATH, found none"; return 1; }
  own timeout -k 10 500 ncu --set full --force-overwrite --export "$out/step" --launch-skip 400 \
    --launch-count 60 --kernel-name \
    'regex:attention_(forward|backward)_(queries|keys)|cross_entropy_row|norm_rows_backward|(gemm|nvjet)' \
    "$build/bench/cuda" step --config configs/bam-120m.json --batch 64 --length 512 || return
  ncu --import "$out/step.ncu-rep" --page raw --csv >"$out/ncu.csv"
}

run() {
  case $1 in
    tests) run_tests ;;
    goldens) run_goldens ;;
    check) run_check ;;
    parity) run_parity ;;
    two) run_two ;;
    bench) run_bench ;;
    peer) run_peer ;;
    ncu) run_ncu ;;
    sanitize) run_sanitize ;;
  esac
}

failed=0
summary=""
for stage in "${stages[@]}"; do
  began=$SECONDS
  run "$stage" >"$out/$stage.log" 2>&1
  case $? in
    0) result=ok ;;
    "$not_run") result='not run' ;;
    *) result=FAILED failed=1 ;;
  esac
  [ "$result" = ok ] || tail -n 20 "$out/$stage.log"
  summary+=$(printf '%-10s %-7s %4d s  %s' "$stage" "$result" $((SECONDS - began)) "$out/$stage.log")$'\n'
done
[ ! -f "$out/table.md" ] || cat "$out/table.md"
printf '%s' "$summary"
exit $failed
