#!/usr/bin/env python3
"""Shows that exported models compute in Hugging Face's transformers what bamtrain computes.

Run by hand. Needs transformers 5, torch 2.6 or later, safetensors and sentencepiece of the Python
registry, and a build of bamtrain with its tests:

    python3 -m venv venv
    venv/bin/pip install torch transformers safetensors sentencepiece protobuf
    venv/bin/python scripts/check_export.py --build build [CASE...]

For every case a small model is trained for a few steps, exported and loaded. Its logits must equal
bamtrain's (tests/model/write_logits) within 1e-4: at once, in pieces with a cache, and with padding
on the left; greedy generate() must give bamtrain's own most likely tokens, padded or not, and beam
search the same with and without its cache. Lengths go past the training length. Rows of every
normalizer and their gradients must be the golden ones. Tokenizers must give the ids of bamdata.
"""

import argparse
import builtins
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from export_cases import CASES, REPLACED, VOCAB, add_missing, model, rope
from export_rows import check_rows
from export_tokenizers import check_tokenizers
from program_schema import mechanism_names

TOLERANCE = 1e-4
TRAINED_AT, LENGTH, START = 24, 40, 1


def write_shard(path, count, seed):
    """llm.c's format: noisy repetitions in documents of about thirty tokens."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(2, VOCAB, count)
    for i in range(3, count):
        if rng.random() < 0.7:
            tokens[i] = max(2, (tokens[i - 3] + 1) % VOCAB)
    tokens[rng.random(count) < 1 / 30] = START
    tokens[0] = START
    header = np.zeros(256, np.int32)
    header[:3] = 20240520, 1, count
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header.tobytes() + tokens.astype(np.uint16).tobytes())


def command(*words):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Bamtrain:
    """The programs of a build, and a folder to work in."""

    def __init__(self, build, folder):
        self.program, self.folder = build / "src" / "bamtrain", folder
        self.logits_program = build / "tests" / "model" / "write_logits"
        write_shard(folder / "train" / "000.bin", 20000, 1)

    def config(self, name, section):
        run = {"config_version": 3, "name": name, "seed": 5, "device": "cpu",
               "out_dir": str(self.folder / name), "model": section,
               "data": {"train": str(self.folder / "train"), "sequence_length": TRAINED_AT,
                        "document_start": START},
               "optimizer": {"lr": 0.02}, "schedule": {"name": "constant"},
               "train": {"steps": 12, "tokens_per_step": 8 * TRAINED_AT, "micro_batch": 8}}
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(run))
        return path

    def train(self, name, section):
        command(self.program, "--config", self.config(name, section))
        return self.folder / name / "checkpoint-00000012"

    def export(self, checkpoint, name, *options):
        out = self.folder / f"{name}-hf"
        command(self.program, "export", "--checkpoint", checkpoint, "--output", out, *options)
        return out

    def logits(self, checkpoint, tokens, changes=()):
        given, out = self.folder / "tokens.safetensors", self.folder / "logits.safetensors"
        save_file({"tokens": np.ascontiguousarray(tokens, dtype=np.int32)}, given)
        command(self.logits_program, checkpoint, given, out, *changes)
        return load_file(out)["logits"]


def largest(a, b):
    difference = float(np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)).max())
    assert difference <= TOLERANCE, f"differs by {difference}"
    return difference


def sample_tokens(single_documents):
    rng = np.random.default_rng(3)
    tokens = rng.integers(2, VOCAB, (3, LENGTH))
    tokens[:, 0] = START
    if not single_documents:
        tokens[1, [5, 6, 17]] = START
        tokens[2, 30] = START
    return tokens


def check_padding(hf, bamtrain, checkpoint, tokens, changes, grows):
    """Rows of three lengths in one batch, padded on the left; where a text `grows`, with a cache
    too."""
    lengths = [LENGTH, LENGTH - 13, 6]
    padded = torch.zeros(3, LENGTH, dtype=torch.long)
    mask = torch.zeros(3, LENGTH, dtype=torch.long)
    for row, length in enumerate(lengths):
        padded[row, LENGTH - length:] = torch.from_numpy(tokens[row, :length])
        mask[row, LENGTH - length:] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = [hf(padded, attention_mask=mask, position_ids=positions, use_cache=False).logits]
    if grows:
        first = hf(padded[:, :36], attention_mask=mask[:, :36], position_ids=positions[:, :36],
                   use_cache=True)
        rest = hf(padded[:, 36:], attention_mask=mask, position_ids=positions[:, 36:],
                  past_key_values=cache_of(first), use_cache=True)
        logits.append(torch.cat([first.logits, rest.logits], 1))
    worst = 0.0
    for row, length in enumerate(lengths):
        expected = bamtrain.logits(checkpoint, tokens[row:row + 1, :length], changes)[0]
        for found in logits:
            worst = max(worst, largest(found[row, LENGTH - length:].numpy(), expected))
    return worst


def check_generation(hf, bamtrain, checkpoint, tokens, changes, barred, new=12):
    """Greedy continuations against bamtrain's own argmax, alone and in a padded batch; beams.
    `barred`: tokens that are not to be generated."""
    settings = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False, "pad_token_id": 0,
                "eos_token_id": None, "suppress_tokens": barred}
    prompts = [tokens[0, :9], tokens[1, :14]]
    expected = []
    for prompt in prompts:
        ids = torch.from_numpy(prompt)[None]
        text = hf.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0].numpy()
        own = bamtrain.logits(checkpoint, text[None, :-1], changes)[0]
        own[:, barred or []] = -np.inf
        own = own.argmax(-1)
        assert (text[len(prompt):] == own[len(prompt) - 1:]).all(), f"{text} {own}"
        expected.append(text[len(prompt):])
    longest = max(map(len, prompts))
    batch = torch.zeros(2, longest, dtype=torch.long)
    mask = torch.zeros(2, longest, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        batch[row, longest - len(prompt):] = torch.from_numpy(prompt)
        mask[row, longest - len(prompt):] = 1
    texts = hf.generate(batch, attention_mask=mask, **settings)[:, longest:].numpy()
    assert (texts == np.stack(expected)).all(), "in a padded batch"
    # By their scores: several beams may be equally likely, documents that begin anew always are.
    settings |= {"num_beams": 3, "suppress_tokens": [START], "return_dict_in_generate": True,
                 "output_scores": True}
    beams = [hf.generate(batch, attention_mask=mask, use_cache=cached, **settings).sequences_scores
             for cached in (True, False)]
    assert torch.allclose(*beams, rtol=0, atol=TOLERANCE), "beams with and without a cache"


def cache_of(outputs):
    """What transformers calls `cache` from 5.24 on, past_key_values before."""
    return outputs["cache" if "cache" in outputs else "past_key_values"]


def check_pieces(hf, ids, expected):
    cache, pieces = None, []
    for piece in ids.split([11, 1, 1, 7, LENGTH - 20], 1):
        out = hf(piece, past_key_values=cache, use_cache=True)
        cache = cache_of(out)
        pieces.append(out.logits)
    return largest(torch.cat(pieces, 1).numpy(), expected)


def check_growth_is_refused(hf, ids):
    cache = cache_of(hf(ids[:, :11], use_cache=True))
    for grow in (lambda: hf(ids[:, 11:], past_key_values=cache),
                 lambda: hf.generate(ids, max_new_tokens=2, use_cache=False)):
        try:
            grow()
        except ValueError as error:
            assert "incremental decoding does not know the final length" in str(error), error
        else:
            raise AssertionError("a text grows, whose length its weights depend on")


def class_without_code(name):
    """transformers' own class of a case, None where it needs the folder's code."""
    for prefix, known in (("llama", "LlamaForCausalLM"), ("gpt2", "GPT2LMHeadModel")):
        if name.startswith(prefix):
            return known
    return None


def check(name, bamtrain, transformers, checkpoint, changes=()):
    options = [word for change in changes for word in ("--set", change)]
    label = name + ("-replaced" if changes else "")
    folder = bamtrain.export(checkpoint, label, *options)
    known = class_without_code(name)
    assert (folder / "modeling_bamtrain.py").exists() == (known is None)
    # None asks: a model of transformers' own must load without a question.
    trust = True if known is None else None
    hf = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=trust)
    hf.eval()
    assert type(hf).__name__ == (known or "BamtrainForCausalLM")
    assert hf.dtype == torch.float32
    tokens = sample_tokens(single_documents=known is not None)
    expected = bamtrain.logits(checkpoint, tokens, changes)
    ids = torch.from_numpy(tokens)
    grows = getattr(hf.config, "normalizer", {}).get("of") != "sequence"
    with torch.no_grad():
        once = largest(hf(ids, use_cache=False).logits.numpy(), expected)
        padded = check_padding(hf, bamtrain, checkpoint, tokens, changes, grows)
        if grows:
            cached = f"{check_pieces(hf, ids, expected):.1e}"
            # These classes do not know that a second document begins.
            check_generation(hf, bamtrain, checkpoint, tokens, changes, [START] if known else None)
        else:
            cached = "refused"
            check_growth_is_refused(hf, ids)
    # It can be trained further.
    hf(ids, labels=ids).loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in hf.parameters() if p.grad is not None)
    print(f"{label:30} largest difference {once:.1e}, cached {cached}, padded {padded:.1e}, "
          f"logits up to {np.abs(expected).max():.1f}", flush=True)
    return hf


def check_forms(name, bamtrain, transformers, checkpoint):
    """bf16, shards, and what transformers writes itself."""
    load = lambda folder, **more: transformers.AutoModelForCausalLM.from_pretrained(
        folder, trust_remote_code=True, **more)
    plain = load(bamtrain.export(checkpoint, name + "-plain"))
    shards = bamtrain.export(checkpoint, name + "-shards", "--max-shard-size", "20KB")
    assert len(list(shards.glob("model-*.safetensors"))) > 3
    rounded = load(bamtrain.export(checkpoint, name + "-rounded", "--dtype", "bf16"), dtype="auto")
    sharded, of_rounded = load(shards).state_dict(), rounded.state_dict()
    for name, value in plain.state_dict().items():
        assert torch.equal(value, sharded[name]), name
        fp32 = any(f".{kind}." in name for kind in ("prior", "mix", "scale", "normalizer"))
        assert of_rounded[name].dtype == (torch.float32 if fp32 else torch.bfloat16), name
        assert torch.equal(of_rounded[name], value if fp32 else value.bfloat16()), name
    ids = torch.from_numpy(sample_tokens(False))
    with torch.no_grad():
        assert torch.isfinite(rounded(ids).logits).all()
    print("bf16 and shards: the values of fp32 in one file, rounded or the same")


def check_back(name, bamtrain, transformers, checkpoint):
    """What transformers saves starts a run of bamtrain: the values that it was given."""
    hf = transformers.AutoModelForCausalLM.from_pretrained(
        bamtrain.export(checkpoint, name + "-back"), trust_remote_code=not class_without_code(name))
    saved = bamtrain.folder / (name + "-saved")
    hf.save_pretrained(saved)
    run = name + "-again"
    config = bamtrain.config(run, CASES[name])
    command(bamtrain.program, "--config", config, "--set", f"init_from.folder={saved}",
            "--set", "optimizer.lr=1e-300", "--set", "train.stop_at=1")
    again = load_file(bamtrain.folder / run / "checkpoint-00000001" / "model.safetensors")
    before = load_file(checkpoint / "model.safetensors")
    assert again.keys() == before.keys()
    assert all((again[key] == before[key]).all() for key in before)
    print("what transformers saves, init_from reads: the same values")


def no_question(*_):
    sys.exit("transformers asks whether it may run the folder's code")


def main():
    builtins.input = no_question
    parser = argparse.ArgumentParser(description="Exported models against bamtrain's logits.")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of " + ", ".join(CASES))
    options = parser.parse_args()
    schema = command(options.build.resolve() / "src" / "bamtrain", "--print-schema")
    add_missing(schema)
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as name:
        os.environ["HF_MODULES_CACHE"] = name + "/modules"
        import transformers
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        print(f"transformers {transformers.__version__}, torch {torch.__version__}")
        torch.manual_seed(0)
        bamtrain = Bamtrain(options.build.resolve(), pathlib.Path(name))
        for case in options.cases or CASES:
            checkpoint = bamtrain.train(case, CASES[case])
            hf = check(case, bamtrain, transformers, checkpoint)
            if case in REPLACED:
                check(case, bamtrain, transformers, checkpoint, REPLACED[case])
            if case in ("bam_ssmax", "asentmax_learned"):
                check_forms(case, bamtrain, transformers, checkpoint)
            if case == "entmax":
                check_rows(sys.modules[type(hf).__module__], mechanism_names(schema, "normalizer"))
            if case in ("llama", "gpt2", "gpt2_tied", "asentmax_learned"):
                check_back(case, bamtrain, transformers, checkpoint)
        if not options.cases:
            check_tokenizers(bamtrain, options.build.resolve(), transformers,
                             model(rope(), vocab=32768), model(rope(), vocab=100352),
                             model("alibi", vocab=32768))
    print("all agree")


if __name__ == "__main__":
    main()
