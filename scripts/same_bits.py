#!/usr/bin/env python3
"""Whether two builds train bitwise identically: every prior with every scale that trains.

  scripts/same_bits.py PROGRAM --record FILE [options]     the bits of one build
  scripts/same_bits.py PROGRAM --against FILE [options]    those of another, compared

Trains a small model for some steps, with grouped heads, documents and sequences of several tiles of
attention, for every combination, precision and number of processes; FILE holds the SHA-256 of each
checkpoint's model and optimizer. The combinations are those of PROGRAM --print-schema when FILE is
recorded. FILE is of one machine: products of other processors round differently.
"""

import argparse
import hashlib
import itertools
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

VOCAB = 128
REFUSED = "a scale that does not train"


def mechanisms(schema, name):
    """Names in the schema, in its order."""
    of = schema["properties"]["model"]["properties"]["attention"]["properties"][name]
    while "oneOf" not in of:
        of = of["anyOf"][0] if "anyOf" in of else sys.exit(f"same_bits.py: no names of {name}")
    for alternative in of["oneOf"]:
        if "enum" in alternative:
            return alternative["enum"]
    return sys.exit(f"same_bits.py: no names of {name}")


def write_tokens(path):
    tokens, token, state, ids = 60000, 1, 1, bytearray()
    for n in range(tokens):
        state = (state * 1103515245 + 12345) % 2**31
        token = 0 if n % 300 == 0 else 1 + (5 * token + (state >> 29)) % (VOCAB - 1)
        ids += struct.pack("<H", token)
    path.write_bytes(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253) + ids)


def config(prior, scale, precision, args, work):
    attention = {"prior": {"name": prior}, "scale": {"name": scale}, "document_mask": True}
    return {
        "config_version": 3, "name": "same bits", "seed": 3, "out_dir": str(work / "out"),
        "device": args.device,
        "model": {"vocab": VOCAB, "width": 64, "layers": 2, "heads": 4, "kv_heads": 2,
                  "mlp": {"kind": "swiglu", "hidden": 96}, "attention": attention},
        "data": {"train": str(work / "data"), "document_start": 0,
                 "sequence_length": args.length},
        "optimizer": {"name": "adamw", "lr": 3e-3, "clip": 1.0},
        "schedule": {"name": "constant"},
        "train": {"steps": args.steps, "precision": precision, "micro_batch": 1, "lanes": 2,
                  "tokens_per_step": 4 * args.length},
        "checkpoint": {"every": args.steps}, "eval": {"every": 0, "tokens": 0, "lengths": []}}


def bits(program, run, processes, work):
    """SHA-256 of what the last checkpoint holds of model and optimizer."""
    path = work / "config.json"
    path.write_text(json.dumps(run))
    command = [program, "--config", path]
    if processes > 1:
        command = ["mpirun", "--oversubscribe", "-np", str(processes), *command]
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        message = " ".join(done.stderr.split())
        if "for evaluation only" not in message:
            sys.exit(f"same_bits.py: {run['model']['attention']}: {message}")
        return REFUSED
    checkpoint = max((work / "out").glob("checkpoint-*"))
    digest = hashlib.sha256()
    for file in sorted(checkpoint.glob("*.safetensors")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", type=pathlib.Path, metavar="FILE")
    what.add_argument("--against", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args()

    program = args.program.resolve()
    if args.against:
        recorded = json.loads(args.against.read_text())
        names = [tuple(key.split(" ")) for key in recorded]
    else:
        schema = json.loads(subprocess.run([program, "--print-schema"], capture_output=True,
                                           check=True).stdout)
        names = [(*pair, precision, str(processes))
                 for pair in itertools.product(mechanisms(schema, "prior"), mechanisms(schema, "scale"))
                 for precision in args.precisions for processes in args.processes]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        (base / "data").mkdir()
        write_tokens(base / "data/train.bin")
        for number, (prior, scale, precision, processes) in enumerate(names):
            work = base / str(number)
            work.mkdir()
            (work / "data").symlink_to(base / "data")
            run = config(prior, scale, precision, args, work)
            key = f"{prior} {scale} {precision} {processes}"
            found[key] = bits(program, run, int(processes), work)
            print(key, found[key], flush=True)
    if args.record:
        args.record.write_text(json.dumps(found, indent=1) + "\n")
        return
    different = [key for key in recorded if found[key] != recorded[key]]
    trained = sum(value != REFUSED for value in recorded.values())
    for key in different:
        print(f"different: {key}: expected {recorded[key]}, found {found[key]}")
    print(f"{len(recorded)} runs, {trained} trained, {len(different)} different")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
