"""Section threads: how threads wait for each other, alone and beside busy programs."""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time

from cpu_bench.programs import MPI, Failed
from cpu_bench.runs import command, folder_for, on_shard, write_shard
from cpu_bench.tables import cell, ratios, table

CONFIG = "configs/quickstart.json"
LIBGOMP = "300000"  # rounds that GCC's runtime spins by default
VARIABLES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
DEFAULT = f"two threads, {LIBGOMP} rounds, the runtime's default"
# What the program is told beside OMP_NUM_THREADS; nothing: it chooses.
SETTINGS = {
    "one thread": {},
    "two threads, the program's choice": {},
    DEFAULT: {"GOMP_SPINCOUNT": LIBGOMP},
    **{f"two threads, {n} rounds": {"GOMP_SPINCOUNT": n}
       for n in ("30000", "10000", "3000", "1000", "300", "100")},
    "two threads, passive": {"OMP_WAIT_POLICY": "passive"},
}
SLOWEST = 120  # seconds that two steps may take
LOADS = ("idle", "one busy process", "two busy processes")


@contextlib.contextmanager
def busy(processes, seconds):
    """Processes that take all the time they get, `seconds` of it at most."""
    def bound():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    started = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                            preexec_fn=bound))
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def lines_of(path):
    """The complete lines of metrics.jsonl so far."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def speed(bench, out_dir, words, env, seconds):
    """Tokens per second of a run's whole steps within `seconds` after the first, which compiles the
    products; two steps at least, however slow."""
    shutil.rmtree(out_dir, ignore_errors=True)
    bench.record.add("build", [f"BUILD/{words[0]}", *words[1:]], env)
    inherited = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    process = subprocess.Popen([bench.now.folder / words[0], *words[1:]], cwd=bench.now.source,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**inherited, **MPI, **env})
    end = 0
    limit = time.monotonic() + SLOWEST
    try:
        while len(lines := lines_of(out_dir / "metrics.jsonl")) < 2 or time.monotonic() < end:
            end = end or (time.monotonic() + seconds if lines else 0)
            if process.poll() is not None:
                raise Failed(f"bamtrain ended: {process.stderr.read()[-300:]}")
            if time.monotonic() > limit:
                raise Failed(f"no two steps within {SLOWEST} s under {env}")
            time.sleep(0.1)
    finally:
        process.kill()
        process.communicate()
    first, *_, last = lines_of(out_dir / "metrics.jsonl")
    return (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])


def threads(bench):
    """Tokens per second of training with one thread and with two that wait in different ways
    (GOMP_SPINCOUNT, OMP_WAIT_POLICY), alone and beside busy processes."""
    seconds = bench.args.seconds
    found = {(load, name): [] for load in LOADS for name in SETTINGS}
    with folder_for(bench) as folder:
        write_shard(folder / "train.bin", 400000)
        words = command(CONFIG, [f"out_dir={folder}/out", "train.steps=1000000",
                                 *on_shard(folder / "train.bin")])
        for _ in range(bench.runs):
            for count, load in enumerate(LOADS):
                for name, waiting in SETTINGS.items():
                    env = {"OMP_NUM_THREADS": "1" if name == "one thread" else "2", **waiting}
                    with busy(count, seconds + SLOWEST):
                        tokens = speed(bench, folder / "out", words, env, seconds)
                    print(f"{load}, {name}: {tokens:,.0f} tokens/s", flush=True)
                    found[load, name].append(tokens)
    rows = [[name, *(cell(found[load, name]) for load in LOADS),
             ratios(found["idle", name], found["idle", DEFAULT])] for name in SETTINGS]
    return (f"`{CONFIG}`, fp32, each run ended after {seconds} s; a busy process is an endless loop.\n\n"
            + table(["tokens/s", *LOADS, "idle, over the default's, pairs"], rows))
