"""Section overlap: how long two processes wait for messages that take 20 ms."""

import pathlib
import subprocess

from cpu_bench.programs import Failed
from cpu_bench.runs import folder_for, run_in, on_shard, step_times, write_shard
from cpu_bench.tables import cell, ratios, table

CONFIG = "configs/bam-120m.json"
MILLISECONDS = 20
TOKENS = 1024  # of a step, of both processes
CHANGES = ["data.sequence_length=512", "train.micro_batch=1", "train.lanes=2",
           "train.precision=fp32", "schedule.warmup_steps=0", "train.steps=20",
           "model.attention.document_mask=false", f"train.tokens_per_step={TOKENS}"]


def overlap(bench):
    """What the time that messages take adds to a step of two processes: with exchanges during the
    passes over exchanges between them."""
    with folder_for(bench) as folder:
        write_shard(folder / "train.bin", 400000)
        library = folder / "messages.so"
        source = pathlib.Path(__file__).parent.with_name("attack") / "messages.c"
        try:
            subprocess.run(["mpicc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
        except (OSError, subprocess.CalledProcessError) as reason:
            raise Failed(f"mpicc: {reason}") from reason

        def seconds(build, out, changes, launched=()):
            lines = run_in(build, folder / out, CONFIG,
                           on_shard(folder / "train.bin") + CHANGES + changes, 1, launched)
            return min(step_times(lines))

        def work(build):
            found = [[seconds(build, "out", [f"train.overlap={value}"],
                              ["mpirun", "-np", "2", "-x", f"LD_PRELOAD={library}",
                               "-x", f"MESSAGE_DELAY_MS={delay}"])
                      for delay in (0, MILLISECONDS)] for value in ("false", "true")]
            print(f"{build.name}: between and during passes, at once and delayed: {found}",
                  flush=True)
            return found

        found = bench.rounds("steps", work)["build"]
    between, during = ([x[i] for x in found] for i in (0, 1))
    waits = [[delayed - at_once for at_once, delayed in of] for of in (between, during)]
    rows = [[name, cell([x[0] for x in of]), cell([x[1] for x in of]), cell(wait)]
            for name, of, wait in (("between the passes", between, waits[0]),
                                   ("during the passes", during, waits[1]))]
    rows.append(["during over between (target 0.4), pairs", "", "", ratios(waits[1], waits[0], most=0.4)])
    return (f"`{CONFIG}`, {TOKENS:,} tokens a step, fp32, one thread each. A message takes "
            f"{MILLISECONDS} ms, and no core (scripts/attack/messages.c): gradients in pieces of 16 MiB, "
            "four at a time, weights at once. At once: without delay. Of each run the fastest step "
            "after the first.\n\n"
            + table(["exchanges", "at once, s a step", "delayed, s a step", "more, s"], rows)
            + bench.take_notes())
