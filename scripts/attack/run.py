#!/usr/bin/env python3
"""Attacks the reliability of a built bamtrain from outside and prints what was tried and lost.

  scripts/attack/run.py --build build [--long | --few] [--seed N] [ATTACK[:SETTING]...]
  scripts/attack/run.py --build build --seed N --attempt M ATTACK:SETTING     one attempt again
  scripts/attack/run.py --build build --self-test [ATTACK...]                 can the attacks fail?

Everything lies in a temporary folder, which stays where something was lost: of each loss the run's
folder and what every process said. Exits with 1 after a loss, and where nothing was attacked: every
attack skipped. README.md next to it describes the attacks.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

import sabotage
from damage import Damage
from digits import Digits
from foreign import Foreign
from kills import Kills
from messages import Messages
from peers import Peers
from place import Loss, Place, Skipped
from power import Power
from processes import Processes
from program import Hangs, ignored_signals_obeyed
from signals import Signals
from studies import Studies
from syscalls import Syscalls
from tokenizing import Tokenizing

ATTACKS = {attack.name: attack
           for attack in (Kills, Syscalls, Damage, Signals, Processes, Peers, Messages, Power, Tokenizing,
                        Foreign, Digits, Studies)}
SELF_TEST_ATTEMPTS = 12  # within which a sabotage has to be noticed


class Row:
    """A line of the table."""

    def __init__(self, attack, setting):
        self.attack, self.setting = attack, setting
        self.tries = self.losses = 0
        self.skipped = False  # at the first thing that the machine does not have
        self.seconds = 0.0
        self.notes = ""


class Campaign:
    """What the command line asked for."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.printing = threading.Lock()

    def say(self, text):
        with self.printing:
            print(text, flush=True)

    def make(self, name, setting):
        """An attack whose folder is fresh."""
        folder = self.folder / f"{name}-{setting}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return ATTACKS[name](Place(folder, self.args.build), setting, self.args.seed)

    def attempts(self, attack):
        """The numbers of the attempts to make, and for how many tries."""
        if self.args.attempt is not None:
            return [self.args.attempt], 1
        quota = attack.quota(self.args.long)
        return attack.attempts(self.args.long), max(1, quota // 4) if self.args.few else quota

    def run(self, name, setting):
        """The row of an attack in a setting."""
        row, start = Row(name, setting), time.monotonic()
        attack = self.make(name, setting)
        try:
            attack.prepare()
            numbers, quota = self.attempts(attack)
            for number in numbers:
                if row.tries >= quota:
                    break
                attack.place.journal.clear()
                try:
                    row.tries += attack.attempt(number)
                except (Loss, Hangs) as loss:
                    row.tries += 1
                    row.losses += 1
                    attack.place.stop()
                    self.keep(attack, number, loss)
            row.notes = ", ".join(f"{n} {what}" for what, n in sorted(attack.notes.items()))
        except Skipped as reason:
            row.skipped = True
            row.notes = f"skipped: {reason}"
        except Loss as loss:
            row.losses += 1
            self.keep(attack, 0, loss)
        except Exception:  # of the attack itself: the others go on
            row.losses += 1
            self.keep(attack, 0, traceback.format_exc())
        finally:
            attack.place.stop()
            attack.close()
        row.seconds = time.monotonic() - start
        if self.args.long:
            self.say(line_of(row))
        return row

    def keep(self, attack, number, loss):
        """Copies the folder of a loss and says how to see it again."""
        place, kept = attack.place, self.folder / "losses" / f"{attack.name}-{attack.setting}-{number}"
        shutil.copytree(place.folder, kept, symlinks=True, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("disk.img"))
        repeat = (f"scripts/attack/run.py --build {self.args.build} --seed {self.args.seed} "
                  f"--attempt {number} {attack.name}:{attack.setting}")
        text = f"{loss}\nagain: {repeat}\nkept: {kept}"
        (kept / "loss.txt").write_text("\n".join([text, "", *place.journal, ""]))
        self.say(f"LOSS {attack.name}:{attack.setting} attempt {number}: {text}")

    def self_test(self, name):
        """The sabotages of an attack that it did not notice; None: the machine cannot have it."""
        setting = next(iter(ATTACKS[name].settings))
        attack, missed = self.make(name, setting), []
        try:
            attack.prepare()
            # Those that a sabotage can show in are anywhere in a long list.
            numbers = [number for number, _ in zip(attack.attempts(True), range(5000))]
            random.Random(self.args.seed).shuffle(numbers)
            for fault in attack.notices:
                attack.place.sabotage = getattr(sabotage, fault)
                if not any(self.noticed(attack, number, fault)
                           for number in numbers[:SELF_TEST_ATTEMPTS]):
                    missed.append(fault)
            self.say(f"{name}: {len(attack.notices)} sabotages, not noticed: {missed or 'none'}")
        except Skipped as reason:
            self.say(f"{name}: skipped: {reason}")
            return None
        finally:
            attack.place.stop()
            attack.close()
        return missed

    def noticed(self, attack, number, fault):
        """Whether an attempt finds this very fault: one of the program's own does not count."""
        try:
            attack.attempt(number)
        except (Loss, Hangs) as loss:
            attack.place.stop()
            return sabotage.SIGNS[fault] in str(loss)
        return False


def chosen(words, long):
    """(attack, setting) of each that was asked for, in the order of the table."""
    every = [(name, setting) for name, attack in ATTACKS.items() for setting in attack.settings]
    quick = [(name, setting) for name, setting in every if ATTACKS[name].settings[setting][0] > 0]
    for word in words:
        if not any(word in (name, f"{name}:{setting}") for name, setting in every):
            sys.exit(f"run.py: no attack {word}: there are " +
                     " ".join(f"{name}:{setting}" for name, setting in every))
    return [(name, setting) for name, setting in every
            if f"{name}:{setting}" in words or
            ((not words or name in words) and (long or (name, setting) in quick))]


def about(args):
    """Machine, commit and seed, in a line."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    processor = next((line.partition(": ")[2] for line in text.splitlines()
                      if line.startswith("model name")), platform.machine())
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return (f"{processor}, {os.cpu_count()} cores; Linux {platform.release()}; commit "
            f"{commit or 'unknown'}; {datetime.date.today()}; seed {args.seed}.")


def close(passed, failed, skipped):
    """As Catch2 closes: scripts/test.sh adds these up. Nothing is shown where all were skipped."""
    print(f"test cases: {passed + failed + skipped} | {passed} passed | {failed} failed"
          f" | {skipped} skipped")
    if skipped and not passed and not failed:
        sys.exit("run.py: all attacks were skipped on this machine; the lines above say why")


def line_of(row):
    """Of the table."""
    tries = "skipped" if row.skipped and not row.tries else f"{row.tries:,}"
    return (f"| {row.attack} | {row.setting} | {tries} | {row.losses:,} | {row.seconds:.0f} | "
            f"{row.notes} |")


def table(rows):
    """As Markdown."""
    lines = ["| attack | setting | tries | losses | seconds | |", "|---|---|---|---|---|---|"]
    return "\n".join(lines + [line_of(row) for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--long", action="store_true", help="hours by hand instead of minutes")
    amount.add_argument("--few", action="store_true", help="a quarter of the tries")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--attempt", type=int, help="only this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="attacks at a time (default: a core each)")
    parser.add_argument("--folder", type=pathlib.Path, help="where the temporary folder is made")
    parser.add_argument("--self-test", action="store_true",
                        help="corrupt results on purpose: every attack has to notice")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK[:SETTING]")
    args = parser.parse_args()
    args.build = args.build.resolve()
    if not (args.build / "src" / "bamtrain").exists():
        sys.exit(f"run.py: no program {args.build}/src/bamtrain: build it first")

    ignored_signals_obeyed()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bamtrain-attack-", dir=args.folder))
    campaign, wanted = Campaign(args, folder), chosen(args.attacks, args.long)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        if args.self_test:
            missed = list(pool.map(campaign.self_test, dict(wanted)))
            shutil.rmtree(folder)
            failed, skipped = sum(bool(faults) for faults in missed), missed.count(None)
            close(len(missed) - failed - skipped, failed, skipped)
            sys.exit(1 if failed else 0)
        rows = list(pool.map(lambda pair: campaign.run(*pair), wanted))
    print(f"{about(args)}\n\n{table(rows)}")
    lost = sum(row.losses > 0 for row in rows)
    skipped = sum(row.skipped and row.losses == 0 for row in rows)
    if not lost:
        shutil.rmtree(folder)
    close(len(rows) - lost - skipped, lost, skipped)
    if lost:
        sys.exit(f"run.py: {folder}/losses holds what was lost")


if __name__ == "__main__":
    main()
