"""A text file as an llm.c shard: write_llmc_shard.py TEXT SHARD.bin (bytes are tokens 0..255,
every paragraph is a document and begins with token 256, so the vocabulary is 257)."""
import sys
import numpy as np
paragraphs = open(sys.argv[1], "rb").read().split(b"\n\n")
tokens = [t for paragraph in paragraphs if paragraph for t in (256, *paragraph)]
header = np.zeros(256, "<i4")
header[:3] = 20240520, 1, len(tokens)
with open(sys.argv[2], "wb") as shard:
    shard.write(header.tobytes() + np.array(tokens, "<u2").tobytes())
