"""A run of a second with a checkpoint every few steps, in a folder of its own."""

import json
import random
import struct
import subprocess

VOCAB = 280
DOCUMENT_START = 1
LENGTH = 32  # of a training sequence
STEPS, EVERY = 40, 4  # of the run, and between its checkpoints
FINAL_LENGTHS = [32, 64, 128]  # of the evaluation at the end


def write_shard(path, tokens, document, seed):
    """llm.c's format (docs/formats.md): documents of `document` random ids."""
    choose = random.Random(seed)
    ids = [choose.randrange(2, VOCAB) for _ in range(tokens)]
    ids[::document] = [DOCUMENT_START] * len(ids[::document])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<256i", 20240520, 1, tokens, *[0] * 253) +
                     struct.pack(f"<{tokens}H", *ids))


def write_tokenizer(bamdata, path):
    """Of VOCAB pieces or fewer: what samples need."""
    text = path.with_suffix(".txt")
    words = ["the", "old", "sailor", "told", "of", "ships", "and", "storms"]
    choose = random.Random(1)
    text.write_text("".join(choose.choice(words) + " " for _ in range(3000)))
    subprocess.run([bamdata, "train-tokenizer", "--vocab", str(VOCAB), "--document", "file",
                    "--output", path, text], check=True, capture_output=True)


def plain(out):
    """Ten checkpoints, of which two are kept, and nothing else switched on."""
    return {
        "config_version": 3, "name": "attacked", "seed": 7, "device": "cpu", "out_dir": out,
        "model": {"vocab": VOCAB, "width": 32, "layers": 2, "heads": 2, "kv_heads": 1,
                  "mlp": {"kind": "swiglu", "hidden": 32},
                  "attention": {"prior": {"name": "bam"}, "scale": {"name": "ssmax"},
                                "document_mask": True}},
        "data": {"train": "train", "sequence_length": LENGTH, "document_start": DOCUMENT_START},
        "optimizer": {"name": "adamw", "lr": 3e-3},
        "schedule": {"name": "cosine", "min_ratio": 0.1},
        "train": {"steps": STEPS, "tokens_per_step": 8 * LENGTH, "micro_batch": 1, "lanes": 8},
        "checkpoint": {"every": EVERY, "keep": 2}}


def everything(out):
    """The same with everything switched on that writes files."""
    config = plain(out)
    config["data"]["val"] = "val"
    config["checkpoint"]["keep_every"] = 4 * EVERY
    config["eval"] = {"every": EVERY, "tokens": 1024, "lengths": FINAL_LENGTHS,
                      "tasks": [{"task": "copy", "lengths": [4, 8], "samples": 10, "every": EVERY},
                                {"task": "flip_flop", "lengths": [9], "samples": 10}]}
    config["checkpoint"]["best"] = {"metric": "copy@8/loss"}
    config["sample"] = {"every": 2 * EVERY, "prompts": ["", "the old"], "tokenizer": "tokenizer.model",
                        "max_tokens": 8}
    config["log"] = {"tensorboard": True}
    return config


def write_inputs(folder, bamdata):
    """Shards and tokenizer, under the names that the configs have."""
    write_shard(folder / "train" / "000.bin", 20000, 50, 1)
    write_shard(folder / "val" / "000.bin", 9000, 300, 2)
    write_tokenizer(bamdata, folder / "tokenizer.model")


def write_config(folder, config):
    (folder / "run.json").write_text(json.dumps(config, indent=1))
