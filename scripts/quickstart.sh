#!/usr/bin/env bash
# From nothing to two trained models: installs what is missing, builds, makes token shards from the
# prose of Perl's manual (Debian's package perl-doc, some 6 MB), trains a small model with BAM +
# SSMax and the same with RoPE for a few minutes on two cores, and shows the perplexity of both at
# 1, 2, 4, 8 and 16 times the training length, as a plot and as a page. A second call reuses what is
# there.
#
#   scripts/quickstart.sh [--text FILE...]      train on these text files instead
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."

out=out/quickstart
texts=()
if [ $# -gt 0 ]; then
  if [ "$1" != --text ] || [ $# -lt 2 ]; then
    echo "usage: scripts/quickstart.sh [--text FILE...]" >&2
    exit 2
  fi
  shift
  for file in "$@"; do
    case $file in /*) texts+=("$file") ;; *) texts+=("$here/$file") ;; esac
  done
  for file in "${texts[@]}"; do
    fault=""
    [ -r "$file" ] || fault="cannot be read; check its permissions"
    [ -e "$file" ] || fault="no such file; check the name"
    [ ! -d "$file" ] || fault="is a folder; name the text files in it"
    if [ -n "$fault" ]; then
      echo "quickstart.sh: $file: $fault" >&2
      exit 6
    fi
  done
fi

if [ ${#texts[@]} -gt 0 ]; then
  bytes=$(cat "${texts[@]}" | wc -c)
  if [ "$bytes" -lt 1000000 ]; then
    echo "quickstart.sh: --text: expected at least 1,000,000 bytes, enough for 4,096 pieces, found" \
      "$bytes; give more text" >&2
    exit 4
  fi
fi

say() { printf '\n== %s\n' "$*"; }

if [ ${#texts[@]} -eq 0 ]; then scripts/setup.sh perl-doc; else scripts/setup.sh; fi

bin=${BUILD:-build}
options=()
# Kernels are compiled for the GPUs that are here, and not at all where there is none. A build that is
# there keeps what it was configured for.
if [ ! -f "$bin/build.ninja" ]; then
  gpus=$(scripts/gpu_architectures.sh)
  options=("${gpus:+-Dgpu_architectures=$gpus}")
  [ -n "$gpus" ] || options=(-Dcuda=disabled)
fi
say "building${options[*]:+ (${options[*]})}"
TARGETS="src/bamtrain data_tools/bamdata" scripts/build.sh "${options[@]}"

# What lies in $out was made of one text: another one needs another folder.
mkdir -p "$out"
source="perl-doc"
[ ${#texts[@]} -eq 0 ] || source=$(cat "${texts[@]}" | sha256sum | cut -d ' ' -f 1)
if [ -f "$out/source" ] && [ "$(cat "$out/source")" != "$source" ]; then
  echo "quickstart.sh: $out: made from another text; move this folder elsewhere" >&2
  exit 4
fi
echo "$source" > "$out/source"

# Pieces of at most 64 KiB: many documents, each long enough for the longest evaluation. A line
# longer than a piece may be cut inside a character, which is then replaced.
if [ ! -d "$out/text" ]; then
  say "collecting text in $out/text"
  rm -rf "$out/text.tmp"
  mkdir -p "$out/text.tmp"
  if [ ${#texts[@]} -eq 0 ]; then
    # Prose only: no headings and code blocks, no markup, no translations.
    while read -r pod; do
      sed -E '/^[=[:space:]]/d; :again; s/[A-Z]<+ ?([^<>]*) ?>+/\1/g; t again' "$pod" | cat -s |
        iconv -f utf-8 -t utf-8 -c |
        split -C 65536 -d -a 3 --additional-suffix=.txt - \
          "$out/text.tmp/$(basename "$pod" .pod)."
    done < <(dpkg -L perl-doc | grep '\.pod$' | grep -vE 'perl(cn|jp|ko|tw)\.pod$' | sort)
  else
    for i in "${!texts[@]}"; do
      split -C 65536 -d -a 4 --additional-suffix=.txt "${texts[$i]}" \
        "$out/text.tmp/$(printf '%03d' "$i")."
    done
  fi
  mv "$out/text.tmp" "$out/text"
fi

if [ ! -f "$out/tokenizer.model" ]; then
  say "training a tokenizer of 4,096 pieces"
  "$bin"/data_tools/bamdata train-tokenizer --document file --invalid-utf8 replace --vocab 4096 \
    --output "$out/tokenizer.model" "$out"/text/*.txt
fi

if [ ! -d "$out/data" ]; then
  say "writing token shards to $out/data"
  "$bin"/data_tools/bamdata tokenize --document file --invalid-utf8 replace \
    --tokenizer "$out/tokenizer.model" \
    --val-fraction 0.05 --output "$out/data" "$out"/text/*.txt
fi

# The same config, text and budget but for the prior and the scale: RoPE has no parameters of its own,
# whose learning rate the config multiplies.
train() {
  say "training $1 in $out/$1"
  "$bin"/src/bamtrain train configs/quickstart.json --set name="$1" --set out_dir="$out/$1" \
    "${@:2}"
}
train bam-ssmax
train rope --set 'model.attention.prior={"name":"rope","theta":10000}' \
  --set model.attention.scale=none --set 'optimizer.lr_multipliers={}'

say "BAM + SSMax and RoPE past the training length"
"$bin"/src/bamtrain report "$out/bam-ssmax" "$out/rope" --output "$out/report.html"

say "to continue the training"
echo "$bin/src/bamtrain train configs/quickstart.json --set name=bam-ssmax" \
  "--set out_dir=$out/bam-ssmax --set train.steps=3000" \
  "--set 'checkpoint.allow_change=[\"train.steps\"]'"
