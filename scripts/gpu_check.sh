#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with a GPU. Nothing is built: the programs come
# from a build folder ($BUILD, default build/), made here or elsewhere (see gpu_bundle.sh).
#
#   scripts/gpu_check.sh [--out DIR] [STAGE ...]
#
#   tests      every operation and whole models against the fp64 reference
#   goldens    records tests/golden/wrappers.txt: what the GPU computes for each wrapper of device.cuh
#   sanitize   memcheck and racecheck of compute-sanitizer on a small set of those tests
#   parity     a small model trained on the CPU and on the GPU: the loss curves compared
#   bench      attention and training steps, PyTorch's beside them where there is one
#
# Without stages: all of them. Each runs alone and ends within 8 minutes. DIR (default out/gpu) gets
# the machine, a log per stage and the measurements; a table of stages is printed last. The exit
# code is 1 where a stage failed, 9 where there is no GPU.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${BUILD:-build}
out=out/gpu
stages=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) [ $# -gt 1 ] || { echo "gpu_check.sh: --out: expected a folder, found none" >&2; exit 2; }; out=$2; shift 2 ;;
    tests | goldens | sanitize | parity | bench) stages+=("$1"); shift ;;
    -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "gpu_check.sh: expected a stage (tests, goldens, sanitize, parity, bench) or --out, found $1" >&2; exit 2 ;;
  esac
done
[ ${#stages[@]} -gt 0 ] || stages=(tests goldens sanitize parity bench)
mkdir -p "$out"
export PATH="$PATH:/usr/local/cuda/bin"  # compute-sanitizer's, on many machines

# Where this project's programs, and they alone, find a bundle's libraries; and cuBLASLt and NCCL
# where the system's loader does not know them, as Python's packages bring them.
libraries=()
[ ! -d lib ] || libraries+=("$PWD/lib")
if ! ldconfig -p 2>/dev/null | grep -q libcublasLt; then
  libraries+=(/usr/local/cuda/lib64)
  while read -r folder; do libraries+=("$folder"); done < <(python3 - <<'PY' 2>/dev/null
import glob, os, nvidia
for root in nvidia.__path__:
    print("\n".join(sorted({os.path.dirname(f) for n in ("libcublasLt.so*", "libnccl.so*")
                            for f in glob.glob(f"{root}/**/{n}", recursive=True)})))
PY
  )
fi
own() {
  local paths
  paths=$(IFS=:; echo "${libraries[*]}")
  LD_LIBRARY_PATH="$paths${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
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
  own timeout -k 10 450 "$build/tests/cuda/test_cuda_gpu"
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
  for tool in memcheck racecheck; do
    echo "== $tool"
    own timeout -k 10 220 compute-sanitizer --tool "$tool" --error-exitcode 1 \
      "$build/tests/cuda/test_cuda_gpu" "attention*,norms*,embedding*,cross*,activations*" || return 1
  done
}

# The quickstart's model on tokens that a rule makes, which a model learns within these steps, in fp32
# and bf16. A CPU without bf16 products computes in fp32 beside a GPU in bf16.
run_parity() {
  require_program "$build/src/bamtrain" || return
  local work device precision own_precision
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
      own timeout -k 10 110 "$build/src/bamtrain" --config configs/quickstart.json --set device="$device" \
        --set out_dir="$work/$device-$precision" --set data.train="$work" --set data.val= \
        --set data.document_start=0 --set eval.every=0 --set eval.tokens=0 --set 'eval.lengths=[]' \
        --set checkpoint.every=0 --set train.steps=40 --set log.every=1 \
        --set train.precision="$own_precision" || return 1
      cp "$work/$device-$precision/metrics.jsonl" "$out/parity-$device-$precision.jsonl"
    done
  done
  # They differ by the order of sums, and in bf16 by roundings, which 40 steps of training multiply.
  python3 - "$out" <<'PY'
import json, sys
failed = False
for precision, limit in ("fp32", 1e-3), ("bf16", 1e-2):
    read = lambda d: [json.loads(l)["loss"] for l in open(f"{sys.argv[1]}/parity-{d}-{precision}.jsonl")]
    cpu, cuda = read("cpu"), read("cuda")
    worst = max(abs(a - b) / a for a, b in zip(cpu, cuda))
    print(f"{precision}: loss {cpu[0]:.4f} to {cpu[-1]:.4f} on the CPU, {cuda[0]:.4f} to {cuda[-1]:.4f} on "
          f"the GPU; largest relative difference of a step's loss {worst:.2e} (limit {limit})")
    failed |= not (len(cpu) == len(cuda) == 40 and worst < limit and cpu[-1] < cpu[0] - 1)
sys.exit(failed)
PY
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
  local config result=0
  : >"$out/attention.jsonl"
  : >"$out/step.jsonl"
  part own attention 90 "$out/attention.jsonl" "$build/bench/cuda" attention || result=1
  for config in "bam-120m.json --batch 64 --length 512" "bam-432m.json --batch 32 --length 512" \
    "bam-1.1b.json --batch 8 --length 2048"; do
    # shellcheck disable=SC2086  # a name and options
    part own "step $config" 30 "$out/step.jsonl" "$build/bench/cuda" step --config configs/$config || result=1
  done
  if part env "PyTorch with FlexAttention" 30 "$out/peer.txt" python3 -c \
    'import torch, torch.nn.attention.flex_attention; print(torch.__version__)'; then
    part env "PyTorch, attention" 150 "$out/attention.jsonl" python3 scripts/gpu_peer.py attention || result=1
    part env "PyTorch, step" 80 "$out/step.jsonl" python3 scripts/gpu_peer.py step \
      --config configs/bam-120m.json --batch 64 --length 512 || result=1
  fi
  python3 scripts/gpu_table.py "$out/attention.jsonl" "$out/step.jsonl" | tee "$out/table.md"
  return $result
}

run() {
  case $1 in
    tests) run_tests ;;
    goldens) run_goldens ;;
    sanitize) run_sanitize ;;
    parity) run_parity ;;
    bench) run_bench ;;
  esac
}

failed=0
summary=""
for stage in "${stages[@]}"; do
  began=$SECONDS
  if run "$stage" >"$out/$stage.log" 2>&1; then result=ok; else result=FAILED; failed=1; fi
  [ $result = ok ] || tail -n 20 "$out/$stage.log"
  summary+=$(printf '%-10s %-7s %4d s  %s' "$stage" "$result" $((SECONDS - began)) "$out/$stage.log")$'\n'
done
[ ! -f "$out/table.md" ] || cat "$out/table.md"
printf '%s' "$summary"
exit $failed
