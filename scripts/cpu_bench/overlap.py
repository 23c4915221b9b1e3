"""Section overlap: what two processes wait for each other, where messages take 20 ms."""

import concurrent.futures
import pathlib
import statistics
import subprocess

from cpu_bench.programs import Failed
from cpu_bench.runs import folder_for, run_in, on_shard, step_speed, write_shard
from cpu_bench.tables import cell, ratios, table

CONFIG = "configs/bam-120m.json"
MILLISECONDS = 20
TOKENS = 2048  # of a step, of both processes
CHANGES = ["data.sequence_length=512", "train.micro_batch=1", "train.lanes=2",
           "train.precision=fp32", "schedule.warmup_steps=0", "train.steps=5",
           "model.attention.document_mask=false"]


def overlap(bench):
    """Time of a step of two processes that no computation hides, with gradients summed during the
    backward pass over after it."""
    with folder_for(bench) as folder:
        write_shard(folder / "train.bin", 400000)
        library = folder / "message_delay.so"
        source = pathlib.Path(__file__).with_name("message_delay.c")
        try:
            subprocess.run(["mpicc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
        except (OSError, subprocess.CalledProcessError) as reason:
            raise Failed(f"mpicc: {reason}") from reason
        launcher = ["mpirun", "-np", "2", "-x", f"LD_PRELOAD={library}",
                    "-x", f"MESSAGE_DELAY_MS={MILLISECONDS}"]

        def seconds(build, out, changes, launched=()):
            lines = run_in(build, folder / out, CONFIG,
                           on_shard(folder / "train.bin") + CHANGES + changes, 1, launched)
            return lines[0]["tokens"] / step_speed(lines)

        def alone(build):
            """A process's own work, beside another that does the same."""
            own = [f"train.tokens_per_step={TOKENS // 2}", "train.lanes=1"]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                return statistics.mean(pool.map(lambda n: seconds(build, f"out{n}", own), (0, 1)))

        def work(build):
            both = [f"train.tokens_per_step={TOKENS}"]
            found = [alone(build)]
            found += [seconds(build, "out", [*both, f"train.overlap={value}"], launcher)
                      for value in ("false", "true")]
            print(f"{build.name}: alone, after, during: {found}", flush=True)
            return found

        found = bench.rounds("steps", work)["build"]
    own, after, during = ([x[i] for x in found] for i in (0, 1, 2))
    waits = [[x - y for x, y in zip(of, own)] for of in (after, during)]
    rows = [["two processes that do not communicate", cell(own), ""],
            ["gradients summed after the backward pass", cell(after), cell(waits[0])],
            ["during it", cell(during), cell(waits[1])],
            ["during over after (target 0.4), pairs", "", ratios(waits[1], waits[0])]]
    return (f"`{CONFIG}`, {TOKENS:,} tokens a step, fp32, one thread each; a message of up to 16 MiB "
            f"takes {MILLISECONDS} ms (scripts/cpu_bench/message_delay.c).\n\n"
            + table(["", "seconds a step", "more than alone"], rows) + bench.take_notes())
