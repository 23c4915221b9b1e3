"""Sections that run the programs themselves: start, processes, tokenizer, precision."""

import re
import shutil
import signal
import statistics
import subprocess
import time

from cpu_bench.programs import Failed, call, capture
from cpu_bench.runs import command, folder_for, on_shard, run_in, step_speed, train, write_shard
from cpu_bench.tables import cell, number, ratios, table

QUICKSTART, GPT2 = "configs/bench-small.json", "configs/gpt2-124m.json"


def start(bench):
    """From the start of the program to the end of the first step, on 1 GB of shards."""
    times = []
    with folder_for(bench) as folder:
        shards = folder / "shards"
        shards.mkdir()
        for i in range(5):
            write_shard(shards / f"{i}.bin", 100000000)
        for run in range(bench.runs):
            words = command(QUICKSTART, [f"out_dir={folder}/out{run}",
                                         *on_shard(shards)])
            bench.record.add("build", [f"BUILD/{words[0]}", *words[1:]], {})
            began = time.perf_counter()
            process = subprocess.Popen([bench.now.folder / words[0], *words[1:]],
                                       cwd=bench.now.source, text=True, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.startswith("1/"):
                    times.append(time.perf_counter() - began)
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            if len(times) != run + 1:
                raise Failed("no first step in\n" + "".join(lines))
    print("first step", times, flush=True)
    return f"`{QUICKSTART}`, 4,096 tokens a step: {cell(times)} s (target 2)."


class Memory:
    """What moving memory costs in a step of a model, at the bandwidth of a copy."""

    def __init__(self, bench, words):
        out = bench.now.run(words + ["--dry-run"])
        table = re.search(r"^parameters\n((?:  .*\n)+)", out, re.MULTILINE)
        self.parameters = sum(int(n.replace(",", "")) for n in
                              re.findall(r" ([\d,]+)$", table[1], re.MULTILINE)) if table else 0
        if not self.parameters:
            raise Failed("no parameters in the output of --dry-run")
        copy = bench.now.run(["bench/optimizer", "--runs", "1"])
        self.bandwidth = 1e9 * float(capture(copy, r"of a copy's ([\d.]+)"))

    def seconds(self, bytes_per_parameter):
        return bytes_per_parameter * self.parameters / self.bandwidth


ZERO, JOIN, MESSAGES = 4, 12, 28  # bytes per parameter; see processes


def processes(bench):
    """Whole runs: two processes of one thread against one of two threads, and 1 to 8 lanes."""
    text = []
    with folder_for(bench) as folder:
        write_shard(folder / "train.bin", 400000)
        quick = {"config": QUICKSTART, "changes": ["train.micro_batch=4", "train.steps=12"]}
        gpt2 = {"config": GPT2, "changes": [
            "data.sequence_length=256", "train.micro_batch=4", "train.tokens_per_step=2048",
            "train.precision=fp32", "schedule.warmup_steps=0", "train.steps=4"]}
        text.append(two_processes(bench, folder, "quickstart, 8 lanes of 4 x 128 tokens, fp32",
                                  quick, 8, 4096, 1.03))
        text.append(two_processes(bench, folder, "GPT-2 124M, 2 lanes of 4 x 256 tokens, fp32", gpt2,
                                  2, 2048, 1.00))
        text.append(lanes(bench, folder, quick, 4096))
    text.append(
        "Tokens per second of the median step after the first. Predictions are arithmetic: memory "
        "moved, in bytes per parameter, at the bandwidth of a copy, added to the measured time of "
        f"the run above. Of a lane: its buffer is cleared ({ZERO}), and all but the first are joined "
        f"({JOIN}). Of two processes instead of one: messages move {MESSAGES} "
        "(each process receives half of the gradients, adds it, and receives the other half of the "
        "updated weights, all of it through memory); one join fewer. Where buffers stay in the "
        "caches it costs less.")
    return "\n\n".join(text)


def two_processes(bench, folder, title, what, lanes_, tokens, target):
    changes = what["changes"] + [f"train.lanes={lanes_}"]

    def work(build):
        found = [step_speed(train(build, folder, what["config"], changes, threads, launcher))
                 for threads, launcher in ((2, ()), (1, ("mpirun", "-np", "2")))]
        print(f"{build.name}: {title}, one process and two: {found}", flush=True)
        return found

    found = bench.rounds(title, work)
    memory = Memory(bench, command(what["config"], on_shard(folder / "train.bin") + changes))
    one, two = ([pair[i] for pair in found["build"]] for i in (0, 1))
    middle = statistics.median(one)
    predicted = tokens / (tokens / middle + memory.seconds(MESSAGES - JOIN))
    rows = [["one process, two threads", cell(one), ""],
            ["two processes, one thread each", cell(two), number(predicted)],
            [f"two over one (target {target}), pairs", ratios(two, one, target),
             f"{predicted / middle:.3f}"]]
    header = ["run", "tokens/s", "predicted"]
    if bench.before:
        header[1:2] = [bench.before_title(), "now"]
        one, two = ([pair[i] for pair in found["before"]] for i in (0, 1))
        for row, before in zip(rows, (cell(one), cell(two), ratios(two, one))):
            row.insert(1, before)
    return (f"{title}; {memory.parameters:,} parameters, a copy at "
            f"{memory.bandwidth * 1e-9:.1f} GB/s\n\n" + table(header, rows) + bench.take_notes())


def lanes(bench, folder, what, tokens):
    counts = (1, 2, 4, 8)

    def work(build):
        found = [step_speed(train(build, folder, what["config"],
                                  what["changes"] + [f"train.lanes={n}"], 2)) for n in counts]
        print(f"{build.name}: lanes {counts}: {found}", flush=True)
        return found

    title = "quickstart, 1 to 8 lanes"
    found = bench.rounds(title, work)
    memory = Memory(bench, command(what["config"], on_shard(folder / "train.bin")
                                   + what["changes"]))
    one_lane = statistics.median([x[0] for x in found["build"]])
    rows = []
    for i, n in enumerate(counts):
        seconds = tokens / one_lane + memory.seconds((n - 1) * (ZERO + JOIN))
        row = [n, cell([x[i] for x in found["build"]]),
               ratios([x[i] for x in found["build"]], [x[0] for x in found["build"]]),
               number(tokens / seconds) if n > 1 else "",
               f"{tokens / seconds / one_lane:.3f}" if n > 1 else ""]
        if bench.before:
            row.insert(1, cell([x[i] for x in found["before"]]))
        rows.append(row)
    header = ["lanes", "tokens/s", "over 1 lane, of each round", "predicted", "predicted over 1 lane"]
    if bench.before:
        header[1:2] = [bench.before_title(), "now"]
    return (f"quickstart, one process, two threads, micro-batch 4; {memory.parameters:,} parameters\n\n"
            + table(header, rows) + bench.take_notes())


def tokenizer(bench):
    """bamdata tokenize against spm_encode, MB of text per second, ids out in both."""
    model, text = bench.args.tokenizer, bench.args.text
    if not model or not text:
        raise Failed("section tokenizer needs --tokenizer and --text")
    for path in (model, text):
        if not path.is_file():
            raise Failed(f"{path}: expected a file, found none")
    model, text = model.resolve(), text.resolve()
    bench.record.names.update({model: model.name, text: text.name})
    size = text.stat().st_size / 1e6
    peer = []
    with folder_for(bench) as folder:
        out = folder / "tokens"

        def rate(run):
            shutil.rmtree(out, ignore_errors=True)
            began = time.perf_counter()
            run()
            return size / (time.perf_counter() - began)

        def encode():
            words = ["taskset", "-c", "0", "spm_encode", f"--model={model}", "--output_format=id",
                     f"--output={folder}/ids", str(text)]
            bench.record.add("", words, {})
            call(words)

        def bamdata(build, threads):
            return rate(lambda: build.run(
                ["data_tools/bamdata", "tokenize", "--document", "blank-line", "--threads", threads,
                 "--tokenizer", model, "--output", out, text],
                launcher=["taskset", "-c", "0"] if threads == 1 else []))

        def work(build):
            if build is bench.now:
                peer.append(rate(encode))
            found = [bamdata(build, 1), bamdata(build, 2)]
            print(f"{build.name}: one thread, two threads: {found}", flush=True)
            return found

        found = bench.rounds("bamdata tokenize", work)
    columns = []
    for build in bench.builds():
        one, two = ([x[i] for x in found[build.name]] for i in (0, 1))
        # A failed build has no pairs, and so only dashes.
        columns.append([cell(one), cell(two), ratios(one, peer, 1), ratios(two, one, 1.8)])
    rows = [["spm_encode, one core"] + ([""] if bench.before else []) + [cell(peer)]]
    for i, name in enumerate(("bamdata tokenize, one thread on one core",
                              "bamdata tokenize, two threads on two cores",
                              "one core over spm_encode (target 1), pairs",
                              "two cores over one (target 1.8), pairs")):
        rows.append([name] + [column[i] for column in columns])
    header = ["MB/s"] + ([bench.before_title(), "now"] if bench.before else ["measured"])
    return f"{size:.0f} MB of text\n\n" + table(header, rows) + bench.take_notes()


def precision(bench):
    """The same 200 steps in fp32 and in bf16: loss, smoothed over the last 20 steps."""
    config, steps, window = "configs/compare-wikitext2.json", 200, 20
    losses = {}
    with folder_for(bench) as folder:
        for name in ("fp32", "bf16"):
            lines = run_in(bench.now, folder / name, config, [
                f"train.precision={name}", f"train.steps={steps}", "model.attention.prior.name=bam",
                "eval.every=0"])
            losses[name] = [line["loss"] for line in lines]
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
