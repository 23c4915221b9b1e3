"""Exported tokenizers against the ids that bamdata writes; for scripts/check_export.py."""

import json
import pathlib
import random
import subprocess
import unicodedata

import numpy as np
import tokenizers

SOURCE = pathlib.Path(__file__).resolve().parent
# Real models and texts, where they lie beside the repository.
SHARED = SOURCE.parent.parent / "shared" / "data"

CHOSEN = ["a", " a", "  a", "a ", "a  ", " ", "  ", "\n", "\n\n\n", "\t \n", "def main():\n    pass\n",
          "two  spaces\n\tand a tab ", "   three in front", "Größe: 1234 µm — 你好, 🙂",
          "👩‍👩‍👧‍👦 🇩🇪 é e\u0301 ﬁ ſ", "0123456789 3.14159 1,000,000 1e-300 007", "<s>", "</s>", "<unk>",
          "a<s>b</s> <unk>", "<0x0A><0x41>", "[INST] x [/INST]", "\u2581", "a\u2581b", "\u00a0\u2003x",
          "\x01\x7f\u200b\ufeff", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "-" * 80, "." * 37, " " * 100,
          # User-defined pieces of Mixtral's, but for a text of one alone (docs/export.md).
          "[REFERENCE_DOC_0] a", "a[REFERENCE_DOC_19][REFERENCE_DOC_1]  b", " [REFERENCE_DOC_7]",
          "ÀÈÌ àèì ŒŸ \U00010348 \U0010fffd", "العربية हिन्दी ไทย 한국어 日本語"]


def random_texts():
    """Of few characters each, in which merges overlap; and of any."""
    draw = random.Random(7)
    texts = []
    for characters in ("a ", "ab ", " \n", "-=. ", "01 ,.", "the r", "éèêe ", "的一是 在", "<s>/un k"):
        texts += ["".join(draw.choices(characters, k=draw.randint(1, 60))) for _ in range(300)]
    for _ in range(1000):
        codes = [draw.choice([draw.randint(1, 0x7f), draw.randint(0x80, 0x7ff),
                              draw.randint(0x800, 0xd7ff), draw.randint(0x10000, 0x1f9ff)])
                 for _ in range(draw.randint(1, 40))]
        texts.append("".join(map(chr, codes)))
    return texts


def real_texts():
    texts = [p.read_text() for p in sorted(SOURCE.glob("*.py"))]
    for name in ("wikitext-2/valid.txt", "tinyshakespeare.txt"):
        if (SHARED / name).exists():
            text = (SHARED / name).read_text()
            texts += [text[i:i + 5000] for i in range(0, len(text), 5000)]
    return texts


def documents(folder, bos):
    """The ids of each document of a folder of shards, without the BOS that begins it."""
    ids = []
    for path in sorted(folder.glob("*.bin")):
        raw = path.read_bytes()
        version, = np.frombuffer(raw, np.int32, 1, 4)
        dtype = {1: np.uint16, 7: np.uint32}[int(version)]
        ids.append(np.frombuffer(raw, dtype, offset=1024).astype(np.int64))
    ids = np.concatenate(ids)
    starts = np.flatnonzero(ids == bos)
    return [list(map(int, part[1:])) for part in np.split(ids, starts[1:])]


def known(text):
    """Whether every library's version of Unicode has its characters, and composes them alike."""
    return all(unicodedata.category(c) != "Cn" and not 0x1abf <= ord(c) <= 0x1ace for c in text)


def check_tokenizer(label, model, folder, bamdata, work, transformers, only=None, changes_text=False, **trust):
    """The tokenizer in `folder`, which came of the file `model`."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **trust)
    assert tokenizer.is_fast
    # bamdata leaves out what has no visible character.
    texts = [t for t in CHOSEN + random_texts() + real_texts()
             if t.strip(" \t\n\v\f\r") and (only is None or only(t))]
    given = work / f"{label}.jsonl"
    given.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    subprocess.run([bamdata, "tokenize", "--tokenizer", model, "--output", work / label, given],
                   check=True, capture_output=True)
    expected = documents(work / label / "train", tokenizer.bos_token_id)
    assert len(expected) == len(texts), (len(expected), len(texts))
    for text, ids in zip(texts, expected):
        found = tokenizer(text)["input_ids"]
        assert found[0] == tokenizer.bos_token_id
        assert found[1:] == ids, (text, found[1:], ids)
        if "\u2581" not in text and not changes_text:  # SentencePiece's own sign for a space
            assert tokenizer.decode(found, skip_special_tokens=True) == text, text
    assert tokenizer("")["input_ids"] == [tokenizer.bos_token_id]
    batch = tokenizer(["a b c", "a"], padding=True)
    assert batch["attention_mask"][1][0] == 0 and batch["input_ids"][1][0] == tokenizer.pad_token_id
    tokenizer.save_pretrained(work / f"{label}-saved")
    again = transformers.AutoTokenizer.from_pretrained(work / f"{label}-saved")
    assert all(again(text)["input_ids"] == tokenizer(text)["input_ids"] for text in CHOSEN)
    print(f"{label}: the ids of bamdata for {len(texts):,} texts, {sum(map(len, expected)):,} ids, "
          "and the texts back", flush=True)


def check_alone(folder):
    """Of the tokenizers library without transformers: as the model card says."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    bos = tokenizer.token_to_id("<s>")
    assert bos in tokenizer.encode("a<s>b", add_special_tokens=False).ids
    tokenizer.encode_special_tokens = True
    assert bos not in tokenizer.encode("a<s>b", add_special_tokens=False).ids


def beginning(model, bamdata, work):
    """The id with which bamdata begins a document."""
    (work / "one.txt").write_text("a")
    subprocess.run([bamdata, "tokenize", "--tokenizer", model, "--document", "file", "--overwrite",
                    "--output", work / "one", work / "one.txt"], check=True, capture_output=True)
    return json.loads((work / "one" / "train" / "manifest.json").read_text())["tokenizer"]["bos"]


def check_tokenizers(bamtrain, build, transformers, llama, bytes_of, other):
    """A tokenizer that bamdata trains, and those of Mistral, beside a Llama; byte-level BPEs beside
    one of more ids; the first beside a model with code of its own, too. All: sections of a
    config."""
    bamdata, work = build / "data_tools" / "bamdata", bamtrain.folder
    text = work / "text.txt"
    text.write_text("".join(p.read_text() + "\n" for p in sorted(SOURCE.glob("*.py"))))
    own = work / "own.model"
    subprocess.run([bamdata, "train-tokenizer", "--document", "blank-line", "--vocab", "600",
                    "--output", own, text], check=True, capture_output=True)
    models = {"own": own, **{p.stem: p for p in sorted((SHARED / "tokenizer").glob("*.model"))}}
    checkpoint = bamtrain.train("text", llama)
    for label, model in models.items():
        folder = bamtrain.export(checkpoint, label, "--tokenizer", model)
        check_tokenizer(label, model, folder, bamdata, work, transformers)
        check_alone(folder)
    checkpoint = bamtrain.train("text-bytes", bytes_of)
    small = sorted((SOURCE.parent / "tests" / "data" / "tokenizers").glob("*.json"))
    published = [SHARED / "tokenizer" / p for p in ("gpt2/tokenizer.json", "tiktoken/cl100k_base.tiktoken")]
    for model in [p for p in small if p.stem not in ("golden", "corpora")] + [p for p in published if p.exists()]:
        label = f"{model.parent.name}-{model.stem}"
        folder = bamtrain.export(checkpoint, label, "--tokenizer", model,
                                 "--document-start", beginning(model, bamdata, work))
        check_tokenizer(label, model, folder, bamdata, work, transformers, only=known,
                        changes_text=model.stem in ("neox", "qwen", "prefix_space"))
    folder = bamtrain.export(bamtrain.train("text-other", other), "other", "--tokenizer", own)
    # Of the tokenizer alone: the model's code is neither read nor asked about.
    check_tokenizer("other", own, folder, bamdata, work, transformers, trust_remote_code=False)
