#!/usr/bin/env python3
"""Runs the Dockerfile without Docker, as root: each stage in a tree of debootstrap. Then checks what came out:

- no compiler, header or source;
- as the image's user, another one and root, in a mounted folder: both programs, a tokenizer, shards, a training,
  and one of two processes;
- Parquet is read with pyarrow, and refused without.

    scripts/check_dockerfile.py FOLDER [--suite SUITE] [--mirror URL]

FOLDER gets some GB: Debian's SUITE, which the first call fetches, and the trees of both stages. By hand, before
a release. Mounts are in namespaces of their own and end with each command.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # of Docker's images
# How this machine reaches the network: files here, and in the trees.
NETWORK = {"/etc/resolv.conf": "etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt": "etc/machine.crt"}
NO_FILES = (r"(x86_64-linux-gnu-)?(gcc|g\+\+|cc|c\+\+|cpp|clang|as|ld|nvcc|ninja|meson|cc1|cc1plus)(-\d+)?",
            r".*\.(h|hpp|hh|c|cc|cpp|cu|cuh|a|o)")


def say(text):
    print(f"== {text}", flush=True)


class Tree:
    """A root folder, and what the Dockerfile has set for the commands in it."""

    def __init__(self, root):
        self.root = root
        self.arguments = {"PIP_CERT": "/etc/machine.crt"}  # they end with the build
        self.environment = {"PATH": PATH}
        self.folder, self.user, self.entrypoint = "/", "0:0", []

    def run(self, command, user=None, mounted=None, **options):
        """As a container does: with its own processes and mounts, /proc, and the devices that all have.
        `mounted` is a folder here that stands at the tree's working folder."""
        root = shlex.quote(str(self.root))
        setup = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc",
                 f"mount -t tmpfs -o mode=1777 tmp {root}/tmp", f"mount -t tmpfs -o mode=755 dev {root}/dev",
                 f"mkdir -m 1777 {root}/dev/shm; mkdir {root}/dev/pts; ln -s /proc/self/fd {root}/dev/fd",
                 f"mount -t devpts -o newinstance,ptmxmode=0666 pts {root}/dev/pts; ln -s pts/ptmx {root}/dev/ptmx"]
        for device in ("null", "zero", "random", "urandom"):
            setup.append(f"touch {root}/dev/{device}; mount --bind /dev/{device} {root}/dev/{device}")
        if mounted:
            setup.append(f"mount --bind {shlex.quote(str(mounted))} {root}{self.folder}")
        inside = f"cd {shlex.quote(self.folder)} && exec {shlex.join(command)}"
        setup.append(f"exec chroot --userspec={user or self.user} --groups= {root} /bin/sh -c {shlex.quote(inside)}")
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", "\n".join(setup)],
                              env=self.environment | self.arguments, stdin=subprocess.DEVNULL, **options)


def copied(source, root):
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "-a", source, root], check=True)
    return Tree(root)


def debian(folder, suite, mirror):
    """What Debian's images are made of."""
    root = folder / suite
    if not (folder / f"{suite}.complete").exists():
        say(f"debootstrap {suite}")
        shutil.rmtree(root, ignore_errors=True)
        subprocess.run(["debootstrap", "--variant=minbase", suite, root, mirror], check=True,
                       stdout=subprocess.DEVNULL)
        for here, there in NETWORK.items():
            shutil.copy(here, root / there)
        (folder / f"{suite}.complete").touch()
    return root


def stages_of(dockerfile):
    """The instructions of each stage, (name, text), the first of them FROM. Lines that end with a backslash
    continue; comments are left out."""
    lines = [line for line in dockerfile.splitlines() if not line.startswith("#")]
    stages = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, text = line.split(None, 1)
        if name == "FROM":
            stages.append([])
        if stages:
            stages[-1].append((name, text))
        elif name != "ARG":
            sys.exit(f"check_dockerfile.py: expected ARG or FROM at the beginning, found {name}")
    return stages


def follow(name, text, tree, trees, arguments):
    """One instruction. One that the Dockerfile does not use yet is an error."""
    key, _, value = text.partition("=")
    words = text.split()
    if name == "RUN":
        say("RUN " + " ".join(words)[:110])
        tree.run(["/bin/sh", "-c", text], check=True)
    elif name == "ARG":
        tree.arguments[key] = arguments.get(key, value)
    elif name == "ENV":
        tree.environment[key] = value
    elif name == "COPY" and words[0].startswith("--from="):
        origin = trees[words[0].removeprefix("--from=")].root
        subprocess.run(["cp", "-a", f"{origin}{words[1]}/.", f"{tree.root}{words[2]}"], check=True)
    elif name == "COPY" and words[0] == ".":
        ignored = (SOURCE / ".dockerignore").read_text().split()
        files = [f for f in SOURCE.iterdir() if not any(fnmatch.fnmatch(f.name, i) for i in ignored)]
        target = pathlib.Path(f"{tree.root}{words[1]}")
        target.mkdir()
        subprocess.run(["cp", "-a", *files, target], check=True)
    elif name == "WORKDIR":
        tree.folder = text
        pathlib.Path(f"{tree.root}{text}").mkdir(parents=True, exist_ok=True)
    elif name == "USER":
        tree.user = text
    elif name == "ENTRYPOINT":
        tree.entrypoint = json.loads(text)
    else:
        sys.exit(f"check_dockerfile.py: expected an instruction that this script follows, found {name} {text}")


def build(folder, base, arguments):
    """The last stage's tree. What comes before a stage's first ARG is done once, as Docker's cache has it."""
    trees, tree = {}, None
    for instructions in stages_of((SOURCE / "Dockerfile").read_text()):
        words = instructions.pop(0)[1].split()
        name = words[2] if words[1:2] == ["AS"] else "result"
        say("FROM " + " ".join(words))
        kept = folder / f"{name}.kept"
        first = next((i for i, (n, _) in enumerate(instructions) if n == "ARG"), 0)
        if first and not kept.exists():
            tree = copied(base, folder / name)
            for instruction in instructions[:first]:
                follow(*instruction, tree, trees, arguments)
            tree.root.rename(kept)
        tree = trees[name] = copied(kept if first else base, folder / name)
        for instruction in instructions[first:]:
            follow(*instruction, tree, trees, arguments)
        tree.arguments = {}
    return tree


class Checks:
    def __init__(self):
        self.failed = 0

    def expect(self, holds, text, otherwise=""):
        self.failed += not holds
        print(f"{'ok    ' if holds else 'FAILED'} {text}" + ("" if holds else f": {otherwise}"), flush=True)


def check_files(checks, tree):
    files = [pathlib.Path(folder, f) for folder, _, names in os.walk(tree.root) for f in names]
    names = [f.relative_to(tree.root) for f in files if any(re.fullmatch(r, f.name) for r in NO_FILES)]
    found = [str(name) for name in names if name.parts[:3] != ("usr", "share", "doc")]  # Debian's examples
    checks.expect(not found, "no compilers, headers and sources", found[:10])
    size = sum(f.lstat().st_size for f in files)
    say(f"{size / 1e6:.0f} MB")


def write_inputs(work):
    block = "".join(f"{i} times {i} is {i * i}, which is {'odd' if i % 2 else 'even'}.\n" for i in range(40))
    (work / "text.txt").write_text("\n".join(block.replace("which", word) for word in 30 * ["that", "this", "and it"]))
    config = json.loads((SOURCE / "configs/extrapolation.json").read_text())
    config["out_dir"] = "run"
    config["model"] |= {"vocab": 300, "width": 32, "layers": 2, "heads": 2, "mlp": {"kind": "swiglu", "hidden": 32}}
    config["data"] |= {"train": "data/train", "val": "data/val"}
    config["train"] |= {"steps": 4, "tokens_per_step": 512, "micro_batch": 4}
    config["checkpoint"] = {"every": 2}
    config["eval"] = {"lengths": [64, 128]}
    (work / "run.json").write_text(json.dumps(config))


def check_programs(checks, tree, folder, user, parquet):
    """In a mounted folder that belongs to the user."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    write_inputs(work)
    shutil.copy(parquet, work / "rows.parquet")
    for path in (work, *work.iterdir()):
        os.chown(path, *map(int, user.split(":")))

    def call(command):
        done = tree.run(shlex.split(command), user=user, mounted=work, text=True, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def works(command, says=""):
        code, output = call(command)
        checks.expect(code == 0 and says in output, f"{user}: {command}", f"exit code {code}: {output[-1000:]}")

    train = shlex.join(tree.entrypoint)
    works(f"{train} --version")
    works("bamdata --help", "tokenize")
    works("bamdata train-tokenizer --document blank-line --vocab 300 --output t.model text.txt")
    works("bamdata tokenize --document blank-line --tokenizer t.model --val-fraction 0.2 --output data text.txt")
    works(f"{train} --config run.json")
    owner = (work / "run/results.json").stat() if (work / "run/results.json").exists() else None
    checks.expect(owner and f"{owner.st_uid}:{owner.st_gid}" == user, f"{user}: owns results.json", owner)
    if user != "0:0":  # mpirun refuses root
        works(f"mpirun -n 2 --oversubscribe {train} --config run.json --set out_dir=two")
    tokenize = "bamdata tokenize --tokenizer t.model --output rows rows.parquet"
    if pyarrow_in(tree):
        works(tokenize, "3 documents")
    else:
        code, output = call(tokenize)
        checks.expect(code == 9 and "pyarrow" in output, f"{user}: {output.strip()}", f"exit code {code}: {output}")


def pyarrow_in(tree):
    return bool(list(tree.root.glob("usr/local/lib/python3*/dist-packages/pyarrow")))


def write_parquet(tree, folder):
    tree.run(["python3", "-c", "import pyarrow, pyarrow.parquet; pyarrow.parquet.write_table(pyarrow.table("
              "{'text': ['one 1', 'two 2', 'three 3']}), 'rows.parquet')"], user="0:0", mounted=folder, check=True)
    return folder / "rows.parquet"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--suite", default="trixie", help="Debian's, as the base of both stages (trixie)")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    base = debian(folder, options.suite, options.mirror)
    for kept in folder.glob("*.kept"):
        shutil.rmtree(kept)
    checks, parquet = Checks(), None
    for pyarrow in ("pyarrow", ""):
        say(f"with PYARROW={pyarrow}")
        tree = build(folder, base, {"PYARROW": pyarrow})
        parquet = parquet or write_parquet(tree, folder)
        checks.expect(pyarrow_in(tree) == bool(pyarrow), "pyarrow is there if it was asked for")
        check_files(checks, tree)
        for user in (tree.user, "4321:4321", "0:0"):
            check_programs(checks, tree, folder, user, parquet)
    say(f"{checks.failed} failed")
    sys.exit(checks.failed > 0)


main()
