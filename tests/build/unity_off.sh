#!/usr/bin/env bash
# Builds everything once more with each file as a unit of its own (-Dunity=off): what one file takes
# from another's includes, and each warning, is an error there. Both builds train bitwise identically.
#
#   unity_off.sh SOURCE BUILD [MESON OPTION...]
set -euo pipefail
source=${1:?expected the source folder} build=${2:?expected the build folder}
apart=$build/unity_off
[ -f "$apart/build.ninja" ] ||
  meson setup "$apart" "$source" -Dunity=off -Dcuda=disabled -Dlong_tests=true "${@:3}" >"$apart.log" || { cat "$apart.log" >&2; exit 1; }
ninja -C "$apart" all tests/cuda/test_cuda tests/cuda/on_processes >"$apart.log" || { grep -vE '^\[' "$apart.log" >&2; exit 1; }
bits() { "$source/scripts/same_bits.py" "$@" --processes 1 --steps 4; }
bits "$build/src/bamtrain" --record "$apart/bits.json" >/dev/null
bits "$apart/src/bamtrain" --against "$apart/bits.json"
echo "test cases: 1 | 1 passed | 0 failed"
