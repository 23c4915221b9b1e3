"""Where one attack takes place: a folder with a run, the undisturbed result, and what is tried."""

import shlex
import shutil
import time

import result
import tiny_run
from program import Hangs, Process


class Loss(Exception):
    """What was lost, in a sentence."""


class Skipped(Exception):
    """Why an attack cannot be tried on this machine, in a sentence."""


class Place:
    """Everything lies in `folder`, and the run in its `out`, always under the same names: two results
    then differ in nothing but what was computed."""

    def __init__(self, folder, build):
        self.folder = folder
        self.program = build / "src" / "bamtrain"
        self.bamdata = build / "data_tools" / "bamdata"
        self.out = folder / "out"
        self.launcher = []  # mpirun and its options
        self.sabotage = None  # a self-test's (sabotage.py)
        self.process = None  # started last
        self.journal = []  # of a try: what was started, how it ended, what it said
        self.expected = None  # result.read() of the undisturbed run
        self.extra = set()  # names that out_dir may hold beside those of the undisturbed run
        self.seconds = 0.0  # that the undisturbed run took

    def name_of_out(self):
        return str(self.out.relative_to(self.folder))

    def write(self, config):
        """What the run reads; again for another config."""
        if self.expected is None:
            tiny_run.write_inputs(self.folder, self.bamdata)
        tiny_run.write_config(self.folder, config)

    def command(self, *more):
        return [*self.launcher, str(self.program), "--config", "run.json", *more]

    def run_undisturbed(self):
        """Fills `expected` and `seconds`, from what lies in out_dir on."""
        start = time.monotonic()
        ended = Process(self.command(), self.folder).end()
        self.seconds = time.monotonic() - start
        if ended.code != 0:
            raise Loss(f"the undisturbed run ended with {ended.code}:\n{ended.output}")
        self.expected = result.read(self.out)

    def clear(self, template=None):
        """A new try, with an empty out_dir or a copy of `template`."""
        self.extra.clear()
        shutil.rmtree(self.out, ignore_errors=True)
        if template:
            shutil.copytree(template, self.out, symlinks=True)

    def start(self, words=None, environment=None, stdout=None):
        words = words or self.command()
        before = [f"{key}={value}" for key, value in (environment or {}).items()]
        self.journal.append("$ " + shlex.join([*before, *words]))
        self.process = Process(words, self.folder, environment, stdout)
        return self.process

    def stop(self):
        """Nothing that a try has started goes on after it."""
        if self.process and self.process.running():
            self.process.kill()
            self.process.end()

    def end(self, process, seconds=120):
        """How the process ended. Loss where it does not."""
        try:
            ended = process.end(seconds)
        except Hangs as reason:
            raise Loss(str(reason)) from reason
        return self.take(ended)

    def take(self, ended):
        """Notes how a process ended, after the sabotage of a self-test."""
        if self.sabotage:
            ended = self.sabotage(ended, self.out)
        self.journal.append(f"{ended.output.rstrip()}\n[ended with {ended.code}]")
        return ended

    def check_checkpoints(self):
        """After a process that died: a folder with a checkpoint's name holds a whole one."""
        if sentence := result.damaged(self.out):
            raise Loss(sentence)

    def finish(self, passes_over=False):
        """The same command again: it resumes from the newest checkpoint, unless that was damaged on
        purpose, exits with code 0 and has the undisturbed run's result."""
        before = result.newest_step(self.out)
        ended = self.end(self.start())
        if ended.code != 0:
            raise Loss(f"the same command again ended with {ended.code}")
        if not passes_over:
            if "is damaged" in ended.output:
                raise Loss("a checkpoint was passed over though none was damaged")
            if before and f"checkpoint-{before:08} at step {before}" not in ended.output:
                raise Loss(f"it did not resume from the newest checkpoint, of step {before}")
        self.check_result()
        return ended

    def check_result(self):
        if sentence := result.difference(self.expected, self.out, self.extra):
            raise Loss(sentence)
        self.check_checkpoints()
