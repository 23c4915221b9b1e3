"""A column of parquet files for bamdata, which starts this with `python3 -c` and reads what it writes:

    COLUMN PART PARTS FILE...      writes the row groups PART, PART + PARTS, ... of all files' in their order

Everything is a header, four little-endian numbers (a letter, three of 64 bits), then bytes:

    G file group bytes    a row group begins: the file's number, the group's, bytes of the file up to its end
    B rows size 0         `rows` lengths of 32 bits, -1 for a null, then their UTF-8, `size` bytes
    D 0 0 0               the row group is done
    E groups 0 0          the end, after so many row groups of all parts
    F code size 0         a failure: bamdata's exit code, then "where", "expected", "found", "remedy" between NULs

A row group of up to 64 MB is read whole, so that it is there before its turn.
"""

import sys

# Not from the folder that the user is in, which may have a tokenize.py or a struct.py.
sys.path[:] = [path for path in sys.path if path]

import contextlib  # noqa: E402
import os  # noqa: E402
import struct  # noqa: E402

WHOLE = 64 << 20
ROWS = 1024


class Failure(Exception):
    def __init__(self, code, where, expected, found, remedy):
        super().__init__(code, where, expected, found, remedy)


def header(letter, a, b, c):
    return struct.pack("<cQQQ", letter, a, b, c)


def text_column(parquet, path, column):
    """Refuses a column that has no texts. Bytes without a type are such, which bamdata checks for UTF-8."""
    names = parquet.schema_arrow.names
    if column not in names:
        raise Failure(4, path, f'a column "{column}"', "only " + ", ".join(names),
                      "choose the column with --field")
    if names.count(column) > 1:
        raise Failure(4, path, f'one column "{column}"', f"{names.count(column)} of that name",
                      "choose another column with --field")
    kind = parquet.schema_arrow.field(column).type
    values = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
    if not any(is_type(values) for is_type in STRINGS + BYTES):
        raise Failure(4, path, f'strings in the column "{column}"', str(kind), "choose another column with --field")


def write_batch(out, texts):
    kind = texts.type.value_type if pyarrow.types.is_dictionary(texts.type) else texts.type
    is_bytes = any(is_type(kind) for is_type in BYTES)
    texts = texts.cast(pyarrow.large_binary() if is_bytes else pyarrow.large_string())
    lengths = pyarrow.compute.binary_length(texts).cast(pyarrow.int32()).fill_null(-1)
    _, offsets, data = texts.buffers()
    bounds = memoryview(offsets).cast("q")[texts.offset:texts.offset + len(texts) + 1]
    begin, end = (bounds[0], bounds[-1]) if len(texts) else (0, 0)
    # Nulls have no bytes, but nothing says so: without them there is nothing between texts.
    if texts.null_count:
        data = b"".join(text.as_buffer() for text in texts if text.is_valid)
        begin, end = 0, len(data)
    out.write(header(b"B", len(texts), end - begin, 0))
    first = lengths.offset * 4
    out.write(memoryview(lengths.buffers()[1])[first:first + 4 * len(lengths)])
    if end > begin:
        out.write(memoryview(data)[begin:end])


def write_group(out, parquet, group, column):
    if parquet.metadata.row_group(group).total_byte_size <= WHOLE:
        table = parquet.read_row_group(group, columns=[column], use_threads=False)
        batches = table.to_batches(max_chunksize=ROWS)
    else:
        batches = parquet.iter_batches(batch_size=ROWS, row_groups=[group], columns=[column], use_threads=False)
    for batch in batches:
        write_batch(out, batch.column(0))


@contextlib.contextmanager
def naming(where):
    """Failures of what Arrow reads, with the place."""
    try:
        yield
    except (BrokenPipeError, Failure):
        raise
    except (pyarrow.ArrowException, UnicodeDecodeError, ValueError) as error:
        raise Failure(4, where, "an intact parquet file", str(error), "fetch it again") from error
    except OSError as error:
        # Arrow's own errors of damaged pages are OSError too, without a number.
        code, remedy = (6, "check the path") if error.errno else (4, "fetch it again")
        raise Failure(code, where, "an intact, readable parquet file", str(error), remedy) from error


def write_file(out, parquet, path, column, number, first, part, parts):
    """Its row groups, of which the first is number `first` of all; how many there are."""
    text_column(parquet, path, column)
    groups = parquet.num_row_groups
    sizes = [parquet.metadata.row_group(g).total_byte_size for g in range(groups)]
    total, size, before = max(sum(sizes), 1), os.path.getsize(path), 0
    for group in range(groups):
        before += sizes[group]
        if (first + group) % parts != part:
            continue
        out.write(header(b"G", number, group, size * before // total))
        with naming(f"{path}: row group {group}"):
            write_group(out, parquet, group, column)
        out.write(header(b"D", 0, 0, 0))
        out.flush()
    return groups


def write_all(out, column, part, parts, paths):
    done = 0
    for number, path in enumerate(paths):
        with naming(path), pyarrow.parquet.ParquetFile(path, page_checksum_verification=True) as parquet:
            done += write_file(out, parquet, path, column, number, done, part, parts)
    out.write(header(b"E", done, 0, 0))


def main():
    global pyarrow, STRINGS, BYTES
    out = sys.stdout.buffer
    column, part, parts, *paths = sys.argv[1:]
    try:
        try:
            import pyarrow
            import pyarrow.compute
            import pyarrow.parquet
        except ImportError as error:
            raise Failure(9, paths[0], "pyarrow, to read parquet, in " + sys.executable,
                          str(error), sys.executable + " -m pip install pyarrow") from error
        types = pyarrow.types
        STRINGS = [types.is_string, types.is_large_string, getattr(types, "is_string_view", types.is_string)]
        BYTES = [types.is_binary, types.is_large_binary, getattr(types, "is_binary_view", types.is_binary)]
        write_all(out, column, int(part), int(parts), paths)
    except Failure as failure:
        code, *texts = failure.args
        message = "\0".join(texts).encode(errors="replace")
        out.write(header(b"F", code, len(message), 0) + message)
    out.flush()


try:
    main()
except BrokenPipeError:
    # bamdata has gone, and said why itself; nothing is left to flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(1)
