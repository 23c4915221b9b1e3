#!/usr/bin/env bash
# Builds everything, runs the tests, closes with "N passed, N failed" (test cases). Exits with 1 where a
# test failed.
#
#   scripts/test.sh [--long] [MESON OPTION...]
#
# --long adds the tests that are run before a release (CONTRIBUTING.md): hours on two cores. Further
# arguments go to Meson, e.g. -Dmpi=disabled; BUILD names the build folder. In a new build folder, kernels
# are compiled for the GPUs that are here, or to intermediate code alone, which is what runs where there is
# none; with --long for every GPU of a default build, since ptxas refuses what spills registers on one of
# them. An existing folder keeps its GPUs, after --long too.
set -euo pipefail
cd "$(dirname "$0")/.."
export BUILD=${BUILD:-build}
long=false
if [ "${1:-}" = --long ]; then
  long=true
  shift
fi
scripts/setup.sh
options=(-Dtests=true -Dlong_tests=$long)
if $long; then
  options+=(-Dgpu_architectures=80,86,90)
elif [ ! -f "$BUILD/build.ninja" ]; then
  gpus=$(scripts/gpu_architectures.sh)
  options+=("-Dgpu_architectures=${gpus:-80-virtual}")
fi
scripts/build.sh "${options[@]}" "$@"
targets=$(meson introspect "$BUILD" --targets)
if [[ $targets != *'"name": "ops_cuda"'* ]]; then
  echo "test.sh: $BUILD has CUDA disabled, or nvcc was not found: the CUDA backend is not tested" \
    "(-Dcuda=enabled asks for it)"
fi

# One more at a time than there are processors, since some wait for processes that they start. Long ones
# begin first (priority), and some run alone (is_parallel: false).
status=0
meson test -C "$BUILD" --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 1)) || status=$?

# Catch2 closes with "All tests passed (A assertions in N test cases)" or with
# "test cases: N | P passed | F failed". A program that ends otherwise (a crash, a time limit)
# counts as one failure, by its name.
awk -v status="$status" '
  /^=+ [0-9]+\/[0-9]+ =+$/ { close_program(); open = 1; counted = 0; name = "" }
  /^test: / { if (open && name == "") name = $0 }
  /^All tests passed \(/ { passed += $(NF - 2); counted = 1 }
  /^test cases: / {
    counted = 1
    for (i = 1; i <= NF; ++i) {
      if ($i == "passed") passed += $(i - 1)
      if ($i == "failed") failed += $(i - 1)
    }
  }
  function close_program() {
    if (!open || counted) return
    ++failed
    printf "%s: it closed without a count of its test cases\n", name
  }
  END {
    close_program()
    if (status != 0 && failed == 0) failed = 1
    printf "%d passed, %d failed\n", passed, failed
    exit failed > 0 || passed == 0
  }' "$BUILD/meson-logs/testlog.txt"
