"""Messages between processes that are late, that overtake each other, or that are lost."""

import os
import re
import shutil
import subprocess
import time

import tiny_run
from attack import Attack
from peers import ENDED, LIMIT, PROCESSES, TIMEOUT, others_end
from place import Loss, Skipped

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "messages.c")
DELAY = 5  # ms a message at most


class Messages(Attack):
    """`delayed`: each message takes a time of its own, so later ones overtake it: the same bits.
    `dropped`: from some message on, one of three processes sends none: all end within the limits of
    train.peer_timeout, and say who waits."""

    name = "messages"
    settings = {"delayed": (2, 30), "dropped": (2, 100)}
    notices = ("other_bits", "lost_line")

    def prepare(self):
        if not shutil.which("mpirun") or not shutil.which("mpicc"):
            raise Skipped("there is no mpirun, or no mpicc for messages.c")
        place = self.place
        library, self.count = place.folder / "messages.so", place.folder / "messages.txt"
        subprocess.run(["mpicc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
        config = tiny_run.everything(place.name_of_out())
        config["train"].update(peer_timeout=TIMEOUT, lanes=4)
        config["checkpoint"]["keep"] = 100
        place.write(config)
        self.count.unlink(missing_ok=True)
        self.preloaded = [f"LD_PRELOAD={library}"]
        self.launch(f"MESSAGE_COUNT={self.count}")
        place.run_undisturbed()
        self.sent = dict(map(int, line.split()) for line in self.count.read_text().splitlines())
        if len(self.sent) != PROCESSES:
            raise Loss(f"of {PROCESSES} processes these sent messages: {self.sent}")

    def launch(self, *settings):
        """Of later starts; without settings the network is good."""
        more = [word for text in (*self.preloaded, *settings) for word in ("-x", text)]
        self.place.launcher = ["mpirun", "-np", str(PROCESSES), *(more if settings else ())]

    def attempt(self, number):
        self.place.clear()
        choose = self.random(number)
        if self.setting == "delayed":
            self.launch(f"MESSAGE_DELAY_MS={DELAY}", f"MESSAGE_SEED={choose.randrange(1 << 20)}")
            ended = self.place.end(self.place.start(), 300)
            if ended.code != 0:
                raise Loss(f"with late messages it ended with {ended.code}")
            self.place.check_result()
            return 1
        rank = choose.randrange(PROCESSES)
        self.launch(f"MESSAGE_DROP={rank}:{choose.randrange(self.sent[rank])}")
        process, began = self.place.start(), time.monotonic()
        process.wait(self.place.seconds)
        others_end(process, None)
        self.notes["most seconds"] = max(self.notes.get("most seconds", 0),
                                         round(time.monotonic() - began))
        ended = self.place.end(process)
        if ended.code != ENDED:
            raise Loss(f"without a message it ended with {ended.code}")
        if not re.search("MPI_.* waits for .* over .*train.peer_timeout", ended.output):
            raise Loss(f"it did not say who waits for what:\n{ended.output}")
        self.place.check_checkpoints()
        self.launch()
        self.place.finish()
        return 1
