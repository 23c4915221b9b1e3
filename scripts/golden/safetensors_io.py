"""Reading and writing safetensors with numpy and the standard library only.

The format: 8 bytes little-endian header length, a JSON header {name: {dtype, shape,
data_offsets}} with an optional "__metadata__" of strings, then the raw little-endian data.
Written here: header and data in order of name, the header padded with spaces to 8 bytes.
"""

import json
import struct

import numpy as np

DTYPES = {"F64": "<f8", "F32": "<f4", "I32": "<i4"}
NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


def encode(tensors, metadata):
    """The file holding {name: numpy array} and {key: string}, as bytes."""
    header, blobs, offset = {"__metadata__": metadata}, [], 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name])
        blob = array.tobytes()
        assert offset % 8 == 0, f"{name} would start unaligned"
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(blobs)


def read(path):
    """Returns ({name: numpy array}, metadata)."""
    with open(path, "rb") as file:
        raw = file.read()
    size, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"{path}: {name} is {entry['dtype']}, expected one of {list(DTYPES)}")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        array = np.frombuffer(raw[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"]).copy()
    return tensors, metadata


def same(path, tensors, metadata):
    """Whether a committed file holds these values, to rounding that differs between machines."""
    old, old_metadata = read(path)
    return (old_metadata == metadata and old.keys() == tensors.keys()
            and all(old[x].shape == tensors[x].shape
                    and np.allclose(old[x], tensors[x], rtol=1e-9, atol=1e-13) for x in old))
