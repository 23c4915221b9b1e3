#!/usr/bin/env bash
# Configures and builds in build/ (or $BUILD), everything or the targets in $TARGETS. Arguments go to
# `meson setup`.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
if [ ! -f "$build/build.ninja" ]; then
  meson setup "$build" "$@" >/dev/null || { cat "$build/meson-logs/meson-log.txt" >&2; exit 1; }
elif [ $# -gt 0 ]; then
  meson configure "$build" "$@"
fi
# shellcheck disable=SC2086  # a list
ninja -C "$build" --quiet ${TARGETS:-}
