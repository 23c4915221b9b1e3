"""Signals from the start of the program to the end of its final evaluation, and readers that go."""

import os
import pathlib
import shutil
import signal
import time

import result
import tiny_run
from attack import Attack
from place import Loss, Skipped

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
INTERRUPTED = 85
LAST = f"checkpoint-{tiny_run.STEPS:08}"


class Signals(Attack):
    """`training`: at any moment. `final_evaluation`: after the last checkpoint. `two_processes`:
    SIGUSR1, which mpirun passes on. `ignored_hangup`: as under nohup, a lost terminal stops nothing.
    `reader`: who reads the output ends."""

    name = "signals"
    settings = {"training": (30, 400), "final_evaluation": (24, 200), "two_processes": (3, 100),
                "ignored_hangup": (6, 50), "reader": (12, 100)}
    notices = ("other_bits", "lost_line", "left_behind", "wrong_code")

    def prepare(self):
        if self.setting == "two_processes":
            if not shutil.which("mpirun"):
                raise Skipped("there is no mpirun")
            self.place.launcher = ["mpirun", "-np", "2"]
        config = tiny_run.everything(self.place.name_of_out())
        config["checkpoint"]["keep"] = 100  # else one that a signal asks for would displace another
        self.place.write(config)
        self.place.run_undisturbed()

    def attempt(self, number):
        self.place.clear()
        choose = self.random(number)
        if self.setting == "reader":
            return self.close_reader(choose)
        if self.setting == "ignored_hangup":
            return self.hang_up_in_vain(choose)
        process = self.place.start()
        number = self.send_at(process, choose)
        ended = self.place.end(process)
        if ended.code == 0:
            self.note("ended before")
            self.place.check_result()
            return 1
        if ended.code != INTERRUPTED:
            when = "during the final evaluation" if self.at_the_end() else "before the last checkpoint"
            raise Loss(f"{signal.Signals(number).name} {when}: it ended with {ended.code}")
        if self.at_the_end():
            self.note("in the final evaluation")
        self.check_nothing_lost()
        self.place.finish()
        return 1

    def send_at(self, process, choose):
        """Sends a signal at some moment and returns its number."""
        number, start = choose.choice(STOPPING), time.monotonic()
        if self.setting == "final_evaluation":
            process.wait_until((self.place.out / LAST).exists)
            process.wait(choose.choice((0, 0.003, 0.03, 0.1)) * choose.random())
        elif self.setting == "two_processes":
            number = signal.SIGUSR1
            # Before that it may meet mpirun while it starts them.
            process.wait_until((self.place.out / "metrics.jsonl").exists)
            process.wait(choose.random() * (self.place.seconds - (time.monotonic() - start)))
        else:
            # Before that it meets the loader of shared libraries and not the program.
            process.wait_until(lambda: obeys_signals(process.popen.pid))
            process.wait(choose.uniform(0, self.place.seconds))
        process.send(number)
        return number

    def at_the_end(self):
        return (self.place.out / LAST).exists()

    def check_nothing_lost(self):
        """What was trained is saved, be it in a checkpoint that was not due."""
        logged, saved = result.logged_step(self.place.out), result.newest_step(self.place.out)
        if saved % tiny_run.EVERY:
            self.place.extra.add(f"checkpoint-{saved:08}")
        if logged > saved:
            raise Loss(f"it ended after step {logged} with the newest checkpoint at {saved}")

    def hang_up_in_vain(self, choose):
        place = self.place
        ignoring = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""]
        process = place.start([*ignoring, *place.command()])
        process.wait(choose.uniform(0.02, place.seconds))
        process.send(signal.SIGHUP)
        ended = place.end(process)
        if ended.code != 0:
            raise Loss(f"after a SIGHUP that was ignored it ended with {ended.code}")
        place.check_result()
        return 1

    def close_reader(self, choose):
        """However it ends, no step that was trained is lost, and it does not die of it."""
        place = self.place
        reader, writer = os.pipe()
        process = place.start(stdout=writer)
        os.close(writer)
        process.wait(choose.uniform(0, place.seconds))
        os.close(reader)
        ended = place.end(process)
        if ended.code < 0:
            raise Loss(f"it died of {signal.Signals(-ended.code).name} when its reader had ended")
        self.check_nothing_lost()
        place.finish()
        return 1


def obeys_signals(process):
    """Whether it has blocked or caught SIGTERM, as a program does that is to obey it."""
    try:
        status = pathlib.Path("/proc", str(process), "status").read_text()
    except OSError:  # ended
        return False
    masks = {key: int(value, 16) for key, value in
             (line.split(":\t") for line in status.splitlines() if line.startswith(("SigBlk", "SigCgt")))}
    return bool((masks["SigBlk"] | masks["SigCgt"]) >> (signal.SIGTERM - 1) & 1)
