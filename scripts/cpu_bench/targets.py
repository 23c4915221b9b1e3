"""The step, attention and optimizer as shares of what the same runs measured the machine to do."""

from cpu_bench.tables import cell, ratios, table, verdict

SHARE = r"share\s+([\d.]+) % \(6 N D\)"
SPEED = r"tokens/s\s+([\d.]+)"
BOTH = r"both\s+[\d.]+ ms, ([\d.]+) %"
BOTH_MS = r"both\s+([\d.]+) ms"
RADAM = r"radam.*?([\d.]+) % of a copy"
RADAM_MS = r"radam.*?([\d.]+) ms"
ADAMW = r"adamw.*?([\d.]+) % of a copy"
ADAMW_MS = r"adamw.*?([\d.]+) ms"
GPT2 = "bench/step --config configs/gpt2-124m.json --batch 4 --length 256"
SMALL = "bench/step --config configs/bench-small.json --set model.layers=6 --batch 16 --length 256"
BAM = ("bench/step --config configs/bam-120m.json --batch 2 --length 512 --precision bf16 "
       "--set model.attention.scale=none")
PAIRS = 5  # at least


def targets(bench):
    """The step, attention and optimizer beside what the same runs measured the machine to do."""
    rows = []

    def row(what, target, command, share, speed, unit):
        milliseconds = unit == " ms"
        found = bench.rounds(what, lambda build: build.find(command, share, speed))
        shares = {name: [x[0] for x in values] for name, values in found.items()}
        speeds = {name: [x[1] for x in values] for name, values in found.items()}
        cells = [what, f"{target} %" + verdict(shares["build"], target), cell(shares["build"], " %"),
                 cell(speeds["build"], unit)]
        if bench.before:
            pair = (speeds["build"], speeds["before"])
            cells[2:2] = [cell(shares["before"], " %"), cell(speeds["before"], unit)]
            cells.append(ratios(*reversed(pair)) if milliseconds else ratios(*pair))
        rows.append(cells)

    def step(what, target, command):
        row(what, target, command, SHARE, SPEED, " tokens/s")

    step("GPT-2 124M, fp32, of the fp32 matmul peak", 70, f"{GPT2} --precision fp32")
    step("GPT-2 124M, bf16, of the bf16 matmul peak", 50, f"{GPT2} --precision bf16")
    for dim in (64, 48):
        for form in ("none", "table"):
            row(f"attention D {dim}, {form}, 7 products, of the fp32 matmul peak", 50,
                f"bench/attention --length 2048 --head-dim {dim} --form {form}", BOTH, BOTH_MS,
                " ms")
    row("optimizer, RAdam, compared with a copy", 80, "bench/optimizer", RADAM, RADAM_MS, " ms")
    row("optimizer, AdamW, compared with a copy", 80, "bench/optimizer", ADAMW, ADAMW_MS, " ms")
    step("small model (width 256, 6 layers), fp32", 45, f"{SMALL} --precision fp32")
    step("small model (width 256, 6 layers), bf16", 45, f"{SMALL} --precision bf16")
    header = ["what", "target", "share", "speed"]
    if bench.before:
        title = bench.before_title()
        header = ["what", "target", f"share {title}", f"speed {title}", "share now", "speed now",
                  "speed, now over before"]
    notes = ("\n\nOf a step: 6 N D, without attention. Of attention: the 7 products that it computes, "
             "of which one is the logits computed anew in the backward pass; by the 6 products that "
             "bench/step and the progress line count the shares are 6/7 of these. Shares are of each "
             "program's own measurement of the machine, speeds are of the clock alone.")
    return (table(header, rows) + bench.take_notes() + notes + "\n\n" + bam_over_nope(bench))


def by_build(bench, what, work, runs, target):
    """Rows of pairs: one per build."""
    found = bench.rounds(what, work, runs)
    rows = []
    for build in bench.builds():
        values = found[build.name]
        rows.append([build.commit, cell([x[0] for x in values]), cell([x[1] for x in values]),
                     ratios([x[0] for x in values], [x[1] for x in values], target)])
    return rows


def bam_over_nope(bench):
    pairs = max(PAIRS, bench.runs)

    order = ["nope", "bam"]

    def work(build):
        order.reverse()  # what the machine does meanwhile meets both alike
        found = {prior: build.find(f"{BAM} --set model.attention.prior={prior}", SPEED)[0]
                 for prior in order}
        return [found["bam"], found["nope"]]

    rows = by_build(bench, "bam over nope", work, pairs, 0.95)
    return (f"BAM 120M, T 512, bf16, scale none: prior bam and prior nope in turn, {pairs} pairs; the "
            "last column is the median of the pairs' ratios and its range.\n\n"
            + table(["commit", "bam, tokens/s", "nope, tokens/s", "bam over nope (target 0.95)"], rows)
            + bench.take_notes())
