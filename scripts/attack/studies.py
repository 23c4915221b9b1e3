"""A study from which the folder of a run, or a result, is taken at a random moment: what is missing is named,
counted, and trained again by the same command, to the same tables."""

import json
import re
import shutil

import tiny_run
from attack import Attack
from place import Loss

GONE = 6  # the exit code for files that are not there any more
TABLES = ("table.md", "table.csv", "table.tex", "runs.csv", "study.html")
TIME = re.compile(rb'<span class="time">[^<]*</span>')  # differs from training to training
SEEDS = (1, 2, 3)


def label_of(seed):
    return f"small, seed {seed}"


class Studies(Attack):
    name = "studies"
    settings = {"run_removed": (8, 100), "result_removed": (4, 100)}
    notices = ("wrong_code", "silent", "success")

    def prepare(self):
        place, config = self.place, tiny_run.plain("unused")
        config["train"]["steps"] = 16
        config["data"]["val"] = "val"
        config["eval"] = {"every": 8, "tokens": 256,
                          "tasks": [{"task": "copy", "lengths": [4, 8], "samples": 10}]}
        place.write(config)
        study = {"study_version": 1, "name": "small", "config": "run.json", "out_dir": place.name_of_out(),
                 "axes": [{"key": "seed", "values": list(SEEDS), "for": "repeat"}],
                 "measures": ["copy@*/loss", "validation/loss"]}
        (place.folder / "study.json").write_text(json.dumps(study))
        self.words = [str(place.program), "study", "study.json"]
        ended = place.end(place.start(self.words))
        if ended.code != 0:
            raise Loss(f"undisturbed it ended with {ended.code}")
        self.tables = self.read_tables()

    def read_tables(self):
        return {name: TIME.sub(b"", (self.place.out / name).read_bytes()) for name in TABLES}

    def folder(self, seed):
        return self.place.out / "runs" / f"seed-{seed}"

    def is_whole(self, seed):
        """Read independently of the program."""
        try:
            return json.loads((self.folder(seed) / "results.json").read_bytes())["complete"] is True
        except (OSError, ValueError, KeyError):
            return False

    def attempt(self, number):
        place, choose = self.place, self.random(number)
        shutil.rmtree(place.out, ignore_errors=True)
        process = place.start(self.words)
        seed = choose.choice(SEEDS[:-1])
        # From the moment at which it has ended, the others still to come, on.
        process.wait_until(lambda: self.is_whole(seed))
        process.wait(choose.uniform(0, 1))
        if process.wait(0):
            place.end(process)
            return 0
        if self.setting == "run_removed":
            shutil.rmtree(self.folder(seed), ignore_errors=True)
        else:
            (self.folder(seed) / "results.json").unlink(missing_ok=True)
        if self.is_whole(SEEDS[-1]):  # it may have counted them before
            place.end(process)
            return 0
        place.journal.append(f"# removed of {label_of(seed)}")
        self.check(place.end(process))
        again = place.end(place.start(self.words))
        if again.code != 0:
            raise Loss(f"the same command again ended with {again.code}")
        tables = self.read_tables()
        for name in TABLES:
            if tables[name] != self.tables[name]:
                raise Loss(f"{name} differs from the undisturbed one")
        return 1

    def check(self, ended):
        """What it says is what lies on the disk."""
        missing = [seed for seed in SEEDS if not self.is_whole(seed)]
        if ended.code != (GONE if missing else 0):
            raise Loss(f"with {len(missing)} runs missing it ended with {ended.code}")
        for seed in missing:
            if f"{label_of(seed)}: failed ({GONE})" not in ended.output:
                raise Loss(f"{label_of(seed)} is missing, and nothing names it")
        count = f"{len(SEEDS)} runs: {len(SEEDS) - len(missing)} done, 0 diverged, {len(missing)} failed"
        if count not in ended.output:
            raise Loss(f"it does not say \"{count}\"")
