"""What the machine code of a kernel asks of a multiprocessor, from PTX that was profiled.

A profile of the virtual GPU (VGPU_PROFILE_OUT) says how often each line of PTX ran, with bank
conflicts and sectors; VGPU_DUMP_PTX leaves the PTX itself. ptxas makes sm_90's machine code of that
PTX, nvdisasm says which line each instruction comes from, and so how often each instruction ran:
an instruction ran as often as its basic block, and a block as often as the median of its
instructions' lines. The median, since the compiler moves some out of loops and predicates others.

Instructions that PTX and machine code have alike (products, ldmatrix, shuffles) are counted both
ways; `agreement` is their ratio: where it is not near 1 the blocks were read wrongly. Part of
kernel_model.py.
"""

import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import statistics
import struct
import subprocess
import sys
import sysconfig
import tempfile

from cpu_bench.programs import commit_of
from kernel_costs import ROOT
from kernel_table import Use, short

ARCH = 90

# Of a launch of the profile, their mean where there are several: warps; warp instructions, of them
# products of 16 x 8 x 16 and those of the special function unit; clocks of shared memory and L1,
# those of bank conflicts among them; sectors of 32 bytes that go to L1; instructions of PTX.
Counts = collections.namedtuple("Counts", "name use launches warps issue mma special clocks "
                                          "conflicts sectors ptx agreement")
Line = collections.namedtuple("Line", "launches executed phases ways requests sectors text")

INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
ENDS = ("BRA", "BRX", "EXIT", "RET", "CALL")  # of a basic block
SPECIAL = ("MUFU", "F2F", "F2I", "I2F", "FRND")  # 16 lanes a clock; F2FP, a pack, is not one
BOTH = {"HMMA": r"mma\.", "LDSM": r"ldmatrix", "SHFL": r"shfl\.", "MUFU.EX2": r"ex2\."}


def program(name, given):
    """The path of ptxas or nvdisasm: given, on PATH, or nvdisasm in its package."""
    package = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia/cu13/bin" / name
    path = given or shutil.which(name) or (str(package) if package.exists() else None)
    if path is None or shutil.which(path) is None:
        sys.exit(f"kernel_model: no {path or name}: " + (
            "pip install nvidia-cuda-nvdisasm" if name == "nvdisasm" else
            "put the CUDA toolkit's bin folder on PATH"))
    return path


def count_options(description, report):
    """The parser of a script that counts and writes bench/results/`report`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-vgpu")
    parser.add_argument("--ptxas", help="default: that on PATH")
    parser.add_argument("--nvdisasm", help="default: that on PATH or in Python's packages")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results" / report)
    parser.add_argument("--dirty", action="store_true", help="count uncommitted sources")
    return parser


def counted_sources(args):
    """The commit that is counted, (ptxas, nvdisasm); exits if there are uncommitted changes."""
    commit = commit_of(ROOT)
    if commit.endswith("-dirty") and not args.dirty:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: expected committed sources, found changes; commit "
                 "them, or count with --dirty")
    return commit, (program("ptxas", args.ptxas), program("nvdisasm", args.nvdisasm))


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kernel_model: {' '.join(command)}\n{done.stderr}")
    return done


def write_shard(path, vocab):
    tokens, rng = 100000, random.Random(1)
    with path.open("wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253))
        f.write(struct.pack(f"<{tokens}H", *(rng.randrange(vocab) for _ in range(tokens))))


def profile(build, config, s, folder, layers=1, sequences=1):
    """Leaves in the folder profile.txt and the PTX of a step of so many layers and sequences. `s`:
    with T and V, the tokens of a sequence and the vocabulary."""
    binary = build / "src/bamtrain.vgpu"
    if not binary.exists():
        sys.exit(f"kernel_model: no {binary}: ../shared/virtual_gpu/build.sh {build} makes it")
    done = folder / "profile.txt"
    if done.exists() and done.stat().st_mtime > binary.stat().st_mtime:
        return
    folder.mkdir(parents=True, exist_ok=True)
    done.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as work:
        write_shard(pathlib.Path(work) / "train.bin", s.V)
        settings = {"device": "cuda", "out_dir": f"{work}/out", "data.train": work, "data.val": "",
                    "data.document_start": 1, "eval.every": 0, "eval.tokens": 0, "eval.lengths": [],
                    "checkpoint.every": 0, "checkpoint.keep_every": 0, "model.layers": layers,
                    "train.micro_batch": sequences, "train.tokens_per_step": sequences * s.T,
                    "train.steps": 1, "schedule.warmup_steps": 0}
        command = [str(binary), "--config", str(ROOT / f"configs/{config}.json")]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        partial = folder / "partial.txt"
        partial.unlink(missing_ok=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=str(build / "virtual_gpu/lib"),
                           VGPU_PROFILE="1", VGPU_PROFILE_OUT=str(partial),
                           VGPU_DUMP_PTX=str(folder))
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0 or not partial.exists():
            sys.exit(f"kernel_model: {' '.join(command)}\n{run.stderr}")
        partial.rename(done)


def lines_of(profile):
    """{module: {kernel: {line of PTX: Line}}} of the file that VGPU_PROFILE_OUT wrote."""
    found = {}
    for number, row in enumerate(profile.read_text().splitlines(), 1):
        f = row.split("\t")
        if len(f) != 14:
            sys.exit(f"kernel_model: {profile}:{number}: {len(f)} columns, not 14: not what "
                     "VGPU_PROFILE_OUT writes")
        kernel = found.setdefault(int(f[0]), {}).setdefault(f[1], {})
        line = Line(*(int(f[k]) for k in (5, 6, 8, 9, 10, 11)), f[13])
        old = kernel.get(int(f[3]))  # two instructions of a line: as often, their accesses together
        kernel[int(f[3])] = line if old is None else old._replace(
            **{k: getattr(old, k) + getattr(line, k)
               for k in ("phases", "ways", "requests", "sectors")})
    return found


def blocks_of(sass):
    """[[(opcode, line)]]: the basic blocks of a function as nvdisasm -gp prints it, without those
    of divisions and roots of subnormal numbers: a block that ends in the call of a slow path, what
    follows it up to the next label, and the slow paths themselves, which stand last."""
    blocks, line, slow = [[]], None, False
    for row in sass.splitlines():
        if found := re.search(r'//## File "\.nv_debug_ptx_txt", line (\d+)', row):
            line = int(found[1])
        elif re.match(r"\$\S*slowpath:", row):
            break
        elif re.match(r"\s*\.L_x_\d+:", row):
            blocks.append([])
            slow = False
        elif (found := INSTRUCTION.match(row)) and not slow:
            blocks[-1].append((found[1], line))
            if "slowpath" in row:
                slow, blocks[-1] = True, []
            elif found[1].split(".")[0] in ENDS:
                blocks.append([])
    return [b for b in blocks if b]


def times_of(block, lines):
    """How often a basic block ran, in warps. One of no line that was profiled never did."""
    ran = [lines[line].executed for _, line in block if line in lines]
    return statistics.median_low(ran) if ran else 0


def executed(blocks, lines):
    """{opcode: warp instructions}."""
    counts = collections.Counter()
    for block in blocks:
        times = times_of(block, lines)
        for opcode, _ in block:
            counts[opcode] += times
    return counts


def matching(counts, opcode):
    return sum(n for o, n in counts.items() if o == opcode or o.startswith(opcode + "."))


def agreement(counts, lines):
    """Machine code over PTX, for each of BOTH that the kernel has; the one furthest from 1. ptxas
    drops a few that compute nothing new: up to a hundredth of all instructions does not count."""
    ratios = [1.0]
    for opcode, pattern in BOTH.items():
        ptx = sum(l.executed for l in lines.values() if re.match(r"(@\S+ )?" + pattern, l.text))
        if ptx and abs(matching(counts, opcode) - ptx) > counts.total() / 100:
            ratios.append(matching(counts, opcode) / ptx)
    return max(ratios, key=lambda r: abs(r - 1))


def functions(sass):
    """{kernel: its part of nvdisasm's output}."""
    parts = re.split(r"^\.text\.(\w+):$", sass, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def uses(log):
    """{kernel: Use} of what ptxas -v says."""
    found = {}
    for entry in log.split("Compiling entry function ")[1:]:
        shared = re.search(r"(\d+) bytes smem", entry)
        found[re.match(r"'(\S+)'", entry)[1]] = Use(
            int(re.search(r"Used (\d+) registers", entry)[1]),
            sum(map(int, re.findall(r"(\d+) bytes spill", entry))), int(shared[1]) if shared else 0)
    return found


def counts_of(name, use, sass, lines):
    """Shared memory serves 128 bytes a clock, as does L1: four sectors."""
    first = next(iter(lines.values()))  # of the first instruction: every warp runs it
    counts = executed(blocks_of(sass), lines)
    sums = (first.executed, counts.total(), matching(counts, "HMMA.16816"),
            sum(matching(counts, o) for o in SPECIAL),
            sum(l.ways + max(l.requests, l.sectors / 4) for l in lines.values()),
            sum(l.ways - l.phases for l in lines.values()),
            sum(l.sectors for l in lines.values()),
            sum(l.executed for l in lines.values()))
    return Counts(name, use, first.launches, *(x / first.launches for x in sums),
                  agreement(counts, lines))


def kernels_of(folder, ptxas, nvdisasm):
    """{instance: Counts} of the kernels that ran, from a profile (profile.txt) and its PTX."""
    found = {}
    for module, kernels in lines_of(folder / "profile.txt").items():
        ptx, cubin = folder / f"module{module}.ptx", folder / f"module{module}.cubin"
        log = run([ptxas, f"-arch=sm_{ARCH}", "-lineinfo", "-v", str(ptx), "-o", str(cubin)]).stderr
        code = functions(run([nvdisasm, "-gp", "-c", "-ndf", str(cubin)]).stdout)
        use = uses(log)
        names = run(["c++filt", *kernels]).stdout.splitlines()
        for (mangled, lines), name in zip(kernels.items(), names):
            if mangled not in code:
                sys.exit(f"kernel_model: {cubin}: no code of {mangled}, which {ptx} has")
            found[short(name)] = counts_of(short(name), use[mangled], code[mangled], lines)
    return found
