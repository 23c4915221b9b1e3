#!/usr/bin/env python3
"""Tabulates what bench/cuda and gpu_peer.py printed in one run on one machine: speeds and ratios.

  scripts/gpu_table.py FILE.jsonl ...
"""

import json
import sys
from pathlib import Path

PEER = "PyTorch"
FLEX = "flex"


def read(paths):
    lines = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    errors = [line for line in lines if "error" in line]
    return [line for line in lines if "error" not in line], errors


def both_ms(line):
    return line["forward_ms"] + line["backward_ms"]


def attention(lines, limit):
    """Ours by (D, T), beside the flash of PyTorch without a bias and its flex with a table."""
    found = {}
    for line in lines:
        if line["what"] != "attention":
            continue
        who = "flash" if "flash" in line["program"] else FLEX if PEER in line["program"] else "own"
        found[line["D"], line["T"], who, line["form"]] = line
    rows = []
    for D, T in sorted({key[:2] for key in found if key[2] == "own"}):
        def ms(who, form):
            line = found.get((D, T, who, form))
            return both_ms(line) if line else None

        def ratio(a, b):
            return f"{a / b:.2f}" if a and b else "-"

        none, table, scale = (ms("own", f) for f in ("none", "table", "table+scale"))
        flops = found[D, T, "own", "none"]["both_flops"] if none else None
        rows.append([D, T, *(f"{x:.3f}" if x else "-" for x in (none, table, scale)),
                     f"{100 * flops / limit:.0f} %" if flops and limit else "-",
                     ratio(none, table), ratio(none, scale),
                     *(ratio(ms("flash", "none"), own) for own in (none, table, scale)),
                     ratio(ms(FLEX, "table"), table)])
    header = ["D", "T", "none, ms", "table, ms", "table and scale, ms", "none, of the product's rate",
              "none over table", "none over table and scale", "PyTorch flash over ours, none",
              "PyTorch flash over ours, table", "PyTorch flash over ours, table and scale",
              "PyTorch flex over ours, table"]
    return header, rows


def steps(lines, limit):
    rows = []
    for line in lines:
        if line["what"] != "step":
            continue
        own = [x for x in lines if x["what"] == "step" and x["config"] == line["config"]
               and PEER not in x["program"]]
        peer = PEER in line["program"] and own
        rows.append([line["config"], line["program"], line["B"], line["T"],
                     f"{line['tokens_per_second']:,.0f}",
                     f"{100 * line['flops'] / limit:.0f} %" if "flops" in line and limit else "-",
                     f"{line['memory_bytes'] / 2**30:.1f}",
                     f"{own[0]['tokens_per_second'] / line['tokens_per_second']:.2f}" if peer else ""])
    return ["model", "program", "B", "T", "tokens/s", "of the product's rate", "memory, GiB",
            "ours over this"], rows


def table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines, errors = read(sys.argv[1:])
    limits = [line for line in lines if line["what"] == "limits"]
    limit = limits[0]["bf16_flops"] if limits else None
    for header, rows in (attention(lines, limit), steps(lines, limit)):
        if rows:
            print(table(header, rows) + "\n")
    for line in errors:
        print("failed: " + json.dumps(line))


if __name__ == "__main__":
    main()
