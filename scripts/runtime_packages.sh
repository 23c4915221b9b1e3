#!/usr/bin/env bash
# Prints Debian's packages of the shared libraries that programs need, one a line, on the machine that
# built them.
#
#   scripts/runtime_packages.sh PROGRAM...
set -euo pipefail
mapfile -t libraries < <(objdump -p "$@" | awk '$1 == "NEEDED" { print "*/x86_64-linux-gnu/" $2 }' | sort -u)
[ ${#libraries[@]} -gt 0 ] || { echo "runtime_packages.sh: no shared libraries in: $*" >&2; exit 1; }
dpkg-query --search "${libraries[@]}" | cut -d : -f 1 | sort -u
