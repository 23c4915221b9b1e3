"""A run that goes on with other numbers of processes: the bits of one process throughout."""

import shutil

import tiny_run
from attack import Attack
from place import Loss, Skipped

DUE = 2 * tiny_run.EVERY  # steps at which all is due, and that every part may end at


class Processes(Attack):
    name = "processes"
    settings = {"1-2-3-1": (1, 20), "1-2-4-8-1": (0, 20), "8-3-6-1": (0, 20), "2-8-1-5": (0, 20),
                "4-1-7-2-8": (0, 20)}
    notices = ("other_bits", "lost_line", "wrong_code")

    def prepare(self):
        if not shutil.which("mpirun"):
            raise Skipped("there is no mpirun")
        config = tiny_run.everything(self.place.name_of_out())
        config["eval"]["lengths"] = []  # else every part would end with an evaluation
        self.place.write(config)
        self.place.run_undisturbed()

    def attempt(self, number):
        """Each part ends at a random step."""
        place, choose = self.place, self.random(number)
        place.clear()
        counts = [int(count) for count in self.setting.split("-")]
        ends = sorted(choose.sample(range(DUE, tiny_run.STEPS, DUE), len(counts) - 1)) + [0]
        for count, end in zip(counts, ends):
            words = place.command("--set", f"train.stop_at={end}")
            if count > 1:
                words = ["mpirun", "-np", str(count), *words]
            ended = place.end(place.start(words), 300)
            if ended.code != 0:
                raise Loss(f"on {count} processes to step {end or tiny_run.STEPS} it ended with {ended.code}")
        place.check_result()
        return 1
