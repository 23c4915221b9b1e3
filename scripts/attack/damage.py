"""Checkpoints damaged at random places: none is accepted silently."""

import os
import shutil

import result
import tiny_run
from attack import Attack
from place import Loss

PAGE = 4096
FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json")


def rewritten(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def flipped(path, choose):
    def change(data):
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
    rewritten(path, change)


def scribbled(path, choose):
    def change(data):
        start = choose.randrange(len(data))
        for at in range(start, min(len(data), start + choose.randrange(1, 512))):
            data[at] ^= choose.randrange(1, 256)
    rewritten(path, change)


def zeroed_page(path, choose):
    def change(data):
        start = choose.randrange(len(data)) // PAGE * PAGE
        end = min(len(data), start + PAGE)
        data[start:end] = bytes(end - start)
    rewritten(path, change)


def truncated(path, choose):
    os.truncate(path, choose.randrange(path.stat().st_size))


def appended(path, choose):
    with path.open("ab") as file:
        file.write(choose.randbytes(choose.randrange(1, 100)))


def removed(path, choose):
    del choose
    path.unlink()


def a_folder(path, choose):
    del choose
    path.unlink()
    path.mkdir()


def a_link_to_nothing(path, choose):
    del choose
    path.unlink()
    path.symlink_to("nothing")


def swapped_with(other, path):
    if not os.path.lexists(other):  # another damage has removed it
        path.rename(other)
        return
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


def swapped_with_another_file(path, choose):
    swapped_with(path.with_name(choose.choice([name for name in FILES if name != path.name])), path)


def swapped_with_another_checkpoint(path, choose):
    others = [each for each in result.checkpoints(path.parent.parent) if each != path.parent]
    swapped_with(choose.choice(others) / path.name, path)


KINDS = (flipped, flipped, scribbled, zeroed_page, truncated, appended, removed, a_folder,
         a_link_to_nothing, swapped_with_another_file, swapped_with_another_checkpoint)


class Damage(Attack):
    name = "damage"
    settings = {"one_checkpoint": (120, 2000), "two_checkpoints": (30, 500), "all_checkpoints": (20, 500)}
    notices = ("other_bits", "lost_line", "wrong_code", "silent")

    def prepare(self):
        """A run that has lost all after the third of its four checkpoints."""
        place, config = self.place, tiny_run.plain(self.place.name_of_out())
        config["checkpoint"]["keep"] = 4
        config["train"]["steps"] = 16
        place.write(config)
        place.run_undisturbed()
        self.template = place.folder / "before"
        shutil.copytree(place.out, self.template)
        shutil.rmtree(result.checkpoints(self.template)[-1])

    def attempt(self, number):
        place, choose = self.place, self.random(number)
        place.clear(self.template)
        folders = result.checkpoints(place.out)[::-1]
        before = [result.contents(folder) for folder in folders]
        for folder in folders[:list(self.settings).index(self.setting) + 1]:
            kind, file = choose.choice(KINDS), choose.choice(FILES)
            if not (folder / file).is_file():  # moved by a swap before
                continue
            kind(folder / file, choose)
            place.journal.append(f"# {folder.name}/{file} {kind.__name__}")
        damaged = [folder.name for folder, whole in zip(folders, before)
                   if result.contents(folder) != whole]
        if not damaged:  # a page of zeros in the place of zeros
            return 0
        whole = [folder for folder in folders if folder.name not in damaged]
        self.check(place.end(place.start()), folders, whole)
        return 1

    def check(self, ended, folders, whole):
        """The newest whole one was resumed from and each damaged one before it named in a warning; 5
        where none is whole."""
        passed = [folder.name for folder in folders[:folders.index(whole[0]) if whole else None]]
        for name in passed:
            if name not in ended.output:
                raise Loss(f"{name} was damaged, and nothing names it")
        if not whole:
            if ended.code != 5:
                raise Loss(f"with all checkpoints damaged it ended with {ended.code}")
            return
        if ended.code != 0:
            raise Loss(f"with {whole[0].name} whole it ended with {ended.code}")
        if passed and "warning" not in ended.output:
            raise Loss(f"{', '.join(passed)} were passed over without a warning")
        if f"{whole[0].name} at step" not in ended.output:
            raise Loss(f"it did not resume from {whole[0].name}")
        # A damaged one that is older than what was resumed from stays as it is.
        if sentence := result.difference(self.place.expected, self.place.out):
            raise Loss(sentence)
