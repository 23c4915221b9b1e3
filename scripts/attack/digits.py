"""A digit of a result, or a bit, flipped in a file: no table, page or evaluation takes it silently."""

import json

import tiny_run
from attack import Attack
from place import Loss

REFUSED = 6  # the exit code for a file that cannot be read
DIGITS = b"0123456789"


def flipped_digit(data, choose):
    """Another digit in the place of one."""
    at = choose.choice([n for n, byte in enumerate(data) if byte in DIGITS])
    data[at] = choose.choice([digit for digit in DIGITS if digit != data[at]])
    return at


def flipped_bit_of_a_number(data, choose):
    """A bit of a digit."""
    at = choose.choice([n for n, byte in enumerate(data) if byte in DIGITS])
    data[at] ^= 1 << choose.randrange(8)
    return at


class Digits(Attack):
    name = "digits"
    # The file of the run and who reads it: the run itself, a report, an evaluation that goes on.
    settings = {"results": (40, 500), "metrics": (40, 500), "perplexity": (40, 500), "evaluation": (40, 500)}
    notices = ("wrong_code", "silent", "success")
    FILES = {"results": "results.json", "metrics": "metrics.jsonl", "perplexity": "perplexity.json"}

    def prepare(self):
        place, config = self.place, tiny_run.everything(self.place.name_of_out())
        config["train"]["steps"] = 8
        place.write(config)
        place.run_undisturbed()
        self.report = [str(place.program), "report", place.name_of_out(), "--output", "page.html"]
        self.evaluate = [str(place.program), "eval", "--checkpoint", f"{place.name_of_out()}/checkpoint-00000008",
                         "--task", "copy", "--lengths", "4,8,16", "--samples", "10", "--output", "eval.json"]
        self.file = place.folder / "eval.json" if self.setting == "evaluation" \
            else place.out / self.FILES[self.setting]
        if self.setting == "evaluation" and place.end(place.start(self.evaluate)).code != 0:
            raise Loss("undisturbed the evaluation failed")
        self.whole = self.file.read_bytes()

    def attempt(self, number):
        place, choose = self.place, self.random(number)
        data = bytearray(self.whole)
        kind = choose.choice((flipped_digit, flipped_digit, flipped_bit_of_a_number))
        at = kind(data, choose)
        while self.says_the_same(data):  # the last digits of a number may mean the same double
            data = bytearray(self.whole)
            at = kind(data, choose)
        damaged = bytes(data)
        place.journal.append(f"# {self.file.name} {kind.__name__} at byte {at}")
        self.file.write_bytes(damaged)
        try:
            if self.setting == "evaluation":
                self.check_anew(place.end(place.start(self.evaluate)))
            else:
                words = place.command() if self.setting == "results" else self.report
                self.check_refused(place.end(place.start(words)), damaged)
        finally:
            self.file.write_bytes(self.whole)
        return 1

    def says_the_same(self, data):
        """Of lines, whose crc is of their bytes: never."""
        try:
            return self.setting != "metrics" and json.loads(data) == json.loads(self.whole)
        except ValueError:
            return False

    def check_anew(self, ended):
        """Nothing of the damaged file is kept."""
        if ended.code != 0:
            raise Loss(f"with a flipped digit in {self.file.name} it ended with {ended.code}")
        if "warning" not in ended.output or self.file.name not in ended.output:
            raise Loss(f"{self.file.name} has a flipped digit, and nothing names it")
        if self.file.read_bytes() != self.whole:
            raise Loss(f"what a flipped digit of {self.file.name} says was kept")

    def check_refused(self, ended, damaged):
        if ended.code != REFUSED:
            raise Loss(f"with a flipped digit in {self.file.name} it ended with {ended.code}")
        if self.file.name not in ended.output:
            raise Loss(f"{self.file.name} has a flipped digit, and nothing names it")
        if self.file.read_bytes() != damaged:
            raise Loss(f"{self.file.name} was refused, and is another since")
