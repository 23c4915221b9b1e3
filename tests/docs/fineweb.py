#!/usr/bin/env python3
"""Runs the commands of docs/fineweb.md on the real documents beside the project, small.

    tests/docs/fineweb.py SOURCE BUILD

What downloads, what takes lm-eval and eight GPUs is known by its first word and not run, or run on two
processes; a command of another kind fails the test: it would be untested. The model, its steps and the
validation set are small, by the changes below, each of which has to find what it replaces.
"""

import importlib.util
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "attack"))
from program import ENVIRONMENT  # noqa: E402  mpirun's, on any machine

NOT_RUN = ("./scripts/setup.sh", "./scripts/build.sh", "python3", ".", "hf", "lm_eval")
STEPS = 4
# Of arguments: the page's, those of the test.
SMALLER = {"3932160": "60000", "1000000": "100000", "8": "2",
           "512,1024,2048,4096,8192,16384,32768": "512,1024,2048,4096",
           "train.stop_at=20": "train.stop_at=2", "64": "16"}
# Behind a training's arguments.
SMALL_RUN = ["device=cpu", "model.width=96", "model.layers=2", "model.heads=2", "model.mlp.hidden=192",
             f"train.steps={STEPS}", "train.tokens_per_step=2048", "train.micro_batch=1", "train.lanes=4",
             "train.precision=fp32", "checkpoint.every=2", "eval.every=2", "eval.tokens=4096",
             "eval.length_tokens=4096"]


def commands(page):
    """The indented commands, each with its continued lines as one."""
    lines = [line[4:] for line in page.read_text().splitlines() if line.startswith("    ")]
    return [shlex.split(text) for text in "\n".join(lines).replace("\\\n", " ").splitlines()]


def inputs(data, folder):
    """The documents where the page has its download: the parquet files with pyarrow, else as JSON lines."""
    place = folder / "out" / "fineweb" / "sample" / "10BT"
    place.mkdir(parents=True)
    (folder / "out" / "fineweb" / "tokenizer.model").symlink_to(data / "tokenizer/mistral-7b-v0.3.model")
    if importlib.util.find_spec("pyarrow"):
        found = sorted((data / "fineweb").glob("*.parquet"))
    else:
        print("python3 has no pyarrow: the documents are JSON lines")
        found = [data / "fineweb" / "docs.jsonl.xz"]
    for path in found:
        (place / path.name).symlink_to(path)
    return [str((place / path.name).relative_to(folder)) for path in found]


def smaller(words, texts, used):
    """The command as the test runs it."""
    out = []
    for word in words:
        if word == "out/fineweb/sample/10BT/*.parquet":
            out += texts
        elif word in SMALLER:
            used.add(word)
            out.append(SMALLER[word])
        else:
            out.append(word)
    if "train" in words:
        for change in SMALL_RUN:
            out += ["--set", change]
    return out


def run(words, folder, source):
    print("$ " + shlex.join(words), flush=True)
    ended = subprocess.run(words, cwd=folder, env={**os.environ, **ENVIRONMENT}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode != 0:
        sys.exit(f"{ended.stdout}\nended with {ended.returncode}: a command of {source}/docs/fineweb.md")


def check(folder, both):
    """The results of the page: two runs with the same bits, and what it says is left."""
    out = folder / "out" / "fineweb"
    for name in ("data/train/manifest.json", "data/val/manifest.json", "perplexity.json", "report.html",
                 "bam/report.html", "model/config.json", "model/model.safetensors", "model/tokenizer.json"):
        assert (out / name).is_file(), name
    assert json.loads((out / "data/val/manifest.json").read_text())["tokens"] == int(SMALLER["3932160"])
    lengths = [row["length"] for row in json.loads((out / "perplexity.json").read_text())["windows"]]
    assert lengths == [512, 1024, 2048, 4096], lengths
    assert both[0] == both[1], "one and two processes have other parameters"


def main():
    source, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    data = source.parent / "shared" / "data"
    page = commands(source / "docs" / "fineweb.md")
    unknown = [words for words in page if words[0] not in NOT_RUN + ("mkdir", "mpirun") and
               not words[0].startswith("build/")]
    assert page and not unknown, f"commands of a kind that is not tested: {unknown}"
    if not (data / "fineweb").is_dir():
        print(f"skipped: {data} is not there")
        print("All tests passed (1 assertion in 1 test case)")
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bamtrain-fineweb-"))
    try:
        (folder / "build").symlink_to(build)
        (folder / "configs").symlink_to(source / "configs")
        texts, used, both = inputs(data, folder), set(), []
        for words in page:
            if words[0] in NOT_RUN:
                print("not run: " + shlex.join(words))
                continue
            if words[0] == "mpirun" and not shutil.which("mpirun"):
                print("not run, without mpirun: " + shlex.join(words))
                both.append(both[0])
                continue
            if words[0] == "mpirun":
                shutil.rmtree(folder / "out/fineweb/bam")  # or it would resume at the end
            run(smaller(words, texts, used), folder, source)
            if "train" in words and not {"--dry-run", "train.stop_at=20"} & set(words):
                last = folder / f"out/fineweb/bam/checkpoint-{STEPS:08}/model.safetensors"
                both.append(last.read_bytes())
        assert used == set(SMALLER), f"nothing to replace: {set(SMALLER) - used}"
        check(folder, both)
    finally:
        shutil.rmtree(folder)
    print("All tests passed (1 assertion in 1 test case)")


main()
