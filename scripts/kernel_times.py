"""What a kernel, a product and a step take on a GPU by the model of kernel_model.py.

A launch takes

  max(memory, L2, SLACK max(issue slots, shared memory, tensor cores, special functions)) x rounds

each the time that a limit alone takes with all multiprocessors at work, rounds what is lost where
the last round of blocks is not full; at least LAUNCH, and a GAP before the next. cuBLASLt's
products take their flops at PRODUCT, or their bytes.
"""

import collections
import math
import re
import sys

from kernel_costs import operations, total
from kernel_sass import ARCH
from kernel_table import resident, threads

Gpu = collections.namedtuple("Gpu", "name memory")  # bytes a second
GPUS = (Gpu("H100", 3.35e12), Gpu("H200", 4.8e12))  # SXM; the rest is the same
SMS, CLOCK = 132, 1.755e9      # of both; the clock under load is assumed
PEAK_RATE = 989e12             # bf16 flops a second, the vendor's, with wgmma, at 1.83 GHz
PEAK = 4 * 1024                # that, of a clock and a multiprocessor
MEMORY_SHARE = 0.9             # of the vendor's bandwidth, in long reads and writes: assumed
L2 = 5.5e12                    # bytes a second: assumed
MMA_SHARE = 0.629              # of PEAK, of mma.sync on Hopper: measured in arXiv 2402.13499
MMA_FLOPS = 2 * 16 * 8 * 16    # of m16n8k16
MMA_CLOCKS = MMA_FLOPS / (PEAK / 4) / MMA_SHARE  # of one, in a quarter of a multiprocessor
SPECIAL_CLOCKS = 32 / 16       # of a warp: 16 lanes a clock and multiprocessor
SLACK = 1.4                    # over the largest of a multiprocessor's limits: assumed, 1.35 to 1.5
PRODUCT = 650e12               # flops a second of cuBLASLt in full rounds of tiles: assumed
TILES = ((128, 256), (256, 128), (128, 128))  # that cuBLASLt chooses from: assumed
LAUNCH, GAP = 2e-6, 1e-6       # least time of a kernel; between kernels of a graph: assumed
ON_CHIP = ("issue", "shared", "mma", "special")
LIMITS = ("product", *ON_CHIP, "L2", "memory")

# Kernels of an operation, as far as they are seen in a step; those not named are of no kernel.
KERNELS = {
    "embedding, forward": ["embed_rows"],
    "norm, forward": ["norm_rows<.*true>"],
    "norm, forward, first": ["norm_rows<.*false>"],
    "scale, forward": ["rows_of_scale", "rows_of_scale"],
    "attention, forward": ["attention_forward_queries"],
    "attention, backward": ["attention_backward_queries", "attention_backward_keys",
                            "attention_backward_table"],
    "activation, forward": ["activate_tiles<"],
    "cross entropy": ["cross_entropy_row"],
    "sum of losses": ["sum_elements<float>"],
    "activation, backward": ["activate_tiles_backward"],
    "scale, backward": ["gradient_of_scale", "join_scale_gradients"],
    "prior, backward": ["gradient_of_prior"],
    "norm, backward": ["norm_rows_backward", "sum_slots"],
    "norm, backward, last": ["norm_rows_backward", "sum_slots"],
    "embedding, backward": ["add_pieces", "add_slots", "count_digits", "count_digits", "scan_tiles",
                            "scan_tiles", "place_keys", "place_keys"],
    "prior, forward": ["table_of_prior"],
    "squared norm": ["square_tiles"],
    "optimizer": ["optimizer_update"],
}
# What a launch's work is in proportion to, where that is not the tokens of a micro-batch.
WORK = {"attention_backward_table": lambda s: s.B * s.parts, "sum_slots": lambda s: s.norm_pieces,
        "square_tiles": lambda s: s.n, "optimizer_update": lambda s: s.n,
        **{name: lambda s: 1 for name in ("table_of_prior", "gradient_of_prior", "scan_tiles",
                                          "join_scale_gradients")}}
# Blocks of a launch that are not as many times more.
BLOCKS = {"attention_backward_keys": lambda s: s.parts * s.H * s.B,
          "attention_backward_table": lambda s: math.ceil(s.T / 32) * s.H,
          "norm_rows_backward": lambda s: s.norm_pieces,
          "sum_slots": lambda s: math.ceil(s.C / 32)}
# Launches of an operation, of which the profile is no guide: it has one layer, and sums of squares
# of a check at its end too.
LAUNCHES = {"cross_entropy_row": lambda s, counts: s.chunks, "square_tiles": lambda s, counts: 1,
            "optimizer_update": lambda s, counts: counts.launches}

# A row of the table: times in seconds of a micro-batch; limits: {limit: seconds of one call}.
Row = collections.namedtuple("Row", "operation kernel calls seconds limits")


def find(kernels, pattern):
    """The one instance that the pattern begins."""
    found = [i for i in kernels if re.match(pattern if "<" in pattern else pattern + r"(<|$)", i)]
    if len(found) != 1:
        sys.exit(f"kernel_model: {pattern} is {len(found)} kernels of the profile: {found}; "
                 "KERNELS names one each")
    return found[0]


def scale_of(name, s, small):
    """How many times the work of a launch of the profile, of the shapes `small`, one of ours is."""
    work = WORK.get(name, lambda s: s.N)
    return work(s) / work(small)


def rounds(blocks, held):
    """What is lost in the last round: over a full one where multiprocessors hold all at once."""
    if blocks <= SMS * held:
        return math.ceil(blocks / SMS) * SMS / blocks
    return math.ceil(blocks / (SMS * held)) * SMS * held / blocks


def limits_of(counts, scale, memory, near):
    """{limit: seconds} without memory, which depends on the GPU."""
    a_clock = 1 / (SMS * CLOCK)
    return {"issue": scale * counts.issue / 4 * a_clock,
            "shared": scale * counts.clocks * a_clock,
            "mma": scale * counts.mma / 4 * MMA_CLOCKS * a_clock,
            "special": scale * counts.special * SPECIAL_CLOCKS * a_clock,
            "L2": (memory + near) / L2}


def seconds_of(limits, lost):
    slow = max(limits["memory"], limits["L2"],
               SLACK * max(limits[k] for k in ON_CHIP))
    return max(LAUNCH, slow * lost) + GAP


def kernel_rows(o, calls, s, small, kernels, gpu):
    """Of one operation: all bytes are the first kernel's, unless the operation says whose."""
    rows = []
    beyond_l1 = sum(b for b, why in o.near if "L1" not in why)
    for place, pattern in enumerate(KERNELS[o.name]):
        instance = find(kernels, pattern)
        counts, name = kernels[instance], instance.split("<")[0]
        memory, near = o.kernels.get(name) or (
            (total(o.once) + total(o.more), beyond_l1) if place == 0 else (0, 0))
        scale, launches = scale_of(name, s, small), 1
        if name in LAUNCHES:
            launches = LAUNCHES[name](s, counts)
            memory, near = memory / launches, near / launches
            if name == "cross_entropy_row":
                scale /= launches
        limits = limits_of(counts, scale, memory, near)
        limits["memory"] = memory / (MEMORY_SHARE * gpu.memory)
        blocks = (BLOCKS[name](s) if name in BLOCKS else
                  scale * counts.warps * 32 / threads(instance))
        lost = rounds(blocks, resident(instance, counts.use, ARCH))
        rows.append(Row(o.name, instance, calls * launches,
                        calls * launches * seconds_of(limits, lost), limits))
    return rows


def share_of_tiles(m, n, depth):
    """Of the multiprocessors' time, the part that a product's own tiles take, at best: of tiles and
    of the pieces, of at least 512, that the depth is cut into."""
    best = 0
    for rows, columns in TILES:
        tiles = math.ceil(m / rows) * math.ceil(n / columns)
        for pieces in range(1, max(1, min(16, depth // 512)) + 1):
            full = math.ceil(tiles * pieces / SMS) * SMS
            best = max(best, m * n * pieces / (full * rows * columns))
    return best


def product_row(o, calls, gpu):
    each = sum(2 * m * n * k for m, n, k in o.gemms)
    flops = o.flops / each  # calls of each of the products
    seconds = flops / PRODUCT * sum(2 * m * n * k / share_of_tiles(m, n, k) for m, n, k in o.gemms)
    memory = (total(o.once) + total(o.more)) / (MEMORY_SHARE * gpu.memory)
    launches = flops * len(o.gemms)
    limits = {"product": seconds / launches, "memory": memory / launches}
    return Row(o.name, "cuBLASLt", calls * launches,
               calls * (max(seconds, memory) + launches * GAP), limits)


def copy_row(o, calls, gpu):
    """An operation of no kernel that was seen: its bytes."""
    memory = total(o.once) / (MEMORY_SHARE * gpu.memory)
    return Row(o.name, "", calls, calls * (max(LAUNCH, memory) + GAP), {"memory": memory})


def step(s, small, kernels, gpu):
    """The rows of a micro-batch: of what a step does once, its part."""
    rows = []
    for o in operations(s):
        calls = o.times / s.micro
        if o.gemms:
            rows.append(product_row(o, calls, gpu))
        elif o.name in KERNELS:
            rows += kernel_rows(o, calls, s, small, kernels, gpu)
        elif o.times:
            rows.append(copy_row(o, calls, gpu))
    return rows
