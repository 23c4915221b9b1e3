#!/usr/bin/env python3
"""Faults planted in the compiled kernels: do the GPU tests notice them?

    mutants.py PROGRAM [--count 60] [--seed 1] [--jobs 1] [--only N] [--out FILE]

PROGRAM is tests/cuda/test_cuda_gpu linked against a machine that executes PTX on the CPU and takes
another PTX for a module's (VGPU_REPLACE_PTX), with the environment that it needs. Statements are
drawn from those that the tests execute, one module after another: first what to change, then
where, each with the same probability, so that rare kinds of statements come as often as common
ones. A mutant is caught where one of the tests that execute the statement fails, faults or does not
end, in the order of the calls or in another one with the rounding of tensor cores. The table goes to
FILE; the exit code is 1 where one survived. --only runs one of the drawn again.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

EDGES = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq",
         "ltu": "leu", "leu": "ltu", "gtu": "geu", "geu": "gtu"}
ORDERS = ({"VGPU_SEED": "0"}, {"VGPU_SEED": "7", "VGPU_MMA": "90"})
SECONDS = 300  # of a test case; ten times what the longest takes where nothing is wrong


def edge(text):
    return re.sub(r"(setp\.)(\w+)(\.)", lambda m: m[1] + EDGES[m[2]] + m[3], text, count=1)


def neighbour(text):
    """The element next to the one that is read or written."""
    m = re.search(r"\.(?:v(\d)\.)?[bfsu](\d+)\s.*?\[(%\w+)(?:\+(-?\d+))?\]", text)
    width = int(m[1] or 1) * int(m[2]) // 8
    return text[:m.start(3)] + f"{m[3]}+{int(m[4] or 0) + width}" + text[text.index("]", m.start(3)):]


def lane(text):
    """Another lane, by the other neighbour of the power of two."""
    m = re.search(r"(shfl\.sync\.\w+\.b32\s+[^,]+,\s*[^,]+,\s*)(\d+)(,)", text)
    return text[:m.start()] + m[1] + str({16: 8}.get(int(m[2]), 2 * int(m[2]))) + m[3] + text[m.end():]


def off_by_one(text):
    m = re.search(r"(-?\d+)(;\s*)$", text)
    return text[:m.start()] + str(int(m[1]) + 1) + m[2]


def swapped(text):
    m = re.search(r"(selp\.\w+\s+[^,]+,\s*)([^,]+),\s*([^,]+)(,.*)$", text)
    return text[:m.start()] + m[1] + m[3] + ", " + m[2] + m[4]


def deleted(_):
    return ""


# What is changed: the statements it applies to, and how.
CHANGES = {
    "edge of a comparison": (r"^setp\.(lt|le|gt|ge|eq|ne|ltu|leu|gtu|geu)\.", edge),
    "barrier removed": (r"^bar(rier)?\.sync", deleted),
    "branch never taken": (r"^@!?%p\d+ bra ", deleted),
    "next element in global memory": (r"^(ld|st)\.global[\w.]*\s.*\[%", neighbour),
    "next element in shared memory": (r"^(ld|st)\.shared[\w.]*\s.*\[%", neighbour),
    "other lane": (r"^shfl\.sync\.\w+\.b32\s+[^,]+,\s*[^,]+,\s*(1|2|4|8|16),", lane),
    "subtracted, not added": (r"^add(\.rn)?\.f(32|64) ",
                              lambda t: t.replace("add.rn.", "sub.rn.").replace("add.f", "sub.f")),
    "smallest, not largest": (r"^max\.f(32|64) ", lambda t: t.replace("max.", "min.", 1)),
    "index off by one": (r"^(add\.s(32|64)|shl\.b32|mul\.lo\.s32) .*, -?\d+;", off_by_one),
    "choice the other way": (r"^selp\.", swapped),
    "copy not waited for": (r"^cp\.async\.wait_group ", deleted),
    "group of copies not ended": (r"^cp\.async\.commit_group", deleted),
    "result not stored": (r"^st\.(global|shared)\.", deleted),
}


def run_case(program, name, env):
    """One test case, to its first failure."""
    escaped = re.sub(r"([,\[\]\\*])", r"\\\1", name)
    return subprocess.run([program, escaped, "--abort"], env={**os.environ, **env}, text=True,
                          capture_output=True, timeout=SECONDS, errors="replace", check=False)


def test_cases(program):
    # Of Catch2 2, whose exit code is their number, and of Catch2 3.
    for options in ["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]:
        listed = subprocess.run([program, *options], text=True, capture_output=True, check=False)
        names = [line.strip() for line in listed.stdout.splitlines() if line.strip()]
        if names and listed.returncode in (0, len(names)):
            return names
    sys.exit(f"mutants.py: expected {program} to list its test cases, found exit code "
             f"{listed.returncode}: {listed.stderr.strip()[-300:]}")


def executed(program, folder):
    """By (module, line) of every statement that a test executes: its kernel, its text, and the test
    cases, those that take the least time first."""
    profile, found, seconds = folder / "profile", {}, {}
    for name in test_cases(program):
        start = time.monotonic()
        run = run_case(program, name, {"VGPU_PROFILE": "1", "VGPU_PROFILE_QUIET": "1",
                                       "VGPU_PROFILE_OUT": str(profile), "VGPU_DUMP_PTX": str(folder)})
        seconds[name] = time.monotonic() - start
        again = run_case(program, name, ORDERS[1])
        if run.returncode != 0 or again.returncode != 0 or not profile.exists():
            sys.exit(f"mutants.py: expected \"{name}\" to pass in both orders and to write a profile, "
                     f"found exit codes {run.returncode}, {again.returncode}: "
                     f"{run.stderr.strip()[-300:]}; see the virtual GPU's README")
        for row in profile.read_text().splitlines():
            module, kernel, _, line, _, _, warps, *_, text = row.split("\t")
            if int(warps) > 0:
                found.setdefault((int(module), int(line)), (kernel, text, []))[2].append(name)
        profile.unlink()
    for _, _, cases in found.values():
        cases.sort(key=seconds.get)
    return found


def draw(statements, count, seed):
    """`count` mutants as (module, line, change), from `seed` alone where the PTX is equal."""
    sites = {}
    for (module, line), (_, text, _) in sorted(statements.items()):
        for change, (pattern, _) in CHANGES.items():
            if re.search(pattern, text + ";"):
                sites.setdefault(module, {}).setdefault(change, []).append(line)
    most = len({(module, line) for module, of in sites.items() for lines in of.values()
                for line in lines})
    if count > most // 2:
        sys.exit(f"mutants.py: --count: expected at most {most // 2}, half of the statements that can be "
                 f"changed, found {count}")
    rng, drawn = random.Random(seed), {}
    while len(drawn) < count:
        for module in sorted(sites):
            change = rng.choice(sorted(sites[module]))
            line = rng.choice(sites[module][change])
            drawn.setdefault((module, line), (module, line, change))
    return list(drawn.values())[:count]


def plain_name(kernel):
    name = subprocess.run(["c++filt", kernel], capture_output=True, text=True, check=True).stdout
    name = re.sub(r"\(anonymous namespace\)::|bamtrain::|kernels::|device::|^void ", "", name.strip())
    name = re.sub(r"^void ", "", name)
    return re.split(r"\((?![A-Za-z]+\)\d)", name)[0]


def run_mutant(program, folder, mutant, cases, number):
    """(statement before, after, who noticed it or None)."""
    module, line, change = mutant
    text = (folder / f"module{module}.ptx").read_text().split("\n")
    before = text[line - 1].strip()
    after = CHANGES[change][1](before)
    if after == before:
        sys.exit(f"mutants.py: expected \"{change}\" to change a statement, found it as it was: {before}")
    text[line - 1] = after
    file = folder / f"mutant{number}.ptx"
    file.write_text("\n".join(text))
    noticed = None
    for order in ORDERS:
        for case in cases:
            try:
                run = run_case(program, case, {**order, "VGPU_REPLACE_PTX": f"{module}={file}"})
                how = reason(run) if run.returncode != 0 else None
            except subprocess.TimeoutExpired:
                how = "it does not end"
            if how:
                noticed = f"{case}: {how}" + (", in the second order" if order is ORDERS[1] else "")
                break
        if noticed:
            break
    file.unlink()
    return before.rstrip(";"), after.rstrip(";"), noticed


def reason(run):
    """How a run that failed did; a mutant that is no PTX, or a run that failed otherwise, is an error."""
    output = run.stdout + run.stderr
    taken = "the module of" not in output and "does not have" not in output
    if taken and ("FAULT (" in output or "OVERRUN" in output):
        return "a fault"
    if taken and "assertions:" in output:
        return "other numbers"
    raise RuntimeError(f"expected a test that fails, found exit code {run.returncode}: "
                       f"{output.strip()[-300:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--out", type=pathlib.Path)
    o = parser.parse_args()
    if o.count < 1 or o.jobs < 1 or not (o.only is None or 0 <= o.only < o.count):
        parser.error("expected --count and --jobs of 1 or more, and --only below --count")
    if not os.access(o.program, os.X_OK):
        parser.error(f"expected a program, found {o.program}")
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        statements = executed(o.program, folder)
        mutants = list(enumerate(draw(statements, o.count, o.seed)))
        if o.only is not None:
            mutants = [m for m in mutants if m[0] == o.only]
        rows = ["| # | kernel | fault | statement | noticed by |", "|---|---|---|---|---|"]
        print(*rows, sep="\n", flush=True)
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            jobs = [pool.submit(run_mutant, o.program, folder, m, statements[m[:2]][2], n)
                    for n, m in mutants]
            for (n, (module, line, change)), job in zip(mutants, jobs):
                before, _, noticed = job.result()
                survived += noticed is None
                rows.append(f"| {n} | {plain_name(statements[module, line][0])} | {change} | line {line}: `{before}` | "
                            f"{noticed or '**nobody**'} |")
                print(rows[-1], flush=True)
        closing = f"{len(mutants) - survived} of {len(mutants)} caught"
        print(closing)
        if o.out:
            o.out.write_text("\n".join([*rows, "", closing]) + "\n")
    sys.exit(survived > 0)


if __name__ == "__main__":
    main()
