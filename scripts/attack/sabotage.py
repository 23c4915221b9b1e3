"""Faults that a self-test gives to the program under attack: an attack has to notice them.

Each is called when a process has ended, with how it did and the run's folder, and returns how it is
to have ended."""

import os

import result


def flip(path):
    with path.open("r+b") as file:
        file.seek(-5, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 16]))


def other_bits(ended, out):
    """A finished run has another parameter."""
    if ended.code == 0:
        flip(result.checkpoints(out)[-1] / "model.safetensors")
    return ended


def other_tokens(ended, out):
    """A finished set of shards has another token."""
    if ended.code == 0:
        flip(out / "train" / "000000.bin")
    return ended


def lost_line(ended, out):
    """A finished run has lost the last line of its metrics."""
    if ended.code == 0:
        metrics = out / "metrics.jsonl"
        metrics.write_bytes(b"".join(metrics.read_bytes().splitlines(keepends=True)[:-1]))
    return ended


def left_behind(ended, out):
    """A temporary file stays."""
    if ended.code == 0:
        (out / "report.html.tmp-abcdef").touch()
    return ended


def torn(ended, out):
    """A process that died or failed leaves a part of a checkpoint under its name."""
    if ended.code != 0 and result.checkpoints(out):
        path = result.checkpoints(out)[-1] / "optimizer.safetensors"
        os.truncate(path, path.stat().st_size // 2)
    return ended


def wrong_code(ended, out):
    """The program exits with code 99 whatever happens to it."""
    del out
    return ended if ended.killed else ended._replace(code=99)


def silent(ended, out):
    """The program says nothing."""
    del out
    return ended._replace(output="")


def success(ended, out):
    """The program says that all is well whatever happens to it."""
    del out
    return ended if ended.killed else ended._replace(code=0)


def emptied(ended, out):
    """The program empties a folder of somebody else's."""
    partial = out.with_name("out.partial")
    if partial.is_dir():
        for path in [*partial.iterdir(), partial / "one"]:
            if path.is_file():
                path.unlink()
                return ended
        (partial / "one").touch()
    return ended


# What the sentence of a loss says that is of this fault.
SIGNS = {"other_bits": "model.safetensors differs", "other_tokens": "000000.bin differs",
         "lost_line": "metrics.jsonl differs",
         "left_behind": "report.html.tmp-abcdef", "torn": "optimizer.safetensors has another SHA-256",
         "emptied": "changed or was deleted",
         "wrong_code": "ended with 99", "silent": "nothing names it", "success": "ended with 0"}
