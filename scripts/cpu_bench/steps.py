"""What bench/step prints, and where a step's time goes: sections profile, isa and growth."""

import json
import re
import shutil

from cpu_bench.programs import ROOT, Failed, capture
from cpu_bench.runs import command, folder_for, on_shard, write_shard
from cpu_bench.tables import cell, ratios, table
from cpu_bench.targets import BOTH, BOTH_MS, GPT2, SHARE, SMALL, SPEED

LINE = re.compile(r"^(\w+|outside the backend) +(-?[\d.]+) +(-?[\d.]+)% *([\d.]*)", re.MULTILINE)
PRODUCTS = ("linear_forward", "linear_backward_input", "linear_backward_weight")
ATTENTION = ("attention_forward", "attention_backward")
BY_PARAMETERS = ("optimizer_step", "squares", "zero", "convert")
RATE = r"peak matmul\s+([\d.]+)"


class Profile:
    """The table of bench/step --profile: ms per step, percent and GFLOP/s of each operation."""

    def __init__(self, out):
        self.ms, self.percent, self.gflops = {}, {}, {}
        table_text = out[out.index("operation "):] if "operation " in out else ""
        for name, ms, percent, gflops in LINE.findall(table_text):
            self.ms[name], self.percent[name] = float(ms), float(percent)
            if name in PRODUCTS + ATTENTION:
                self.gflops[name] = float(gflops)
        if not all(name in self.ms for name in PRODUCTS + ATTENTION):
            raise Failed("no profile in the output of bench/step")

    def share(self, names):
        return sum(self.percent.get(name, 0) for name in names)


def profile(bench):
    """Where a step's time goes: operations of the run whose step is the median, beside the rates of
    the same run."""
    models = [("GPT-2 124M, fp32", f"{GPT2} --precision fp32"),
              ("GPT-2 124M, bf16", f"{GPT2} --precision bf16"),
              ("small model, fp32", f"{SMALL} --precision fp32"),
              ("small model, bf16", f"{SMALL} --precision bf16"),
              ("BAM 120M, bf16",
               "bench/step --config configs/bam-120m.json --batch 2 --length 512 --precision bf16")]
    rows, blocks = [], []
    for name, words in models:
        outs = sorted((bench.now.run(f"{words} --profile".split()) for _ in range(bench.runs)),
                      key=lambda out: float(capture(out, r"step\s+([\d.]+) ms median")))
        out = outs[len(outs) // 2]
        print(out, flush=True)
        p, rate = Profile(out), float(capture(out, RATE))
        at_rate = sum(p.percent[x] * p.gflops[x] / rate for x in PRODUCTS)
        others = [x for x in p.ms if x not in PRODUCTS + ATTENTION + ("outside the backend",)]
        rows.append([name, f"{at_rate:.1f} %", f"{p.share(PRODUCTS) - at_rate:.1f} %",
                     f"{p.share(ATTENTION):.1f} %", f"{p.share(others):.1f} %",
                     f"{p.percent['outside the backend']:.1f} %"])
        blocks.append("\n".join(f"    {line}".rstrip() for line in out.strip().splitlines()))
    return ("A step in five parts: what its matrix products would take at the library's best rate, what "
            "they take beyond that, and everything else. The first is the share that the targets "
            "count.\n\n"
            + table(["model", "products at the matmul peak", "products beyond it", "attention",
                     "other passes", "outside the backend"], rows)
            + "\n\nThe products are cut into fixed tiles, so that their bits do not depend on the number "
            "of threads, and bf16 weights are packed anew in every call; attention computes in fp32 in "
            "bf16 runs too. The copy is a comparison: it reads as much as it writes and computes "
            "nothing.\n\n" + "\n\n".join(blocks))


def isa(bench):
    """Instruction sets chosen at run time: what a build for this machine alone would gain, and what
    the code for processors without AVX-512 reaches."""
    if not bench.native:
        raise Failed("section isa needs --native, the folder of a build with -Dnative=true")
    builds = [bench.now, bench.native]
    rows = []
    for name, words in (("GPT-2 124M, fp32", f"{GPT2} --steps 3 --precision fp32"),
                        ("GPT-2 124M, bf16", f"{GPT2} --steps 3 --precision bf16"),
                        ("small model, bf16", f"{SMALL} --precision bf16")):
        found = bench.rounds(name, lambda build, w=words: build.find(w, SPEED)[0], builds=builds)
        rows.append([name, cell(found["build"]), cell(found["native"]),
                     ratios(found["build"], found["native"])])
    text = (f"A build as it is by default against one with `-Dnative=true` ({bench.native.commit}), in "
            "turn; the last column is the median of the pairs' ratios and its range.\n\n"
            + table(["tokens/s", "default", "native", "default over native (target 0.95)"], rows)
            + bench.take_notes())
    rows = []
    for name, words, share, speed, unit in (
            ("GPT-2 124M, fp32", f"{GPT2} --steps 3 --precision fp32", SHARE, SPEED, " tokens/s"),
            ("attention D 64, none, 7 products", "bench/attention --head-dim 64", BOTH, BOTH_MS,
             " ms"),
            ("attention D 48, none, 7 products", "bench/attention --head-dim 48", BOTH, BOTH_MS,
             " ms")):
        newest, avx2 = zip(*[[bench.now.find(f"{words} --isa {isa_name}", share, speed)
                              for isa_name in ("newest", "avx2")] for _ in range(bench.runs)])
        speeds = [x[1] for x in newest], [x[1] for x in avx2]
        rows.append([name, cell([x[0] for x in newest], " %"), cell(speeds[0], unit),
                     cell([x[0] for x in avx2], " %"), cell(speeds[1], unit),
                     ratios(speeds[0], speeds[1]) if unit == " ms" else
                     ratios(speeds[1], speeds[0])])
    text += ("\n\nThe default build with the newest instructions of this processor and with "
             "`--isa avx2`, under which oneDNN stays at AVX2 too, in turn; shares are of the rate of "
             "matrix products with the same instructions.\n\n"
             + table(["what", "newest, share", "newest, speed", "AVX2, share", "AVX2, speed",
                      "speed, AVX2 over newest"], rows))
    return text + "\n\n" + emulated(bench)


def emulated(bench):
    """The program on processors that qemu emulates: does it start there, and how does it end?"""
    if not shutil.which("qemu-x86_64"):
        return "Older processors were not emulated: no qemu-x86_64."
    ends = []
    with folder_for(bench) as folder:
        write_shard(folder / "train.bin", 10000)
        changes = [f"out_dir={folder}/out"] + on_shard(folder / "train.bin") + [
            "model.layers=1", "train.micro_batch=1", "train.tokens_per_step=128", "train.steps=2"]
        for cpu in ("Haswell", "Nehalem"):
            shutil.rmtree(folder / "out", ignore_errors=True)
            try:
                bench.now.run(command("configs/bench-small.json", changes),
                              launcher=["qemu-x86_64", "-cpu", cpu])
                ends.append(f"Under `qemu-x86_64 -cpu {cpu}` the default build trained two steps.")
            except Failed as end:
                ends.append(f"Under `qemu-x86_64 -cpu {cpu}`: {end}.")
    return "\n".join(ends)


class Row:
    """One run of bench/step, and what its prediction needs."""

    def __init__(self, bench, words, size):
        self.size = size
        out = bench.now.run(words.split())
        self.speed = float(capture(out, SPEED))
        self.share = float(capture(out, r"share.*, ([\d.]+) % with attention"))
        self.memory = float(capture(out, r"([\d.]+) MiB largest resident set"))
        self.parameters = float(capture(out, r"^parameters\s+(\d+)"))
        self.matrix_flops = float(capture(out, r"flops/token\s+(\d+) in matrices"))
        self.attention_flops = float(capture(out, r"(\d+) in attention"))
        self.profile = Profile(out) if "--profile" in words else None


def growth(bench):
    """Tokens per second as one size grows, beside what arithmetic predicts from the first row."""
    config = "configs/compare-wikitext2.json"
    model = json.loads((ROOT / config).read_text())["model"]
    dim = model["width"] // model["heads"]
    step = (f"bench/step --config {config} --precision bf16 --steps 3 "
            "--set model.attention.prior.name=bam")
    length = grow(bench, "T", [256, 512, 1024, 2048, 4096, 8192, 16384], lambda t: (
        f"{step} --batch {16384 // t} --length {t}",
        {"tokens": 16384, "width": model["width"]}))
    width = grow(bench, "C", [256, 512, 1024, 2048], lambda c: (
        f"{step} --batch 4 --length 256 --set model.width={c} --set model.heads={c // dim} "
        f"--set model.mlp.hidden={2 * c}",
        {"tokens": 1024, "width": c}))
    return ("Predicted: the times of the first row's profile, each in proportion to what it does. Matrix "
            "products and attention to their operations (attention: pairs of a query and a key that it "
            "sees), passes over the parameters (optimizer, norm of the gradients, zeroing) to these, "
            "passes over activations and the cross-entropy to tokens times width and to tokens. "
            "Attention's rate of the first row holds its short rows: half of the tiles on the diagonal "
            "is not needed, and the longer T, the fewer of all tiles these are.\n\n"
            f"Length, 16,384 tokens a batch:\n\n{length}\n\n"
            f"Width, 1,024 tokens a batch, T 256:\n\n{width}")


def grow(bench, name, sizes, setting):
    rows, first = [], None
    for size in sizes:
        words, s = setting(size)
        row = Row(bench, words if first else f"{words} --profile", s)
        first = first or row
        parts = predicted(first, row)
        total = sum(parts.values())
        speed = s["tokens"] / total
        rows.append([size, cell([row.speed]), cell([speed]), f"{row.speed / speed:.3f}",
                     f"{100 * parts['products'] / total:.0f} %",
                     f"{100 * parts['attention'] / total:.0f} %", f"{row.share:.1f} %",
                     f"{row.memory:,.0f} MiB"])
        print(name, rows[-1], flush=True)
    return table([name, "tokens/s", "predicted", "measured over predicted", "predicted in products",
                  "predicted in attention", "of the matmul peak, with attention (6 products)",
                  "memory"], rows)


def predicted(first, row):
    """Seconds of a step by parts."""
    tokens, base = row.size["tokens"], first.profile.ms
    more_tokens = tokens / first.size["tokens"]
    growth_of = {"products": more_tokens * row.matrix_flops / first.matrix_flops,
                 "attention": more_tokens * row.attention_flops / first.attention_flops,
                 "parameters": row.parameters / first.parameters, "tokens": more_tokens,
                 "activations": more_tokens * row.size["width"] / first.size["width"]}
    parts = dict.fromkeys(growth_of, 0)
    for name, ms in base.items():
        part = ("products" if name in PRODUCTS else "attention" if name in ATTENTION else
                "parameters" if name in BY_PARAMETERS else
                "tokens" if name == "cross_entropy" else "activations")
        parts[part] += 1e-3 * ms * growth_of[part]
    return parts
