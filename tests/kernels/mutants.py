#!/usr/bin/env python3
"""Planted faults in the attention kernels: the tests must notice each.

    mutants.py --list            the names
    mutants.py NAME KERNELS OUT  writes attention.cu of the folder KERNELS to OUT, its attention
                                 headers in place of their includes and one text replaced;
                                 "original" replaces nothing
"""

import pathlib
import re
import sys

# name: (file, text that occurs once, its replacement)
MUTATIONS = {
    "no_barrier_after_load": (
        "attention_forward.cuh",
        "device::copy_async_wait<1>();\n    device::barrier();",
        "device::copy_async_wait<1>();"),
    "no_barrier_before_next_load": (
        "attention_forward.cuh",
        "next_bias, thread);\n    }\n    device::barrier();", "next_bias, thread);\n    }"),
    "wait_one_group_too_lax": (
        "attention_forward.cuh", "copy_async_wait<1>", "copy_async_wait<2>"),
    "mask_off_by_one": (
        "attention.cuh", "return j <= rows[r] && j >= first[r];",
        "return j <= rows[r] + 1 && j >= first[r];"),
    "last_queries_of_a_warp_missed": (
        "attention.cuh", "return j0 < i0 + tile_row(l, kRowTiles<D>) &&",
        "return j0 < i0 + tile_row(l, 0) &&"),
    "first_keys_of_a_warp_missed": (
        "attention.cuh", "&& j0 + kKeys > warp_begin;", "&& j0 > warp_begin;"),
    "window_forgotten_in_whole_tiles": (
        "attention.cuh", " && widest_first <= j0", ""),
    "bias_slice_off_by_one": (
        "attention.cuh", "rows[r] - i0 - key + kKeys - 1", "rows[r] - i0 - key + kKeys"),
    "operand_index": (
        "attention.cuh", "chunk = 2 * step + l.lane / 8 % 2", "chunk = 2 * step + l.lane / 16 % 2"),
    "accumulator_not_rescaled": (
        "attention_forward.cuh", "sum_out[m][n][2 * half + 1] *= keep;", ""),
    "shuffle_mask": (
        "attention_forward.cuh", "sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);",
        "sum[r] += device::shuffle_xor(0x7FFFFFFFu, sum[r], 2);"),
    "lse_without_maximum": (
        "attention_forward.cuh", "(maximum[r] + device::log2_approx(sum[r])) * kLn2",
        "device::log2_approx(sum[r]) * kLn2"),
    "rows_past_the_end_written": (
        "attention_forward.cuh", "if (!own.inside(r)) continue;", ""),
    "row_product_dropped": (
        "attention_backward_queries.cuh", "(dz[m][n][e] - row_product[r])", "dz[m][n][e]"),
    "second_row_tile_where_the_first_is": (
        "attention.cuh", "return (l.warp * kRowTiles<D> + m) * kWarpRows;",
        "return l.warp * kRowTiles<D> * kWarpRows;"),
    "queries_no_barrier_before_next_load": (
        "attention_backward_queries.cuh",
        "next_bias, thread);\n    }\n    device::barrier();", "next_bias, thread);\n    }"),
    "keys_no_barrier_before_diagonals": (
        "attention_backward_keys.cuh",
        "multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q>, l);\n        device::barrier();",
        "multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q>, l);"),
    "scale_forgotten_in_dq": (
        "attention_backward_queries.cuh", "root * own.t[r]", "root"),
    "first_queries_missed": (
        "attention_backward_keys.cuh", "first_key[middle] > j0 + kTile - 1",
        "first_key[middle] > j0"),
    "diagonal_off_by_one": (
        "attention_backward_keys.cuh", "const int shift = thread - (kTile - 1);",
        "const int shift = thread - kTile;"),
    "partial_table_of_another_block": (
        "attention_backward_keys.cuh", "(static_cast<int64_t>(b) * a.H + h) * parts + part)",
        "(static_cast<int64_t>(b) * a.H + h) * parts)"),
    "segments_never_left": (
        "attention_fire.cuh", "if (place.low <= nearest) return;", "return;"),
    "segment_ends_off_by_one": (
        "attention_fire.cuh", "static_cast<int>(ends.w[k]) <= d", "static_cast<int>(ends.w[k]) < d"),
    "rows_that_are_done_add_again": (
        "attention_fire.cuh", "more ? place.low : kNoEnd", "more ? place.low : high"),
    "fire_normalised_by_another_row": (
        "attention_fire.cuh", "inverse[row] * with_psi", "inverse[0] * with_psi"),
    "slots_of_fire_shared": (
        "attention_fire.cuh", "kSlots + 8 * l.warp + l.row", "kSlots + l.row"),
}


def text_of(kernels: pathlib.Path, file: str, name: str, seen: set) -> str:
    """`file`, mutated, with the attention headers that it includes in place of their includes."""
    seen.add(file)
    text = (kernels / file).read_text()
    if name != "original" and MUTATIONS[name][0] == file:
        _, old, new = MUTATIONS[name]
        if text.count(old) != 1:
            sys.exit(f"mutants.py: {name}: {file} holds {text.count(old)} times: {old}")
        text = text.replace(old, new)

    def included(match: re.Match) -> str:
        header = match[1]
        if "/" in header:
            return match[0]
        if not header.startswith("attention"):
            return f'#include "kernels/{header}"'
        return "" if header in seen else text_of(kernels, header, name, seen)

    return re.sub(r'#include "([^"]+)"', included, text.replace("#pragma once\n", ""))


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        print("\n".join(MUTATIONS))
        return
    name, kernels, out = sys.argv[1:]
    pathlib.Path(out).write_text(text_of(pathlib.Path(kernels), "attention.cu", name, set()))


main()
