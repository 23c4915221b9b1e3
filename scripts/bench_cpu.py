#!/usr/bin/env python3
"""Measures training on this CPU and tabulates it beside the limits of the same runs.

  scripts/bench_cpu.py [--build DIR] [--runs 3] [--only SECTION ...] [--tokenizer FILE --text FILE]

Every row of targets, start, processes and tokenizer is run --runs times; shown are the median and the
range. precision needs the shards of scripts/compare_priors.py, tokenizer --tokenizer and --text
(its peer is spm_encode, from Debian's package sentencepiece). Tables go to
bench/results/cpu-SECTION.md. Leave the machine alone meanwhile.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARE = r"share\s+([\d.]+) % \(6 N D\)"
TOKENS = r"tokens/s\s+([\d.]+)"
BOTH = r"both\s+[\d.]+ ms, ([\d.]+) %"
SMALL = "--config configs/quickstart.json --set model.layers=6 --batch 16 --length 256"


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown processor"


class Bench:
    def __init__(self, build, runs):
        self.build = build.resolve()
        self.runs = runs

    def run(self, command, env=None):
        program, *rest = command
        result = subprocess.run([self.build / program, *rest], cwd=ROOT, text=True,
                                capture_output=True, env={**os.environ, **(env or {})}, check=False)
        if result.returncode != 0:
            sys.exit(f"bench_cpu.py: {' '.join(command)}\n{result.stdout}{result.stderr}")
        return result.stdout

    def values(self, command, pattern):
        """What `pattern` captures in the output of each of the runs."""
        found = []
        for _ in range(self.runs):
            out = self.run(command.split())
            match = re.search(pattern, out)
            if not match:
                sys.exit(f"bench_cpu.py: no {pattern} in the output of {command}\n{out}")
            found.append(float(match.group(1)))
        print(f"{command}: {found}", flush=True)
        return found


def cell(values, unit=""):
    middle = statistics.median(values)
    digits = 0 if middle >= 1000 else 1 if middle >= 1 else 3
    low, high = min(values), max(values)
    return f"{middle:,.{digits}f}{unit} ({low:,.{digits}f} to {high:,.{digits}f})"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])


def targets(bench, _):
    """The step, attention and optimizer as shares of the limits of the same runs."""
    rows = []

    def row(what, command, pattern, target):
        rows.append([what, f"{target} %", cell(bench.values(command, pattern), " %"), f"`{command}`"])

    gpt2 = "bench/step --config configs/gpt2-124m.json --batch 4 --length 256"
    row("GPT-2 124M, fp32, of the fp32 matrix rate", f"{gpt2} --precision fp32", SHARE, 70)
    row("GPT-2 124M, bf16, of the bf16 matrix rate", f"{gpt2} --precision bf16", SHARE, 50)
    for dim in (64, 48):
        for form in ("none", "table"):
            row(f"attention D {dim}, {form}, of the fp32 matrix rate",
                f"bench/attention --length 2048 --head-dim {dim} --form {form}", BOTH, 50)
    row("optimizer, of the copy bandwidth", "bench/optimizer", r"radam.*?([\d.]+) % of a copy", 80)
    row("small model (width 256, 6 layers), fp32", f"bench/step {SMALL} --precision fp32", SHARE, 45)
    row("small model (width 256, 6 layers), bf16", f"bench/step {SMALL} --precision bf16", SHARE, 45)
    bam = "bench/step --config configs/bam-120m.json --batch 2 --length 512 --precision bf16"
    bare = "--set model.attention.prior=nope --set model.attention.scale=none"
    with_bam = bench.values(f"{bam} --set model.attention.scale=none", TOKENS)
    without = bench.values(f"{bam} {bare}", TOKENS)
    ratio = [a / b for a, b in zip(with_bam, without)]
    rows.append(["BAM 120M, T 512, bf16: bam over nope, tokens/s", "0.95", cell(ratio),
                 f"`{bam}`, prior bam against nope, scale none"])
    return table(["what", "target", "measured", "command"], rows)


def growth(bench, _):
    """Tokens per second as one size grows, beside what the flops predict from the first row."""
    parts = []

    def grow(title, name, settings, command):
        rows = []
        first = None
        for size in settings:
            out = bench.run(command(size).split())
            speed = float(re.search(TOKENS, out).group(1))
            share = re.search(r"share\s+([\d.]+) % \(6 N D\), ([\d.]+) %", out)
            # Flops per second are the share of the matrix rate: equal shares, equal efficiency.
            first = first or float(share.group(2))
            predicted = speed * first / float(share.group(2))
            memory = float(re.search(r"([\d.]+) MiB largest resident set", out).group(1))
            rows.append([size, f"{speed:,.0f}", f"{predicted:,.0f}", f"{share.group(2)} %",
                         f"{memory:,.0f} MiB"])
            print(title, rows[-1], flush=True)
        parts.append(f"{title}: `{command(name)}`\n\n" + table(
            [name, "tokens/s", "at the first row's efficiency", "of the matrix rate", "memory"], rows))

    step = "bench/step --config configs/compare-wikitext2.json --precision bf16 --steps 3"
    step += " --set model.attention.prior.name=bam"
    grow("Length, 16,384 tokens a batch", "T", [256, 512, 1024, 2048, 4096, 8192, 16384],
         lambda t: f"{step} --batch {16384 // t if t != 'T' else '16384/T'} --length {t}")
    grow("Width, 1,024 tokens a batch", "C", [256, 512, 1024, 2048],
         lambda c: f"{step} --batch 4 --length 256 --set model.width={c} "
                   f"--set model.heads={c // 64 if c != 'C' else 'C/64'} "
                   f"--set model.mlp.hidden={2 * c if c != 'C' else '2C'}")
    return "\n\n".join(parts)


def write_shard(path, tokens):
    """A shard in llm.c's format: 256 ints of header (magic, version, tokens), then uint16. The ids
    repeat every 100,000."""
    header = [20240520, 1, tokens] + [0] * 253
    state, ids = 1, bytearray()
    for _ in range(100000):
        state = (state * 1103515245 + 12345) % 2**31
        ids += ((state >> 16) % 4096).to_bytes(2, "little")
    with open(path, "wb") as file:
        file.write(b"".join(n.to_bytes(4, "little") for n in header))
        for begin in range(0, tokens, 100000):
            file.write(ids[:2 * min(100000, tokens - begin)])


def shard_overrides(shards, out_dir):
    """configs/quickstart.json on these shards, without validation and checkpoints."""
    changes = [f"out_dir={out_dir}", f"data.train={shards}", "data.val=",
               "data.document_start=0", "eval.every=0", "eval.tokens=0", "eval.lengths=[]", "checkpoint.every=0"]
    return [word for change in changes for word in ("--set", change)]


def start(bench, _):
    """From the start of the program to the end of the first step, on 1 GB of shards."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        shards = pathlib.Path(folder) / "shards"
        shards.mkdir()
        for i in range(5):
            write_shard(shards / f"{i}.bin", 100000000)
        for run in range(bench.runs):
            out_dir = pathlib.Path(folder) / f"out{run}"
            command = [bench.build / "src/bamtrain", "--config", "configs/quickstart.json",
                       *shard_overrides(shards, out_dir)]
            began = time.perf_counter()
            process = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("1/"):
                    times.append(time.perf_counter() - began)
                    break
            process.kill()
            process.wait()
            if len(times) != run + 1:
                sys.exit("bench_cpu.py: no first step in\n" + "".join(lines))
    print("first step", times, flush=True)
    return f"`configs/quickstart.json`, 4,096 tokens a step: {cell(times)} s (target 2)."


def processes(bench, _):
    """Whole runs: two processes of one thread against one of two threads, and 1 to 8 lanes."""
    steps = 12
    with tempfile.TemporaryDirectory() as folder:
        shard = pathlib.Path(folder) / "train.bin"
        write_shard(shard, 400000)

        def speed(launcher, threads, lanes):
            out_dir = pathlib.Path(folder) / "out"
            shutil.rmtree(out_dir, ignore_errors=True)
            command = launcher + [
                str(bench.build / "src/bamtrain"), "--config", "configs/quickstart.json"]
            command += shard_overrides(shard, out_dir)
            for change in (f"train.steps={steps}", f"train.lanes={lanes}", "train.micro_batch=4"):
                command += ["--set", change]
            env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            result = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True,
                                    check=False)
            if result.returncode != 0:
                sys.exit(f"bench_cpu.py: {' '.join(command)}\n{result.stdout}{result.stderr}")
            lines = (out_dir / "metrics.jsonl").read_text().splitlines()
            return json.loads(lines[-1])["tokens_per_second"]

        def speeds(*args):
            found = [speed(*args) for _ in range(bench.runs)]
            print(args, found, flush=True)
            return found

        one = speeds([], 2, 8)
        two = speeds(["mpirun", "-np", "2"], 1, 8)
        rows = [["one process, two threads", cell(one)], ["two processes, one thread each", cell(two)],
                ["two over one (target 0.9)", f"{statistics.median(two) / statistics.median(one):.3f}"]]
        for lanes in (1, 2, 4, 8):
            rows.append([f"one process, two threads, {lanes} lanes", cell(speeds([], 2, lanes))])
    return "`configs/quickstart.json`, micro-batch 4, fp32, tokens/s\n\n" + table(
        ["run", "tokens/s"], rows)


def tokenizer(bench, args):
    """bamdata tokenize against spm_encode, MB of text per second, ids out in both."""
    if not args.tokenizer or not args.text:
        sys.exit("bench_cpu.py: section tokenizer needs --tokenizer and --text")
    size = args.text.stat().st_size / 1e6

    def rate(command, out=None):
        found = []
        for _ in range(bench.runs):
            if out:
                shutil.rmtree(out, ignore_errors=True)
            start = time.perf_counter()
            subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            found.append(size / (time.perf_counter() - start))
        print(command[:4], found, flush=True)
        return found

    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "tokens"

        def bamdata(threads):
            one_core = ["taskset", "-c", "0"] if threads == 1 else []
            return rate(one_core + [bench.build / "data_tools/bamdata", "tokenize", "--document", "blank-line",
                         "--threads", threads, "--tokenizer", args.tokenizer, "--output", out,
                         args.text], out)

        peer = rate(["taskset", "-c", "0", "spm_encode", f"--model={args.tokenizer}", "--output_format=id",
                     f"--output={folder}/ids", args.text])
        one, two = bamdata(1), bamdata(2)
    middle = statistics.median
    return f"{size:.0f} MB of text\n\n" + table(["what", "MB/s"], [
        ["spm_encode, one core", cell(peer)],
        ["bamdata tokenize, one thread on one core", cell(one)],
        ["bamdata tokenize, two threads on two cores", cell(two)],
        ["one core over spm_encode (target 1)", f"{middle(one) / middle(peer):.2f}"],
        ["two cores over one (target 1.8)", f"{middle(two) / middle(one):.2f}"]])


def precision(bench, _):
    """The same 200 steps in fp32 and in bf16: loss, smoothed over the last 20 steps."""
    config, steps, window = "configs/compare-wikitext2.json", 200, 20
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("fp32", "bf16"):
            out_dir = pathlib.Path(folder) / name
            bench.run(["src/bamtrain", "--config", config, "--set", f"out_dir={out_dir}", "--set",
                       f"train.precision={name}", "--set", f"train.steps={steps}", "--set",
                       "model.attention.prior.name=bam", "--set", "eval.every=0"])
            lines = (out_dir / "metrics.jsonl").read_text().splitlines()
            losses[name] = [json.loads(line)["loss"] for line in lines]
            print(name, losses[name][-1], flush=True)

    def smooth(name, step):
        return statistics.mean(losses[name][step - window:step])

    rows = []
    worst = 0
    for step in range(window, steps + 1):
        a, b = smooth("fp32", step), smooth("bf16", step)
        worst = max(worst, abs(b / a - 1))
        if step % window == 0:
            rows.append([step, f"{a:.4f}", f"{b:.4f}", f"{100 * (b / a - 1):+.3f} %"])
    return (f"`{config}` with prior bam; the largest difference at any step is {100 * worst:.3f} % "
            "(target 0.5).\n\n" + table(["step", "fp32", "bf16", "difference"], rows))


SECTIONS = {f.__name__: f for f in (targets, growth, start, processes, tokenizer, precision)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(SECTIONS), default=["targets", "growth"])
    parser.add_argument("--tokenizer", type=pathlib.Path)
    parser.add_argument("--text", type=pathlib.Path)
    args = parser.parse_args()
    bench = Bench(args.build, args.runs)
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                            capture_output=True, check=False).stdout.strip()
    for name in args.only:
        text = SECTIONS[name](bench, args)
        report = ROOT / f"bench/results/cpu-{name}.md"
        report.write_text(f"""# CPU: {name}

{SECTIONS[name].__doc__.strip()} Where a range is given: median and range of
{args.runs} runs.

{text}

`scripts/bench_cpu.py --only {name}`; commit {commit}, {datetime.date.today()}, {cpu_name()},
{os.cpu_count()} cores.
""")
        print(f"written: {report.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
