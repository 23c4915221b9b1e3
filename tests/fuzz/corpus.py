#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/TARGET/*: where the fuzz targets begin. Of those named "good..." the
program takes something. The tokenizer's model comes from a built bamdata, and is left alone
without one:

    tests/fuzz/corpus.py [BAMDATA]
"""

import hashlib
import json
import lzma
import pathlib
import struct
import subprocess
import sys
import tempfile

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target: str, name: str, *parts) -> None:
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    data = b"".join(p.encode() if isinstance(p, str) else p for p in parts)
    (folder / name).write_bytes(data)


def run_config(**changes) -> dict:
    config = {
        "config_version": 2, "out_dir": "out", "seed": 1,
        "model": {"vocab": 8, "width": 8, "layers": 1, "heads": 1, "mlp": {"hidden": 8},
                  "attention": {"prior": "bam", "scale": "none"}},
        "data": {"train": "train", "sequence_length": 8},
        "optimizer": {"lr": 0.1},
        "train": {"steps": 4, "tokens_per_step": 8, "micro_batch": 1}}
    config.update(changes)
    return config


def configs() -> None:
    write("config", "good", json.dumps(run_config(), indent=1))
    write("config", "good-overrides", json.dumps(run_config()), b"\0train.steps=5",
          b'\0model.attention.prior={"name": "t5", "gain": "1"}', b"\0name=x")
    many = run_config(
        model={"vocab": 64, "width": 16, "layers": 2, "heads": 2, "mlp": {"hidden": 8},
               "attention": {"prior": [{"name": "rope", "theta": 500}, "alibi"],
                             "scale": {"name": "ssmax"}, "normalizer": {"name": "topk", "k": 4},
                             "document_mask": True, "window": 6}},
        data={"train": [{"path": "a", "weight": 1}, {"path": "b", "weight": 0.5}], "val": "v",
              "sequence_length": 8, "document_start": 1},
        schedule={"name": "wsd", "decay_steps": 2}, eval={"every": 2, "lengths": [8, 16]},
        checkpoint={"every": 2, "allow_change": ["eval"]}, log={"tensorboard": True})
    write("config", "good-many-keys", json.dumps(many))
    write("config", "refused", json.dumps(run_config(model={"vocab": 0})))


def checkpoints() -> None:
    state = {"format": 1, "step": 2, "tokens": 16, "config": run_config(),
             "data": {"fingerprint": "f", "tokenizer_sha256": "t", "windows": 2}}
    write("checkpoint", "good-state", "s", json.dumps(state))
    state["data"] = {"fingerprint": "f", "tokenizer_sha256": None, "windows": 2, "sources": [
        {"fingerprint": "g", "tokenizer_sha256": None, "path": "a", "weight": 1}]}
    state["started_from"] = "/elsewhere/checkpoint-00000001"
    write("checkpoint", "good-state-of-mixture", "s", json.dumps(state))
    write("checkpoint", "newer-state", "s", json.dumps({"format": 2, "step": 2}))
    contents = {"model.safetensors": b"", "optimizer.safetensors": b"",
                "state.json": b'{"format": 1, "step": 2}'}
    files = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
             for name, data in contents.items()}
    write("checkpoint", "good-manifest", "m", json.dumps({"files": files}, indent=2), "\n")


def safetensors() -> None:
    header = {"__metadata__": {"format": "pt"},
              "a": {"dtype": "F32", "shape": [2, 4], "data_offsets": [0, 32]},
              "b": {"dtype": "BF16", "shape": [16], "data_offsets": [32, 64]},
              "c": {"dtype": "I32", "shape": [0], "data_offsets": [64, 64]}}
    text = json.dumps(header)
    write("safetensors", "good-header", "h", text)
    write("safetensors", "good-file", "f", struct.pack("<Q", len(text)), text, bytes(64))
    name = "model-00001-of-00001.safetensors"
    index = {"metadata": {"total_size": 64}, "weight_map": {"a": name, "b": name}}
    write("safetensors", "good-index", "i", json.dumps(index))
    scalar = {"a": {"dtype": "F64", "shape": [], "data_offsets": [0, 8]},
              "b": {"dtype": "F64", "shape": [7], "data_offsets": [8, 64]}}
    write("safetensors", "good-scalar", "h", json.dumps(scalar))


def shards() -> None:
    def shard(magic: int, version: int, width: str, ids: list) -> bytes:
        header = struct.pack("<3i", magic, version, len(ids))
        return header.ljust(1024, b"\0") + struct.pack(f"<{len(ids)}{width}", *ids)

    write("shard", "good-shard", "s", shard(20240520, 1, "H", [1, 2, 3, 1, 299]))
    write("shard", "good-wide-shard", "s", shard(20240801, 7, "I", [1, 2, 3]))
    write("shard", "empty-shard", "s", shard(20240520, 1, "H", []))
    digest = "0" * 64
    manifest = {"format": 1,
                "tokenizer": {"sha256": digest, "vocab": 300, "bos": 1, "eos": None},
                "document_start": 1, "tokens": 4, "documents": 2,
                "shards": [{"file": "000000.bin", "tokens": 4, "documents": 2, "sha256": digest}]}
    write("shard", "good-manifest", "m", json.dumps(manifest))
    manifest.update(format=3, tokenizer={"file": "t.model", **manifest["tokenizer"]})
    text = json.dumps(manifest, separators=(",", ":"))
    manifest["digest"] = hashlib.sha256(text.encode()).hexdigest()
    write("shard", "good-manifest-with-tokenizer", "m", json.dumps(manifest))


def metrics() -> None:
    line = {"step": 1, "tokens": 8, "loss": 2.5, "lr": 0.1, "grad_norm": 1.5,
            "tokens_per_second": 5.5}
    evaluated = dict(line, step=2, seconds=3.5, matrix_rate_share=0.25, validation_loss=2.25,
                     validation_loss_error=0.125,
                     attention={"windows": 2, "entropy": [[0.5]], "support": [[3.5]],
                                "live_tiles": [[1]]},
                     parameters={"layers.0.attention.prior.theta_alpha": [0.5],
                                 "layers.0.attention.prior.theta_beta": [0.5],
                                 "layers.0.attention.prior.theta_mu": [0.5]})
    write("metrics", "good-metrics", "m", json.dumps(line), "\n", json.dumps(evaluated), "\n")
    write("metrics", "torn-metrics", "m", json.dumps(line), "\n", json.dumps(evaluated)[:30])
    samples = [{"step": s, "prompt": "The", "text": t} for s, t in ((1, "end"), (2, "<b>\u00e9"))]
    write("metrics", "good-samples", "s", "".join(json.dumps(s) + "\n" for s in samples))
    rows = [{"length": n, "loss": 2.0, "loss_error": 0.1, "perplexity": p, "perplexity_error": e,
             "tokens": 64, "documents": 2} for n, p, e in ((8, 7.4, 0.5), (16, None, None))]
    bins = [dict(rows[0], **{"from": 0, "to": 16})]
    write("metrics", "good-perplexity", "p", json.dumps(
        {"step": 2, "training_length": 8, "data_fingerprint": "f", "documents": 2,
         "last_tokens": 4, "windows": rows, "last": rows[:1], "bins": bins}))
    paired = [dict(rows[0], length=n, targets="t", sums=sums)
              for n, sums in ((8, "64.5 63.5"), (16, "65 60.25"))]
    write("metrics", "perplexity-in-pairs", "p", json.dumps(
        {"step": 2, "training_length": 8, "data_fingerprint": "f", "windows": paired,
         "target_counts": {"t": "32 32"}}))
    write("metrics", "perplexity-of-ranges", "p", json.dumps(
        {"step": 2, "training_length": 8, "data_fingerprint": "f", "text": "packed", "tokens": 64,
         "short": [dict(rows[0], **{"from": 2})],
         "positions": {"to": 5, "step": 2, "windows": 3, "loss": [2.5, 2.0, None]}}))
    start = {"version": "0.1.0", "commit": "abc", "compiler": "GCC 12", "libraries": {"fmt": "9.1.0"},
             "host": "h", "processor": "p", "gpu": None, "processes": 1, "threads": 2,
             "started": "2026-11-25T00:00:00Z", "precision": "fp32", "device": "cpu", "parameters": 123}
    write("metrics", "good-starts", "r", json.dumps([dict(start, gpu="g"), start], indent=2), "\n")
    write("metrics", "starts-of-a-config", "r", json.dumps(run_config()))
    found = [{"task": "passkey", "length": n, "exact_match": 0.5,
              "cells": [{"depth": d, "exact_match": e} for d, e in ((0.0, 1.0), (1.0, 0.0))]}
             for n in (0, 128)]
    write("metrics", "good-retrieval", "h", json.dumps({"scores": found}))
    found[1]["cells"][1]["depth"] = 0.5
    write("metrics", "retrieval-at-other-depths", "h", json.dumps({"scores": found}))


def texts() -> None:
    text = " = A = \n\nOne line of the first.\n\n\n = B = \n\nOne of the second, \u00e9.\n"
    for kind, name in enumerate(("line", "file", "blank-line", "wikitext")):
        write("text", f"good-{name}", bytes([kind, 0]), text)
    lines = '{"text": "one\\n\\u00e9"}\n\n{"id": 2, "text": "two"}\n'
    write("text", "good-jsonl", bytes([4, 0]), lines)
    write("text", "good-bad-utf8", bytes([0, 1]), b"one \xff\xc3 two\r\n\xed\xa0\x80\n")
    write("text", "good-xz", bytes([0, 0]), lzma.compress(text.encode()))
    # A frame of one raw block, without a checksum.
    frame = bytes.fromhex("28b52ffd20") + bytes([len(text.encode())])
    block = (len(text.encode()) << 3 | 1).to_bytes(3, "little")
    write("text", "good-zstd", bytes([0, 0]), frame, block, text)


def with_few_merges(tokenizer: dict) -> dict:
    """The single bytes and the first merges alone: a small input has more tries a second."""
    merges = 8
    if "model" not in tokenizer:  # tekken.json
        special = tokenizer["config"]["default_num_special_tokens"]
        tokenizer["vocab"] = tokenizer["vocab"][:256 + merges]
        tokenizer["config"].update(num_vocab_tokens=256 + merges,
                                   default_vocab_size=256 + merges + special)
        return tokenizer
    model = tokenizer["model"]
    first = len(model["vocab"]) - len(model["merges"])  # ids before that are of single bytes
    model["merges"] = model["merges"][:merges]
    model["vocab"] = {piece: n for piece, n in model["vocab"].items() if n < first + merges}
    tokenizer["added_tokens"] = [t for t in tokenizer["added_tokens"] if t["id"] < first]
    return tokenizer


def tokenizers(bamdata: list) -> None:
    write("tokenizer", "good-text", "t", "The lady of 12 lakes,  na\u00efve.\n\tThe  end\u2581")
    for name in ("gpt2", "neox", "tekken"):
        path = pathlib.Path(__file__).parents[1] / "data" / "tokenizers" / f"{name}.json"
        tokenizer = with_few_merges(json.loads(path.read_text()))
        text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
        write("tokenizer", f"good-{name}", "m", text)
    write("tokenizer", "bad-text", "t", b"The \xff lady\0of\r\n")
    for program in bamdata:
        with tempfile.TemporaryDirectory() as folder:
            text, model = pathlib.Path(folder) / "text.txt", pathlib.Path(folder) / "t.model"
            text.write_text("The lord of the tower, the lady of the lake\n" * 2)
            subprocess.run([program, "train-tokenizer", text, "--document", "line", "--vocab",
                            "285", "--output", model], check=True, capture_output=True)
            write("tokenizer", "good-model", "m", model.read_bytes())


def prompts() -> None:
    golden = pathlib.Path(__file__).parents[1] / "prompts" / "golden.json"
    for n, case in enumerate(json.loads(golden.read_text())["cases"]):
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n"
                        for record in case["records"] + case["shot_records"])
        cloze = case["format"] == "cloze"
        write("prompts", f"good-{case['format']}-{n}", "z" if cloze else "c", lines)
    write("prompts", "good-query", "c", json.dumps(
        {"query": "Is it?", "choices": ["yes", "no"], "gold": 1}))
    write("prompts", "good-endings", "c", json.dumps(
        {"ctx": "he", "endings": ["sits", "runs"], "label": "0"}))
    write("prompts", "good-requests", "r", json.dumps({"context": "a ", "continuation": "b"}))
    write("prompts", "bad-gold", "c", json.dumps(
        {"query": "Is it?", "choices": ["yes", "no"], "gold": 2}))


configs()
checkpoints()
safetensors()
shards()
metrics()
prompts()
texts()
tokenizers(sys.argv[1:])
