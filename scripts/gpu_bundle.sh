#!/usr/bin/env bash
# Packs what scripts/gpu_check.sh needs on a machine with a GPU and CUDA, but without Debian's
# packages, network or compiler: the programs of a build folder ($BUILD, default build/), stripped,
# the shared libraries that they need beside them, scripts and configs. Left to that machine: libc,
# the GPU's driver, cuBLAS, NCCL.
#
#   scripts/gpu_bundle.sh OUT.tar.xz      there: tar -xf OUT.tar.xz && bamtrain-gpu/scripts/gpu_check.sh
#
# The bundle is an error where it is larger than 60 MB, or asks for a later libc than GLIBC (default
# 2.36: what is built on Debian 12 runs on Ubuntu 24.04, what is built on 13 does not). For one kind
# of GPU build with -Dgpu_architectures=90, which is a third of the size.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
if [ $# -ne 1 ] || [[ ${1:-} != *.tar.xz ]]; then
  echo "gpu_bundle.sh: expected one argument, the name of the bundle, OUT.tar.xz, found: $*" >&2
  exit 2
fi
out=$(realpath -m "$1")
cd "$(dirname "$0")/.."
build=${BUILD:-build}
programs=(src/bamtrain bench/cuda tests/cuda/test_cuda_gpu tests/cuda/on_processes_gpu
  tests/cuda/record_wrappers)
glibc=${GLIBC:-2.36}
for program in "${programs[@]}"; do
  [ -x "$build/$program" ] && continue
  echo "gpu_bundle.sh: expected the program $build/$program, found none: build with CUDA (meson setup build -Dcuda=enabled)" >&2
  exit 1
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/bamtrain-gpu
mkdir -p "$root/lib" "$root/scripts"
cp -r configs "$root/"
git describe --always --dirty --abbrev=40 >"$root/COMMIT"
if [ -f tests/golden/wrappers.txt ]; then
  mkdir -p "$root/tests/golden"
  cp tests/golden/wrappers.txt "$root/tests/golden/"
fi
cp scripts/gpu_check.sh scripts/gpu_peer.py scripts/gpu_table.py "$root/scripts/"
for program in "${programs[@]}"; do
  mkdir -p "$root/build/$(dirname "$program")"
  strip -o "$root/build/$program" "$build/$program"
done

# Of libc there must be one, with the loader that belongs to it; the rest is loaded from lib/.
of_libc='^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|nsl|anl))\.so'
missing=$(for program in "${programs[@]}"; do ldd "$build/$program"; done | grep 'not found' || true)
if [ -n "$missing" ]; then
  echo "gpu_bundle.sh: expected every library, found none of these: $missing" >&2
  exit 1
fi
for program in "${programs[@]}"; do ldd "$build/$program"; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
  while read -r name path; do
    [[ $name =~ $of_libc ]] && continue
    cp -L "$path" "$root/lib/$name"
    strip --strip-unneeded "$root/lib/$name" 2>/dev/null || true  # some are stripped already
  done

needed=$(find "$root/build" "$root/lib" -type f -exec grep -aohE 'GLIBC_2\.[0-9]+' {} + | sort -uV | tail -1)
newest=$(printf '%s\n' "GLIBC_$glibc" "$needed" | sort -V | tail -1)
if [ "$newest" != "GLIBC_$glibc" ]; then
  echo "gpu_bundle.sh: expected symbols of libc up to $glibc, found $needed: build on an older system, or set GLIBC to what the other machine has" >&2
  exit 1
fi

# The dictionary sees the copies of the kernels in all programs.
tar -C "$work" -cf - bamtrain-gpu | xz -T1 --lzma2=preset=6,dict=256MiB >"$out.part"
mv "$out.part" "$out"
bytes=$(stat -c %s "$out")
libraries=("$root"/lib/*)
echo "$out: ${#libraries[@]} libraries, $bytes bytes, commit $(cat "$root/COMMIT"), $needed"
if [ "$bytes" -gt 60000000 ]; then
  echo "gpu_bundle.sh: expected a bundle below 60 MB, found $bytes bytes: build with -Dgpu_architectures for one GPU" >&2
  exit 1
fi
