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
search the same with and without its cache. Lengths go past the training length.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from program_schema import prior_names

TOLERANCE = 1e-4
VOCAB, TRAINED_AT, LENGTH, START = 97, 24, 40, 1


def model(prior="nope", scale="none", mask=True, window=0, **changes):
    """The model section of a config. Names stand for mechanisms with default options."""
    named = lambda m: {"name": m} if isinstance(m, str) else m
    priors = [named(p) for p in prior] if isinstance(prior, list) else named(prior)
    attention = {"prior": priors, "scale": named(scale), "document_mask": mask, "window": window}
    return {"vocab": VOCAB, "width": 48, "layers": 2, "heads": 4, "kv_heads": 2,
            "mlp": {"kind": "swiglu", "hidden": 64}, **changes, "attention": attention}


def rope(scaling="none", factor=1.0, name="rope", theta=50.0, **options):
    return {"name": name, "theta": theta, "scaling": scaling, "factor": factor, **options}


BAM = {"name": "bam", "init": "normal", "train": ["theta_alpha", "theta_beta", "theta_mu"]}
GELU, GEGLU = {"kind": "gelu", "hidden": 64}, {"kind": "geglu", "hidden": 64}
GELU_ERF, RELU = {"kind": "gelu_erf", "hidden": 64}, {"kind": "relu", "hidden": 64}
LAYERNORM = {"kind": "layernorm"}

# A name that begins with "llama" must load as LlamaForCausalLM, without code of its own.
CASES = {
    "llama": model(rope()),
    "llama_tied": model(rope(), mask=False, tied=True),
    "llama_bias": model(rope(), bias=True),
    "llama_all_heads": model(rope(theta=500000.0), kv_heads=4,
                             norm={"kind": "rmsnorm", "eps": 1e-3}),
    "llama_linear": model(rope("linear", 2.5)),
    "llama_ntk": model(rope("ntk", 4.0)),
    "llama_yarn": model(rope("yarn", 8.0)),
    "llama_llama3": model(rope("llama3", 8.0)),
    "llama_randomized": model(rope(randomized=True)),
    "rope_window": model(rope(), window=9),
    "rope_ssmax": model(rope(), "ssmax"),
    "rope_layernorm": model(rope("yarn", 8.0), norm=LAYERNORM, bias=True),
    "rope_gelu": model(rope("llama3", 8.0), mlp=GELU),
    "rope_linear_geglu": model(rope("linear", 2.5), mlp=GEGLU, tied=True),
    "rope_ntk_sentmax": model(rope("ntk", 4.0), "sentmax"),
    "rope_local": model(rope(name="rope_local")),
    "nope": model("nope"),
    "sinusoidal": model("sinusoidal", mlp=GELU, norm=LAYERNORM, bias=True),
    "learned": model({"name": "learned", "positions": 64}, norm=LAYERNORM),
    "alibi": model("alibi"),
    "alibi_odd_heads": model("alibi", width=48, heads=6, kv_heads=3, window=11),
    "nape": model("nape", "ssmax"),
    "nape_harmonic": model({"name": "nape", "slopes": "harmonic"}, "sentmax", heads=3, kv_heads=1),
    "bam": model(BAM),
    "bam_ssmax": model(BAM, "ssmax"),
    "bam_shared_ssmax_content": model({**BAM, "share": True},
                                      {"name": "ssmax", "scale_bias": "false"}),
    "kerple": model("kerple"),
    "kerple_power": model({"name": "kerple", "kernel": "power"}, {"name": "ssmax", "offset": 1}),
    "t5": model("t5"),
    "t5_layers": model({"name": "t5", "share": False}, {"name": "ssmax", "scale_bias": "true"}),
    "fire": model("fire"),
    "fire_short": model({"name": "fire", "threshold_length": 7}, "ssmax", window=15),
    "cable": model("cable"),
    "cable_ssmax_bias": model("cable", "ssmax", bias=True),
    "cable_window": model("cable", window=9),
    "kcable": model("kcable", mask=False),
    "cable_content_1": model({"name": "cable", "content_scale": "1"}),
    "kcable_content_width": model({"name": "kcable", "content_scale": "1/sqrt(C)"}, "sentmax"),
    "adaptive": model("alibi", "adaptive"),
    "adaptive_bias_bam": model(BAM, {"name": "adaptive", "bias": True, "delta": 0.5, "g": 1.5,
                                     "scale_bias": "true"}),
    "constant": model("alibi", {"name": "constant", "t": 0.7}),
    "by_length": model("nope", {"name": "by_length", "lengths": 64}),
    "layers_cable_bam_nope": model(["cable", BAM, "nope"], "ssmax", layers=3),
    "llama_head_dim": model(rope(), head_dim=16),
    "rope_embed_scale": model(rope(), embed_scale=True, tied=True, init="plain"),
    "post_sinusoidal_relu": model("sinusoidal", mlp=RELU, norm=LAYERNORM, bias=True,
                                  norm_position="post", embed_scale=True),
    "both_gemma": model(rope(), mlp=GEGLU, norm_position="both", embed_scale=True, head_dim=10,
                        heads=5, kv_heads=5, init="plain"),
    "both_cable": model("cable", "ssmax", norm_position="both", bias=True, norm=LAYERNORM),
    "learned_gelu_erf": model({"name": "learned", "positions": 64}, mlp=GELU_ERF, norm=LAYERNORM,
                              embed_scale=True),
    "layers_rope_local_t5": model([rope(name="rope_local", window=7), "t5"], layers=4),
}

# Exported with what evaluation may replace.
REPLACED = {
    "llama": ["model.attention.prior.scaling=yarn", "model.attention.prior.factor=4"],
    "alibi": ["model.attention.scale.name=entropy"],
    "nape_entropy": ["model.attention.scale.name=entropy"],
}
CASES["nape_entropy"] = model("nape")


def add_missing_priors(program):
    """Priors that no case is about, with default options, under their own names."""
    schema = subprocess.run([program, "--print-schema"], text=True, capture_output=True, check=True)
    priors = [c["attention"]["prior"] for c in CASES.values()]
    about = {p["name"] for of in priors for p in (of if isinstance(of, list) else [of])}
    CASES.update({name: model(name) for name in prior_names(schema.stdout) if name not in about})


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
        run = {"config_version": 2, "name": name, "seed": 5, "device": "cpu",
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


def check_padding(hf, bamtrain, checkpoint, tokens, changes):
    """Rows of three lengths in one batch, padded on the left; with and without a cache."""
    lengths = [LENGTH, LENGTH - 13, 6]
    padded = torch.zeros(3, LENGTH, dtype=torch.long)
    mask = torch.zeros(3, LENGTH, dtype=torch.long)
    for row, length in enumerate(lengths):
        padded[row, LENGTH - length:] = torch.from_numpy(tokens[row, :length])
        mask[row, LENGTH - length:] = 1
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    whole = hf(padded, attention_mask=mask, position_ids=positions, use_cache=False).logits
    first = hf(padded[:, :36], attention_mask=mask[:, :36], position_ids=positions[:, :36],
               use_cache=True)
    rest = hf(padded[:, 36:], attention_mask=mask, position_ids=positions[:, 36:],
              past_key_values=first.past_key_values, use_cache=True)
    pieces = torch.cat([first.logits, rest.logits], 1)
    worst = 0.0
    for row, length in enumerate(lengths):
        expected = bamtrain.logits(checkpoint, tokens[row:row + 1, :length], changes)[0]
        for found in (whole, pieces):
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


def check(name, bamtrain, transformers, checkpoint, changes=()):
    options = [word for change in changes for word in ("--set", change)]
    label = name + ("-replaced" if changes else "")
    folder = bamtrain.export(checkpoint, label, *options)
    llama = name.startswith("llama")
    assert (folder / "modeling_bamtrain.py").exists() != llama
    hf = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=not llama)
    hf.eval()
    assert (type(hf).__name__ == "LlamaForCausalLM") == llama
    assert hf.dtype == torch.float32
    tokens = sample_tokens(single_documents=llama)
    expected = bamtrain.logits(checkpoint, tokens, changes)
    ids = torch.from_numpy(tokens)
    with torch.no_grad():
        once = largest(hf(ids, use_cache=False).logits.numpy(), expected)
        cache, pieces = None, []
        for piece in ids.split([11, 1, 1, 7, LENGTH - 20], 1):
            out = hf(piece, past_key_values=cache, use_cache=True)
            cache = out.past_key_values
            pieces.append(out.logits)
        cached = largest(torch.cat(pieces, 1).numpy(), expected)
        padded = check_padding(hf, bamtrain, checkpoint, tokens, changes)
        # A Llama does not know that a second document begins.
        check_generation(hf, bamtrain, checkpoint, tokens, changes, [START] if llama else None)
    # It can be trained further.
    hf(ids, labels=ids).loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in hf.parameters() if p.grad is not None)
    print(f"{label:28} largest difference {once:.1e}, cached {cached:.1e}, padded {padded:.1e}, "
          f"logits up to {np.abs(expected).max():.1f}", flush=True)
    return folder


def check_forms(bamtrain, transformers, checkpoint):
    """bf16, shards, and what transformers writes itself."""
    load = lambda folder, **more: transformers.AutoModelForCausalLM.from_pretrained(
        folder, trust_remote_code=True, **more)
    plain = load(bamtrain.export(checkpoint, "plain"))
    shards = bamtrain.export(checkpoint, "shards", "--max-shard-size", "20KB")
    assert len(list(shards.glob("model-*.safetensors"))) > 3
    rounded = load(bamtrain.export(checkpoint, "rounded", "--dtype", "bf16"), dtype="auto")
    sharded, of_rounded = load(shards).state_dict(), rounded.state_dict()
    for name, value in plain.state_dict().items():
        assert torch.equal(value, sharded[name]), name
        fp32 = ".prior." in name or ".scale." in name
        assert of_rounded[name].dtype == (torch.float32 if fp32 else torch.bfloat16), name
        assert torch.equal(of_rounded[name], value if fp32 else value.bfloat16()), name
    ids = torch.from_numpy(sample_tokens(False))
    with torch.no_grad():
        assert torch.isfinite(rounded(ids).logits).all()
    print("bf16 and shards: the values of fp32 in one file, rounded or the same")


def check_back(bamtrain, transformers, checkpoint, section):
    """What transformers saves starts a run of bamtrain: the values that it was given."""
    hf = transformers.AutoModelForCausalLM.from_pretrained(bamtrain.export(checkpoint, "back"))
    saved = bamtrain.folder / "saved"
    hf.save_pretrained(saved)
    config = bamtrain.config("again", section)
    command(bamtrain.program, "--config", config, "--set", f"init_from.folder={saved}",
            "--set", "optimizer.lr=1e-300", "--set", "train.stop_at=1")
    again = load_file(bamtrain.folder / "again" / "checkpoint-00000001" / "model.safetensors")
    before = load_file(checkpoint / "model.safetensors")
    assert again.keys() == before.keys()
    assert all((again[name] == before[name]).all() for name in before)
    print("what transformers saves, init_from reads: the same values")


def check_tokenizer(build, bamtrain, transformers):
    import sentencepiece
    text = bamtrain.folder / "text.txt"
    text.write_text("".join(p.read_text() + "\n" for p in
                            sorted(pathlib.Path(__file__).parent.glob("*.py"))))
    bamdata, spm = build / "data_tools" / "bamdata", bamtrain.folder / "tokenizer.model"
    command(bamdata, "train-tokenizer", "--document", "blank-line", "--vocab", 600,
            "--output", spm, text)
    command(bamdata, "tokenize", "--document", "blank-line", "--tokenizer", spm,
            "--output", bamtrain.folder / "text", text)
    section = {**model(rope()), "vocab": 640}
    config = bamtrain.config("text-run", section)
    changes = (f"data.train={bamtrain.folder}/text/train", "data.document_start=null",
               "train.stop_at=1")
    command(bamtrain.program, "--config", config, *(w for c in changes for w in ("--set", c)))
    folder = bamtrain.export(bamtrain.folder / "text-run" / "checkpoint-00000001", "text",
                             "--tokenizer", spm)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ours = sentencepiece.SentencePieceProcessor(model_file=str(spm))
    # Not with a space in front, to which LlamaTokenizer adds none of SentencePiece's own.
    for sample in ("def main():", "Größe: 1234 µm — 你好, 🙂", "two  spaces\n\tand a tab ", "a", ""):
        ids = theirs(sample)["input_ids"]
        assert ids == [ours.bos_id()] + ours.encode(sample), (sample, ids, ours.encode(sample))
        assert theirs.decode(ids, skip_special_tokens=True) == sample, sample
    assert (theirs.bos_token_id, theirs.eos_token_id) == (ours.bos_id(), ours.eos_id())
    print("the tokenizer gives SentencePiece's ids, and its text back")


def main():
    parser = argparse.ArgumentParser(description="Exported models against bamtrain's logits.")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("cases", nargs="*", metavar="CASE", help="of " + ", ".join(CASES))
    options = parser.parse_args()
    add_missing_priors(options.build.resolve() / "src" / "bamtrain")
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
            check(case, bamtrain, transformers, checkpoint)
            if case in REPLACED:
                check(case, bamtrain, transformers, checkpoint, REPLACED[case])
            if case == "bam_ssmax":
                check_forms(bamtrain, transformers, checkpoint)
            if case == "llama":
                check_back(bamtrain, transformers, checkpoint, CASES[case])
        if not options.cases:
            check_tokenizer(options.build.resolve(), bamtrain, transformers)
    print("all agree")


if __name__ == "__main__":
    main()
