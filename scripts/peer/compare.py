#!/usr/bin/env python3
"""Trains the same model by bamtrain and by plain PyTorch (train.py) and compares loss and speed.

  scripts/peer/compare.py --compile --docs FILE --tokenizer FILE.model > bench/results/loss-peer.md

One epoch of FILE in both, one program after the other: the same tokens in the same order, the same
initial weights, scripts/peer/config.json. A page in Markdown goes to standard output, what the
programs say to out/loss-peer/*.log, where shards, weights and both runs stay. Exits with 1 where
the losses, smoothed, differ by more than 0.2 %. Leave the machine alone meanwhile, or take the
speeds for nothing, or give those of another pair of runs (--speeds FOLDER, a --work of before); --steps N
is a short proof, --only-compare the page of what ran already.
The Python that runs this needs PyTorch, safetensors and numpy.
"""

import argparse
import json
import os
import pathlib
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))
from bench_cpu import machine  # noqa: E402
from cpu_bench.tables import table  # noqa: E402

SMOOTH, LIMIT = 20, 0.002  # steps of the mean; the largest relative difference of these
BAMTRAIN, PEER = "bamtrain", "PyTorch"
# Memory that was freed is kept: else a micro-batch's logits, 256 MiB a copy, are mapped and zeroed anew
# every time.
PEER_ENVIRONMENT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**36)}


def run(command, log, env=None):
    """The command as a line, the seconds that it took, and those of processors."""
    command, env = [str(c) for c in command], env or {}
    line = shlex.join([f"{key}={value}" for key, value in env.items()] + command)
    print("+", line, file=sys.stderr, flush=True)
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with log.open("w") as out:
        done = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False,
                              env={**os.environ, **env})
    if done.returncode != 0:
        lines = log.read_text().strip().splitlines()
        sys.exit(f"compare.py: {command[0]} ended with {done.returncode}: {lines[-1] if lines else ''}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"line": line, "seconds": time.perf_counter() - began,
            "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def prepare(args):
    """Shards, the configuration that both programs read, and the initial weights."""
    work, data = args.work, args.work / "data"
    work.mkdir(parents=True, exist_ok=True)
    if not (data / "train/manifest.json").exists():
        run([args.build / "data_tools/bamdata", "tokenize", "--tokenizer", args.tokenizer, "--output",
             data, args.docs], work / "bamdata.log")
    config = json.loads((HERE / "config.json").read_text())
    train, T = config["train"], config["data"]["sequence_length"]
    shards = json.loads((data / "train/manifest.json").read_text())["shards"]
    windows = sum((shard["tokens"] - 1) // T for shard in shards)
    train["steps"] = windows * T // train["tokens_per_step"]
    config["out_dir"], config["data"]["train"] = str(work / "run"), str(data / "train")
    config["init_from"] = {"folder": str(work / "init")}
    (work / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    run([sys.executable, HERE / "train.py", "init", "--config", work / "config.json", "--weights",
         work / "init"], work / "init.log")


def train(args):
    """Both runs, and runs.json: how long they took, and with how many threads."""
    work, config = args.work, args.work / "config.json"
    shutil.rmtree(work / "run", ignore_errors=True)
    # Paths that are of this machine alone, and what stands for them on the page.
    names = {str(args.work): "out/loss-peer", str(args.build): "BUILD", sys.executable: "python3",
             f"{ROOT}/": ""}
    runs = {"threads": args.threads}
    stop = ["--set", f"train.stop_at={args.steps}"] if args.steps else []
    runs[BAMTRAIN] = run([args.build / "src/bamtrain", "--config", config, *stop],
                         work / "bamtrain.log", {"OMP_NUM_THREADS": str(args.threads)})
    options = ["--steps", args.steps] if args.steps else []
    options += ["--compile"] if args.compile else []
    options += ["--micro-batch", args.micro_batch] if args.micro_batch else []
    runs[PEER] = run([sys.executable, HERE / "train.py", "train", "--config", config, "--weights",
                      work / "init", "--output", work / "peer.jsonl", "--threads", args.threads, *options],
                     work / "peer.log", PEER_ENVIRONMENT)
    for name, stands in names.items():
        for of in (BAMTRAIN, PEER):
            runs[of]["line"] = runs[of]["line"].replace(name, stands)
    (work / "runs.json").write_text(json.dumps(runs, indent=2) + "\n")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def smoothed(values):
    """Means over the last SMOOTH steps, at the beginning over all."""
    return [statistics.fmean(values[max(0, i + 1 - SMOOTH):i + 1]) for i in range(len(values))]


def differences(of, than):
    return [a / b - 1 for a, b in zip(of, than)]


def largest(values):
    return max(abs(v) for v in values)


def percent(x):
    return f"{100 * x:+.4f} %"


def speeds_of(work, tokens):
    """Rows of a table, and bamtrain's rate over the peer's. The first step of both compiles or tunes."""
    runs = json.loads((work / "runs.json").read_text())
    ends = [line["seconds"] for line in lines_of(work / "run/metrics.jsonl")]
    seconds = {BAMTRAIN: [b - a for a, b in zip(ends, ends[1:])],
               PEER: [line["seconds"] for line in lines_of(work / "peer.jsonl")[2:]]}
    speed = {name: tokens / statistics.median(of) if of else 0 for name, of in seconds.items()}
    rows = [[name, f"{speed[name]:,.0f}", f"{statistics.median(seconds[name] or [0]):.3f}",
             f"{runs[name]['seconds']:,.0f}",
             f"{100 * runs[name]['processor_seconds'] / runs[name]['seconds'] / runs['threads']:.0f} %"]
            for name in (BAMTRAIN, PEER)]
    return rows, speed[BAMTRAIN] / speed[PEER] if speed[PEER] else 0, runs["threads"]


def page(work, speeds_from):
    """The page, and whether the losses are the same."""
    config, runs = json.loads((work / "config.json").read_text()), json.loads(
        (work / "runs.json").read_text())
    start = json.loads((work / "run/starts.json").read_text())[-1]
    ours, (peer, *theirs) = lines_of(work / "run/metrics.jsonl"), lines_of(work / "peer.jsonl")
    if [line["step"] for line in ours] != [line["step"] for line in theirs] or not ours:
        sys.exit(f"compare.py: {work}: expected the same steps of both, found {len(ours)} of bamtrain "
                 f"and {len(theirs)} of the peer; run both again")

    def column(name):
        return [line[name] for line in ours], [line[name] for line in theirs]

    loss, norm, rate = (differences(*column(name)) for name in ("loss", "grad_norm", "lr"))
    smooth = [smoothed(values) for values in column("loss")]
    difference, steps = differences(*smooth), len(ours)
    worst = largest(difference)
    good = worst <= LIMIT
    shown = sorted({s for s in (1, 2, 5, 10, 20, *range(50, steps, 50), steps) if s <= steps})
    rows = [[s, f"{ours[s - 1]['loss']:.6f}", f"{theirs[s - 1]['loss']:.6f}", percent(loss[s - 1]),
             f"{smooth[0][s - 1]:.4f}", f"{smooth[1][s - 1]:.4f}", percent(difference[s - 1])]
            for s in shown]

    tokens, threads = config["train"]["tokens_per_step"], runs["threads"]
    speeds, ratio, speed_threads = speeds_of(speeds_from, tokens)
    model, T = config["model"], config["data"]["sequence_length"]
    all_steps = config["train"]["steps"]
    how = ("torch.compile" if peer["compile"] else "eager") + f", micro-batches of {peer['micro_batch']}"
    text = f"""# Loss and speed beside PyTorch

{machine()}; oneDNN {start['libraries'].get('oneDNN', '-')}; PyTorch \
{peer['torch']} ({how}); threads: {threads} in both; commit {start['commit']}; {start['started'][:10]}.

The model of `scripts/peer/config.json` ({peer['parameters']:,} parameters, width {model['width']}, \
{model['layers']} layers, rope, RMSNorm, SwiGLU) trained by `bamtrain` and by `scripts/peer/train.py`, a \
plain loop in PyTorch that shares no code with it: the same initial weights, the same tokens in the same \
order, T {T}, AdamW, a peak rate of {config['optimizer']['lr']:g}, fp32, {tokens:,} tokens a step in micro-batches of {config['train']['micro_batch']} \
sequences; {steps} of the {all_steps} steps of an epoch of {peer['windows'] * T:,} tokens.

The losses, each the mean of the last {SMOOTH} steps, differ by {100 * worst:.2g} % at most (target \
{100 * LIMIT:.1f} %, {"met" if good else "**missed**"}), by {100 * largest(loss):.2g} % where they are \
not smoothed; at the first step, of equal weights, by {abs(loss[0]):.1e}. The gradient's norm \
before clipping differs by {abs(norm[0]):.1e} at the first step, by {largest(norm[:10]):.1e} at most in \
the first ten, by {statistics.median(map(abs, norm)):.1e} in the median of all; learning rates by \
{largest(rate):.1e} at most.

{table(["step", BAMTRAIN, PEER, "difference", f"{BAMTRAIN}, smoothed", f"{PEER}, smoothed", "difference"],
       rows)}

Speed, with {speed_threads} threads in both\
{"" if speeds_from == work else ", of the same two programs on an idle machine, with another learning rate"}: \
the median step after the first. bamtrain over PyTorch: {ratio:.3f}. Processors in use: of the whole run, its \
start included; well below 100 %, other programs ran meanwhile.

{table(["", "tokens/s", "seconds a step", "seconds in all", "processors in use"], speeds)}

`scripts/peer/compare.py{" --compile" if peer['compile'] else ""} --docs docs.jsonl.xz --tokenizer \
mistral-7b-v0.3.model`, which ran

    {runs[BAMTRAIN]['line']}
    {runs[PEER]['line']}
"""
    return text, good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=pathlib.Path, help="text that bamdata reads")
    parser.add_argument("--tokenizer", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "out/loss-peer")
    parser.add_argument("--steps", type=int, help="end both runs after so many; the schedule stays")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true", help="PyTorch by torch.compile")
    parser.add_argument("--micro-batch", type=int, help="of PyTorch; default: bamtrain's")
    parser.add_argument("--only-compare", action="store_true")
    parser.add_argument("--speeds", type=pathlib.Path, help="a --work whose speeds the page has")
    args = parser.parse_args()
    args.work = args.work.resolve()
    if not args.only_compare:
        if not args.docs or not args.tokenizer:
            parser.error("--docs and --tokenizer are needed")
        args.build, args.docs, args.tokenizer = (
            path.resolve() for path in (args.build, args.docs, args.tokenizer))
        for path in (args.docs, args.tokenizer, args.build / "src/bamtrain"):
            if not path.exists():
                sys.exit(f"compare.py: {path}: expected a file, found none")
        prepare(args)
        train(args)
    text, good = page(args.work, (args.speeds or args.work).resolve())
    print(text, end="")
    sys.exit(not good)


if __name__ == "__main__":
    main()
