"""Every system call of a save that changes files: the process killed before it, or the call failing."""

import errno
import os
import shutil
import signal
import subprocess

import result
import sabotage
import tiny_run
from attack import ALL, Attack
from place import Loss, Skipped

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interposer.c")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
ACTIONS = ("kill", "torn", *(str(number) for number in ERRORS))

# What lies in out_dir before, and where the run ends: steps.
SAVES = {"prune": (8, 12), "first": (0, 4), "everything": (16, 24), "in_place_of_damaged": (8, 8)}


class Syscalls(Attack):
    """Of four kinds of save: one that removes an older checkpoint; the first; one with everything
    switched on, among others a checkpoint that is kept for good, and the evaluation at the end; and
    one that takes the place of a damaged checkpoint."""

    name = "syscalls"
    settings = {kind: (24, ALL) for kind in SAVES}
    notices = ("other_bits", "lost_line", "left_behind", "torn", "wrong_code", "success")

    def prepare(self):
        place = self.place
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            raise Skipped("there is no C compiler for interposer.c")
        self.library = place.folder / "interposer.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", self.library, SOURCE, "-ldl"],
                       check=True)
        before, end = SAVES[self.setting]
        make = tiny_run.everything if self.setting == "everything" else tiny_run.plain
        config = make(place.name_of_out())
        self.template = None
        if before:
            self.stop_at(config, before)
            place.run_undisturbed()
            self.template = place.folder / "before"
            shutil.move(place.out, self.template)
        self.stop_at(config, end)
        place.clear(self.template)
        place.run_undisturbed()
        if self.setting == "in_place_of_damaged":
            sabotage.flip(result.checkpoints(self.template)[-1] / "model.safetensors")
        self.calls = self.counted()
        self.note("calls", len(self.calls))

    def stop_at(self, config, step):
        config["train"]["stop_at"] = step
        self.place.write(config)

    def start(self, call, action):
        """The run from the template on, with the interposer."""
        place = self.place
        place.clear(self.template)
        self.log = place.folder / "calls.txt"
        self.log.unlink(missing_ok=True)
        return place.start(environment={
            "LD_PRELOAD": str(self.library), "ATTACK_FOLDER": str(place.out.resolve()),
            "ATTACK_LOG": str(self.log), "ATTACK_CALL": str(call), "ATTACK_ACTION": action})

    def counted(self):
        """(name, path) of each call of a run that is not disturbed."""
        ended = self.start(0, "kill").end()
        if ended.code != 0:
            raise Loss(f"with an idle interposer the run ended with {ended.code}:\n{ended.output}")
        self.place.check_result()
        return self.made()

    def made(self):
        """(name, path) of each call that the process made, in order."""
        return [line.split(" ", 2)[1:] for line in self.log.read_text().splitlines()]

    def all_attempts(self):
        """Numbers of (call, action): a torn write is one of write alone."""
        return [call * len(ACTIONS) + action for call, (name, _) in enumerate(self.calls)
                for action, what in enumerate(ACTIONS) if what != "torn" or name == "write"]

    def attempts(self, long):
        every = self.all_attempts()
        if not long:
            self.random("sample").shuffle(every)
        return every

    def attempt(self, number):
        call, action = number // len(ACTIONS), ACTIONS[number % len(ACTIONS)]
        ended = self.place.end(self.start(call + 1, action))
        made = self.made()
        if call >= len(made):
            raise Loss(f"it made {len(made)} calls, where without a disturbance there are "
                       f"{len(self.calls)}")
        name, path = made[call]
        self.place.journal.append(f"# {action} at call {call + 1}, {name} {path}")
        if action in ("kill", "torn"):
            if ended.code != -signal.SIGKILL:
                raise Loss(f"killed at {name} {path}, it ended with {ended.code}")
        else:
            self.check_failure(ended, int(action), f"{name} {path}")
        if self.setting != "in_place_of_damaged":
            self.place.check_checkpoints()
        self.place.finish(passes_over=self.setting == "in_place_of_damaged")
        return 1

    def check_failure(self, ended, error, where):
        """A call that failed with `error` ended the run with 6 and its reason, or was one that the run
        can do without: then all of the result is there, or a warning says what is not."""
        if where.startswith("remove ") and "/.tmp-checkpoint-" in where and ended.code != 0:
            raise Loss(f"{where}, of a checkpoint that is no longer kept, failed: a warning would do, and "
                       f"it ended with {ended.code}")
        if ended.code == 6:
            if os.strerror(error) not in ended.output:
                raise Loss(f"{where} failed, and the message does not say why")
        elif ended.code != 0:
            raise Loss(f"{where} failed with {os.strerror(error)}: it ended with {ended.code}")
        elif sentence := result.difference(self.place.expected, self.place.out):
            if "warning" not in ended.output or os.strerror(error) not in ended.output:
                raise Loss(f"{where} failed with {os.strerror(error)}, it ended with 0 without a "
                           f"warning that says so, and {sentence}")
            self.note("warnings")
