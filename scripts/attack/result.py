"""What a run left: what of it has to be the same however often it was interrupted."""

import hashlib
import json

import events

TIMES = ("tokens_per_second", "matrix_rate_share", "seconds", "data_wait", "crc")  # and what is of them


def checkpoints(out):
    """The folders of checkpoints, by step."""
    if not out.exists():
        return []
    return sorted(entry for entry in out.iterdir() if entry.name.startswith("checkpoint-"))


def newest_step(out):
    """Of the newest checkpoint; 0 where there is none."""
    found = checkpoints(out)
    return int(found[-1].name.removeprefix("checkpoint-")) if found else 0


def damaged(out):
    """What is wrong with a checkpoint, in a sentence, by its manifest read independently of the
    program; None where all are whole."""
    for folder in checkpoints(out):
        try:
            files = json.loads((folder / "manifest.json").read_bytes())["files"]
            for name in ("model.safetensors", "optimizer.safetensors", "state.json"):
                if hashlib.sha256((folder / name).read_bytes()).hexdigest() != files[name]["sha256"]:
                    return f"{folder.name}/{name} has another SHA-256 than its manifest says"
        except (OSError, ValueError, KeyError) as reason:
            return f"{folder.name} is not whole: {reason}"
    return None


def contents(folder):
    """{name: bytes} of a checkpoint; None of what is no file."""
    return {entry.name: entry.read_bytes() if entry.is_file() else None for entry in folder.iterdir()}


def logged_step(out):
    """Of the last whole line of metrics.jsonl; 0 where there is none."""
    try:
        lines = (out / "metrics.jsonl").read_bytes().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"]
    except (OSError, IndexError, ValueError):
        return 0


def without_times(metrics):
    """The lines of metrics.jsonl; numbers stay the text that was written."""
    lines = []
    for text in metrics.splitlines():
        line = json.loads(text, parse_float=str)
        for key in TIMES:
            line.pop(key, None)
        lines.append(json.dumps(line))
    return "\n".join(lines).encode()


def read(out, extra=()):
    """{what: bytes} of a run that has ended; `extra` names in out_dir are passed over."""
    names = {entry.name for entry in out.iterdir()} - set(extra)
    found = {"names in out_dir": "\n".join(sorted(names)).encode()}
    folders = checkpoints(out)
    if folders:
        for file in sorted(folders[-1].iterdir()):
            found[f"{folders[-1].name}/{file.name}"] = file.read_bytes()
    for name, form in (("metrics.jsonl", without_times), ("samples.jsonl", bytes)):
        if (out / name).exists():
            found[name] = form((out / name).read_bytes())
    if (out / "results.json").exists():
        found["results.json"] = (out / "results.json").read_bytes()
    if (out / "tensorboard").exists():
        found["tensorboard"] = repr(events.read(out / "tensorboard")).encode()
    report = out / "report.html"
    if report.exists():
        found["end of report.html"] = report.read_bytes().rstrip()[-7:]
    return found


def difference(expected, out, extra=()):
    """The first thing that is other than expected, in a sentence; None where all is the same. Names in
    `extra` may be in out_dir too."""
    try:
        found = read(out, extra)
    except (OSError, ValueError) as reason:
        return f"what the run left cannot be read: {reason}"
    for what in [*expected, *found]:
        if what not in found:
            return f"{what} is missing"
        if what not in expected:
            return f"{what} is too much"
        if expected[what] != found[what]:
            if what == "names in out_dir":
                return (f"out_dir holds {found[what].decode().split()} instead of "
                        f"{expected[what].decode().split()}")
            at = next((n for n, (a, b) in enumerate(zip(expected[what], found[what])) if a != b),
                      min(len(expected[what]), len(found[what])))
            return (f"{what} differs from byte {at} on ({len(found[what])} bytes, expected "
                    f"{len(expected[what])})")
    return None
