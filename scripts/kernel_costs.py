"""What the operations of a training step move and compute on a GPU, beside the least.

Formulas, from the kernels of kernels/ and their callers; a term is (bytes, why). Nothing is
measured. Part of kernel_table.py and kernel_model.py.
"""

import collections
import json
import math
import pathlib
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent

MEMORY, MATRIX, SMS, L2 = 4.8e12, 989e12, 132, 50e6  # the vendor's, of an H200

Op = collections.namedtuple("Op", "name times once more near flops least_flops gemms kernels")


def op(name, times, once, more=(), near=(), flops=0, least_flops=None, gemms=(), kernels=None):
    """times: a step. once, more, near: (bytes, why). once: inputs and outputs, each once, which any
    implementation moves; more: what ours moves to or from memory besides; near: what ours reads or
    writes again so soon, or so often, that L1 or L2 serves it. gemms: (rows, columns, depth) of
    the products among which the calls divide. kernels: {kernel: (memory, caches)}, all bytes above
    by the kernel that moves them, where the operation has several."""
    made = Op(name, times, once, more, near, flops, flops if least_flops is None else least_flops,
              gemms, kernels or {})
    if kernels:
        assert sum(m for m, _ in kernels.values()) == total(once) + total(more), name
        assert sum(c for _, c in kernels.values()) == total(near), name
    return made


def total(terms):
    return sum(bytes_ for bytes_, _ in terms)


def seconds(bytes_, flops):
    return max(bytes_ / MEMORY, flops / MATRIX)


# What the formulas are of: a configuration's values beside these are others' kernels.
FORMULAS = (("model.mlp.kind", "swiglu"), ("model.norm.kind", "rmsnorm"), ("model.tied", False),
            ("model.bias", False), ("model.attention.prior.name", "bam"),
            ("model.attention.scale.name", "ssmax"), ("train.precision", "bf16"))


def with_base(path):
    """The configuration with what it leaves to its base."""
    def merged(below, above):
        if not (isinstance(below, dict) and isinstance(above, dict)):
            return above
        return below | {k: merged(below.get(k), v) for k, v in above.items()}

    c = json.loads(path.read_text())
    return merged(with_base(path.parent / c.pop("base")), c) if "base" in c else c


def read_config(path):
    """The configuration; one that the formulas are not of ends the program."""
    c = with_base(path)
    for key, wanted in FORMULAS:
        value = c
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if value != wanted:
            sys.exit(f"kernel_costs: {path}: {key} is {value}; the formulas are for {wanted}")
    m = c["model"]
    if m["width"] // m["heads"] > 64:
        sys.exit(f"kernel_costs: {path}: heads of {m['width'] // m['heads']}; the formulas are for "
                 "at most 64, whose tiles have 128 queries")
    return c


class Shapes:
    """A configuration on one GPU; B: sequences of a micro-batch, None: as many as it says."""

    def __init__(self, config="bam-120m", B=64, layers=None):
        c = read_config(ROOT / f"configs/{config}.json")
        m = c["model"]
        self.B, self.T, self.C, self.H = (B or c["train"]["micro_batch"],
                                          c["data"]["sequence_length"], m["width"], m["heads"])
        self.F, self.V, self.L = m["mlp"]["hidden"], m["vocab"], layers or m["layers"]
        self.D, self.N = self.C // self.H, self.B * self.T
        self.micro = c["train"]["tokens_per_step"] // self.N  # batches of B in a step
        self.lanes = next(n for n in (8, 4, 2, 1) if self.micro % n == 0)  # default_accumulation_groups
        # Of a layer: matrices and norms; of a head three parameters of the prior, one of the scale.
        per_layer = (4 * self.C + 3 * self.F + 2) * self.C + 4 * self.H
        self.n = 2 * self.V * self.C + self.L * per_layer + self.C
        self.chunk = (512 << 20) // (4 * self.V) // 64 * 64  # rows of logits: kDeviceLogitBytes
        self.chunks = math.ceil(self.N / self.chunk)
        self.tiles = self.T // 64
        self.visits = self.tiles * (self.tiles + 1) // 2  # pairs of tiles that a head computes
        self.parts = min(self.tiles, max(1, 1024 // (self.B * self.H)))  # attention_parts
        # norm_backward_pieces
        self.norm_pieces = math.ceil(self.N / (8 * max(4, math.ceil(self.N / (8 * 512)))))
        self.digits = (1 << (self.V - 1).bit_length() // 2,
                       1 << -(-(self.V - 1).bit_length() // 2))  # of the sort of the tokens

    def slices(self, rows, columns, before, length, from_keys=False):
        """Entries of the table that a head's blocks load, `length` or fewer for each pair of tiles
        of `rows` queries and `columns` keys: distances from i0 - j0 - before on, those outside
        [0, T) not. from_keys: a block owns keys and starts with the query at the first of them."""
        sum_ = 0
        for i0 in range(0, self.T, rows):
            for j0 in range(0, self.T, columns):
                if i0 >= j0 if from_keys else j0 < i0 + rows:
                    low = i0 - j0 - before
                    sum_ += min(self.T, low + length) - max(0, low)
        return sum_


def attention(s):
    A, rows, heads = 2 * s.N * s.C, 4 * s.N * s.H, s.B * s.H  # bytes of (N, C), of (B, H, T)
    table = 4 * s.H * s.T
    # Flops of a product for a query and a key; such pairs in all tiles visited; those that count.
    pair, pairs, least = 2 * s.D, heads * s.visits * 64 * 64, heads * s.T * (s.T + 1) // 2
    again = s.visits / s.tiles - 1  # a tile of queries is read by every tile of keys that sees it
    blocks = s.T // 128             # kQueryTile at this head dimension
    again_keys = (blocks + 1) / 2 - 1  # keys, by every block of queries that sees them
    warps = s.T // 32               # of 32 queries, which leave out tiles of 32 keys past them
    own_pairs = heads * warps * (warps + 1) // 2 * 32 * 32
    steps = s.visits * 2            # of 32 queries and 64 keys, of a head
    slot = 4 * heads * s.parts * (s.T + 128)  # attention_partial_table
    query_slices, key_slices = s.slices(128, 32, 31, 256), s.slices(32, 64, 63, 96, True)
    backward = {  # (memory, caches)
        "attention_backward_queries": (
            6 * A + 4 * rows + 4 * s.N + table,
            2 * again_keys * A + 4 * heads * query_slices - table + 4 * s.N * (s.H - 1)),
        "attention_backward_keys": (
            6 * A + 3 * rows + slot,
            (2 * A + 16 * s.N * s.H) * again + 4 * heads * key_slices + slot +
            8 * heads * 95 * steps + 4 * s.N * s.H),
        "attention_backward_table": (4 * heads * s.parts * s.T + table, 0)}
    common = [(rows, "scale"), (4 * s.N, "first_key"), (table, "table")]
    return [
        op("attention, forward", s.L * s.micro,
           [(4 * A, "q, k, v, out"), (rows, "lse"), *common],
           near=[(2 * again_keys * A, "k and v by every block of queries that sees them; those of "
                  "a head follow one another"),
                 (4 * heads * query_slices - table, "slices of the table"),
                 (4 * s.N * (s.H - 1), "first_key for every head")],
           flops=2 * pair * own_pairs, least_flops=2 * pair * least),
        op("attention, backward", s.L * s.micro,
           [(8 * A, "q, k, v, out, dout, dq, dk, dv"), (2 * rows, "lse, dscale"), *common,
            (table, "dtable")],
           more=[(4 * A, "q, k, v, dout, by the second kernel"),
                 (2 * rows, "row_product, written and read"),
                 (2 * rows, "lse and scale, by the second kernel"),
                 (slot + 4 * heads * s.parts * s.T, "partial tables, written and read")],
           near=[(2 * again_keys * A, "k and v by every block of queries, as forward"),
                 (2 * again * A, "q and dout for every tile of keys, by one block or by several at "
                  "once"),
                 (16 * again * s.N * s.H, "lse, row_product, scale and first_key, likewise"),
                 (4 * heads * (query_slices + key_slices) - table, "slices of the table, twice"),
                 (slot + 8 * heads * 95 * steps, "partial tables: zeroed, then 95 entries of one a "
                  "step"),
                 (4 * s.N * (2 * s.H - 1), "first_key for every head, twice")],
           flops=3 * pair * own_pairs + 4 * pair * pairs, least_flops=5 * pair * least,
           kernels=backward),
    ]


def products(s):
    out = []
    for name, I, O in (("qkv", s.C, 3 * s.C), ("out", s.C, s.C), ("gate, up", s.C, 2 * s.F),
                       ("down", s.F, s.C)):
        flops = 2 * s.N * I * O
        out += [op(f"product {name}: y, dx", 2 * s.L * s.micro,
                   [(2 * (s.N * I + I * O + s.N * O), "operands and result")], flops=flops,
                   gemms=((s.N, O, I), (s.N, I, O))),
                op(f"product {name}: dw", s.L * s.micro,
                   [(2 * s.N * (I + O), "operands"), (8 * I * O, "fp32 dw, read and written")],
                   flops=flops, gemms=((I, O, s.N),))]
    W, flops = s.V * s.C, 2 * s.N * s.V * s.C
    rest, chunk = s.chunks - 1, min(s.chunk, s.N)
    out += [op("product head: logits", s.micro,
               [(2 * (s.N * s.C + W) + 4 * s.N * s.V, "operands, fp32 logits")],
               more=[(2 * W * rest, f"the weight, for each of {s.chunks} chunks")], flops=flops,
               gemms=((chunk, s.V, s.C),)),
            op("product head: dx", s.micro,
               [(2 * (s.N * s.C + W + s.N * s.V), "operands and result")],
               more=[(2 * W * rest, "the weight, for each chunk")], flops=flops,
               gemms=((chunk, s.C, s.V),)),
            op("product head: dw", s.micro,
               [(2 * s.N * (s.C + s.V), "operands"), (8 * W, "fp32 dw, read and written")],
               more=[(8 * W * rest, "dw, for each chunk")], flops=flops,
               gemms=((s.C, s.V, chunk),))]
    return out


def operations(s):
    A, vector = 2 * s.N * s.C, 4 * s.C  # bytes of (N, C) and of a vector of parameters
    pieces, distinct = s.N // 64, s.V // 4  # kEmbeddingPiece; tokens of a micro-batch: assumed
    norm_pieces = s.norm_pieces
    reads_of_weight = 4 * s.N * s.C
    norm = [(A, "dy"), (A, "sum"), (2 * A, "dsum, read and written"), (8 * s.N, "stats"),
            (3 * vector, "weight, dweight")]
    norm_more = [(2 * norm_pieces * vector, "partial sums of dweight, written and read")]
    norm_near = [(2 * reads_of_weight - vector, "the weight, twice a row: L1")]
    forward = [(8 * s.N, "stats"), (vector, "weight")]
    weight_near = [(reads_of_weight - vector, "the weight, every row: L1")]
    layers = [
        op("embedding, forward", s.micro,
           [(A, "out"), (2 * distinct * s.C, "rows of the table"), (4 * s.N, "tokens")],
           near=[(A - 2 * distinct * s.C, "rows of tokens that occur again")]),
        op("norm, forward", 2 * s.L * s.micro, [(4 * A, "residual, branch, sum, y"), *forward],
           near=weight_near),
        op("norm, forward, first", s.micro, [(2 * A, "residual, y"), *forward], near=weight_near),
        op("scale, forward", s.L * s.micro, [(4 * s.N * s.H, "scale"), (4 * s.N, "first_key")],
           more=[(4 * s.N * (s.H + 1), "all of it again before the backward pass")]),
        *attention(s),
        op("activation, forward", s.L * s.micro, [(6 * s.N * s.F, "gate, up, out")]),
        op("cross entropy", s.micro,
           [(6 * s.N * s.V, "fp32 logits, bf16 dlogits"), (8 * s.N, "targets, losses")],
           near=[(4 * s.N * max(0, s.V - 3 * 8192), "logits past the 24,576 kept in shared memory, "
                  "the last read the first to be read again")]),
        op("sum of losses", s.micro, [(4 * s.N, "losses")]),
        op("activation, backward", s.L * s.micro, [(10 * s.N * s.F, "gate, up, dout, din")]),
        op("scale, backward", s.L * s.micro, [(4 * s.N * s.H, "dscale"), (4 * s.N, "first_key")],
           near=[(4 * s.N * (s.H - 1), "first_key for every head")]),
        op("prior, backward", s.L * s.micro, [(4 * s.H * s.T, "dtable")]),
        op("norm, backward", 2 * s.L * s.micro, norm, norm_more, norm_near),
        op("norm, backward, last", s.micro, [(3 * A, "dy, sum, dsum"), *norm[3:]],
           [(2 * A, "dsum, set to zero and read: the kernel adds"), *norm_more], norm_near),
        op("embedding, backward", s.micro,
           [(A, "dout"), (4 * s.N, "tokens"),
            (8 * distinct * s.C, f"rows of dtable, read and written: {distinct:,} tokens differ")],
           [(2 * vector * (pieces - 1), "slots of pieces, written and read, at most")],
           [(10 * 4 * s.N, "sort by two digits: keys read twice a digit and written once, with "
             "their origins, which the second reads too; the result read once"),
            (4 * 4 * sum(s.digits) * (s.N // 2048), "counts of digits, twice written and read")]),
    ]
    n = s.n
    step = [
        op("prior, forward", s.L, [(4 * s.H * s.T, "table")]),
        op("gradients to zero", s.lanes, [(4 * n, "cudaMemset")]),
        op("sum of two lanes", s.lanes - 1, [(12 * n, "both read, one written")]),
        op("squared norm", 1, [(4 * n, "gradients")]),
        op("optimizer", 1, [(30 * n, "w, m, v, g; w, m, v and the bf16 copy")]),
    ]
    O = 3 * s.C
    rows = 32 * max(2, math.ceil(s.N / (32 * max(16, 1536 // math.ceil(O / 256)))))  # of a piece
    others = [
        op("rotation of q or k", 0, [(2 * A, "x, read and written"), (4 * s.N, "positions"),
                                     (4 * s.T * s.D, "cosine, sine")],
           near=[(4 * s.N * s.C - 4 * s.T * s.D, "cosine and sine for every head: L1")]),
        op("bias of qkv, forward", 0, [(4 * s.N * O, "y, read and written"), (4 * O, "bias")],
           near=[(4 * O * (s.N // 4 - 1), "the bias, every fourth row: L1")]),
        op("bias of qkv, backward", 0, [(2 * s.N * O, "dy"), (8 * O, "dbias")],
           [(8 * O * math.ceil(s.N / rows), "partial sums, written and read")]),
    ]
    return [*layers, *products(s), *step, *others]


# --- tables and text --------------------------------------------------------------------------


def table(head, rows):
    return "\n".join(["| " + " | ".join(map(str, r)) + " |" for r in
                      [head, ["---"] * len(head), *rows]]) + "\n"


def bounds(o):
    """Seconds at least: as it is, and for any implementation."""
    return (seconds(total(o.once) + total(o.more), o.flops),
            seconds(total(o.once), o.least_flops))


def operation_table(ops):
    rows = []
    for o in ops:
        memory, near, least = total(o.once) + total(o.more), total(o.near), total(o.once)
        rows.append((o.name, o.times or "none", *(f"{x / 1e6:,.2f}" for x in (memory, near, least)),
                     f"{(memory + near) / least:.2f}", f"{memory / least:.2f}",
                     *(f"{x / 1e9:,.1f}" if x else "" for x in (o.flops, o.least_flops)),
                     *(f"{1e6 * t:,.1f}" for t in bounds(o))))
    sums = [sum(o.times * bounds(o)[k] for o in ops) for k in (0, 1)]
    rows.append(("a step", *[""] * 8, *(f"{1e6 * t:,.0f}" for t in sums)))
    return table(("operation", "calls a step", "ours, memory, MB", "ours, caches, MB", "least, MB",
                  "ratio", "ratio, memory", "ours, GFLOP", "least, GFLOP", "ours, us", "least, us"),
                 rows)


def reasons(ops):
    return "\n".join(paragraph(f"- {o.name}, {said}: " + "; ".join(
        f"{why} ({bytes_ / 1e6:,.2f})" for bytes_, why in terms) + ".")
                     for o in ops for said, terms in (("memory", o.more), ("caches", o.near))
                     if terms) + "\n"


def paragraph(text):
    return textwrap.fill(" ".join(text.split()), 100, break_on_hyphens=False,
                         break_long_words=False, subsequent_indent="  " * text.startswith("- "))


def findings(s, ops, resident, shared):
    """resident(instance, architecture): blocks on a multiprocessor; shared(instance): dynamic, of
    one block."""
    o = {x.name: x for x in ops}
    back, fwd, dw = o["attention, backward"], o["attention, forward"], o["product head: dw"]
    step = sum(x.times * bounds(x)[0] for x in ops)
    W, rows = s.V * s.C, 4 * s.N * s.H
    keys, loss = f"attention_backward_keys<{s.D}, table, both>", "cross_entropy_row<bf16>"
    k = resident(keys, 90)
    heads = SMS * k
    waves = s.B * s.H * s.parts / heads
    owned = shared(keys) + 4 * s.T * s.D

    def share(key):
        return f"{100 * sum(x.times * bounds(x)[0] for x in ops if key in x.name) / step:.0f} %"

    def extra(name):
        return f"{1e3 * o[name].times * (bounds(o[name])[0] - bounds(o[name])[1]):.2f} ms a step"

    def saved(bytes_, times):
        return f"{1e3 * times * bytes_ / MEMORY:.2f} ms a step"

    enough = math.ceil(8 * W / MEMORY / (2 * W / MATRIX - 2 * (s.V + s.C) / MEMORY))
    texts = (
        f"""Of the bound of a step products are {share("product")}, attention {share("attention")},
        norms {share("norm, ")}, activations {share("activation")}, the loss {share("cross")}.""",
        f"""Head, dw: {s.chunks} chunks of {s.chunk} rows each read and write all of the fp32 dw,
        {total(dw.more) / 1e9:.1f} GB more a micro-batch. From {enough:,} rows a chunk on the
        product is bound by its flops all the same. A row of a chunk takes {6 * s.V:,} bytes
        (`kDeviceLogitBytes` of `src/model/model_memory.cpp`).""",
        f"""Attention, backward: seven products where five are least, and
        {total(back.more) / 1e6:.0f} MB more: {extra(back.name)}. One pass for dq, dk and dv needs
        sums of dq over tiles of keys: atomics, partial sums in memory, or one block a head with dq
        in shared memory, {4 * s.T * s.D // 1024} KiB at T {s.T} and {owned // 1024} with the other
        tiles of backward_keys: one block a multiprocessor on sm_80 and sm_90, none on sm_86 and
        sm_89.""",
        f"""attention_backward_keys: {s.B * s.H * s.parts:,} blocks (`kTableBlocks`) are {waves:.2f}
        times what {SMS} multiprocessors of sm_90 hold, {k} each: {math.ceil(waves)} rounds. With
        {s.parts} block a head, resident blocks re-read q and dout of {heads} heads,
        {heads * 4 * s.T * s.D / 1e6:.0f} MB of an L2 of {L2 / 1e6:.0f}; where they missed it, up to
        {total(back.near[1:2]) / 1e6:.0f} MB more would come from memory. More blocks put tiles of
        one head side by side, for {4 * s.B * s.H * (s.T + 128) / 1e6:.1f} MB of partial tables a
        part.""",
        f"""Attention: warps of 32 queries compute {fwd.flops / fwd.least_flops:.3f} times the
        causal pairs at T {s.T}, 1 + 31/(T+1), forward and for dq; attention_backward_keys, whose
        tiles are of 64 keys, 1 + 63/(T+1).""",
        f"""attention_backward_keys with a table: after each step of 32 queries, between two
        barriers, 95 of 128 threads add up to 32 values along a diagonal of db, in shared memory,
        one after another. The matrix products of a step are {8 * 64 * 32 * s.D // 4096} clocks of a
        multiprocessor at the vendor's 4,096 flops a clock.""",
        f"""Attention: an exponential a pair forward, two backward, are not in the bounds above. At
        the vendor's 16 a clock and multiprocessor, against 4,096 bf16 flops, they take
        {4096 / 16 / (4 * s.D):.2f} times as long as the products forward at D {s.D},
        {2 * 4096 / 16 / (14 * s.D):.2f} backward. The products are `mma.sync`, not sm_90's
        `wgmma`.""",
        """Attention: an instruction stores 16 bytes of a row of out, dq, dk or dv, half a sector of
        32: two stores to L2 for each sector. Staged in shared memory, they would be whole.""",
        f"""Cross entropy: {" / ".join(str(resident(loss, a)) for a in (80, 86, 89, 90))} blocks a
        multiprocessor on sm_80 / 86 / 89 / 90, for the 96 KiB of logits that are kept; {s.chunk}
        blocks are {s.chunk / (SMS * resident(loss, 90)):.2f} times what an H200 holds. The fp32
        logits of a chunk are {4 * s.chunk * s.V / 1e6:.0f} MB, more than the L2 between the product
        and the loss.""",
        f"""Norm, last: dsum is set to zero for a kernel that adds to it. A form that writes saves
        {saved(total(o["norm, backward, last"].more[:1]), s.micro)}.""",
        f"""Scale: formed again before each backward pass: {extra("scale, forward")}. Its backward
        pass takes a logarithm in fp64 a row and head, {s.H} a row where one would do.""",
        f"""Bias, not in this configuration: a pass of its own over y ({4 * s.N * 3 * s.C / 1e6:.0f}
        MB for qkv), and one over dy for its sums, which epilogues of the products could do.""",
        """fp32 attention (`attention_reference_*`), there to be compared with, is not in the table:
        3 products forward where 2 are least, with a table 9 backward where 5 are, a scalar at a
        time.""")
    return "\n".join(paragraph(f"- {text}") for text in texts) + "\n"
