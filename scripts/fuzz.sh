#!/usr/bin/env bash
# Gives readers of files inputs of any kind: the targets of tests/fuzz under libFuzzer, with the
# address and undefined-behaviour sanitizers. Needs clang with its runtimes and OpenMP
# (Debian: apt-get install clang libclang-rt-dev libomp-dev). Exits with 1 where it found something.
#
#   scripts/fuzz.sh [SECONDS] [TARGET...]      60 seconds each, all targets
#
# BUILD names the folder, build-fuzz by default. It keeps what was found (findings/) and inputs that
# reach further than those before (corpus/), from which the next run goes on.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-fuzz}
seconds=60
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
fi
for target in "${targets[@]}"; do
  if [ ! -d "tests/fuzz/corpus/$target" ]; then
    echo "fuzz.sh: unknown target $target; targets: $(ls tests/fuzz/corpus | tr '\n' ' ')" >&2
    exit 2
  fi
done

# Where files cost next to nothing.
[ -w /dev/shm ] && export TMPDIR=/dev/shm
[ -f "$build/build.ninja" ] || CC=clang CXX=clang++ meson setup "$build" -Dfuzz=true \
  -Dcuda=disabled -Dmpi=disabled -Dwerror=false -Dbuildtype=plain -Doptimization=1 -Ddebug=true \
  -Db_sanitize=address,undefined -Db_lundef=false
ninja -C "$build" "${targets[@]/#/tests/fuzz/fuzz_}"

printf '\n%-12s %12s %8s %9s\n' target executions edges findings
status=0
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target findings=$build/findings/$target log=$build/$target.log
  mkdir -p "$corpus" "$findings"
  # As long as the longest to begin with, which would be cut otherwise.
  longest=$(find "tests/fuzz/corpus/$target" -type f -printf '%s\n' | sort -n | tail -1)
  "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -max_len=$((longest > 8192 ? longest : 8192)) -timeout=20 \
    -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$findings/" "$corpus" \
    "tests/fuzz/corpus/$target" >"$log" 2>&1 || status=1
  edges=$(grep -o ' cov: [0-9]*' "$log" | tail -1 | grep -o '[0-9]*' || true)
  executions=$(grep -o 'number_of_executed_units: [0-9]*' "$log" | grep -o '[0-9]*' || true)
  printf '%-12s %12s %8s %9s\n' "$target" "${executions:-?}" "${edges:-?}" "$(ls "$findings" | wc -l)"
done
[ $status -eq 0 ] || echo "fuzz.sh: the logs are $build/TARGET.log, inputs $build/findings/TARGET/*" >&2
exit $status
