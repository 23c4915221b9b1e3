#!/usr/bin/env bash
# Draws README's picture: the quickstart's model with three priors and three seeds each, perplexity of
# the last tokens against length. After scripts/quickstart.sh, whose text and tokenizer it takes;
# nine runs, a quarter of an hour on two idle cores.
#
#   scripts/readme_figure.sh [BUILD]      -> bench/results/perplexity.svg; runs in out/readme
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build}/src/bamtrain

run() {  # NAME PRIOR SCALE LR_MULTIPLIERS
  for seed in 1 2 3; do
    "$program" --config configs/quickstart.json --set name="$1" --set out_dir="out/readme/$1-$seed" \
      --set seed=$seed --set model.attention.prior="$2" --set model.attention.scale="$3" \
      --set "optimizer.lr_multipliers=$4" >/dev/null
  done
}
run bam-ssmax bam ssmax '{"prior": 10}'
run alibi alibi none '{}'
run rope rope none '{}'
"$program" report out/readme/*-[123] --figure perplexity-last --width 120 --output bench/results/perplexity.svg
