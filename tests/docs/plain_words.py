#!/usr/bin/env python3
"""Checks the words of the project: phrases in pages, code and scripts, old names in the code, the length of
sentences.

    tests/docs/plain_words.py SOURCE

A sentence of README and docs has at most 30 words, and at most 3 % have more than 25. Code, tables,
headings and the keys of docs/config.md, whose texts come from the schema, are not sentences here. Strings
and comments of the code may use an old name: keys of formats keep theirs.
"""

import pathlib
import re
import sys

LONGEST, LONG, SHARE = 30, 25, 0.03

# In README, docs, CONTRIBUTING and CHANGELOG, in comments and strings of the code and in scripts. "There is
# none" is plain English.
PHRASES = ("texts? that grows?", "in the midst", "to the same bits", r"ends with \d", r"beside it\b",
           "rows of texts", "at hand", r"(?<!there )(?<!There )\b(?:is|are) none\b", "spoilt", "each by itself")

# Identifiers that were renamed to the field's words.
RENAMED = """
AttentionNumber Bf16Products ContinuationLimits DataRelations EvaluationRelations FigureLook GrowingFile
GrowingText LaneTree Likelihood LikelihoodEvaluation Look ModelRelations OptimizerRule PageLook Passage
Recording Relations SharedContext TextMark TextMemory TileCounts TrainingRelations append_piece
attention_rows begin_texts bf16_products bound_spinning check_grows check_text_model continuations_bytes
count_tiles cpu_linear_of_few_rows default_lanes drops_marks evaluate_in_pieces fail_together fallback_1
first_unread_ go_back is_better_high is_share kAttentionNumbers kFewRows kMostAppended kNoTarget
kOneText kReadWhole kReadWholeOnDevice kUnread lane_gradient lane_sum lead_in likelihoods
likelihoods_bytes load_masters longest_rest masters masters_ matrix_rate matrix_rate_ matrix_rate_share
measure_matrix_rate move_to_front move_tokens nearest_name note_diverged note_files number_of_keys
number_of_metric on_first_rank open_part parallel_stretches parameter_parts plausible_share
read_beginnings read_masters read_pieces read_rests reads_in_pieces reads_pieces remembered_tokens
runs_to_take_over set_masters shared_contexts side_by_side step_in_lanes sum_attention_rows
take_matrix_rate taken_over takes_pieces tell_as_it_is thinned unread_ unread_sums_ visible_tiles
waiting_setting
""".split()


def prose(text, keys):
    """Paragraphs and list items of a Markdown page, without code, tables, headings and HTML; with `keys`
    also without the items that begin with a key."""
    blocks, lines, fenced, key = [], [], False, False

    def close():
        if lines:
            blocks.append(" ".join(lines))
            lines.clear()

    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
            close()
            continue
        if fenced or (line.startswith("    ") and not lines):
            continue
        if keys and stripped.startswith("- `"):
            key = True
        elif not stripped:
            key = False
        if key or not stripped or stripped.startswith(("#", "|", "<")):
            close()
            continue
        item = re.match(r"(?:[-*]|\d+\.)\s+", stripped)
        if item:
            close()
            stripped = stripped[item.end():]
        lines.append(stripped)
    close()
    return blocks


def sentences(block):
    """Of a paragraph. Code spans, links' targets and abbreviations do not end one."""
    block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
    block = re.sub(r"`[^`]*`", "code", block)
    block = re.sub(r"\b(e\.g|i\.e|et al|cf|vs|Fig|Eq|Sec|No)\.", r"\1", block)
    return [s for s in re.split(r"(?<=[.!?:])[)*_\"]*\s+(?=[A-Z0-9(*_\"]|code)", block) if s.strip()]


def words(sentence):
    return len(re.findall(r"[A-Za-z0-9][A-Za-z0-9'’.,/+-]*", sentence))


def pages_of(source):
    return [source / "README.md", *sorted((source / "docs").glob("*.md"))]


def check_sentences(source):
    total = long = 0
    failures = []
    for page in pages_of(source):
        for block in prose(page.read_text(), page.name == "config.md"):
            for sentence in sentences(block):
                n = words(sentence)
                total += 1
                long += n > LONG
                if n > LONGEST:
                    failures.append(f"{page.name}: expected at most {LONGEST} words, found {n}: {sentence}")
    print(f"{total} sentences, {long} of more than {LONG} words")
    if total < 500:
        failures.append(f"expected 500 sentences or more, found {total}")
    if long > SHARE * total:
        failures.append(f"expected at most {SHARE:.0%} of more than {LONG} words, found {long} of {total}")
    return failures


def files_of_code(source, *suffixes):
    for folder in ("src", "kernels", "data_tools", "bench", "tests", "scripts"):
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in suffixes:
                yield path


def check_phrases(source):
    """Line breaks count as spaces, in comments too."""
    failures = []
    code = [path for path in files_of_code(source, ".h", ".cpp", ".c", ".cu", ".cuh", ".py", ".sh", ".build")
            if path.name != "plain_words.py"]
    for page in [*pages_of(source), source / "CONTRIBUTING.md", source / "CHANGELOG.md", *code]:
        text = " ".join(re.sub(r"^\s*(?:///?|#|\*)", "", page.read_text(), flags=re.M).split())
        for phrase in PHRASES:
            for found in re.finditer(phrase, text):
                around = text[max(0, found.start() - 40):found.end() + 40]
                failures.append(f"{page.relative_to(source)}: expected the field's words, found {around!r}")
    return failures


def code_of(text):
    """C++ without comments and strings."""
    return re.sub(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"', " ", text, flags=re.S)


def check_names(source):
    renamed, failures, files = set(RENAMED), [], 0
    for path in files_of_code(source, ".h", ".cpp", ".cu", ".cuh"):
        files += 1
        for name in sorted(renamed & set(re.findall(r"\b[A-Za-z_]\w*", code_of(path.read_text())))):
            failures.append(f"{path.relative_to(source)}: expected the field's name, found {name}")
    if files < 500:
        failures.append(f"expected 500 files of C++ or more, found {files}")
    return failures


def main():
    source = pathlib.Path(sys.argv[1])
    failed = 0
    for check in (check_sentences, check_phrases, check_names):
        failures = check(source)
        failed += bool(failures)
        print("\n".join(failures))
    print(f"test cases: 3 | {3 - failed} passed | {failed} failed")
    sys.exit(failed > 0)


main()
