#!/usr/bin/env python3
"""One text column of parquet files as JSON lines on standard output, for bamdata:

    set -o pipefail
    parquet_to_jsonl.py FILE.parquet ... | bamdata tokenize --format jsonl --output DIR ... -

Files are read in batches of rows, so memory does not grow with their size. Needs pyarrow.
Exit codes: 0 success, 2 bad command line or no pyarrow, 4 bad data, 6 unreadable file.
"""

import argparse
import json
import os
import sys


def fail(code, message):
    print(f"parquet_to_jsonl.py: {message}", file=sys.stderr)
    sys.exit(code)


def write_column(parquet, path, column, skip_null):
    """Writes every row of one file; returns how many null rows were left out."""
    names = parquet.schema_arrow.names
    if column not in names:
        fail(4, f"{path}: expected a column {column!r}, found {', '.join(names)}; "
                "remedy: name the right one by --column")
    kind = str(parquet.schema_arrow.field(column).type)
    if "string" not in kind:
        fail(4, f"{path}: expected strings in column {column!r}, found {kind}; "
                "remedy: name another column by --column")
    row = nulls = 0
    for batch in parquet.iter_batches(batch_size=1024, columns=[column]):
        for text in batch.column(0).to_pylist():
            if text is not None:
                sys.stdout.write(json.dumps({"text": text}, ensure_ascii=False) + "\n")
            elif skip_null:
                nulls += 1
            else:
                fail(4, f"{path}: row {row}: expected a text, found null; remedy: --skip-null")
            row += 1
    return nulls


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE.parquet")
    parser.add_argument("--column", default="text",
                        help="the column to write, as the field \"text\" (default: text)")
    parser.add_argument("--skip-null", action="store_true",
                        help="leave out rows without a text instead of stopping")
    arguments = parser.parse_args()
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        fail(2, "expected the Python package pyarrow, found none; remedy: "
                "python3 -m venv env && env/bin/pip install pyarrow, then run this script with "
                "env/bin/python3")
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    nulls = 0
    for path in arguments.files:
        try:
            with pyarrow.parquet.ParquetFile(path) as parquet:
                nulls += write_column(parquet, path, arguments.column, arguments.skip_null)
        except BrokenPipeError:
            # The reader has gone and says why itself; nothing is left to flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(6)
        except UnicodeDecodeError as error:
            fail(4, f"{path}: expected UTF-8 in column {arguments.column!r}, found {error}; "
                    "remedy: repair the file")
        except pyarrow.ArrowInvalid as error:
            fail(4, f"{path}: expected an intact parquet file, found: {error}; "
                    "remedy: fetch it again")
        except OSError as error:
            fail(6, f"{path}: expected a readable parquet file, found: {error}; "
                    "remedy: check the path")
    if nulls:
        print(f"parquet_to_jsonl.py: left out {nulls} rows without a text", file=sys.stderr)


if __name__ == "__main__":
    main()
