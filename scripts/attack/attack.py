"""What all attacks are: something that is prepared once and then tried as often as wanted."""

import itertools
import math
import random


class Attack:
    """One attack in one setting. A subclass says `name`; its `settings` in the order of the table, with
    how many tries a quick and a long run make (0: none, and one where it is asked for by name); and
    `notices`, the sabotages (sabotage.py) which it has to take for losses."""

    name = ""
    settings = {}  # name: (quick, long)
    notices = ()

    def __init__(self, place, setting, seed):
        self.place, self.setting, self.seed = place, setting, seed
        self.notes = {}  # what was counted beside tries, for the table

    def note(self, what, number=1):
        self.notes[what] = self.notes.get(what, 0) + number

    def random(self, attempt):
        """The same numbers for the same seed, whichever attempts were made before."""
        return random.Random(f"{self.seed} {self.name} {self.setting} {attempt}")

    def quota(self, long):
        """How many tries are wanted."""
        return self.settings[self.setting][1 if long else 0] or 1

    def attempts(self, long):
        """Numbers of attempts; they are made in this order until the quota is reached."""
        del long
        return itertools.count()

    def prepare(self):
        """Inputs and the undisturbed run. Skipped where this machine does not permit the attack."""
        raise NotImplementedError

    def attempt(self, number):
        """Makes an attempt and returns for how many tries it counts. Loss."""
        raise NotImplementedError

    def close(self):
        """Gives back what `prepare` took."""


ALL = math.inf  # a quota: as many as there are
