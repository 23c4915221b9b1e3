#!/usr/bin/env python3
"""Measures what each prior costs on this CPU: time of attention and of a step, memory of a step.

  scripts/bench_priors.py [--build DIR] [--runs 5] [--length 2048] [--head-dims 64 48]
                          [--precisions fp32 bf16] [--memory 4096 16384] [--before DIR]

Attention runs without a bias and in the form that a prior takes, and with a table beside DAPE over
one, in turn, and so do steps of DAPE's 125M models; the tables hold the medians and the median of
the pairs' ratios with its range. --before, the build folder of an older
commit, runs its attention in turn with them and adds the speed of both over its own. Memory is the
largest resident set of bench/step with one sequence at two lengths, for every prior that the program
has.

Results are kept in out/bench_priors.json as they come, with the machine, the commit and oneDNN's
version, and a second call measures only what is missing; --restart forgets them. The report goes to
bench/results/priors.md. The build has to be up to date and its sources committed, unless --dirty.
Leave the machine alone meanwhile.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import shlex
import sys

from bench_cpu import machine, positive
from cpu_bench.programs import ROOT, Build, Failed, Record, capture, commit_of
from cpu_bench.tables import cell, number, ratios, table
from program_schema import mechanism_names

# The forms of bench/attention, and the priors whose bias attention reads in that form.
FORMS = {"table": "all of distance alone", "difference": "cable", "log_square": "kcable",
         "fire": "fire", "relative": "transformer_xl", "contextual": "cope"}
# (priors, name, form of the other, own words): each beside the other.
PAIRS = [(priors, form, "none", ["--form", form]) for form, priors in FORMS.items()]
PAIRS.append(("dape over distance alone, 32 hidden units", "mix", "table",
              ["--form", "table", "--mix", "32"]))
STEPS = ("configs/dape-kerple-125m.json", "configs/dape-dape-kerple-125m.json")
STEP_MS = r"^step +([\d.]+) ms"
DAPE = "dape over kerple"
BOTH_MS = r"^both +([\d.]+) ms"
RESIDENT = r"([\d.]+) MiB largest resident set"
SMALL = ["width=128", "layers=2", "heads=2", "mlp.hidden=256", "vocab=512"]


class Kept:
    """Results by what they are of and their command line, in a file that is written after each."""

    def __init__(self, path, build, before, about, restart):
        self.path, self.build, self.before, self.about = path, build, before, about
        self.results, self.notes = {}, []
        if path.exists() and not restart:
            kept = json.loads(path.read_text())
            if kept["about"] != about:
                sys.exit(f"bench_priors.py: {path} holds results of {kept['about']}, this is {about}: "
                         "measure that build again, or forget them with --restart")
            self.results = kept["results"]

    def measured(self, what, words, pattern, count=1, build=None):
        """The first `count` results; the command is run as often as they are missing."""
        build = build or self.build
        line = f"{'BEFORE' if build is self.before else 'BUILD'}/{shlex.join(words)}"
        values = self.results.setdefault(what, {}).setdefault(line, [])
        while len(values) < count:
            values.append(float(capture(build.run(words), pattern)))
            print(f"{what}: {line}: {values[-1]}", flush=True)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps({"about": self.about, "results": self.results}, indent=1))
            os.replace(new, self.path)
        return values[:count]

    def commands(self):
        counts = collections.Counter()
        for lines in self.results.values():
            for line, values in lines.items():
                counts[line] += len(values)
        return "\n".join(f"    {line}    # {n} x" for line, n in counts.items() if n)

    def failed(self, what, reason):
        print(f"bench_priors.py: {what}: {reason}", file=sys.stderr, flush=True)
        self.notes.append(f"{what}: {reason}")

    def take_notes(self):
        notes, self.notes = self.notes, []
        return "".join(f"\n\n`-` {note}" for note in notes)


def in_turn(kept, what, commands, pattern, runs):
    """The results of each of {(build, name): command line}, one after another, `runs` times; none
    where one failed."""
    found = {}
    try:
        for n in range(1, runs + 1):
            for key, words in commands.items():
                found[key] = kept.measured(what, words, pattern, n, key[0])
    except Failed as reason:
        kept.failed(what, reason)
        return dict.fromkeys(commands, [])
    return found


def times(kept, args):
    """A table per head dimension and precision."""
    parts = []
    for D in args.head_dims:
        for precision in args.precisions:
            rows = []
            for priors, name, other, words in PAIRS:
                what = f"{name} beside {other}, D {D}, {precision}"
                builds = [kept.build] + ([kept.before] if kept.before else [])
                forms = {other: ["--form", other], name: words}
                found = in_turn(kept, what, {(build, form): [
                    "bench/attention", "--length", str(args.length), "--head-dim", str(D),
                    "--precision", precision, *options] for form, options in forms.items()
                    for build in builds}, BOTH_MS, args.runs)
                of_other, own = (found[kept.build, form] for form in forms)
                rows.append([priors, name, other, cell(of_other, " ms"), cell(own, " ms"),
                             ratios(own, of_other), ratios(of_other, own)])
                if kept.before:
                    rows[-1] += [ratios(found[kept.before, form], found[kept.build, form])
                                 for form in forms]
            columns = ["priors", "form", "beside", "the other", "the form", "time over the other's",
                       "speed over the other's"]
            if kept.before:
                columns += ["the other: speed, now over before", "the form: speed, now over before"]
            parts.append(f"Head dimension {D}, {precision}:\n\n" + table(columns, rows)
                         + kept.take_notes())
    return "\n\n".join(parts)


def steps(kept, args):
    """A row per precision: a step of DAPE over kerple beside one of kerple."""
    rows = []
    for precision in args.precisions:
        found = in_turn(kept, f"125M, {precision}", {(kept.build, config): [
            "bench/step", "--config", config, "--precision", precision, "--batch", "4", "--length",
            "512", "--steps", "3"] for config in STEPS}, STEP_MS, args.runs)
        kerple, dape = found.values()
        rows.append([precision, cell(kerple, " ms"), cell(dape, " ms"), ratios(kerple, dape)])
    return table(["precision", "kerple", DAPE, "speed over kerple's"], rows) + kept.take_notes()


def small_step(T, change):
    """The command line of a step of one sequence of T tokens, of a small model with this change."""
    words = ["bench/step", "--config", "configs/compare-wikitext2.json", "--precision", "fp32",
             "--batch", "1", "--length", str(T), "--steps", "1"]
    for one in (change, *SMALL):
        words += ["--set", f"model.{one}"]
    return words


def memory(kept, args, names):
    """A row per prior: the largest resident set at two lengths, and what the longer one adds."""
    found = {}
    values = {DAPE: '{"name": "dape", "base": "kerple", "hidden": 32}'}
    for name in [*names, *values]:
        try:
            for T in args.memory:
                words = small_step(T, f"attention.prior={values.get(name, name)}")
                found.setdefault(name, []).extend(kept.measured("memory", words, RESIDENT))
        except Failed as reason:
            kept.failed(name, reason)
            found[name] = []
    rows = []
    for name, sizes in found.items():
        added = [sizes[1] - sizes[0]] if sizes else []
        rows.append([name, *([f"{number(x)} MiB" for x in sizes] or "--"), cell(added, " MiB")])
    return (table(["prior", *(f"T {T:,}" for T in args.memory), "added"], rows) + kept.take_notes())


def report(kept, args, names, library):
    threads, build = kept.about["threads"], args.build.resolve()
    folder = str(build.relative_to(ROOT)) if build.is_relative_to(ROOT) else "BUILD"
    before = f"; before: commit {kept.before.commit}" if kept.before else ""
    own = [] if threads == "all" else [f"OMP_NUM_THREADS={threads}"]
    own += ["scripts/bench_priors.py", "--build", folder, "--runs", str(args.runs),
            "--length", str(args.length), "--head-dims", *map(str, args.head_dims),
            "--precisions", *args.precisions, "--memory", *map(str, args.memory)]
    if kept.before:
        own += ["--before", "BEFORE"]
    if args.dirty:
        own.append("--dirty")
    pairs = 2 * 4 * args.memory[1] ** 2 / 2**20
    return f"""# CPU: what priors cost

{machine()}; {library}; commit {kept.about['commit']}{before}; {datetime.date.today()}.

Attention forward and backward, T {args.length}, 12 heads, without a bias and in the form that a prior
takes, or with a table and DAPE over it, in turn, {args.runs} times each: medians of the time and their
ranges, and the median and range of the pairs' ratios. Sums rise by log 2 a key, as those of cable and
kcable begin; cope's E is of normal numbers. rope, rope_local, sinusoidal and learned leave attention
as it is.

{times(kept, args)}

Steps of DAPE's 125M models, {" and ".join(f"`{config}`" for config in STEPS)}: 4 sequences of 512.

{steps(kept, args)}

Largest resident set of a training step, one sequence, a model of 2 layers of width 128 with 2 heads.
One fp32 number per head for every pair of tokens would take {number(pairs)} MiB at T {args.memory[1]:,}.

{memory(kept, args, names)}

`{shlex.join(own)}`, which ran, in the source folder of the build:

{kept.commands()}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--runs", type=positive, default=5, help="pairs of each form")
    parser.add_argument("--length", type=positive, default=2048)
    parser.add_argument("--head-dims", type=positive, nargs="+", default=[64, 48])
    parser.add_argument("--precisions", nargs="+", choices=["fp32", "bf16"],
                        default=["fp32", "bf16"])
    parser.add_argument("--memory", type=positive, nargs=2, default=[4096, 16384],
                        metavar=("SHORT", "LONG"), help="lengths of the training step")
    parser.add_argument("--before", type=pathlib.Path, help="build folder of an older commit")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "out/bench_priors.json",
                        help="what was measured so far")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/priors.md")
    parser.add_argument("--restart", action="store_true", help="forget what was measured so far")
    parser.add_argument("--dirty", action="store_true",
                        help="measure uncommitted sources, and builds that are not up to date")
    args = parser.parse_args()
    build = Build("", args.build, Record())
    before = Build("before", args.before, Record()) if args.before else None
    if not args.dirty:
        if commit_of(ROOT).endswith("-dirty") or build.commit.endswith("-dirty"):
            sys.exit("bench_priors.py: sources differ from their commit: commit the changes, or measure "
                     "with --dirty")
        for measured in filter(None, (build, before)):
            if stale := measured.stale():
                sys.exit(f"bench_priors.py: {', '.join(stale)} in {measured.folder}: older than the "
                         f"sources; build (ninja -C {measured.folder}), or measure as it is with --dirty")
    try:
        library = build.run(["bench/step", "--version"]).strip()
        about = {"commit": build.commit, "before": before and before.commit, "machine": machine(),
                 "library": library,
                 "threads": os.environ.get("OMP_NUM_THREADS", "all")}
        kept = Kept(args.results, build, before, about, args.restart)
        schema = build.run(["src/bamtrain", "--print-schema"])
        text = report(kept, args, mechanism_names(schema, "prior"), library)
    except Failed as reason:
        sys.exit(f"bench_priors.py: {reason}")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(text)
    print(f"written: {args.output}")


if __name__ == "__main__":
    main()
