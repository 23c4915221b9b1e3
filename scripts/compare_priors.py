#!/usr/bin/env python3
"""Trains the same model with each prior on the same tokens and tabulates perplexity against length.

WikiText-2 with the Mistral v0.3 tokenizer, articles as documents, bf16, T 256 (the config is
configs/compare-wikitext2.json). Perplexity of the last 128 tokens of windows of single articles:
the same targets at every length, all with 128 tokens or more before them, with the standard error of
having sampled these articles.
Resumable: what is finished is not done again, and its row keeps the commit that it was made of.

  scripts/compare_priors.py --wikitext DIR --tokenizer FILE.model [--only NAME ...]

DIR holds train.txt and valid.txt. Results: out/compare-wikitext2/*.json; each becomes a row of
bench/results/compare-wikitext2.md, where rows of other runs stay.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

from program_schema import mechanism_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "out/compare-wikitext2"
CONFIG = "configs/compare-wikitext2.json"
REPORT = ROOT / "bench/results/compare-wikitext2.md"
LENGTHS = [256, 512, 1024, 2048, 4096]

# Name of the row: overrides of the config; a prior of the program that no row is about is added with
# its defaults, but for learned, whose table ends at the training length. What a prior needs beside it
# is its paper's: embeddings times sqrt(C) under sinusoids (Vaswani et al. 2017, 3.4; theirs begin at
# variance 1, GPT-2's at 0.02 sqrt(C) = 0.32 beside rows of root mean square 0.71), t5's biases times
# sqrt(D) from Xavier's initial values (DAPE's baseline).
RUNS = {
    "nope": ["model.attention.prior.name=nope"],
    "sinusoidal": ["model.attention.prior.name=sinusoidal", "model.embed_scale=true"],
    "rope": ["model.attention.prior.name=rope"],
    "rope_local": ["model.attention.prior.name=rope_local"],
    "alibi": ["model.attention.prior.name=alibi"],
    "nape": ["model.attention.prior.name=nape"],
    "kerple": ["model.attention.prior.name=kerple"],
    "t5": ['model.attention.prior={"name":"t5","gain":"sqrt(D)","init":"xavier"}'],
    "fire": ["model.attention.prior.name=fire"],
    "cable": ["model.attention.prior.name=cable"],
    "kcable": ["model.attention.prior.name=kcable"],
    "bam": ["model.attention.prior.name=bam"],
    "bam, rate x 3": ["model.attention.prior.name=bam", "optimizer.lr_multipliers.prior=3"],
    "bam, rate x 10": ["model.attention.prior.name=bam", "optimizer.lr_multipliers.prior=10"],
    "bam + ssmax": ["model.attention.prior.name=bam", "model.attention.scale.name=ssmax"],
    "nape + ssmax": ["model.attention.prior.name=nape", "model.attention.scale.name=ssmax"],
    "nape + sentmax": ["model.attention.prior.name=nape", "model.attention.scale.name=sentmax"],
    "nape + entmax 1.5": ["model.attention.prior.name=nape",
                          "model.attention.normalizer.name=entmax"],
    "nape + adaptive + entmax 1.5": ["model.attention.prior.name=nape",
                                     "model.attention.scale.name=adaptive",
                                     "model.attention.normalizer.name=entmax"],
    "alibi + entmax 1.5": ["model.attention.prior.name=alibi",
                           "model.attention.normalizer.name=entmax"],
    "bam + entmax 1.5": ["model.attention.prior.name=bam", "model.attention.normalizer.name=entmax"],
    **{f"dape over {base}": [f'model.attention.prior={{"name":"dape","base":{{"name":"{base}"}}}}']
       for base in ("kerple", "alibi", "fire")},
    "cope": ["model.attention.prior.name=cope"],
    "transformer_xl": ["model.attention.prior.name=transformer_xl"],
}
for seed in (2, 3):
    for of in ("kerple", "dape over kerple"):
        RUNS[f"{of}, seed {seed}"] = [*RUNS[of], f"seed={seed}"]


def add_missing_priors(program):
    schema = subprocess.run([program, "--print-schema"], text=True, capture_output=True, check=True)
    known = " ".join(text for overrides in RUNS.values() for text in overrides)
    for name in mechanism_names(schema.stdout, "prior"):
        if name != "learned" and not re.search(rf'prior(\.name=|={{"name":"){name}\b', known):
            RUNS[name] = [f"model.attention.prior.name={name}"]


def run(command):
    print("+", " ".join(str(c) for c in command), flush=True)
    subprocess.run([str(c) for c in command], cwd=ROOT, check=True)


def tokenize(bin_dir, wikitext, tokenizer):
    for part, file in (("train", "train.txt"), ("val", "valid.txt")):
        if (OUT / part).exists():
            continue
        run([bin_dir / "data_tools/bamdata", "tokenize", "--document", "wikitext", "--tokenizer",
             tokenizer, "--output", OUT / part, wikitext / file])


def train_and_evaluate(bin_dir, name, overrides, commit):
    """The result of a run, and the commit that it is of: an earlier one where it is there already,
    "unknown" where nothing beside it says so. `commit` is today's."""
    slug = re.sub("[^a-z0-9_]+", "-", name)
    result = OUT / f"{slug}.json"
    asked = {"config": json.loads((ROOT / CONFIG).read_text()), "overrides": overrides}
    made_of = OUT / f"{slug}.asked.json"
    known = json.loads(made_of.read_text()) if result.exists() and made_of.exists() else asked
    if {key: known.get(key) for key in asked} != asked:
        sys.exit(f"compare_priors.py: {result}: expected a result of today's {CONFIG}, found one of "
                 f"another; remedy: remove {OUT}")
    if result.exists():
        commit = known.get("commit", "unknown")
    else:
        made_of.write_text(json.dumps(asked | {"commit": commit}))
        out_dir = OUT / "runs" / slug
        command = [bin_dir / "src/bamtrain", "--config", CONFIG, "--set", f"name={slug}", "--set",
                   f"out_dir={out_dir}"]
        for override in overrides:
            command += ["--set", override]
        run(command)
        checkpoint = sorted(out_dir.glob("checkpoint-*"))[-1]
        run([bin_dir / "src/bamtrain", "eval", "--checkpoint", checkpoint, "--lengths",
             ",".join(map(str, LENGTHS)), "--protocols", "last", "--last-tokens", "128",
             "--output", result])
    return json.loads(result.read_text()), commit


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"


def with_error(r):
    """A perplexity and its standard error, "-" of a single article; results from before
    there were errors have none."""
    text = f"{r['perplexity']:.2f}"
    if "perplexity_error" not in r:
        return text
    error = r["perplexity_error"]
    return text + (" ± -" if error is None else f" ± {error:.2f}")


def row(name, result, commit):
    at = {r["length"]: r for r in result["last"]}
    perplexity = {n: at[n]["perplexity"] for n in LENGTHS}
    cells = [name, *(with_error(at[n]) for n in LENGTHS),
             f"{perplexity[4096] / perplexity[512]:.3f}", commit]
    return "| " + " | ".join(cells) + " |"


def rows_of(report):
    """The rows of a report, by the name of the run."""
    found = {}
    for line in report.splitlines():
        name = line.strip("| ").partition(" |")[0]
        if line.startswith("| ") and name in RUNS:
            found[name] = line
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wikitext", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--only", nargs="*", help="rows, all by default")
    args = parser.parse_args()
    for path in (args.wikitext / "train.txt", args.wikitext / "valid.txt", args.tokenizer,
                 args.build / "src/bamtrain"):
        if not path.exists():
            sys.exit(f"compare_priors.py: {path}: expected a file, found none")
    add_missing_priors(args.build.resolve() / "src/bamtrain")
    if unknown := set(args.only or []) - set(RUNS):
        parser.error(f"--only: expected some of {', '.join(RUNS)}, found {', '.join(unknown)}")
    OUT.mkdir(parents=True, exist_ok=True)
    bin_dir = args.build.resolve()
    tokenize(bin_dir, args.wikitext.resolve(), args.tokenizer.resolve())
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                            capture_output=True, check=False).stdout.strip()
    config = json.loads((ROOT / CONFIG).read_text())
    tokens = config["train"]["steps"] * config["train"]["tokens_per_step"]
    for name in args.only or RUNS:
        result, made_at = train_and_evaluate(bin_dir, name, RUNS[name], commit)
        # Rows of other runs stay as they are, and so do the remarks, which are written by hand.
        old = REPORT.read_text() if REPORT.exists() else ""
        rows = rows_of(old)
        new = row(name, result, made_at)
        # Where nothing beside a result says its commit, a row of the same numbers may.
        if made_at != "unknown" or rows.get(name, "").rsplit("|", 2)[0] != new.rsplit("|", 2)[0]:
            rows[name] = new
        table = "\n".join(rows[n] for n in RUNS if n in rows)
        remarks = old.partition("\n## Remarks\n")[2]
        REPORT.write_text(f"""# Perplexity against length, WikiText-2

Validation perplexity of the last {result['last_tokens']} tokens of windows of each length, single
articles ({result['documents']} of at least 4,097 tokens, {result['last'][0]['tokens']} targets, the
same at every length). The model of `{CONFIG}` trained at T 256 on {tokens:,} tokens, bf16.
±: the standard error of having sampled these articles, clustered by article; models of other seeds
differ besides, and the difference of two rows, of the same text, usually has a smaller one.

| prior | {' | '.join(map(str, LENGTHS))} | 4096 over 512 | commit |
|---|{'---|' * (len(LENGTHS) + 2)}
{table}

Command: `scripts/compare_priors.py --wikitext DIR --tokenizer FILE`; last run {datetime.date.today()},
{cpu_name()}, {os.cpu_count()} cores.
""" + (f"\n## Remarks\n{remarks}" if remarks else ""))
        print(f"{REPORT.relative_to(ROOT)}: {rows[name]}", flush=True)


if __name__ == "__main__":
    main()
