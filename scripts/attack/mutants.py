#!/usr/bin/env python3
"""Plants faults in a copy of the sources, one at a time: the tests must notice each.

    scripts/attack/mutants.py [NAME...]
    scripts/attack/mutants.py --check     only whether texts and test cases are there; a test

The copy lies in build-mutants/, its build in build-mutants/build; both are used again. First the
tests that are to notice pass without a fault. By hand: a fault costs the compilation of one file,
links and a test. Exits with 1 where one went unnoticed.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "build-mutants"
BUILD = SOURCE / "build"
COPIED = ["meson.build", "meson_options.txt", "README.md", "configs", "docs", "kernels", "src",
          "data_tools", "bench", "scripts", "tests"]
TIME_LIMIT = 120  # seconds of a test; a fault may make processes wait for each other


class Mutant(NamedTuple):
    file: str  # in src
    old: str   # occurs once
    new: str
    program: str  # tests/PROGRAM
    case: str     # that notices


MUTANTS = {
    # --- the step
    "moments_stay_on_the_first_process": Mutant(
        "run/host_state.cpp",
        "  for (size_t i = 0; i < kStateTensors.size(); ++i) {\n    bamtrain::scatter(",
        "  for (size_t i = 0; i < 2; ++i) {\n    bamtrain::scatter(",
        "run", "parameters and both moments of a checkpoint reach every process"),
    "positions_of_a_lanes_first_micro_batch": Mutant(
        "train/trainer.cpp", "{numbers, step, counts.longest}",
        "{std::span<const int64_t>(order_).first(numbers.size()), step, counts.longest}", "train",
        "a step's loss and gradient do not depend on how its windows are cut in micro-batches"),
    "windows_of_a_lanes_first_micro_batch": Mutant(
        "train/trainer.cpp", "load(numbers.subspan(begin, B), step)", "load(numbers.first(B), step)",
        "train",
        "a step's loss and gradient do not depend on how its windows are cut in micro-batches"),
    "lanes_losses_not_joined": Mutant(
        "train/trainer.cpp", "    backend_.add(loss_sum(buffer - n - 1), loss_sum(buffer - n));\n", "", "train",
        "a step's loss and gradient do not depend on how its windows are cut in micro-batches"),
    "squares_of_other_processes_missing": Mutant(
        "train/training_state.cpp",
        "  if (ownership_->divided()) gather(parts_, kSquaresBlock);\n", "", "run", "fp32 training gives the same bits by every way"),
    "learning_rate_of_the_next_step": Mutant(
        "train/trainer.cpp", "prepare(earlier_steps_ + step + 1, learning_rate(step),",
        "prepare(earlier_steps_ + step + 1, learning_rate(step + 1),", "train",
        "a step moves parameters by its own learning rate"),
    "second_moments_not_checked": Mutant(
        "train/training_state.cpp", "finite &= std::isfinite(x);",
        "finite &= t == StateTensor::second_moments || std::isfinite(x);", "train",
        "neither parameters nor moments that are not finite are saved"),
    "weights_of_before_the_step_rounded": Mutant(
        "train/training_state.cpp", "master_weights_, network_.rounded_weights(), gradients_);",
        "master_weights_, Tensor(), gradients_);", "run", "bf16 training gives the same bits by every way"),
    "norms_decay_too": Mutant(
        "train/optimizer.cpp", "p->decays() ? config_.weight_decay : 0", "config_.weight_decay",
        "train", "matrices and embeddings decay; norms, biases, priors and scales do not"),
    "warmup_begins_at_zero": Mutant(
        "train/schedule.cpp", "return static_cast<double>(step + 1) / ",
        "return static_cast<double>(step) / ", "train",
        "warm-up rises linearly to the peak"),
    # --- validation
    "divisor_counts_padded_windows": Mutant(
        "train/validation.cpp", "  Validation result = {mean_loss(slots), std::nullopt, std::nullopt};",
        "  slots.resize(static_cast<size_t>(batches * B), {0, static_cast<double>(T), 0, 0});\n"
        "  Validation result = {mean_loss(slots), std::nullopt, std::nullopt};", "train",
        "a validation loss is the mean over the windows of the pass, each alone"),
    "last_partial_batch_skipped": Mutant(
        "train/validation.cpp", "batches = ceil_div(sequences, step) * batches_of_step;",
        "batches = std::max<int64_t>(1, sequences / step) * batches_of_step;", "train",
        "a validation loss is the mean over the windows of the pass, each alone"),
    "validation_on_training_windows": Mutant(
        "train/validation.cpp", "validation_->read(batch_numbers,", "training_->read(batch_numbers,",
        "train",
        "a validation loss is the mean over the windows of the pass, each alone"),
    # --- the model
    "neighbours_draw_shifted_positions": Mutant(
        "model/random_positions.cpp", "sequence * range + p", "sequence + p", "model",
        "sequences near each other draw positions that know nothing of each other"),
    "neighbours_draw_the_same_positions": Mutant(
        "model/random_positions.cpp", "sequence * range + p", "sequence / 2 * range + p", "model",
        "sequences near each other draw positions that know nothing of each other"),
    "next_step_draws_what_the_next_layer_drew": Mutant(
        "model/random_positions.cpp", "batch.step * draws + d", "batch.step + d", "model",
        "a step's draws are the same for its sequences, others in every layer and step"),
    "layers_begin_alike": Mutant(
        "model/parameters.cpp", "const Rng rng(seed, p.name);", "const Rng rng(seed, p.leaf());",
        "model", "values depend on seed and name alone"),
    "appended_text_forgets_its_document": Mutant(
        "model/model.cpp", "  for (size_t b = 0; b < static_cast<size_t>(texts_); ++b) documents_[b] = last_documents_[b] - n;\n",
        "", "model",
        "incremental decoding has the logits of the whole text, for every prior and scale"),
    # --- evaluation
    "best_checkpoint_is_the_last_measured": Mutant(
        "run/saves.cpp", "highest ? value > best_->value : value < best_->value", "highest || true",
        "run", "the best checkpoint stays beside the newest, and gives way to a better one"),
    "best_checkpoint_goes_with_the_others": Mutant(
        "checkpoint/retention.cpp", " || all[i].step == best;", ";", "checkpoint",
        "pruning keeps the best one beside the newest and those whose step divides"),
    "results_of_the_sequences_that_chose": Mutant(
        "run/task_measures.cpp", "TaskSet::test", "TaskSet::select", "run",
        "a run is measured on sequences of its own while it trains, and its best checkpoint on those "
        "of the test at its end"),
    "results_known_by_their_names": Mutant(
        "record/results.cpp", "are_equal((*found)[\"of\"], of)", "true", "run",
        "what results.json has of the same weights is not measured again"),
    "processes_all_score_the_first_batch": Mutant(
        "eval/task_scores.cpp", "batch = share.rank;", "batch = 0;", "eval",
        "what several processes score adds up to the bits of one"),
    "bins_begin_a_position_early": Mutant(
        "eval/perplexity.cpp", "bins[static_cast<size_t>(position / r.bin)]",
        "bins[std::min(sums->bins.size() - 1, static_cast<size_t>((position + 1) / r.bin))]", "eval",
        "protocol (c): each position of a long pass is in its bin"),
    "a_bin_more_than_there_are": Mutant(
        "eval/perplexity.cpp", "from < length; from += r.bin", "from <= length; from += r.bin", "eval",
        "protocol (c): each position of a long pass is in its bin"),
    "packed_windows_share_a_token_too_many": Mutant(
        "eval/perplexity_text.cpp", "static_cast<int64_t>(w) * stride(length)",
        "static_cast<int64_t>(w) * length", "eval",
        "packed text may be without ids, and its windows share no token"),
    "losses_of_pieces_in_one_place": Mutant(
        "eval/window_reader.cpp", "losses_.data() + at", "losses_.data()", "eval",
        "pieces of a window have the losses of the whole"),
    "moments_counted_anew": Mutant(
        "train/trainer.cpp", "prepare(earlier_steps_ + step + 1,", "prepare(step + 1,", "run",
        "the first steps with another run's moments are that run's next steps, to the bit"),
    "nucleus_goes_on_past_its_share": Mutant(
        "eval/sampling.cpp", "sum < sampling_.top_p * total", "sum <= sampling_.top_p * total",
        "eval", "a share that is met exactly is met: no further token is kept"),
    "every_token_drawn_with_one_number": Mutant(
        "eval/generate.cpp", "sampler.draw(logits, static_cast<uint64_t>(n))",
        "sampler.draw(logits, uint64_t{0})", "eval",
        "what is written is what a model draws that reads the whole text each time"),
    # --- what a run writes
    "metrics_not_synced": Mutant(
        "record/logs.cpp", "  metrics_.sync();\n", "", "record",
        "what a run has logged is on the disk before a checkpoint of that step has its name"),
    "appended_bytes_not_synced": Mutant(
        "core/append_file.cpp",
        "  if (const int fault = file_fault(FileOp::sync, path_)) append_failed(path_, \"sync\", fault);\n"
        "  if (::fsync(descriptor_) != 0) append_failed(path_, \"sync\", errno);\n",
        "", "core",
        "what is appended is synced with its folder's entry, and each step may fail"),
    "logs_synced_after_the_checkpoint": Mutant(
        "run/train.cpp", "        if (save_now) logs->sync(warn);\n", "", "record",
        "what a run has logged is on the disk before a checkpoint of that step has its name"),
    "data_of_a_record_not_checked": Mutant(
        "record/event_file.cpp",
        "    if (masked_crc(message) != read_number<uint32_t>(data.data() + length)) break;\n", "",
        "record", "a record with a flipped bit ends what is kept, wherever the bit is"),
    "line_of_the_checkpoints_step_cut_off": Mutant(
        "record/step_lines.cpp", "if (at <= step) {", "if (at < step) {", "record",
        "lines are cut back to the checkpoint's step, a half-written line included"),
    "seconds_of_earlier_parts_forgotten": Mutant(
        "record/progress.cpp", "return seconds_before_ + seconds();", "return seconds();", "commands",
        "seconds count on where a run is resumed"),
    "moments_under_each_others_names": Mutant(
        "record/run_files.cpp",
        "{p.name + kFirstMoment, first.dtype, p.shape, first.slice(0, p.offset, p.size).data}",
        "{p.name + kFirstMoment, first.dtype, p.shape, second.slice(0, p.offset, p.size).data}",
        "run", "a checkpoint's moments have the names that PyTorch knows them by"),
    "elements_written_at_the_tensors_start": Mutant(
        "run/shared_saves.cpp", "(both.begin - p.offset) * size_of(values.dtype)", "0", "run",
        "a checkpoint has the same bytes where processes write it together and where they cannot"),
    "parts_are_not_compared": Mutant(
        "checkpoint/checkpoint.cpp", "if (found != sums) return;", "", "checkpoint",
        "a checkpoint without the bytes that were written is not published"),
    "parts_are_not_synced": Mutant(
        "core/durable_file.cpp",
        "  sync_file(descriptor_, path_);\n  if (const int error = close_file(&descriptor_)) file_failed",
        "  if (const int error = close_file(&descriptor_)) file_failed", "checkpoint",
        "wherever the process or the machine dies, the old or the new checkpoint is there whole"),
    # --- data
    "epochs_order_kept_within_a_read": Mutant(
        "data/loader.cpp", "windows != n || epoch != number / n)", "windows != n)", "data",
        "a window's content depends on its number alone"),
    "windows_of_a_range_that_lost_its_place": Mutant(
        "data/read_ahead.cpp", "if (stop_ || range->number != number) return false;",
        "if (stop_) return false;", "data",
        "who waits for a range that loses its place is told, and what follows is right"),
    "digests_of_shards_not_compared": Mutant(
        "data/shard_check.cpp", "if (found == *job.sha256) return true;", "return true;", "data",
        "one byte that is another is found, by file, both digests and what to do"),
    "id_of_the_vocabularys_size_accepted": Mutant(
        "data/shard.cpp", "if (largest < vocab) return;", "if (largest <= vocab) return;", "data",
        "a token id past the vocabulary is named with file, position and vocabulary"),
    # --- checkpoints
    "renamed_folder_not_synced": Mutant(
        "checkpoint/checkpoint.cpp", "  sync_folder(out_dir);\n", "", "checkpoint",
        "wherever the process or the machine dies, the old or the new checkpoint is there whole"),
    "newest_valid_one_not_spared": Mutant(
        "checkpoint/retention.cpp", "return valid == c.step;",
        "return valid == c.step + 1;", "checkpoint",
        "pruning keeps the newest valid checkpoint and removes nothing where none is valid"),
    # --- processes
    "flags_of_all_in_place_of_any": Mutant(
        "dist/mpi.cpp", "MPI_LOR", "MPI_LAND", "dist",
        "flags and bytes reach every process"),
    "odd_group_that_does_not_pass_up": Mutant(
        "core/group_tree.h", "y.end == std::min(x.end + x.size(), groups_)",
        "y.end == x.end + x.size()", "dist",
        "a stack of buffers adds any number of groups in the tree"),
    "sums_of_the_first_process_for_all": Mutant(
        "core/group_reduction.cpp", "batch_.push_back({r, {}, received(slot, r, k, at, in)});",
        "batch_.push_back({r, {}, received(slot, r, 0, at, in)});", "dist",
        "groups spread over any number of processes give the bits of the tree"),
    "shared_mechanism_sent_too_early": Mutant(
        "model/model.cpp", "if (is_mechanism(p.group)) layer = p.layer;",
        "if (is_mechanism(p.group)) layer = config_.layers - 1;", "model",
        "so they are in models of other blocks, with shared mechanisms and few layers"),
    "stop_asked_of_the_first_process_alone": Mutant(
        "run/train.cpp", "return comm.any(stop);", "return stop;", "run",
        "the trigger file that the first process finds stops all of them after the same step"),
}


def cases_of(program: str) -> set:
    """The names of the test cases in the sources of tests/PROGRAM."""
    found = set()
    for file in (ROOT / "tests" / program).rglob("*.cpp"):
        for literals in re.findall(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', file.read_text()):
            found.add("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"'))
    return found


def stale(wanted: dict) -> list:
    """What no longer fits the sources, a line each: they change, and the faults have to follow."""
    cases = {program: cases_of(program) for program in {m.program for m in wanted.values()}}
    out = []
    for name, m in wanted.items():
        file = ROOT / "src" / m.file
        times = file.read_text().count(m.old) if file.is_file() else 0
        if times != 1:
            out.append(f"{name}: expected once in src/{m.file}, found {times} times: {m.old!r}")
        if m.case not in cases[m.program]:
            out.append(f"{name}: expected a test case in tests/{m.program}, found none: {m.case}")
    return out


def copy_sources() -> None:
    """Files whose bytes differ alone are written, so that the build is incremental."""
    def files(folder: pathlib.Path) -> set:
        found = (p for name in COPIED for p in (folder / name, *(folder / name).rglob("*")))
        return {p.relative_to(folder) for p in found
                if p.is_file() and "__pycache__" not in p.parts}

    here = files(ROOT)
    for gone in files(SOURCE) - here:
        (SOURCE / gone).unlink()
    for file in here:
        to = SOURCE / file
        if to.is_file() and to.read_bytes() == (ROOT / file).read_bytes():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, to)


def build(programs: set) -> str:
    """Empty, or what the compiler says."""
    if not (BUILD / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD), str(SOURCE), "-Dcuda=disabled", "-Dunity=off",
                        "-Dwerror=false"],  # a fault may leave a name unused
                       check=True, stdout=subprocess.DEVNULL)
    # Tests of runs and commands start the programs.
    targets = [f"tests/{p}/test_{p}" for p in programs] + ["src/bamtrain", "data_tools/bamdata"]
    if "dist" in programs:
        targets += ["tests/dist/mpi_checks"]
    # Where ccache compiles, the paths of the copy are those of any other folder to it.
    environment = dict(os.environ, CCACHE_BASEDIR=str(SOURCE), CCACHE_NOHASHDIR="1")
    done = subprocess.run(["ninja", "-C", str(BUILD), *targets], capture_output=True, text=True,
                          env=environment)
    return "" if done.returncode == 0 else done.stdout[-3000:]


def passes(program: str, case: str) -> bool:
    environment = dict(os.environ, BAMTRAIN_SOURCE=str(SOURCE), BAMTRAIN_BUILD=str(BUILD),
                       GOMP_SPINCOUNT="5000")
    for mark in ",[":
        case = case.replace(mark, "\\" + mark)
    with subprocess.Popen([str(BUILD / f"tests/{program}/test_{program}"), case], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          start_new_session=True) as test:
        try:
            output, _ = test.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(test.pid, signal.SIGTERM)  # mpirun, which ends the processes that it started
            test.communicate()
            return False
    return test.returncode == 0 and b"No test" not in output


def main() -> None:
    check = sys.argv[1:] == ["--check"]
    names = list(MUTANTS) if check else sys.argv[1:] or list(MUTANTS)
    for name in names:
        if name not in MUTANTS:
            sys.exit(f"mutants.py: no fault is named {name}")
    wanted = {name: MUTANTS[name] for name in names}
    old = stale(wanted)
    if check:  # closes as Catch2 does: scripts/test.sh adds these up
        bad = len({line.partition(":")[0] for line in old})
        print("\n".join([*old, f"test cases: {len(wanted)} | {len(wanted) - bad} passed | "
                              f"{bad} failed"]))
        sys.exit(1 if old else 0)
    if old:
        sys.exit("mutants.py: " + "\n".join([*old, "give them the text as it is now"]))
    copy_sources()
    if said := build({m.program for m in wanted.values()}):
        sys.exit(f"mutants.py: without a fault:\n{said}")
    for program, case in sorted({(m.program, m.case) for m in wanted.values()}):
        if not passes(program, case):
            sys.exit(f"mutants.py: without a fault {program} fails in: {case}")
    unnoticed = []
    for name, m in wanted.items():
        path = SOURCE / "src" / m.file
        original = path.read_text()
        path.write_text(original.replace(m.old, m.new))
        said = build({m.program})
        noticed = not said and not passes(m.program, m.case)
        path.write_text(original)
        if said:
            print(f"{name:45} DOES NOT COMPILE:\n{said}", flush=True)
            unnoticed.append(name)
            continue
        print(f"{name:45} {'noticed by' if noticed else 'UNNOTICED by'} {m.program}: {m.case}",
              flush=True)
        if not noticed:
            unnoticed.append(name)
    print(f"{len(wanted) - len(unnoticed)} of {len(wanted)} noticed")
    sys.exit(1 if unnoticed else 0)


main()
