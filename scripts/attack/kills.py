"""kill -9 at random moments and inside saves; the run goes on until it ends."""

import shutil

import tiny_run
from attack import Attack
from place import Loss, Skipped
from program import kill_one

PROCESSES = 2


class Kills(Attack):
    name = "kills"
    settings = {"plain": (50, 400), "everything": (30, 400), "two_processes": (4, 200)}
    notices = ("other_bits", "lost_line", "left_behind", "torn", "wrong_code")

    def prepare(self):
        place, out = self.place, self.place.name_of_out()
        if self.setting == "two_processes":
            if not shutil.which("mpirun"):
                raise Skipped("there is no mpirun")
            place.launcher = ["mpirun", "-np", str(PROCESSES)]
        place.write(tiny_run.everything(out) if self.setting == "everything" else tiny_run.plain(out))
        place.run_undisturbed()

    def attempt(self, number):
        """One to three kills, each of the run that goes on from the one before; fewer where it ends."""
        self.place.clear()
        choose, kills = self.random(number), 0
        for _ in range(choose.choice((1, 1, 2, 3))):
            if not self.kill_once(choose):
                break
            kills += 1
        self.place.finish()
        return kills

    def kill_once(self, choose):
        """False where the run ended before."""
        place = self.place
        process = place.start()
        if choose.random() < 0.5:
            process.wait(choose.uniform(0, place.seconds))
        else:
            saves = choose.randrange(tiny_run.STEPS // tiny_run.EVERY) + 1
            process.wait_until(lambda: self.saves_begun() >= saves)
            process.wait(choose.choice((0, 0.001, 0.01, 0.1)) * choose.random())
        one_rank = self.setting == "two_processes" and choose.random() < 0.5
        self.kill(process, one_rank, choose)
        # Open MPI 4 waits for ever where a rank dies as it makes itself known.
        if one_rank and process.left_alone("mpirun"):
            self.note("mpirun alone did not end")
        ended = place.end(process)
        if ended.code == 0:
            place.check_result()
            return False
        if not ended.killed and not one_rank:
            raise Loss(f"it ended with {ended.code} before it was killed")
        if any(entry.name.startswith((".tmp-checkpoint-", ".replaced-")) for entry in self.entries()):
            self.note("inside a save")
        place.check_checkpoints()
        return True

    def kill(self, process, one_rank, choose):
        """Of several processes one, whose launcher ends the others, or all, as a node is lost."""
        if self.setting != "two_processes":
            kill_one(process.popen.pid)  # nothing is looked up: it would be too late for a save
        elif not one_rank:
            process.kill()
        else:
            ranks = [each for each, name in process.members().items() if name == "bamtrain"]
            if ranks:
                kill_one(choose.choice(ranks))

    def entries(self):
        return list(self.place.out.iterdir()) if self.place.out.exists() else []

    def saves_begun(self):
        """How many saves of the run began so far, by the newest name that one has made."""
        steps = [int(entry.name.rpartition("-")[2]) for entry in self.entries()
                 if entry.name.startswith((".tmp-checkpoint-", "checkpoint-"))]
        return max(steps, default=0) // tiny_run.EVERY
