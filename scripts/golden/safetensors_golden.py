"""Writes tests/golden/small.safetensors and foreign.safetensors: the format, from its description.

    python3 scripts/golden/safetensors_golden.py            writes the files
    python3 scripts/golden/safetensors_golden.py --check    compares the committed ones instead

Standard library only. Both hold the same tensors, of every dtype that bamtrain knows, a scalar and
an empty one among them; element i (row-major) of the tensor with index t below is t + i / 4 - 1,
for I32 t - i. bf16 holds all of them exactly. `small` is laid out as bamtrain's own writer must do
it, byte for byte: header keys sorted, the header padded with spaces to a multiple of 8, data by
falling element size, then name. `foreign` is laid out as any other program may: header in the order
below with white space inside and no padding after it, data in the reverse order.
"""

import argparse
import json
import math
import pathlib
import struct
import sys

SIZES = {"F64": 8, "F32": 4, "I32": 4, "BF16": 2}
TENSORS = [  # name, dtype, shape; the position in this list is the index t
    ("model.layers.0.self_attn.q_proj.weight", "F32", [3, 5]),
    ("model.norm.weight", "BF16", [7]),
    ("moments", "F64", [2, 1, 3]),
    ("steps", "I32", [4]),
    ("scalar", "F32", []),
    ("nothing", "F32", [0, 9]),
    ("a \"quoted\" \u03b8", "BF16", [1, 1]),
]
METADATA = {"format": "pt", "note": "\u03b1 \\ \"\n"}


def encode(index, dtype, shape):
    blob = b""
    for i in range(math.prod(shape)):
        value = index + i / 4 - 1
        if dtype == "F64":
            blob += struct.pack("<d", value)
        elif dtype == "F32":
            blob += struct.pack("<f", value)
        elif dtype == "I32":
            blob += struct.pack("<i", index - i)
        else:
            blob += struct.pack("<f", value)[2:]
    return blob


def small():
    offset, header, data = 0, {"__metadata__": METADATA}, b""
    indexed = list(enumerate(TENSORS))
    for t, (name, dtype, shape) in sorted(indexed, key=lambda x: (-SIZES[x[1][1]], x[1][0])):
        blob = encode(t, dtype, shape)
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [offset, offset + len(blob)]}
        offset += len(blob)
        data += blob
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def foreign():
    offset, ranges, data = 0, {}, b""
    for t, (name, dtype, shape) in reversed(list(enumerate(TENSORS))):
        blob = encode(t, dtype, shape)
        ranges[name] = [offset, offset + len(blob)]
        offset += len(blob)
        data += blob
    header = {name: {"shape": shape, "data_offsets": ranges[name], "dtype": dtype}
              for name, dtype, shape in TENSORS}
    header["__metadata__"] = METADATA
    text = json.dumps(header, indent=1).encode()
    if len(text) % 8 == 0:
        text += b" "
    return struct.pack("<Q", len(text)) + text + data


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description="Golden safetensors files.")
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    agree = True
    for name, data in (("small", small()), ("foreign", foreign())):
        path = options.out / f"{name}.safetensors"
        if options.check:
            same = path.read_bytes() == data
            agree = agree and same
            print(f"{path}: {'same' if same else 'DIFFERS'}")
        else:
            path.write_bytes(data)
            print(f"{path}: {len(data)} bytes")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
