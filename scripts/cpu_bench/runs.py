"""Whole runs of the program, on generated shards."""

import contextlib
import json
import pathlib
import shutil
import statistics
import tempfile


@contextlib.contextmanager
def folder_for(bench):
    """A temporary folder, called FOLDER in the record."""
    with tempfile.TemporaryDirectory() as path:
        bench.record.names[path] = "FOLDER"
        yield pathlib.Path(path)


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


def command(config, changes):
    words = ["src/bamtrain", "--config", config]
    for change in changes:
        words += ["--set", change]
    return words


def on_shard(shards):
    """Changes of a config: this shard, or all of a folder, and neither validation nor checkpoints
    but the last."""
    return [f"data.train={shards}", "data.val=", "data.document_start=0", "eval.every=0",
            "eval.tokens=0", "eval.lengths=[]", "checkpoint.every=0",
            "checkpoint.keep_every=0"]


def run_in(build, out_dir, config, changes, threads=None, launcher=()):
    """The lines of metrics.jsonl of a run."""
    shutil.rmtree(out_dir, ignore_errors=True)
    env = {"OMP_NUM_THREADS": str(threads)} if threads else {}
    build.run(command(config, [f"out_dir={out_dir}", *changes]), env, launcher)
    lines = [json.loads(line) for line in (out_dir / "metrics.jsonl").read_text().splitlines()]
    shutil.rmtree(out_dir)  # a checkpoint of gigabytes is not to be written out under the next run
    return lines


def train(build, folder, config, changes, threads=None, launcher=()):
    """Likewise, on the shard FOLDER/train.bin."""
    changes = on_shard(folder / "train.bin") + changes
    return run_in(build, folder / "out", config, changes, threads, launcher)


def step_times(lines):
    """Seconds of the steps after the first, which compiles the products. The lines hold the mean
    speed since the start."""
    ends = [line["tokens"] / line["tokens_per_second"] for line in lines]
    return [end - start for start, end in zip(ends, ends[1:])]


def step_speed(lines):
    """Tokens per second of the median of these steps."""
    return lines[0]["tokens"] / statistics.median(step_times(lines))
