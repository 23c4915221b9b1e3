#!/usr/bin/env python3
"""bamdata's ids beside those of tokenizers and tiktoken, document by document, and the speed of each.

    pip install tokenizers tiktoken numpy
    scripts/compare_tokenizers.py --build build --data D [--tekken tekken.json]

D has tokenizer/ (gpt2/tokenizer.json, tiktoken/cl100k_base.tokenizer.json, tiktoken/*.tiktoken) and
texts: fineweb/docs.jsonl.xz, wikitext-2/*.txt, tinyshakespeare.txt, eval/*.jsonl. Beside those: code (Python's own
library), every code point of Unicode between letters, digits and spaces, random characters, and random
bytes that --invalid-utf8 replace repairs. One core each: one thread of bamdata, one of the library.
Prints a table in Markdown; exits with 1 where an id differs.
"""

import argparse
import base64
import json
import lzma
import os
import pathlib
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
import unicodedata

os.environ["RAYON_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402
import tiktoken  # noqa: E402
import tokenizers  # noqa: E402

from tokenizer_golden import big_tokenizers  # noqa: E402


def corpora(data):
    """(name, documents)"""
    with lzma.open(data / "fineweb" / "docs.jsonl.xz", "rt", encoding="utf-8") as lines:
        yield "FineWeb", [json.loads(line)["text"] for line in lines]
    texts = [*sorted((data / "wikitext-2").glob("*.txt")), data / "tinyshakespeare.txt"]
    yield "WikiText-2, Shakespeare", [part for path in texts for part in
                                      re.split(r"(?<=\n)(?= = [^=])", path.read_bytes().decode())]
    yield "LAMBADA, HellaSwag, ARC, ...", [line for path in sorted((data / "eval").glob("*.jsonl"))
                                           for line in path.read_text().splitlines()]
    library = pathlib.Path(sysconfig.get_paths()["stdlib"])
    code = [path.read_bytes() for path in sorted(library.rglob("*.py"))[:900]]
    yield "code", [text.decode() for text in code if is_utf8(text)]
    yield "every code point", [f"a{c}b 1{c} {c}{c}\n{c}" for c in map(chr, range(1, 0x110000))
                               if unicodedata.category(c) not in ("Cs", "Cn", "Co")]
    draw = random.Random(1)
    # Those that Python knows: each library has its own version of Unicode.
    pools = [[chr(c) for c in pool if unicodedata.category(chr(c)) != "Cn"]
             for pool in (range(0x20, 0x7f), range(0x80, 0x800), range(0x800, 0xd800), range(0x10000, 0x1ffff))]
    yield "random characters", ["x" + "".join(draw.choice(draw.choice(pools)) for _ in range(draw.randrange(200)))
                                for _ in range(5000)]
    yield "random bytes, repaired", ["x" + draw.randbytes(draw.randrange(200)).decode(errors="replace")
                                     for _ in range(5000)]


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\r" not in data and bool(data.strip())


def of_bamdata(args, tokenizer, documents, folder):
    """The ids of each document, and MB/s."""
    source, out = folder / "in.jsonl", folder / "out"
    source.write_text("".join(json.dumps({"text": d}) + "\n" for d in documents))
    done = subprocess.run([args.build / "data_tools" / "bamdata", "tokenize", "--tokenizer", tokenizer, "--threads", "1",
                           "--overwrite", "--output", out, source], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    ids = []
    for path in sorted((out / "train").glob("*.bin")):
        raw = path.read_bytes()
        dtype = {1: np.uint16, 7: np.uint32}[int(np.frombuffer(raw, np.int32, 1, 4)[0])]
        ids.append(np.frombuffer(raw, dtype, offset=1024).astype(np.int64))
    manifest = json.loads((out / "train" / "manifest.json").read_text())
    ids, bos = np.concatenate(ids), manifest["tokenizer"]["bos"]
    speed = float(re.search(r"([\d.]+) MB/s", done.stdout)[1])
    return [part[1:].tolist() for part in np.split(ids, np.flatnonzero(ids == bos)[1:])], speed


def of_library(encode, documents):
    megabytes = sum(len(d.encode()) for d in documents) / 1e6
    start = time.monotonic()
    ids = [encode(d) for d in documents]
    return ids, megabytes / (time.monotonic() - start)


def tekken(path):
    """As mistral-common reads it."""
    file = json.loads(path.read_text())
    special = file["config"]["default_num_special_tokens"]
    kept = file["config"]["default_vocab_size"] - special
    ranks = {base64.b64decode(t["token_bytes"]): t["rank"] for t in file["vocab"][:kept]}
    encoding = tiktoken.Encoding("tekken", pat_str=file["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    return lambda text: [n + special for n in encoding.encode_ordinary(text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--tekken", type=pathlib.Path, help="Mistral's, of the package mistral-common")
    args = parser.parse_args()
    chosen = [(args.data / "tokenizer" / name, encode) for name, encode in big_tokenizers(args.data)]
    if args.tekken:
        chosen.append((args.tekken, tekken(args.tekken)))
    print(f"tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}, Unicode "
          f"{unicodedata.unidata_version} in Python. One core each.\n")
    print("| tokenizer | text | documents | tokens | differ | bamdata, MB/s | library, MB/s | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for path, encode in chosen:
            for name, documents in corpora(args.data):
                documents = [d for d in documents if d.strip()]
                found, speed = of_bamdata(args, path, documents, pathlib.Path(folder))
                expected, beside = of_library(encode, documents)
                assert len(found) == len(expected), (len(found), len(expected))
                wrong = [n for n, (a, b) in enumerate(zip(found, expected)) if a != b]
                total += len(wrong)
                for n in wrong[:3]:
                    print(f"  {documents[n][:60]!r}: {found[n][:20]} for {expected[n][:20]}", file=sys.stderr)
                print(f"| {'/'.join(path.parts[-2:])} | {name} | {len(documents):,} | {sum(map(len, expected)):,} "
                      f"| {len(wrong)} | {speed:.1f} | {beside:.1f} | {speed / beside:.1f} |", flush=True)
    sys.exit(total > 0)


if __name__ == "__main__":
    main()
