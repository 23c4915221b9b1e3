"""TensorBoard's event files, without the times: as much of the format as bamtrain writes."""

import struct

WALL_TIME, STEP, SUMMARY = 1, 2, 5  # of an event
TIMES = (b"tokens_per_second", b"matrix_rate_share", b"seconds", b"data_wait")


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def fields(message):
    """(number, value) of each field, an integer or bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        else:
            size, at = varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def records(path):
    """The messages of a file. ValueError where it does not end with a whole one."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        if at + 12 > len(data):
            raise ValueError(f"{path}: a torn end")
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            raise ValueError(f"{path}: a torn end")
        yield data[at + 12:at + 12 + size]
        at += 16 + size


def read(folder):
    """(step, value) of all files in order, those of folders in it too; a value is a message that
    begins with its tag."""
    found = []
    for path in sorted(entry for entry in folder.rglob("*") if entry.is_file()):
        for record in records(path):
            event = dict(fields(record))
            for _, value in fields(event.get(SUMMARY, b"")):
                if dict(fields(value))[1] not in TIMES:
                    found.append((event.get(STEP, 0), value))
    return found
