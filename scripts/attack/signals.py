"""Signals from the start of the program to the end of its final evaluation, and readers that go."""

import os
import pathlib
import signal

import result
import tiny_run
from attack import Attack
from place import Loss

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP)
INTERRUPTED = 85
LAST = "checkpoint-00000040"


class Signals(Attack):
    """`training`: at any moment. `final_evaluation`: after the last checkpoint. `ignored_hangup`: as
    under nohup, a lost terminal stops nothing. `reader`: who reads the output ends."""

    name = "signals"
    settings = {"training": (60, 400), "final_evaluation": (24, 200), "ignored_hangup": (6, 50),
                "reader": (16, 100)}
    notices = ("other_bits", "lost_line", "left_behind", "wrong_code")

    def prepare(self):
        self.place.write(tiny_run.everything(self.place.name_of_out()))
        self.place.run_undisturbed()

    def attempt(self, number):
        self.place.clear()
        choose = self.random(number)
        if self.setting == "reader":
            return self.close_reader(choose)
        if self.setting == "ignored_hangup":
            return self.hang_up_in_vain(choose)
        process = self.place.start()
        if self.setting == "training":
            # Before that a signal meets the loader of shared libraries and not the program.
            process.wait_until(lambda: obeys_signals(process.popen.pid))
            process.wait(choose.uniform(0, self.place.seconds))
        else:
            process.wait_until((self.place.out / LAST).exists)
            process.wait(choose.choice((0, 0.003, 0.03, 0.1)) * choose.random())
        number = choose.choice(STOPPING)
        process.send(number)
        ended = self.place.end(process)
        if ended.code == 0:
            self.note("ended before")
            self.place.check_result()
            return 1
        if ended.code != INTERRUPTED:
            raise Loss(f"{signal.Signals(number).name} during "
                       f"{'the final evaluation' if self.at_the_end() else 'the run'} ended it with "
                       f"{ended.code}")
        if self.at_the_end():
            self.note("in the final evaluation")
        self.check_nothing_lost()
        self.place.finish()
        return 1

    def at_the_end(self):
        return (self.place.out / LAST).exists()

    def check_nothing_lost(self):
        """What was trained is saved."""
        logged, saved = result.logged_step(self.place.out), result.newest_step(self.place.out)
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
            raise Loss(f"SIGHUP, which was ignored, ended it with {ended.code}")
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
