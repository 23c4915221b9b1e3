"""Programs of a build, run one at a time, and the record of what was run."""

import collections
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("bench/step", "bench/attention", "bench/optimizer", "src/bamtrain", "data_tools/bamdata")
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Failed(Exception):
    """A program that ended with an error, or printed something else than was looked for."""


def call(words, **options):
    """The finished program. Failed where it cannot be started or ends with an error."""
    program = pathlib.Path(words[0]).name
    try:
        result = subprocess.run(words, text=True, capture_output=True, check=False, **options)
    except OSError as reason:
        raise Failed(f"{program} could not be started: {reason.strerror}") from reason
    if result.returncode != 0:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        raise Failed(f"{program} ended with {result.returncode}: {lines[-1] if lines else ''}")
    return result


def commit_of(source):
    """The short name of the commit checked out there; "-dirty" behind it where files differ from it
    or are not in it (bench/results, which the measurements themselves write, and what git ignores
    do not count)."""
    def git(*words):
        result = subprocess.run(["git", "-C", source, *words], text=True, capture_output=True,
                                check=False)
        if result.returncode != 0:
            sys.exit(f"bench_cpu.py: git {' '.join(words)} in {source}: {result.stderr.strip()}")
        return result.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=normal", "--", ":/",
                  ":(top,exclude)bench/results")
    return git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")


class Record:
    """The command lines of a section, in order, and how often each build ran them."""

    def __init__(self):
        self.counts = {}
        self.names = {}  # paths that are of this machine alone, and what stands for them

    def add(self, build, words, env):
        line = shlex.join([f"{key}={value}" for key, value in env.items()] + list(words))
        for path, name in self.names.items():
            line = line.replace(str(path), name)
        self.counts.setdefault(line, collections.Counter())[build] += 1

    def text(self):
        lines = []
        for line, counts in self.counts.items():
            by = ", ".join(f"{n} x {name}" if name else f"{n} x" for name, n in counts.items())
            lines.append(f"    {line}    # {by}")
        return "\n".join(lines)


class Build:
    """A build folder. Its commit is that of the source folder it was made from, where its programs
    run: with the configs of that commit."""

    def __init__(self, name, folder, record):
        self.name, self.folder, self.record = name, folder.resolve(), record
        info = self.folder / "meson-info/meson-info.json"
        if not info.is_file():
            sys.exit(f"bench_cpu.py: {folder} is no build folder of meson: no {info.name} in it")
        self.source = pathlib.Path(json.loads(info.read_text())["directories"]["source"])
        self.commit = commit_of(self.source)

    def bring_up_to_date(self):
        """Builds the measured programs that the folder has."""
        programs = [p for p in PROGRAMS if (self.folder / p).exists()]
        if subprocess.run(["ninja", "-C", self.folder, *programs], check=False).returncode != 0:
            sys.exit(f"bench_cpu.py: {self.folder}: the build failed")

    def run(self, words, env=None, launcher=()):
        """What the program `words[0]` of this build prints. Failed where it ends with an error."""
        env = env or {}
        program, *rest = [str(w) for w in words]
        self.record.add(self.name, [*launcher, f"BUILD/{program}", *rest], env)
        if not (self.folder / program).is_file():
            raise Failed(f"{self.name} has no {program}")
        return call([*launcher, self.folder / program, *rest], cwd=self.source,
                    env={**os.environ, **MPI, **env}).stdout

    def find(self, words, *patterns):
        """The numbers that the patterns capture in what the program prints."""
        words = words.split() if isinstance(words, str) else words
        out = self.run(words)
        found = [float(capture(out, pattern)) for pattern in patterns]
        print(f"{self.name}: {shlex.join(str(w) for w in words)}: {found}", flush=True)
        return found


def capture(text, pattern):
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise Failed(f"nothing like {pattern} in its output")
    return match.group(1)


class Bench:
    """The builds of a section, its arguments and what it has run."""

    def __init__(self, args, record):
        self.args, self.runs, self.record = args, args.runs, record
        self.now = Build("build", args.build, record)
        self.before = Build("before", args.before, record) if args.before else None
        self.native = Build("native", args.native, record) if args.native else None
        self.notes = []

    def builds(self):
        return [self.before, self.now] if self.before else [self.now]

    def before_title(self):
        return f"before ({self.before.commit})"

    def rounds(self, what, work, runs=None, builds=None):
        """work(build) of every build in turn, again and again: the results by the build's name. A
        build other than --build that fails once has an empty list, and a note says why."""
        builds = builds or self.builds()
        found = {build.name: [] for build in builds}
        failed = set()
        for _ in range(runs or self.runs):
            for build in builds:
                if build.name in failed:
                    continue
                try:
                    found[build.name].append(work(build))
                except Failed as reason:
                    if build is self.now:
                        raise
                    failed.add(build.name)
                    found[build.name] = []
                    self.notes.append(f"{what}, {build.name}: {reason}")
        return found

    def take_notes(self):
        """The notes so far, as a list below a table."""
        notes, self.notes = self.notes, []
        return "".join(f"\n\n`-` {note}" for note in notes)
