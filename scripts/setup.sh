#!/usr/bin/env bash
# Installs what bamtrain needs from Debian 12 or 13, and says what that is; elsewhere only says it. Does
# nothing where everything is there. Needs root or sudo only if something is missing.
#
#   scripts/setup.sh [PACKAGE...]      further packages that the caller needs
set -euo pipefail

packages=(
  g++ meson ninja-build pkg-config         # build
  libdnnl-dev                              # matrix products
  libopenmpi-dev openmpi-bin               # several processes
  nlohmann-json3-dev libcli11-dev libfmt-dev
  libsentencepiece-dev libpcre2-dev libutf8proc-dev  # tokenizers
  libssl-dev                               # SHA-256
  libzstd-dev liblzma-dev zlib1g-dev       # compressed text
  catch2                                   # tests
  "$@"
)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: this is not a Debian system; needed are the equivalents of: ${packages[*]}" >&2
  exit 0  # Meson tells what is missing
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup.sh: as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "setup.sh: installing from Debian: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  "${missing[@]}" >/dev/null
