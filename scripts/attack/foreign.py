"""`bamdata tokenize` where OUTPUT.partial is somebody else's: refused by name, and nothing of it touched."""

import os
import shutil

import tiny_run
from attack import Attack
from place import Loss

PARTIAL = "out.partial"
REFUSED = 6  # the exit code for a folder that cannot be had


def filled(folder, choose):
    """Files such as people keep, below one another; names of the program's own shards among them."""
    names = ("notes.txt", "000000.bin", "train/000000.bin", "manifest.json", "a/b/c", ".hidden", "out.json")
    for name in choose.sample(names, choose.randrange(1, len(names) + 1)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(choose.randbytes(choose.randrange(200)))


def a_folder(partial, choose):
    partial.mkdir()
    filled(partial, choose)


def a_link(partial, choose):
    elsewhere = partial.with_name("elsewhere")
    elsewhere.mkdir()
    filled(elsewhere, choose)
    partial.symlink_to(choose.choice((elsewhere, elsewhere.name)))


def a_link_to_an_empty_folder(partial, choose):
    del choose
    partial.with_name("elsewhere").mkdir()
    partial.symlink_to("elsewhere")


def a_link_to_nothing(partial, choose):
    del choose
    partial.symlink_to("elsewhere")


def empty_folders(partial, choose):
    for name in choose.sample(("train", "val", "a/b"), choose.randrange(1, 4)):
        (partial / name).mkdir(parents=True)


def a_file(partial, choose):
    partial.write_bytes(choose.randbytes(choose.randrange(200)))


def a_run(partial, choose):
    a_folder(partial, choose)
    (partial / ".lock").write_text("12345")


def another_journal(partial, choose):
    if choose.randrange(2):
        a_run(partial, choose)
    partial.mkdir(exist_ok=True)
    (partial / "progress.json").write_text(choose.choice(("", "[]", '{"step": 3}', '{"format": 1}', "half\n")))


KINDS = (a_folder, a_folder, a_run, another_journal, a_link, a_link, a_link_to_an_empty_folder, a_link_to_nothing, empty_folders, a_file)


def tree(*tops):
    """What lies there, {path: link, bytes or None of a folder}."""
    found = {}
    for top in tops:
        for path in ([top, *sorted(top.rglob("*"))] if os.path.lexists(top) else []):
            found[str(path)] = (f"link to {os.readlink(path)}" if path.is_symlink()
                                else path.read_bytes() if path.is_file() else None)
    return found


class Foreign(Attack):
    name = "foreign"
    settings = {"partial": (40, 500), "bad_input": (20, 500)}
    notices = ("wrong_code", "silent", "emptied")

    def prepare(self):
        folder = self.place.folder
        tiny_run.write_tokenizer(self.place.bamdata, folder / "tokenizer.model")
        (folder / "text.txt").write_text("a line of text\n" * 200)
        (folder / "bad.txt").write_bytes(b"a line of text\n" * 20 + b"\xff\n")
        inputs = ["text.txt", "bad.txt"] if self.setting == "bad_input" else ["text.txt"]
        self.words = [str(self.place.bamdata), "tokenize", "--document", "line", "--tokenizer",
                      "tokenizer.model", "--output", "out", *inputs]

    def attempt(self, number):
        place, choose = self.place, self.random(number)
        partial, elsewhere = place.folder / PARTIAL, place.folder / "elsewhere"
        for path in (partial, elsewhere, place.out):
            if path.is_symlink() or path.is_file():
                path.unlink()
            shutil.rmtree(path, ignore_errors=True)
        kind = choose.choice(KINDS)
        kind(partial, choose)
        place.journal.append(f"# {PARTIAL} is {kind.__name__}")
        before = tree(partial, elsewhere)
        ended = place.end(place.start(self.words))
        if (after := tree(partial, elsewhere)) != before:
            changed = sorted(path for path in {*before, *after} if before.get(path, 0) != after.get(path, 0))
            raise Loss(f"{kind.__name__}: somebody else's {', '.join(changed)} changed or was deleted")
        if ended.code != REFUSED:
            raise Loss(f"{PARTIAL} is {kind.__name__}, and it ended with {ended.code}")
        if PARTIAL not in ended.output:
            raise Loss(f"{PARTIAL} is {kind.__name__}, and nothing names it")
        if place.out.exists():
            raise Loss(f"{PARTIAL} is {kind.__name__}, and there is an output")
        return 1
