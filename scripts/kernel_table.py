#!/usr/bin/env python3
"""Tabulates the kernels: what each takes of a multiprocessor, what operations move and compute.

  scripts/kernel_table.py [--logs DIR] [--nvcc NVCC] [--output bench/results/kernels.md]

Compiles every unit of kernels/ that build/ does, built with CUDA, for sm_80, 86 and 90; no GPU is
needed. Reads registers, static shared memory and spills from what ptxas says. --logs keeps what it
says in DIR and reads it from there the next time, unless a kernel has changed. Threads and dynamic
shared memory are those of the launchers, written down in THREADS and dynamic_shared. Bytes and
flops come from the formulas of kernel_costs.py, for configs/bam-120m.json. Nothing is measured.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from kernel_costs import (L2, SMS, Shapes, findings, operation_table, operations, paragraph,
                          reasons, table)

ROOT = pathlib.Path(__file__).resolve().parent.parent

# --- what ptxas says ---------------------------------------------------------------------------

# code: whose machine code it runs, sm_89 that of sm_86; the rest of one multiprocessor, KiB.
Arch = collections.namedtuple("Arch", "code shared threads blocks")
ARCHS = {80: Arch(80, 164, 2048, 32), 86: Arch(86, 100, 1536, 16), 89: Arch(86, 100, 1536, 24),
         90: Arch(90, 228, 2048, 32)}
CODES = sorted({a.code for a in ARCHS.values()})
Use = collections.namedtuple("Use", "registers spilled shared")  # spilled: stores and loads, bytes

BIAS_SOURCES = ("none", "table", "formula", "fire", "formed")  # attention_forms.cuh
SCALE_MODES = ("none", "content", "both", "rows")           # likewise
FORMULAS = {"Difference": "difference", "LogSquare": "log_square"}  # src/priors/sums.h
MLP_KINDS = ("swiglu", "geglu", "gelu", "gelu_erf", "relu")    # core/kinds.h

# What units include, and what says which there are.
SOURCES = ("kernels/*", "src/core/*.h", "src/normalizers/*.h", "src/priors/*.h", "src/scales/*.h")


def units():
    """(name, source, flags) of every object of kernels/, from what meson says of build/."""
    targets = ROOT / "build/meson-info/intro-targets.json"
    found = []
    for target in json.loads(targets.read_text()) if targets.exists() else ():
        if target["name"].startswith("kernel_"):
            made = target["target_sources"][0]
            found.append((target["name"].removeprefix("kernel_"), made["sources"][0],
                          [f for f in made["compiler"] if f.startswith("-D")]))
    return found or sys.exit("kernel_table: no kernels in build/: meson setup build -Dcuda=enabled")


def kernel_names():
    """Every kernel that the sources define."""
    found = set()
    for path in (ROOT / "kernels").glob("*.cu*"):
        if path.name == "device.cuh":  # defines the macro
            continue
        for text in re.split(r"BAMTRAIN_KERNEL\b", path.read_text())[1:]:
            calls = re.findall(r"(\w+)\(", text[:text.index("{")])
            found.add(next(c for c in calls if c not in ("BAMTRAIN_LAUNCH_BOUNDS", "sizeof")))
    return found


def ptxas(unit, nvcc, logs):
    name, source, flags = unit
    log = logs / (name + ".txt")
    changed = max(p.stat().st_mtime for pattern in SOURCES for p in ROOT.glob(pattern))
    if not log.exists() or log.stat().st_mtime < changed:
        command = [nvcc, "-std=c++20", "-O3", "-I.", "-Isrc", "-Xptxas", "-v",
                   *(f"-gencode=arch=compute_{min(CODES)},code=sm_{code}" for code in CODES),
                   *flags, "-fatbin", source, "-o", str(logs / (name + ".fatbin"))]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"kernel_table: {' '.join(command)}\n{run.stderr}")
        log.write_text(run.stderr)
    return log.read_text()


def softmax_form(match):
    """table, both; of a formula its name."""
    bias = BIAS_SOURCES[int(match[1])]
    return (f"{FORMULAS.get(match[3], match[3]) if bias == 'formula' else bias}, "
            f"{SCALE_MODES[int(match[2])]}")


def short(signature):
    """norm_rows<bf16, 1, 3, true> of the demangled signature."""
    s = signature.replace("(anonymous namespace)::", "").removeprefix("void ")
    s = re.sub(r"\b(bamtrain|kernels|device)::", "", s)
    s = re.sub(r"SoftmaxForm<\(BiasSource\)(\d), \(ScaleMode\)(\d), (\w+)>", softmax_form, s)
    s = re.sub(r"\(MlpKind\)(\d)", lambda m: MLP_KINDS[int(m[1])], s)
    return s[:s.index("(")].replace(" >", ">")


def resources(nvcc, logs):
    """{instance: {machine code: Use}}."""
    found = {}
    for unit in units():
        for entry in ptxas(unit, nvcc, logs).split("Compiling entry function ")[1:]:
            name, code = re.match(r"'(\S+)' for 'sm_(\d+)'", entry).groups()
            shared = re.search(r"(\d+) bytes smem", entry)
            found.setdefault(name, {})[int(code)] = Use(
                int(re.search(r"Used (\d+) registers", entry)[1]),
                sum(map(int, re.findall(r"(\d+) bytes spill", entry))),
                int(shared[1]) if shared else 0)
    names = subprocess.run(["c++filt"], input="\n".join(found), text=True, capture_output=True,
                           check=True).stdout.splitlines()
    return {short(name): use for name, use in zip(names, found.values())}


# --- what the launchers ask for ----------------------------------------------------------------

THREADS = {
    1: "update_clip_factor",
    32: "join_scale_gradients join_gate_biases join_biases_of_gates",
    64: "fire_lines fire_heads_backward",
    128: "attention_forward_queries attention_searched_queries attention_backward_queries "
         "attention_backward_keys attention_backward_keys_sticks attention_decode_piece "
         "attention_decode_joined attention_decode_logits attention_decode_sum "
         "attention_decode_values mix_clear_tokens "
         "attention_reference_rows attention_reference_products "
         "attention_reference_queries attention_reference_keys attention_reference_diagonals "
         "attention_reference_segments attention_reference_searched attention_reference_centres "
         "attention_reference_sticks attention_row_statistics "
         "attention_reference_formed content_scores content_queries content_keys scores_of_rows "
         "content_queries_of_rows content_keys_of_rows relative_biases relative_distances "
         "relative_biases_of_rows relative_distances_of_rows relative_of_distances "
         "relative_of_keys relative_of_heads contextual_rows contextual_rows_gradients "
         "mix_rows mix_rows_gradients mix_tiles mix_tiles_gradients mix_distances "
         "mix_distances_gradients mix_table mix_of_table "
         "mix_of_queries mix_of_keys mix_of_distances mix_of_segments mix_of_distances_sums "
         "mix_join mix_join_shares "
         "add_pieces sum_gates gradient_of_gates entropy_of_rows scale_of_entropy fire_join",
    256: "copy_words shift_elements argmax_row activate_tiles activate_tiles_backward add_bias_tiles sum_rows embed_rows add_slots "
         "count_digits scan_tiles place_keys add_tiles add_doubles convert_tiles square_tiles "
         "sum_elements norm_rows_backward optimizer_update rotate_tokens table_of_prior "
         "gradient_of_prior rows_of_scale gradient_of_scale rows_by_length gradient_by_length "
         "rows_of_gates gradient_of_gated attention_backward_table attention_backward_fire "
         "fire_positions fire_rows_backward alphas_of_theta gradient_of_alpha "
         "attention_reference_sticks_gradients contextual_partial contextual_join",
    512: "attention_decode_weights sum_slots cross_entropy_row",
}
KERNEL_THREADS = {k: n for n, kernels in THREADS.items() for k in kernels.split()}
KERNEL_THREADS["norm_rows"] = None  # a row's warps, four rows where that is one


def split(instance):
    name, _, rest = instance.partition("<")
    return name, rest.rstrip(">").split(", ") if rest else []


def threads(instance):
    name, args = split(instance)
    if name == "norm_rows":
        return 32 * max(4, int(args[1])) if args[1] == "1" else 32 * int(args[1])
    if instance == "add_pieces<bf16>":
        return 96  # of a width of 768: a thread per vector, at most 128
    return KERNEL_THREADS[name]


def tile_bytes(D, rows):
    return rows * (2 * D + 16)  # kTileBytes: 16 bytes of padding a row


def query_tile(D):
    return 128 if D <= 64 else 64  # kQueryTile


def fire_totals(rows):
    return 4 * (66 * 32 + 3 * rows)  # FireTotals


def keys_shared(D, Q, bias):
    """K and V, two stages of Q and dO; rows, slice, db."""
    biases = 128 + (64 * (Q + 3) if bias == "table" else 0)
    return (2 * tile_bytes(D, 64) + 4 * tile_bytes(D, Q) + Q * (32 + 16) +
            (4 * biases if bias in ("table", "fire") else 0))


def softmax_shared(name, D, bias):
    """Of the kernels of softmax."""
    rows = query_tile(D)
    if name == "attention_backward_keys":
        return keys_shared(D, 16 if D > 96 else 32, bias)
    keys = 64 if D == 16 and "forward" in name else 32  # kForwardKeys, kQueriesKeys
    slices = 2 * -(-(rows + keys - 1) // 128) * 128 * 4  # kSlicesFloats
    formula = bias in FORMULAS.values()
    shared = 4 * tile_bytes(D, keys) + slices + 4 * rows * formula  # K and V; QueryRows::numbers
    if name == "attention_forward_queries":
        return tile_bytes(D, rows) + shared
    if formula or bias == "fire":  # NumbersOfRows, sums of threads
        shared += 4 * 5 * rows + 4 * 4 * rows // 64 * 128
    if bias == "fire":  # psi_dc, FireTotals
        shared += slices + fire_totals(rows)
    return 2 * tile_bytes(D, rows) + shared


def any_shared(name, D, formed, fire, fp32):
    """Of the kernels of every normalizer. A tile of D floats is as large as one of 2 D numbers in bf16."""
    Q = 16 if D > 96 else 32  # kBackwardQueries
    D *= 1 + fp32
    rows, tile = query_tile(D), tile_bytes(D, 64)
    stages, groups = 1 if D > 64 else 2, rows // 64  # kStages, kRowTiles
    slice_bytes, numbers = 4 * (rows + 64), 4 * (1 + 5) * rows  # kSliceFloats; n_i, NumbersOfRows
    if name == "attention_searched_queries":  # Q and K, V or LogitList; Selection, Marks
        values = max(stages * tile, 4 * 2 * groups * 22 * 128)
        return (tile_bytes(D, rows) + stages * tile + values + 2 * slice_bytes + numbers +
                24 * 2 * groups * 128 + 2 * 4 * 64 * 4 + 16)
    if name == "attention_backward_queries":  # Q and dO, K and V; sums of threads; psi_dc
        return (2 * tile_bytes(D, rows) + 2 * stages * tile + 2 * slice_bytes + numbers -
                4 * rows * formed + 4 * 4 * groups * 128 + (2 * slice_bytes + fire_totals(rows) if fire else 0))
    if name == "attention_backward_keys":  # MoreQueryNumbers
        return keys_shared(D, Q, "table") + 32 * Q
    # K and V, Q and dO; weights and dz, db of a part; slice, n_i
    return (2 + 2 * stages) * tile + 2 * tile_bytes(64, 64) + 4 * 64 * 33 + 4 * (128 + 64)


# DAPE's and CoPE's figures: of kernels whose shared memory follows from the model.
MIXED_HEADS, MIX_HIDDEN, POSITIONS = 12, 32, 64
FORMED_TILES = {"content_scores": 2, "content_queries": 1, "content_keys": 2, "relative_biases": 3,
                "relative_distances": 1}
FORMED = ("content_", "contextual_", "relative_", "mix_", "scores_of_rows")


def mix_shared(name, heads, hidden):
    """MixShape::kWeights, and of gradients kGradients: keys, sums, pieces."""
    wide = name.startswith("mix_tiles")
    columns, units = 16 * heads, 16 * hidden
    inputs = 2 * columns if wide else columns
    weights = units * (2 * inputs + 16) + columns * (2 * units + 16) + 4 * (units + columns)
    if not name.endswith("_gradients"):
        return weights
    own_pieces = -(-hidden * (inputs // 16 + heads) // 4)
    keys = (5 if wide else 4) * tile_bytes(max(inputs, units), 64)
    sums = 4 * (4 if wide else 8) * (heads + hidden) * 128
    return (weights + keys + (sums if heads * hidden > (2 if wide else 4) else 0) +
            (4 * 8 * own_pieces * 128 if own_pieces > 3 else 0))


def formed_shared(name, args):
    """Of the kernels of biases that read queries and keys."""
    if name in FORMED_TILES:
        return FORMED_TILES[name] * tile_bytes(int(args[0]), 64)
    if name.startswith(("mix_tiles", "mix_distances")):
        return mix_shared(name, *map(int, args))
    if name.startswith("mix_rows"):  # MixRows, of 32 keys
        back = name.endswith("gradients")
        return 4 * 32 * ((3 if back else 2) * MIXED_HEADS + (2 if back else 1) * MIX_HIDDEN)
    if name.startswith("contextual_rows"):  # of four warps
        return 4 * 4 * (2 if name.endswith("gradients") else 1) * POSITIONS
    return 0


def dynamic_shared(instance):
    name, args = split(instance)
    if name == "cross_entropy_row":
        return 3 * 8192 * 4  # with a gradient and V > 16,384: three tiles of logits kept
    if name.startswith(FORMED):
        return formed_shared(name, args)
    if not name.startswith("attention_") or not args or not args[0].isdigit():
        return 0
    D, form = int(args[0]), args[1:]
    if form and not form[0].startswith("Any"):
        return softmax_shared(name, D, form[0])
    return any_shared(name, D, "AnyFormed" in form, "fire" in form, "AnyFormFp32" in form)


def resident(instance, use, arch):
    """Blocks on a multiprocessor."""
    a, n = ARCHS[arch], threads(instance)
    warps = math.ceil(n / 32)
    per_warp = math.ceil(use.registers * 32 / 256) * 256
    by_registers = 65536 // per_warp // 4 * 4 // warps  # a quarter of the warps to a scheduler
    shared = math.ceil((use.shared + dynamic_shared(instance) + 1024) / 128) * 128
    return min(a.blocks, a.threads // (32 * warps), by_registers, a.shared * 1024 // shared)


# --- the report ----------------------------------------------------------------------------------

WIDTHS = {("1", "1"): 256, ("1", "2"): 512, ("1", "3"): 768, ("1", "4"): 1024, ("2", "3"): 1536,
          ("2", "4"): 2048, ("4", "3"): 3072, ("4", "4"): 4096, ("8", "3"): 6144, ("8", "4"): 8192}
FORMS = {"none, none": "none", "none, content": "scale", "table, none": "table",
         "table, content": "table, scale on the scores", "table, both": "table, scale on both",
         "difference, rows": "sums", "log_square, rows": "sums, logarithm", "fire, rows": "fire",
         "formed, rows": "formed"}
DIMS = (16, 32, 48, 64, 80, 96, 128)


def single_table(found):
    """Kernels that no other table shows."""
    rows = []
    for i in sorted(found):
        if (i.startswith("norm_rows") or
                re.match(r"(content|relative|mix|attention_(forward|searched|backward))_\w+<\d", i)):
            continue
        use, warps = found[i], math.ceil(threads(i) / 32)
        blocks = {a: resident(i, use[a], a) for a in (80, 90)}
        rows.append((f"`{i}`", threads(i), f"{use[90].shared:,}", f"{dynamic_shared(i):,}",
                     *(" / ".join(str(f(a)) for a in (80, 90)) for f in (
                         lambda a: use[a].registers, lambda a: blocks[a],
                         lambda a: blocks[a] * warps,
                         lambda a: f"{100 * 32 * blocks[a] * warps / ARCHS[a].threads:.0f} %"))))
    return table(("kernel", "threads", "static shared, B", "dynamic shared, B", "registers",
                  "blocks", "warps", "occupancy"), rows)


def norm_table(cell):
    return table(("kernel", *(f"C {w:,}" for w in WIDTHS.values())), [
        (f"`{name}`, {A}, {said}", *(cell(f"{name}<{A}, {', '.join(k)}, {flag}>") for k in WIDTHS))
        for name, branch in (("norm_rows", "with a branch"), ("norm_rows_backward", "with a bias"))
        for A in ("bf16", "float") for flag, said in (("true", branch), ("false", "without"))])


def norm_blocks_table(found):
    """The same for both types and forms."""
    return table(("kernel", "", *(f"C {w:,}" for w in WIDTHS.values())), [
        (f"`{name}`", said, *(f"{f(f'{name}<bf16, {k[0]}, {k[1]}, true>'):,}" for k in WIDTHS))
        for name in ("norm_rows", "norm_rows_backward")
        for said, f in (("threads", threads), ("static shared, B", lambda i: found[i][90].shared))])


def attention_table(cell):
    return table(("kernel", "form", *(f"D {d}" for d in DIMS)), [
        (kernel, said, *(cell(f"attention_{kernel}<{d}, {form}>") for d in DIMS))
        for kernel in ("forward_queries", "backward_queries", "backward_keys")
        for form, said in FORMS.items() if said != "formed" or kernel == "forward_queries"])


def shared_table():
    return table(("kernel", *(f"D {d}" for d in DIMS)), [
        (said, *(f"{dynamic_shared(f'attention_{kernel}<{d}, {flag}>') / 1024:.1f}"
                 for d in DIMS))
        for said, kernel, flag in (
            ("forward_queries", "forward_queries", "table, both"),
            ("backward_queries", "backward_queries", "table, both"),
            ("backward_queries with a formula", "backward_queries", "difference, rows"),
            ("backward_queries with fire", "backward_queries", "fire, rows"),
            ("backward_keys", "backward_keys", "none, none"),
            ("backward_keys with a table", "backward_keys", "table, both"),
            ("backward_keys with fire", "backward_keys", "fire, rows"))])


def any_table(found):
    rows = []
    for said, kernel, form, more in (
            ("searched_queries", "searched_queries", ", AnyForm", ""),
            ("searched_queries, formed", "searched_queries", ", AnyFormed", ""),
            ("backward_queries", "backward_queries", ", AnyForm", ""),
            ("backward_queries with fire", "backward_queries", ", AnyForm", ", fire"),
            ("backward_queries, formed", "backward_queries", ", AnyFormed", ""),
            ("backward_keys", "backward_keys", ", AnyForm", ""),
            ("backward_keys_sticks", "backward_keys_sticks", "", "")):
        uses = [found[f"attention_{kernel}<{d}{form}>"] for d in DIMS]
        asked = [f"attention_{kernel}<{d}{form}{more}>" for d in DIMS]
        rows += [(said, "registers", *(f"{u[80].registers} / {u[90].registers}" for u in uses)),
                 (said, "dynamic shared, KiB", *(f"{dynamic_shared(i) / 1024:.1f}" for i in asked)),
                 (said, "blocks", *(" / ".join(str(resident(i, u[a], a)) for a in (80, 86, 90))
                                    for i, u in zip(asked, uses)))]
    return table(("kernel", "", *(f"D {d}" for d in DIMS)), rows)


def resource_rows(found, label, instances):
    uses = [found[i] for i in instances]
    return [(f"`{label}`", "registers", *(f"{u[80].registers} / {u[90].registers}" for u in uses)),
            (f"`{label}`", "dynamic shared, KiB",
             *(f"{dynamic_shared(i) / 1024:.1f}" for i in instances)),
            (f"`{label}`", "blocks", *(" / ".join(str(resident(i, u[a], a)) for a in (80, 86, 90))
                                       for i, u in zip(instances, uses)))]


def formed_table(found):
    return table(("kernel", "", *(f"D {d}" for d in DIMS)), [
        row for name in FORMED_TILES
        for row in resource_rows(found, name, [f"{name}<{d}>" for d in DIMS])])


def mix_table(found):
    shapes = [(heads, hidden) for heads in (1, 2) for hidden in (2, 4)]
    return table(("kernel", "", *(f"{16 * m} heads, {16 * n} units" for m, n in shapes)), [
        row for name in ("mix_distances", "mix_distances_gradients", "mix_tiles",
                         "mix_tiles_gradients")
        for row in resource_rows(found, name, [f"{name}<{m}, {n}>" for m, n in shapes])])


def report(found, s, version):
    ops = operations(s)
    spilled = [f"`{i}`, sm_{code}: {u.spilled}" for i, use in found.items()
               for code, u in use.items() if u.spilled]
    spills = "Bytes spilled: " + "; ".join(spilled) if spilled else "Nothing spills on any of these"
    compiled = paragraph(f"""{len({split(i)[0] for i in found})} kernels in {len(found)} instances,
        for sm_80, 86 and 90; sm_89 runs the machine code of sm_86. {spills}.""")
    shapes = paragraph(f"""`configs/bam-120m.json` on one GPU: B {s.B}, T {s.T}, width {s.C},
        {s.H} heads of {s.D}, hidden {s.F:,}, vocabulary {s.V:,}, {s.L} layers, {s.n:,}
        parameters; bf16 activations, fp32 masters; {s.micro} micro-batches of {s.B} in {s.lanes}
        lanes a step. One document a sequence: with more, the pairs of ours and of the least fall. A
        micro-batch is taken to have {s.V // 4:,} different tokens.""")
    vendor = paragraph(f"""- us: a lower bound, the larger of bytes from memory at 4.8 TB/s and
        flops at 989 TFLOP/s, the vendor's figures for an H200, as are {SMS} multiprocessors and
        {L2 / 1e6:.0f} MB of L2 below; not measured. What a step takes, cost-model.md models.""")

    def blocks(instance, arch):
        return resident(instance, found[instance][ARCHS[arch].code], arch)

    def registers_cell(i):
        return " / ".join(str(found[i][a].registers) for a in (80, 90))

    def blocks_cell(i):
        return " / ".join(str(blocks(i, a)) for a in (80, 86, 90))

    return f"""\
# Kernels: registers, shared memory, occupancy, bytes, flops

`scripts/kernel_table.py`, nvcc {version}. Registers and spills are the compiler's, the rest is
computed. Nothing was measured on a GPU.

{compiled}

Blocks on a multiprocessor follow from its 65,536 registers, given to warps in units of 256; 164,
100, 100 and 228 KiB of shared memory, 1 KiB of it the system's for each block; 2,048, 1,536, 1,536
and 2,048 threads; 32, 16, 24 and 32 blocks (sm_80, 86, 89, 90). Occupancy is warps over the most
there can be, 64 on sm_80 and sm_90: a block of 128 threads is 6.25 %.

## All but norm and attention, sm_80 / sm_90

`add_pieces<bf16>` at a width of 768; `cross_entropy_row` with a gradient and more than 16,384
logits (without a gradient it takes no dynamic shared memory).

{single_table(found)}
## Norm

Registers, sm_80 / sm_90:

{norm_table(registers_cell)}
Threads and static shared memory, the same for every type and form; dynamic: none.

{norm_blocks_table(found)}
Blocks on a multiprocessor, sm_80 / sm_86 / sm_90:

{norm_table(blocks_cell)}
## Attention, softmax

Registers, sm_80 / sm_90:

{attention_table(registers_cell)}
128 threads a block. Static shared memory: none. Dynamic, KiB, within the 99 KiB of a block on sm_86
and sm_89:

{shared_table()}
Blocks on a multiprocessor, sm_80 / sm_86 / sm_90; sm_89 as sm_86:

{attention_table(blocks_cell)}
## Attention, every normalizer

Any bias, scale and normalizer, chosen at run time, by a set of kernels for each head dimension;
backward_keys_sticks is of stick-breaking, in place of backward_keys. 128 threads a block. Static shared memory: none.
Registers: sm_80 / sm_90. Blocks on a multiprocessor: sm_80 / sm_86 / sm_90; sm_89 as sm_86.

{any_table(found)}
## Biases that read queries and keys

Transformer-XL's (relative), CoPE's (contextual), and DAPE's mixes of heads, by distance or by
query, each kernel for at most so many heads and hidden units. 128 threads a block; static shared
memory: none. Above, `mix_rows` is of {MIXED_HEADS} heads and {MIX_HIDDEN} units, `contextual_rows`
of {POSITIONS} positions. Registers: sm_80 / sm_90. Blocks: sm_80 / sm_86 / sm_90; sm_89 as sm_86.

{formed_table(found)}
{mix_table(found)}
## Bytes and flops

{shapes}

- For one call, or all {s.chunks} chunks of a micro-batch where the head or the loss is concerned.
- ours, memory: what has to travel to or from memory. ours, caches: what kernels read or write again
  so soon or so often that L1 or L2 normally serves it.
- least: inputs once, outputs once, causal pairs only. ratio: ours, both, over it.
- GFLOP: of matrix products. Those of cuBLASLt count each operand once, whatever it reads again.
{vendor}
- calls "none": not in this configuration. geglu moves what swiglu does, gelu one input, not two.

{operation_table(ops)}
Beyond the least, MB a call:

{reasons(ops)}
## Where more than the least is moved or computed

Computed from the table, not measured.

{findings(s, ops, blocks, dynamic_shared)}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/kernels.md")
    args = parser.parse_args()
    if shutil.which(args.nvcc) is None:
        sys.exit(f"kernel_table: no {args.nvcc}: put the CUDA toolkit's bin folder on PATH")
    said = subprocess.run([args.nvcc, "--version"], text=True, capture_output=True,
                          check=True).stdout
    with tempfile.TemporaryDirectory() as own:
        logs = args.logs or pathlib.Path(own)
        logs.mkdir(parents=True, exist_ok=True)
        found = resources(args.nvcc, logs)
    defined, compiled = kernel_names(), {split(i)[0] for i in found}
    differ = (defined ^ compiled) | (defined ^ set(KERNEL_THREADS))
    if differ:
        sys.exit(f"kernel_table: not both in kernels/, in its objects and in THREADS: {differ}")
    args.output.write_text(report(found, Shapes(), re.search(r"release ([\d.]+)", said)[1]))


if __name__ == "__main__":
    main()
