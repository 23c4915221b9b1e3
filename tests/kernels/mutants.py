#!/usr/bin/env python3
"""Planted faults in the attention kernels: the tests must notice each.

    mutants.py --list      the names
    mutants.py --programs  these and those of originals, which replace nothing, and after each name
                           the source that it is written from
    mutants.py NAME KERNELS OUT [DEPFILE]
                           writes that source to OUT, with attention files in place of their
                           includes and one text replaced; DEPFILE names them for ninja
"""

import pathlib
import re
import sys

# By how a name begins, the first that fits: the source, from the folder KERNELS. Of others:
# ATTENTION.
ATTENTION = "attention.cu"
SOURCES = {
    "content": "attention_content.cu",
    "relative": "attention_content.cu",
    "contextual": "attention_cope.cu",
    "mix_tiles": "attention_mix_tiles.cu",
    "mix": "attention_mix.cu",
    "plain": "../tests/kernels/attention_content_launchers.cpp",
}
ORIGINAL = "original"

# name: (file, text that occurs once, its replacement)
MUTATIONS = {
    "no_barrier_after_load": (
        "attention_stream.cuh", "device::barrier();\n      f(StreamedTile", "f(StreamedTile"),
    "no_barrier_before_next_load": (
        "attention_stream.cuh", "device::barrier();\n      if (ended()) break;",
        "if (ended()) break;"),
    "wait_one_group_too_lax": (
        "attention_stream.cuh", "copy_async_wait<1>", "copy_async_wait<2>"),
    "slice_of_the_tile_before": (
        "attention_stream.cuh", "store(after, step ^ 1);", "store(after, step);"),
    "mask_off_by_one": (
        "attention_rows.cuh", "stick ? rows[r] : last(a, r) + 1",
        "stick ? rows[r] : last(a, r) + 2"),
    "last_queries_of_a_warp_missed": (
        "attention_rows.cuh", "all_inside ? i0 + group_row(l, M) - 1 :",
        "all_inside ? i0 + group_row(l, 0) :"),
    "first_keys_of_a_warp_missed": (
        "attention_rows.cuh", "&& j0 + keys > warp_begin;", "&& j0 > warp_begin;"),
    "window_forgotten_in_whole_tiles": (
        "attention_rows.cuh", "return j0 >= all_begin && ", "return "),
    "bias_slice_off_by_one": (
        "attention_rows.cuh", "rows[r] - i0 - key + kKeys - 1;", "rows[r] - i0 - key + kKeys;"),
    "operand_index": (
        "attention.cuh", "chunk = 2 * step + l.lane / 8 % 2", "chunk = 2 * step + l.lane / 16 % 2"),
    "fp32_weights_of_another_lane": (
        "attention.cuh", "l.lane - l.pair + j / 2", "l.lane - l.pair + j % 4"),
    "fp32_rows_of_the_first_half": (
        "attention.cuh", "static_cast<uint32_t>(l.row + r % 2 * 8) * kRow",
        "static_cast<uint32_t>(l.row) * kRow"),
    "fp32_pairs_of_another_lane": (
        "attention.cuh", "reinterpret_cast<const TwoFloats*>(row)[4 * n + l.pair]",
        "reinterpret_cast<const TwoFloats*>(row)[4 * n + 3 - l.pair]"),
    "accumulator_not_rescaled": (
        "attention_forward.cuh", "sum_out[r / 2][n][r % 2 * 2 + 1] *= keep;", ""),
    "shuffle_mask": (
        "attention_forward.cuh", "sum[r] += device::shuffle_xor(device::kWholeWarp, sum[r], 2);",
        "sum[r] += device::shuffle_xor(0x7FFFFFFFu, sum[r], 2);"),
    "lse_without_maximum": (
        "attention_forward.cuh", "(maximum[r] + device::log2_approx(sum[r])) * kLn2",
        "device::log2_approx(sum[r]) * kLn2"),
    "rows_past_the_end_written": (
        "attention_forward.cuh", "if (!own.inside(r)) continue;", ""),
    "row_product_dropped": (
        "attention_backward_queries.cuh", "x = w.u * (x - centre_of_row);", "x = w.u * x;"),
    "second_row_tile_where_the_first_is": (
        "attention_rows.cuh", "return (l.warp * M + m) * kWarpRows;",
        "return l.warp * M * kWarpRows;"),
    "derivatives_of_the_tile_before": (
        "attention_stream.cuh", "return derivatives + of.step * Block::kSliceFloats;",
        "return derivatives;"),
    "keys_no_barrier_before_diagonals": (
        "attention_backward_keys.cuh",
        "multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q, A>, l);\n        device::barrier();",
        "multiply<D>(sum_k, operand, queries + stage * kTileBytes<D, Q, A>, l);"),
    "scale_forgotten_in_dq": (
        "attention_backward_queries.cuh", "of_row, own.factor[r], l);", "of_row, root, l);"),
    "scale_forgotten_in_dk": (
        "attention_backward_keys.cuh", "dz[n][e] *= t[n][e % 2];", ""),
    "scale_of_biases_forgotten": (
        "attention_backward_keys.cuh", "kLog2e * u[n][e % 2] :", "kLog2e :"),
    "scale_gradient_in_base_2": (
        "attention_backward_queries.cuh", "(own.in_base_2(a) ? kLn2 : 1.0f)", "1.0f"),
    "first_queries_missed": (
        "attention_backward.cuh", "first_key[middle] > j0 + kTile - 1",
        "first_key[middle] > j0"),
    "diagonal_off_by_one": (
        "attention_backward_keys.cuh", "const int shift = thread - (kTile - 1);",
        "const int shift = thread - kTile;"),
    "partial_table_of_another_block": (
        "attention_backward_keys.cuh", "(row_of_head / a.T * parts + part) * slot_floats",
        "(row_of_head / a.T * parts) * slot_floats"),
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
    "tiles_marked_for_this_pass": (
        "attention_searched.cuh", "marks.set(pass + 1, l.warp, tile)",
        "marks.set(pass, l.warp, tile)"),
    "live_bit_of_another_tile": (
        "attention_searched.cuh", "(marked >> l.lane & 1) << (of.tile % 32)",
        "(marked >> l.lane & 1) << ((of.tile - own.first_tile) % 32)"),
    "live_words_of_the_word_before": (
        "attention_searched.cuh", "store_live();\n      live_at = word;",
        "live_at = word;\n      store_live();"),
    "live_bits_of_the_first_warp": (
        "attention_live.cuh", "words[g * per_group + at]", "words[at]"),
    "support_ends_early": (
        "attention_search.cuh", "!(bound_ - a_ * (of_row - z) <= 0)",
        "!(bound_ - a_ * (of_row - z) <= 0.9f)"),
    "support_of_topk_ends_early": (
        "attention_search.cuh", "bound_ = unordered(selection_->low);",
        "bound_ = unordered(selection_->high);"),
    "list_of_one_logit": (
        "attention_selection.cuh", "slot(n) = z;", "slot(0) = z;"),
    "full_lists_of_other_lanes": (
        "attention_selection.cuh", "(full >> (lane & ~3) & 15) == 0", "(full >> lane & 1) == 0"),
    "list_too_short": (
        "attention_search.cuh", "? threshold - width", "? threshold - 0.5f * width"),
    "roots_of_another_delta": (
        "attention_search.cuh", "f(root + (threshold - list_.delta()), j)", "f(root, j)"),
    "smaller_logits_take_the_room": (
        "attention_selection.cuh", "slot(place) = fmaxf(z, slot(place));", "slot(place) = z;"),
    "left_out_of_other_lanes": (
        "attention_search.cuh",
        "left_out = fmaxf(left_out, device::shuffle_xor(device::kWholeWarp, left_out, 1));", ""),
    "list_of_too_small_a_delta": (
        "attention_search.cuh", "whole_ && bound_ <= listed", "whole_"),
    "groups_counted_twice": (
        "attention_search.cuh", "counts[k] += z >= from[k] ? 1.0f : 0.0f",
        "counts[k] += z >= from[k] ? 2.0f : 0.0f"),
    "weights_of_another_sum": (
        "attention_search.cuh", "threshold - (norm - 1.0f)", "threshold - (norm - 0.9f)"),
    "last_tie_forgotten": (
        "attention_search.cuh", "set_last(-selection_->low);", "set_last(-selection_->low - 1);"),
    "all_ties_kept": (
        "attention_search.cuh", "phase = SearchPhase::ties;",
        "phase = SearchPhase::done;\n    selection_->low = -i_;\n    return;"),
    "tie_of_the_last_key_dropped": (
        "attention_weights.cuh", "z == threshold && j > static_cast<int>",
        "z == threshold && j >= static_cast<int>"),
    "bias_without_the_slope": (
        "attention_backward_keys.cuh", "t * line.slope : line.slope}", "t : 1.0f}"),
    "centre_weighed_by_p": (
        "attention_weights.cuh", "u > 0 ? u_dp / u : 0.0f", "u > 0 ? p_dp / p : 0.0f"),
    "alpha_without_centre": (
        "attention_weights.cuh", "(h_dp - centre() * h) / (a * a)", "h_dp / (a * a)"),
    "carries_of_tiles": (
        "attention_backward.cuh", "parts + j0 / kPart)", "parts + j0 / kTile)"),
    "stick_not_broken_within_eight_keys": (
        "attention_sticks.cuh", "broken + sums.others +", "broken +"),
    "lanes_beyond_the_row": (
        "attention_sticks.cuh", "if (place >= distance) sum += other;", "sum += other;"),
    "gains_of_the_pair_forgotten": (
        "attention_sticks.cuh", "(first + gained[0])", "first"),
    "own_key_takes_a_share": (
        "attention_rows.cuh", "stick ? rows[r] : last(a, r) + 1", "last(a, r) + 1"),
    "operand_not_transposed": (
        "attention_backward_keys_sticks.cuh", "16 * step + l.lane / 16 * 8 + l.lane % 8",
        "16 * step + l.lane / 8 % 2 * 8 + l.lane % 8"),
    "no_barrier_before_operands": (
        "attention_backward_keys_sticks.cuh", "device::barrier();\n        uint32_t operand[1]",
        "uint32_t operand[1]"),
    "sticks_diagonal_off_by_one": (
        "attention_backward_keys_sticks.cuh", "shift + kTile - 1;", "shift + kTile;"),
    "sums_of_the_first_part": (
        "attention_backward_keys_sticks.cuh", "thread / kPart == part_of_tile", "thread / kPart == 0"),
    "keys_behind_the_query": (
        "attention_backward_keys.cuh", "j <= last_of(query) && ", "j <= last_of(query) + 1 && "),
    "bias_of_another_distance": (
        "attention_backward_keys.cuh", "slice[query - own + kTile - 1]; });",
        "slice[query - own + kTile]; });"),
    "queries_read_too_early": (
        "attention_backward_keys.cuh", "device::barrier();\n\n        // Transposed",
        "\n\n        // Transposed"),
    "db_of_the_key_before": (
        "attention_backward_keys.cuh", "db[own * kDbRow<D> + own + shift]",
        "db[own * kDbRow<D> + own + shift - 1]"),
    "rows_end_at_their_own_key": (
        "attention_rows.cuh", "return inside(r) ? last_of<Form>(a, b, rows[r]) : rows[r];",
        "return rows[r];"),
    "tiles_past_the_queries_missed": (
        "attention_rows.cuh", "last_tile = last_of<Form>(a, b, last_row)", "last_tile = last_row"),
    "whole_tiles_up_to_the_own_key": (
        "attention_rows.cuh", "all_end = all_inside ? last_of<Form>(a, b, warp_row) + 1 : 0;",
        "all_end = all_inside ? end : 0;"),
    "queries_before_a_tile_missed": (
        "attention_backward_keys.cuh", "? j0 : first_key[j0] / Q * Q)", "? j0 : j0)"),
    "distances_below_zero_forgotten": (
        "attention_backward_keys.cuh", "d >= -distances_behind<Form>(a) && d < a.T",
        "d >= 0 && d < a.T"),
    "partial_table_from_distance_zero": (
        "attention_backward_keys.cuh", "slot[distances_behind<Form>(a) + i0 - j0 + thread]",
        "slot[i0 - j0 + thread]"),
    "content_no_barrier_before_next_keys": (
        "attention_content.cuh", "device::barrier();\n    copy_tile<D>(keys,",
        "copy_tile<D>(keys,"),
    "content_scores_of_another_key_head": (
        "attention_content.cuh", "copy_tile<D>(keys, a.k, own.b, own.h / (a.H / a.K), j0, a.T);",
        "copy_tile<D>(keys, a.k, own.b, own.h % a.K, j0, a.T);"),
    "content_last_query_missed": (
        "attention_content.cuh", "(i0 + kTile < end ? i0 + kTile : end) - 1",
        "(i0 + kTile < end ? i0 + kTile : end) - 2"),
    "content_first_key_missed": (
        "attention_content.cuh", "j >= first_key[i] ?", "j > first_key[i] ?"),
    "content_distances_read_too_early": (
        "attention_content.cuh",
        "of_biases[r] * a.formed.b[at] : 0.0f;\n        },\n        l);\n    device::barrier();",
        "of_biases[r] * a.formed.b[at] : 0.0f;\n        },\n        l);"),
    "content_column_of_the_next_position": (
        "attention_content.cuh", "E[a.contextual.count]", "E[1]"),
    "content_dv_of_the_last_part": (
        "attention_content.cuh",
        "for_sums<D>(sum_v[0], g.sums.dv + kh * a.D, stride, own0, a.T, l, load);", ""),
    "content_db_of_the_last_part": (
        "attention_content.cuh", "to = g.first ? of_keys[r] : to + of_keys[r];",
        "to = of_keys[r];"),
    "content_db_without_the_scale": (
        "attention_content.cuh", "of_keys[r] += dz * scale_of(a, head, i0 + column, a.scale_bias);",
        "of_keys[r] += dz;"),
    "content_no_sync_before_db": (
        "attention_content.cuh", "device::sync_warp();  // db_of_keys", "// db_of_keys"),
    "relative_vectors_of_one_rounding": (
        "attention_relative.cuh", "(product[0][n][e] + rest[0][n][e])", "product[0][n][e]"),
    "relative_no_barrier_before_next_vectors": (
        "attention_relative.cuh", "device::barrier();\n    load_rounded<D>(", "load_rounded<D>("),
    "relative_db_of_the_last_part": (
        "attention_relative.cuh", "of_distances[r] += *all;", ";"),
    "relative_no_sync_of_the_lanes_of_a_row": (
        "attention_relative.cuh", "device::sync_warp();  // it is read", "// it is read"),
    "relative_dr_of_the_last_part": (
        "attention_relative.cuh", "if (!g.first_of_all) {", "if (false) {"),
    "contextual_no_sync_before_values": (
        "attention_cope.cu", "device::sync_warp();\n  }", "}"),
    "contextual_position_not_capped": (
        "attention_cope.cu", "counts ? sum : last;", "sum;"),
    "contextual_share_of_the_wrong_neighbour": (
        "attention_cope.cu", "+ at.share * (", "+ (1.0f - at.share) * ("),
    "contextual_first_of_the_left_keys_missed": (
        "attention_cope.cu", "return j0 + 1;", "return j0;"),
    "contextual_bins_of_the_keys_lanes": (
        "attention_cope.cu", "if (low_at % 32 == lane)", "if (n == lane)"),
    "contextual_gate_without_its_own_key": (
        "attention_cope.cu", "(nearer + up_to - of_own)", "(nearer + up_to)"),
    "contextual_rows_read_too_early": (
        "attention_cope.cu", "device::barrier();\n    for (int row = 0;",
        "for (int row = 0;"),
    "contextual_sums_of_the_first_slot": (
        "attention_cope.cu", "partial + n, kPositionSlots, size", "partial + n, 1, size"),
    "mix_hidden_layer_read_too_early": (
        "attention_mix.cu", "x.hidden[k * kKeys + n] = sum;\n  });\n  device::barrier();",
        "x.hidden[k * kKeys + n] = sum;\n  });"),
    "mix_gradients_of_the_last_part": (
        "attention_mix.cu", "n = thread; g.first_of_all && n <", "n = thread; n <"),
    "mix_ds_without_the_scale": (
        "attention_mix.cu", "own.of_scores(a, h) * of_logit +", "of_logit +"),
    "mix_dw2_without_the_layer_of_biases": (
        "attention_mix.cu", "slot[of.w2 + h * hidden + k] += sum", "slot[of.w2] += 0 * sum"),
    "mix_operand_not_transposed": (
        "attention_mix.cu", "first_weight(m, a.H, k, of_biases, h) * x.dhidden",
        "first_weight(m, a.H, h, of_biases, k) * x.dhidden"),
    "mix_last_keys_of_a_block_missed": (
        "attention_mix_prior.cuh", "first_of(a, b, i) > j0 + 31", "first_of(a, b, i) > j0"),
    "mix_table_of_the_last_part": (
        "attention_mix_prior.cuh", "to = g.first_of_all ? sum : to + sum;", "to = sum;"),
    "mix_segments_joined_too_early": (
        "attention_mix_prior.cuh", "device::barrier();\n  if (thread >= kFirePartial) return;",
        "if (thread >= kFirePartial) return;"),
    "mix_tiles_no_barrier_before_products": (
        "attention_mix_tiles.cuh", "device::barrier();\n      pieces.template add<MixLayers::second>",
        "pieces.template add<MixLayers::second>"),
    "mix_tiles_gradient_over_the_layer": (
        "attention_mix_tiles.cuh", "device::barrier();\n      if (sees) {", "if (sees) {"),
    "mix_tiles_ds_without_the_scale": (
        "attention_mix_tiles.cuh", "ds = own.of_scores(a, h) * ds + du", "ds = ds + du"),
    "mix_tiles_distances_of_another_class": (
        "attention_mix_distances.cuh", "(7 - share % 8)", "(6 - share % 8)"),
    "mix_tiles_distances_of_the_last_part": (
        "attention_mix_distances.cuh", "to = g.first_of_all ? sum : to + sum;", "to = sum;"),
    "mix_tiles_first_distance_of_a_warp_missed": (
        "attention_mix_distances.cuh",
        "return own.furthest >= first;", "return own.furthest > first;"),
    "mix_tiles_keys_of_the_next_query": (
        "attention_mix_distances.cuh",
        "device::barrier();\n    const int furthest", "const int furthest"),
    "mix_tiles_db_of_unscaled_biases": (
        "attention_mix_distances.cuh", "if (a.scale_bias) {", "if (false) {"),
    "plain_db_of_the_last_part": (
        "attention_content_reference.cu", "to = g.first ? of_key : to + of_key;", "to = of_key;"),
    "plain_no_barrier_before_the_sum_of_warps": (
        "attention_content_reference.cu",
        "device::barrier();\n  if (warp != 0 || c >= a.D) return;",
        "if (warp != 0 || c >= a.D) return;"),
    "plain_sums_of_du_in_dw": (
        "attention_content_reference.cu", "sums[32 * (kRowWarps + n) + thread]",
        "sums[32 * n + thread]"),
}


def source_of(name: str) -> str:
    for begin, source in SOURCES.items():
        if name.startswith(begin + "_"):
            return source
    return ATTENTION


def originals() -> list:
    """One of each source."""
    first = {source: begin for begin, source in reversed(SOURCES.items())}
    return [ORIGINAL] + [f"{begin}_{ORIGINAL}" for begin in SOURCES if begin in first.values()]


def text_of(kernels: pathlib.Path, file: str, name: str, seen: set) -> str:
    """`file`, mutated, with the attention files that it includes in place of their includes."""
    seen.add(file)
    text = (kernels / file).read_text()
    if name in MUTATIONS and MUTATIONS[name][0] == file:
        _, old, new = MUTATIONS[name]
        if text.count(old) != 1:
            sys.exit(f"mutants.py: {name}: {file} holds {text.count(old)} times: {old}")
        text = text.replace(old, new)

    def included(match: re.Match) -> str:
        header = match[1].removeprefix("kernels/")
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
    if sys.argv[1:] == ["--programs"]:
        print("\n".join(f"{name} {source_of(name)}" for name in originals() + list(MUTATIONS)))
        return
    name, kernels, out, *depfile = sys.argv[1:]
    if name not in MUTATIONS and name not in originals():
        sys.exit(f"mutants.py: no fault is named {name}")
    folder, seen = pathlib.Path(kernels), set()
    text = text_of(folder, source_of(name), name, seen)
    if name in MUTATIONS and MUTATIONS[name][0] not in seen:
        sys.exit(f"mutants.py: {name}: {source_of(name)} does not include {MUTATIONS[name][0]}")
    pathlib.Path(out).write_text(text)
    for path in depfile:
        files = " ".join(str(folder / file) for file in sorted(seen))
        pathlib.Path(path).write_text(f"{out}: {files}\n")


main()
