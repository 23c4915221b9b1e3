#!/usr/bin/env bash
# Configures and builds in build/ (or $BUILD), everything or the targets in $TARGETS. Arguments go to
# `meson setup`. Tells how far it is: in one line on a terminal, elsewhere in a line every 20 seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
if [ ! -f "$build/build.ninja" ]; then
  if ! said=$(meson setup "$build" "$@"); then
    tail -n 20 <<<"$said" >&2
    echo "build.sh: Meson did not configure $build; scripts/setup.sh installs what is missing" >&2
    exit 1
  fi
elif [ $# -gt 0 ]; then
  meson configure "$build" "$@"
fi

# Passes on what compilers say, and of ninja's own lines one now and then, the first and the last.
now_and_then() {
  local line next=0
  while IFS= read -r line; do
    case $line in
      "ninja: Entering directory"* | "ninja: no work to do.") continue ;;
    esac
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
      if ((SECONDS < next && BASH_REMATCH[1] < BASH_REMATCH[2])); then continue; fi
      next=$((SECONDS + 20))
    fi
    printf '%s\n' "$line"
  done
}

# As many compilers as processors, and as memory has room for: a unit takes up to 1.5 GiB.
jobs=$(awk -v processors="$(nproc)" '
  $1 == "MemTotal:" { n = int($2 / 1572864); print n < 1 ? 1 : n < processors ? n : processors }' /proc/meminfo)

export NINJA_STATUS='[%f/%t] '
# shellcheck disable=SC2086  # a list
if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
  ninja -C "$build" -j "$jobs" ${TARGETS:-}
else
  ninja -C "$build" -j "$jobs" ${TARGETS:-} | now_and_then
fi
