#!/usr/bin/env python3
"""Measures training on this CPU and tabulates it beside the rates that the same runs found.

  scripts/bench_cpu.py [--build DIR] [--before DIR] [--native DIR] [--runs 3] [--only SECTION ...]
                       [--tokenizer FILE --text FILE] [--seconds 15]

Tables go to bench/results/cpu-SECTION.md, each with the machine, the commit and every command line.
--before, the build folder of an older commit: targets, processes and tokenizer run its programs and
this build's in turn and show both. isa needs --native, the folder of a build with -Dnative=true;
precision the shards of docs/compare.md in out/compare-wikitext2; tokenizer --tokenizer and --text (its peer is
spm_encode, from Debian's package sentencepiece); threads runs each of its cases for --seconds, with
an idle machine and beside busy processes of its own. The builds are brought up to date, and the
sources have to be committed, unless --dirty. Leave the machine alone meanwhile.
"""

import argparse
import datetime
import os
import pathlib
import platform
import shlex
import sys

from cpu_bench.programs import ROOT, Bench, Failed, Record, commit_of
from cpu_bench.overlap import overlap
from cpu_bench.steps import growth, isa, profile
from cpu_bench.targets import targets
from cpu_bench.waiting import threads
from cpu_bench.whole import precision, processes, start, tokenizer

ONE = "One run of each command."
SECTIONS = {f.__name__: f for f in (targets, profile, growth, isa, start, processes, overlap,
                                    threads, tokenizer, precision)}
SINGLE = ("growth", "precision")  # one run of each command, whatever --runs says
WITH_BEFORE = ("targets", "processes", "tokenizer")
TITLES = {"profile": "where a step's time goes", "isa": "instruction set chosen at run time",
          "threads": "how threads wait", "overlap": "sums of gradients that are hidden"}


def machine():
    """The processor as /proc/cpuinfo has it, and the number of cores."""
    found = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    name = found.get("model name") or platform.processor() or "unknown processor"
    numbers = ", ".join(f"{key} {found[field]}" for key, field in (
        ("family", "cpu family"), ("model", "model"), ("stepping", "stepping")) if field in found)
    return f"{name} ({numbers or platform.machine()}), {os.cpu_count()} cores"


def own_command(args, name):
    """The command line of one section, with names in place of paths outside this folder."""
    def path(value, stands_for):
        value = value.resolve()
        return str(value.relative_to(ROOT)) if value.is_relative_to(ROOT) else stands_for

    words = ["--build", path(args.build, "BUILD")]
    if args.before and name in WITH_BEFORE:
        words += ["--before", path(args.before, "BEFORE")]
    if args.native and name == "isa":
        words += ["--native", path(args.native, "NATIVE")]
    if name not in SINGLE:
        words += ["--runs", str(args.runs)]
    words += ["--only", name]
    if name == "tokenizer":
        words += ["--tokenizer", args.tokenizer.name, "--text", args.text.name]
    if name == "threads":
        words += ["--seconds", str(args.seconds)]
    if args.dirty:
        words.append("--dirty")
    threads = os.environ.get("OMP_NUM_THREADS")
    return (f"OMP_NUM_THREADS={threads} " if threads else "") + shlex.join(
        ["scripts/bench_cpu.py", *words])


def repeated(name, bench):
    if name in SINGLE or bench.runs == 1:
        return ONE
    both = ", both builds in turn" if bench.before and name in WITH_BEFORE else ""
    return f"{bench.runs} rounds{both}; where a range is given: median and range."


def report(name, bench, text, library):
    commits = [f"commit {bench.now.commit}"]
    if bench.before and name in WITH_BEFORE:
        commits.append(f"before: commit {bench.before.commit}")
    if bench.native and name == "isa":
        commits.append(f"native: commit {bench.native.commit}")
    return f"""# CPU: {TITLES.get(name, name)}

{machine()}; {library}; {'; '.join(commits)}; {datetime.date.today()}.

{" ".join(SECTIONS[name].__doc__.split())} {repeated(name, bench)}

{text}

`{own_command(bench.args, name)}`, which ran, in the source folder of each build:

{bench.record.text()}
"""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}: one or more")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--before", type=pathlib.Path, help="build folder of an older commit")
    parser.add_argument("--native", type=pathlib.Path, help="build folder with -Dnative=true")
    parser.add_argument("--runs", type=positive, default=3)
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION",
                        default=["targets", "growth"], help=", ".join(SECTIONS))
    parser.add_argument("--tokenizer", type=pathlib.Path, help="tokenizer of section tokenizer")
    parser.add_argument("--text", type=pathlib.Path, help="text of section tokenizer")
    parser.add_argument("--seconds", type=positive, default=15,
                        help="of each measurement of section threads")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results",
                        help="where the reports go")
    parser.add_argument("--dirty", action="store_true",
                        help="measure uncommitted sources, and builds as they are")
    args = parser.parse_args()
    if not args.dirty:
        refuse_unknown_state(Bench(args, Record()))
    args.output.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in args.only:
        bench = Bench(args, Record())
        try:
            library = Bench(args, Record()).now.run(["bench/step", "--version"]).strip()
            text = SECTIONS[name](bench)
        except Failed as reason:
            print(f"bench_cpu.py: {name}: {reason}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        path = args.output / f"cpu-{name}.md"
        path.write_text(report(name, bench, text, library))
        print(f"written: {path}", flush=True)
    if failed:
        sys.exit(f"bench_cpu.py: not measured: {', '.join(failed)}")


def refuse_unknown_state(bench):
    """Ends the script where a result could not be repeated from the commits it names."""
    if commit_of(ROOT).endswith("-dirty"):
        sys.exit(f"bench_cpu.py: {ROOT} differs from its commit: commit the changes, or measure with "
                 "--dirty")
    for build in (bench.now, bench.before, bench.native):
        if not build:
            continue
        if build.commit.endswith("-dirty"):
            sys.exit(f"bench_cpu.py: {build.source} differs from its commit {build.commit}: commit the "
                     "changes, or measure them with --dirty")
        build.bring_up_to_date()


if __name__ == "__main__":
    main()
