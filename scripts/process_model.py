#!/usr/bin/env python3
"""Models what a training step takes on several GPUs. A model: no GPU has checked it.

  scripts/process_model.py [--build build-vgpu] [--profiles DIR] [--ptxas PTXAS]
                           [--nvdisasm NVDISASM] [--output bench/results/process-model.md]

What a GPU computes is from kernel_model.py, whose options these are. Messages take their bytes at
the bandwidths that LINKS states. A step of several processes is played through on two streams: the
parts of the passes (Network::parts) on one, sums of gradients and updated weights on the other, in
the order of src/train/trainer.cpp.
"""

import collections
import math

from kernel_costs import Shapes, operations, paragraph, table
from kernel_model import CONFIGS, checks, profiled
from kernel_times import GPUS, GAP, LAUNCH, MEMORY_SHARE, step

NODE = 8                         # GPUs
BLOCK_PARTS = 4                  # kMostBlockParts of src/model/model.cpp
MESSAGE = 4 << 20                # kMessageElements of src/train/trainer.cpp
NORM_BLOCK = 4096                # kSquaresBlock of src/ops/ops.h
Link = collections.namedtuple("Link", "bandwidth latency")  # bytes a second of a GPU, one way; s
NVLINK = Link(450e9, 10e-6)      # an H100's, the vendor's; the latency of a message is assumed
NETWORKS = {"400 Gb/s a GPU": Link(50e9, 20e-6), "400 Gb/s a node": Link(50e9 / NODE, 20e-6)}
GPU = GPUS[0]

Work = collections.namedtuple("Work", "embed forward head back unembed once")  # seconds


def work_of(s, rows):
    """Of a micro-batch, and {operation: seconds} of what a step does once."""
    once = {o.name for o in operations(s) if o.times in (1, s.L, s.lanes, s.lanes - 1)}
    sums, steps = collections.Counter(), collections.Counter()
    for r in rows:
        name = r.operation
        if name in once:
            steps[name] += r.seconds * s.micro
        elif name.startswith("embedding"):
            sums["embed" if "forward" in name else "unembed"] += r.seconds
        elif "head" in name or name in ("cross entropy", "sum of losses"):
            sums["head"] += r.seconds
        elif name.endswith("y, dx"):
            sums["forward"] += r.seconds / 2
            sums["back"] += r.seconds / 2
        else:
            sums["forward" if "forward" in name else "back"] += r.seconds
    return Work(once=steps, **{k: sums[k] for k in Work._fields[:-1]})


class Messages:
    """Exchanges of `processes` by halves (core/group_reduction.h), in seconds."""

    def __init__(self, processes, network, message=MESSAGE, beside=False):
        self.levels = [NVLINK if 1 << k < NODE else network
                       for k in range(processes.bit_length() - 1)]
        self.message, self.beside = message, beside

    def reduce(self, n):
        sum_ = 0
        for link in self.levels:
            n /= 2
            pieces = math.ceil(n / self.message)
            sent = 4 * n / link.bandwidth
            added = 12 * n / (MEMORY_SHARE * GPU.memory) + pieces * (LAUNCH + GAP)
            sum_ += pieces * link.latency + (max(sent, added) if self.beside else sent + added)
        return sum_

    def gather(self, bytes_):
        sum_ = 0
        for link in self.levels:
            bytes_ /= 2
            sum_ += link.latency + bytes_ / link.bandwidth
        return sum_


def segments(s):
    """By part up to the head's: (elements in bf16, elements in fp32)."""
    matrices = s.L * (4 * s.C + 3 * s.F) * s.C
    exact = s.n - matrices - 2 * s.V * s.C
    blocks = [matrices * share for share in shares(s)]
    return [(s.V * s.C + blocks[0], exact), *((b, 0) for b in blocks[1:]), (s.V * s.C, 0)]


def shares(s):
    """Of the blocks, by part (Model::blocks_of_part)."""
    return [1 / s.L, *[(s.L - 1) / s.L / (BLOCK_PARTS - 1)] * (BLOCK_PARTS - 1)]


def seconds_of_step(s, work, processes, messages, overlap=True):
    """(with messages, without): a step of each of `processes`."""
    micro = s.micro // processes
    parts = segments(s)
    forward = [work.forward * share for share in shares(s)]
    forward[0] += work.embed
    back = [work.back * share for share in reversed(shares(s))]
    back[-1] += work.unembed
    whole = sum(forward) + work.head + sum(back)
    once = work.once
    before = once["prior, forward"]
    update = (once["squared norm"] + once["optimizer"]) / processes
    compute = before + micro * whole + update + lanes_of(s, work, processes)
    if processes == 1:
        return compute, compute
    gathers = [messages.gather(2 * b + 4 * e) for b, e in parts]
    reduces = [messages.reduce(b + e) for b, e in reversed(parts)]
    norm = messages.gather(8 * s.n / NORM_BLOCK)
    if not overlap:
        return compute + sum(gathers) + sum(reduces) + norm, compute
    # From the end of an update to that of the next: the streams' clocks. The first part's weights
    # leave when it is updated.
    work_at, link_at = 0, -once["optimizer"] / processes * (1 - sum(parts[0]) / s.n)
    arrived = []
    for g in gathers:
        link_at += g
        arrived.append(link_at)
    for p, t in enumerate([before + forward[0], *forward[1:], work.head]):
        work_at = max(work_at, arrived[p]) + t
    if micro > 1:
        work_at += sum(back) + (micro - 2) * whole + sum(forward) + work.head
    work_at += lanes_of(s, work, processes)
    for p, r in enumerate(reduces):
        link_at = max(link_at, work_at) + r
        if p < BLOCK_PARTS:
            work_at += back[p]
    return max(work_at, link_at) + norm + update, compute


def lanes_of(s, work, processes):
    """Buffers of groups set to zero and added: of the lanes that the process has."""
    lanes = max(s.lanes, processes) // processes
    zero, add = (work.once[k] / max(1, n) for k, n in
                 (("gradients to zero", s.lanes), ("sum of two lanes", s.lanes - 1)))
    return lanes * zero + (lanes - 1) * add


def sequences_of(config, processes):
    """Of a micro-batch: as many as the model's table has, and divide those of a process."""
    whole = Shapes(config, 1)
    own = whole.micro // processes
    return max(b for b in range(1, CONFIGS[config] + 1) if own % b == 0)


def rows_of(config, shapes, work):
    """A row for one GPU, then for each number of them and network."""
    one, _ = seconds_of_step(shapes[1], work[1], 1, None)
    tokens = shapes[1].micro * shapes[1].N
    rows = [(config, 1, "", f"{shapes[1].N:,}", f"{1e3 * one:,.1f}", "", "", "1", "1")]
    for processes in (8, 16, 64):
        for name, link in NETWORKS.items():
            if processes == NODE and link is not NETWORKS["400 Gb/s a GPU"]:
                continue
            s, w = shapes[processes], work[processes]
            messages = Messages(processes, link)
            took, alone = seconds_of_step(s, w, processes, messages)
            after, _ = seconds_of_step(s, w, processes, messages, overlap=False)
            rows.append((config, processes, "NVLink" if processes == NODE else name,
                         f"{s.N:,}", f"{1e3 * took:,.2f}", f"{1e3 * (took - alone):,.2f}",
                         f"{1e3 * (after - alone):,.2f}", f"{alone / took:.3f}",
                         f"{one / (processes * took):.3f}"))
    assert tokens == shapes[64].micro * shapes[64].N
    return rows


def message_rows(shapes):
    rows = []
    for config, of in shapes.items():
        n = of[1].n
        for name, options in (("4M elements, as it is", {}), ("16M elements", {"message": 16 << 20}),
                              ("4M elements, added beside the next", {"beside": True}),
                              ("16M elements, added beside the next",
                               {"message": 16 << 20, "beside": True})):
            messages = Messages(NODE, NVLINK, **options)
            rows.append((config, name, f"{1e3 * messages.reduce(n):.2f}"))
    return rows


def report(tables, shapes):
    assumed = (
        f"""Links: NVLink {NVLINK.bandwidth / 1e9:.0f} GB/s a direction; between nodes of {NODE}
        GPUs 400 Gb/s for each GPU, or for all of a node, of which each has an eighth. A message
        takes {1e6 * NVLINK.latency:.0f} us more on NVLink, 20 us between nodes: assumed.""",
        """Ranks of a node are neighbours: halving sends half of the elements at distance 1, a
        quarter at 2, an eighth at 4, and a sixteenth and so on between nodes.""",
        """Messages and their additions follow one another on one stream, as in
        `src/ops/cuda/messages.cpp`. They take nothing from the kernels beside them: NCCL's own
        multiprocessors and memory traffic are not modelled.""",
        """`train.lanes` is as large as the number of processes, and a micro-batch as large as
        divides a process's sequences, up to that of the cost model's tables.""",
        """A layer takes the same time as another.""")
    return f"""\
# Several GPUs: a model

**A model: no two GPUs have run it.** `scripts/process_model.py --build build-vgpu` computes it from
[the cost model of one GPU](cost-model.md), an {GPU.name}, and from the bandwidths below. bf16, with
`train.overlap` and `train.shard_optimizer`.

Exposed: what messages add to a step. Efficiency: a step without messages over one with them.
Speed-up: over one GPU, divided by the number of GPUs; there smaller micro-batches count too.

{tables}
## Messages

The sum of all gradients over {NODE} GPUs of a node at once, ms. Longer messages save launches. How
many are under way at a time changes nothing while additions are on their stream.

{table(("configuration", "messages", "ms"), message_rows(shapes))}
## How

{chr(10).join(paragraph("- " + t) for t in assumed)}
"""


def main():
    output, profiles = profiled(__doc__, "process-model.md")
    rows, shapes = [], {}
    for config, kernels in profiles.items():
        small = Shapes(config, 1, 1)
        of = shapes[config] = {n: Shapes(config, sequences_of(config, n)) for n in (1, 8, 16, 64)}
        work = {n: work_of(s, step(s, small, kernels, GPU)) for n, s in of.items()}
        rows += rows_of(config, of, work)
    checks([(config, of[1], None) for config, of in shapes.items()], profiles)
    head = ("configuration", "GPUs", "network", "tokens of a micro-batch", "step, ms", "exposed, ms",
            "exposed without overlap, ms", "efficiency", "speed-up a GPU")
    output.write_text(report(table(head, rows), shapes))


if __name__ == "__main__":
    main()
