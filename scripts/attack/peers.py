"""One of several processes that is killed, stopped or asked to stop: nobody waits for ever."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import tiny_run
from attack import Attack
from place import Loss, Skipped
from program import kill_one

PROCESSES = 3
TIMEOUT = 2  # train.peer_timeout
# Ten times as long while connecting and saving; what a process may take beside that to end, and a
# launcher to end the others.
LIMIT = 10 * TIMEOUT + 20
SIGNALS = {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP, "asked": signal.SIGTERM}
# Open MPI's launcher then ends nobody where one process has ended.
LAUNCHERS = {"": [], "_alone": ["--enable-recovery"]}
ENDED = 8


class Peers(Attack):
    """`killed`, `stopped`, `asked` (to stop): one process of three, at any moment, under a launcher
    that ends the others and under one that does not (`_alone`). `unharmed`: no signal, beside other
    programs: no process is taken for lost."""

    name = "peers"
    settings = {**{what + how: (2, 100) for what in SIGNALS for how in LAUNCHERS}, "unharmed": (2, 100)}
    notices = ("other_bits", "lost_line")

    def prepare(self):
        if not shutil.which("mpirun"):
            raise Skipped("there is no mpirun")
        how = "_alone" if self.setting.endswith("_alone") else ""
        self.place.launcher = ["mpirun", *LAUNCHERS[how], "-np", str(PROCESSES)]
        config = tiny_run.everything(self.place.name_of_out())
        config["train"]["peer_timeout"] = TIMEOUT
        config["train"]["lanes"] = 4
        config["checkpoint"]["keep"] = 100
        self.place.write(config)
        self.place.run_undisturbed()

    def attempt(self, number):
        self.place.clear()
        if self.setting == "unharmed":
            return self.run_beside_others()
        choose, place = self.random(number), self.place
        process = place.start()
        process.wait(choose.uniform(0, place.seconds))
        ranks = [one for one, name in process.members().items() if name == "bamtrain"]
        if not ranks:
            self.note("before the first process")
            process.kill()
            place.end(process)
            return 0
        one = choose.choice(ranks)
        began = time.monotonic()
        try:
            os.kill(one, SIGNALS[self.setting.split("_")[0]])
        except ProcessLookupError:
            pass
        others_end(process, one)
        self.note_most("most seconds", round(time.monotonic() - began))
        # One that was stopped goes on, finds the others gone, and ends.
        try:
            os.kill(one, signal.SIGCONT)
        except ProcessLookupError:
            pass
        others_end(process, None)
        if process.left_alone("mpirun"):  # Open MPI 4 may wait though no rank lives
            self.note("mpirun alone did not end")
        ended = place.end(process)
        self.check_verdict(ended, one)
        for phase in re.findall("(?: of| in) (connecting|the first step|training|saving|evaluating|work before or after training), step",
                                ended.output)[:1]:
            self.note(phase)
        place.check_checkpoints()
        # Where all were asked to stop in time, they have saved.
        saved = {path.name for path in place.out.glob("checkpoint-*")}
        place.extra |= saved - set(place.expected["names in out_dir"].decode().split())
        place.finish()
        return 1

    def check_verdict(self, ended, one):
        """Who was lost is told, and by the exit code under a launcher that passes it on."""
        what, _, alone = self.setting.partition("_")
        codes = {"killed": (0, 137, ENDED), "stopped": (0, ENDED), "asked": (0, 85, 143)}[what]  # 143: before it obeys
        if not alone and not ended.killed and ended.code not in codes:
            raise Loss(f"it ended with {ended.code}")
        told = [line for line in ended.output.splitlines() if line.startswith("bamtrain: rank") and "resumes from" in line]
        unknown = ("has not connected", "MPI_Init and the first exchanges")
        for line in told[:1]:  # one that goes on later finds the others gone
            if f"(process {one} on" not in line and not any(words in line for words in unknown):
                raise Loss(f"process {one} was {what}, and it said\n{line}")

    def note_most(self, what, number):
        self.notes[what] = max(self.notes.get(what, 0), number)

    def run_beside_others(self):
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            ended = self.place.end(self.place.start(), 300)
        finally:
            for other in others:
                kill_one(other.pid)
                other.wait()
        if ended.code != 0:
            raise Loss(f"unharmed, it ended with {ended.code}")
        self.place.check_result()
        return 1


def others_end(process, one):
    """Loss where processes of the run other than `one` live on after the limit."""
    until = time.monotonic() + LIMIT
    while any(member != one and name == "bamtrain" for member, name in process.members().items()):
        if time.monotonic() > until:
            raise Loss(f"a process waited for over {LIMIT} s")
        time.sleep(0.05)
