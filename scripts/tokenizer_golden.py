#!/usr/bin/env python3
"""Small byte-level BPEs and what tokenizers and tiktoken make of difficult texts with them.

    pip install tokenizers tiktoken
    scripts/tokenizer_golden.py            writes tests/data/tokenizers/*.json
    scripts/tokenizer_golden.py --data D   and of the tokenizers and corpora in D the number of ids and
                                           their SHA-256

Every small one is trained here, on text that stands here: in the forms of GPT-2, GPT-NeoX (NFC, runs of
spaces as added tokens), Qwen (NFC, a pattern), SmolLM (Digits) and with a space before, and Mistral's
tekken.json. Ids are the libraries'; special tokens in a text are text (encode_special_tokens,
encode_ordinary).
"""

import argparse
import base64
import hashlib
import json
import lzma
import pathlib
import random
import struct
import unicodedata

import tiktoken
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "tests" / "data" / "tokenizers"
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
        r"|\s+(?!\S)|\s+")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")

TRAINING = """
The attention of a head is a sum over the keys, and what a prior adds to a logit depends on the distance
between a query and a key. We don't know, they've said, it's what we'll see; I'd say that you're right.
In 1998 there were 12,345 of them, in 2024 there were 678. The naïve café owner's résumé, the Übermensch's
größte Straße. Все счастливые семьи похожи друг на друга. 人工智能 の 研究。 안녕하세요 세계.
    for (size_t i = 0; i < n; ++i) {
        sum += values[i] * weights[i];
        if (sum > 1e9) return -1;
    }
def mean(values):
    return sum(values) / len(values)   # of a list
the then there they them these their other mother another brother together weather whether
"""


def difficult_texts():
    """Handmade ones, then random ones."""
    texts = [
        "", " ", "  ", "   a", "a   ", "\n", "\n\n\n", "a\n b\n\n  c", "\t\tx", "\r\n\r\nx", "x\r\n",
        "don't DON'T we'll WE'LL 'tis I'd've", "it\u2019s", "'\u017f x'\u017f 'S 's", "1 12 123 1234 12345",
        "x1y22z333", "٣٤٥ Ⅻ ½ ²³", "the then there theother",
        "for (int i = 0; i < 10; ++i) {\n    f(i);\n}\n", "a_b-c/d\\e|f", "...!!!???", "!?.\n\n", "//\n/*\n*/\n",
        "café cafe\u0301 e\u0301e\u0301", "\u1e9b\u0323", "\ud55c\uae00 \u1112\u1161\u11ab", "Ångström \u212b",
        "人工智能的研究", "안녕하세요", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "ไทย",
        "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", "\u00a0\u2003\u3000x",
        "\u180e \u200b \ufeff \u2028\u2029 \u0085", "a\u0300\u0301\u0302", "\u0300", "ß SS ſs", "İi ıI ǅ ǆ",
        "<|endoftext|>", "a<|endoftext|>b", "<s>x</s>", "x  y    z        w", "    ", " " * 25, "a" * 100,
        "ab" * 60, "the" * 50, " " * 100 + "x", "\n" * 70, "0" * 70, "-" * 80, "=" * 33 + "\n" + "~" * 49,
        "\x00\x01\x7f", "Ġthe Ċ", "_" * 3 + "added" + "_" * 3, "xaddedaddedy", "\u00e9added\u0065\u0301",
    ]
    draw = random.Random(24)
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs") and
             not 0x1abf <= c <= 0x1ace]  # of Unicode 13 and 14: the library normalizes by older tables
    pools = [
        [chr(c) for c in range(32, 127)],
        list("the and of to in is 's 't'll\n\n  \t12345.,!?") + ["the", " and", "\r\n", "'ve"],
        [c for c in known if 0xa0 <= ord(c) < 0x530],
        [c for c in known if 0x530 <= ord(c) < 0x3400 or 0x1d400 <= ord(c) < 0x1d800 or 0x1f300 <= ord(c) < 0x1f650
         or (0xa000 <= ord(c) < 0xd7a0 and ord(c) % 7 == 0)],
    ]
    for n in range(160):
        pool = sum(pools, []) if n % 5 == 4 else pools[n % 5] + pools[1] * (n % 2)
        texts.append("".join(draw.choice(pool) for _ in range(draw.randrange(1, 48))))
    return texts


def trained(pre_tokenizer, normalizer=None, vocab=560, special=("<|endoftext|>",)):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=vocab, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=list(special), show_progress=False)
    tokenizer.train_from_iterator(TRAINING.splitlines(keepends=True) * 3, trainer)
    return tokenizer


def small_tokenizers():
    """(name, Tokenizer), each of another form."""
    byte_level, split = pre_tokenizers.ByteLevel, pre_tokenizers.Split
    yield "gpt2", trained(byte_level(add_prefix_space=False))
    neox = trained(byte_level(add_prefix_space=False), normalizers.NFC(), special=("<|endoftext|>", "<|padding|>"))
    neox.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    neox.add_tokens([AddedToken("added", normalized=False)])
    yield "neox", neox
    qwen = trained(pre_tokenizers.Sequence([split(Regex(QWEN), "isolated"),
                                            byte_level(add_prefix_space=False, use_regex=False)]), normalizers.NFC())
    yield "qwen", qwen
    smol = trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                            byte_level(add_prefix_space=False)]),
                   special=("<|endoftext|>", "<s>", "</s>"))
    smol.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    yield "digits", smol
    yield "prefix_space", trained(byte_level(add_prefix_space=True))


def small_tekken():
    """The ranks of a trained BPE as tekken.json, and the tiktoken encoding of it."""
    source = trained(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(TEKKEN), "isolated"),
                                              pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                     special=())
    alphabet = {c: b for b, c in byte_characters().items()}
    tokens = [None] * source.get_vocab_size()
    for spelling, n in source.get_vocab().items():
        tokens[n] = bytes(alphabet[c] for c in spelling)
    # Tiktoken's ranks begin with the bytes.
    tokens = sorted(tokens[:256]) + tokens[256:]
    special, kept = 10, 540
    file = {
        "config": {"pattern": TEKKEN, "num_vocab_tokens": len(tokens), "default_vocab_size": special + kept,
                   "default_num_special_tokens": special, "version": "v3"},
        "vocab": [{"rank": n, "token_bytes": base64.b64encode(t).decode(),
                   "token_str": t.decode(errors="replace")} for n, t in enumerate(tokens)],
    }
    encoding = tiktoken.Encoding("small", pat_str=TEKKEN, special_tokens={},
                                 mergeable_ranks={t: n for n, t in enumerate(tokens[:kept])})
    return file, lambda text: [n + special for n in encoding.encode_ordinary(text)]


def byte_characters():
    """GPT-2's spelling of bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (b for b in range(256) if b not in plain)
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + n) for n, b in enumerate(others)}}


def encoder_of(tokenizer):
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def big_tokenizers(data):
    """(path below data, encoder), each by the library that it was made for."""
    folder = data / "tokenizer"
    for path in ["gpt2/tokenizer.json", "tiktoken/cl100k_base.tokenizer.json"]:
        yield path, encoder_of(Tokenizer.from_file(str(folder / path)))
    patterns = {"cl100k_base": CL100K, "o200k_base": tiktoken_pattern("o200k_base")}
    for name, pattern in patterns.items():
        ranks = {}
        for line in (folder / "tiktoken" / f"{name}.tiktoken").read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        yield f"tiktoken/{name}.tiktoken", encoding.encode_ordinary


def tiktoken_pattern(name):
    """The package's own pattern, without its download of the ranks."""
    import tiktoken_ext.openai_public as public
    public.load_tiktoken_bpe = lambda *_, **__: {}
    return getattr(public, name)()["pat_str"]


def corpora(data):
    """(name, documents)"""
    with lzma.open(data / "fineweb" / "docs.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield "fineweb/docs.jsonl.xz", [json.loads(line)["text"] for line in lines]
    for name in ["wikitext-2/test.txt", "tinyshakespeare.txt"]:
        yield name, [(data / name).read_bytes().decode()]


def golden(encode, texts):
    return [encode(text) for text in texts]


def hashed(encode, documents):
    count, digest = 0, hashlib.sha256()
    for document in documents:
        ids = encode(document)
        count += len(ids)
        digest.update(struct.pack(f"<{len(ids)}i", *ids))
    return {"documents": len(documents), "ids": count, "sha256": digest.hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="a folder with tokenizer/, fineweb/, wikitext-2/")
    args = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts, ids = difficult_texts(), {}
    for name, tokenizer in small_tokenizers():
        tokenizer.save(str(FOLDER / f"{name}.json"), pretty=False)
        ids[name] = golden(encoder_of(tokenizer), texts)
    file, encode = small_tekken()
    (FOLDER / "tekken.json").write_text(json.dumps(file, separators=(",", ":")) + "\n")
    ids["tekken"] = golden(encode, texts)
    out = {"made by": f"scripts/tokenizer_golden.py, tokenizers {tokenizers.__version__}, tiktoken "
                      f"{tiktoken.__version__}",
           "texts": texts, "ids": ids}
    (FOLDER / "golden.json").write_text(json.dumps(out, separators=(",", ":")) + "\n")
    if args.data:
        big = {path: {name: hashed(encode, documents) for name, documents in corpora(args.data)} |
               {"texts": hashed(encode, texts)} for path, encode in big_tokenizers(args.data)}
        (FOLDER / "corpora.json").write_text(json.dumps(big, indent=1) + "\n")


if __name__ == "__main__":
    main()
