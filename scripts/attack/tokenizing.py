"""kill -9 and SIGTERM at random moments of `bamdata tokenize`; the same command goes on until it ends."""

import filecmp
import random
import shutil
import signal
import time

import tiny_run
from attack import Attack
from place import Loss
from program import Process

FILES, LINES = 8, 25_000  # 100 MB in all
OUT, PARTIAL = "out", "out.partial"
FULL = 6  # the exit code where a folder with content has the output's name


class Tokenizing(Attack):
    name = "tokenizing"
    settings = {"file_order": (5, 50), "shuffled": (3, 50)}
    notices = ("other_tokens", "left_behind", "wrong_code")
    OPTIONS = {"file_order": ["--val-fraction", "0.01"],
               "shuffled": ["--shuffle", "7", "--val-documents", "500"]}

    def prepare(self):
        folder, choose = self.place.folder, random.Random(1)
        tiny_run.write_tokenizer(self.place.bamdata, folder / "tokenizer.model")
        words = [f"{choose.choice('bdfgklmnprst')}{choose.choice('aeiou')}{n}" for n in range(5000)]
        names = [f"{number}.txt" for number in range(FILES)]
        for name in names:
            lines = (" ".join(choose.choices(words, k=80)) for _ in range(LINES))
            (folder / name).write_text("\n".join(lines) + "\n")
        self.words = [str(self.place.bamdata), "tokenize", "--document", "line", "--tokenizer",
                      "tokenizer.model", "--shard-tokens", "5000000", *self.OPTIONS[self.setting],
                      "--output", OUT, *names]
        start = time.monotonic()
        ended = Process(self.words, folder).end(600)
        self.seconds = time.monotonic() - start
        if ended.code != 0:
            raise Loss(f"undisturbed it ended with {ended.code}:\n{ended.output}")
        (folder / OUT).rename(folder / "expected")

    def attempt(self, number):
        """Killed again and again until it ends; each kill is a try."""
        place, choose, kills = self.place, self.random(number), 0
        for name in (OUT, PARTIAL):
            shutil.rmtree(place.folder / name, ignore_errors=True)
        while True:
            begun = (place.folder / PARTIAL / "progress.json").exists()
            process = place.start(self.words)
            if kills < 8:
                process.wait(choose.uniform(0, self.seconds))
            else:  # a machine that is slower now than undisturbed
                process.wait(600)
            process.send(choose.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            ended = place.end(process, 600)
            if begun and "resuming in" not in ended.output and not ended.killed:
                raise Loss("it did not go on from the progress that was there")
            if ended.code == 0:
                break
            if ended.code not in (-signal.SIGKILL, -signal.SIGTERM):
                raise Loss(f"it ended with {ended.code}")
            kills += 1
            if begun:
                self.note("on the way")
            if (place.folder / OUT).exists():  # whole, as `check` sees; what is left goes with the next call
                self.note("at its place")
                if place.end(place.start(self.words), 600).code != FULL:
                    raise Loss("an output that was there was replaced unasked")
                break
        self.check()
        return kills

    def check(self):
        folder = self.place.folder
        if (folder / PARTIAL).exists():
            raise Loss(f"{PARTIAL} was left behind")
        for path in sorted((folder / OUT).rglob("*")):
            same = folder / "expected" / path.relative_to(folder / OUT)
            if not same.exists():
                raise Loss(f"{path.name} is not in the undisturbed output")
            if path.is_file() and not filecmp.cmp(path, same, shallow=False):
                raise Loss(f"{path.relative_to(folder / OUT)} differs from the undisturbed output")
        if len(list((folder / OUT).rglob("*"))) != len(list((folder / "expected").rglob("*"))):
            raise Loss("the output lacks files of the undisturbed one")
