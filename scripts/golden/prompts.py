#!/usr/bin/env python3
"""Prompts that lm-evaluation-harness forms of hand-written records, by its own tasks and code.

Run by hand, with lm_eval 0.4.13 (PyPI) in a Python of its own; writes tests/prompts/golden.json,
which the tests read. With --check it compares that file with fresh prompts and writes nothing.
"""

import json
import logging
import pathlib
import sys
import tempfile

import lm_eval
from lm_eval.api.task import ConfigurableTask
from lm_eval.tasks._yaml_loader import load_yaml

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/prompts/golden.json"
TASKS = pathlib.Path(lm_eval.__file__).parent / "tasks"


def labelled(texts, labels="ABCDE"):
    return {"text": texts, "label": list(labels[: len(texts)])}


def arc(question, texts, answer, labels="ABCDE"):
    return {"id": "x", "question": question, "choices": labelled(texts, labels), "answerKey": answer}


def book(stem, texts, answer):
    return {"id": "x", "question_stem": stem, "choices": labelled(texts), "answerKey": answer}


def swag(label, a, b, endings, gold):
    return {"ind": 1, "activity_label": label, "ctx_a": a, "ctx_b": b, "ctx": a + " " + b,
            "endings": endings, "label": gold, "split_type": "indomain"}


def mmlu(subject, question, choices, answer):
    return {"question": question, "subject": subject, "choices": choices, "answer": answer}


def longbench(domain, context, question, choices, answer):
    record = {"_id": "x", "domain": domain, "sub_domain": "y", "difficulty": "easy",
              "length": "short", "question": question}
    record |= {"choice_" + letter: c for letter, c in zip("ABCD", choices)}
    return record | {"answer": answer, "context": context}


def as_read_by_longbench(record):
    """The copy of the data set that the harness reads has other names."""
    return {"context": record["context"], "question": record["question"],
            "choices": [record["choice_" + letter] for letter in "ABCD"],
            "answer": "ABCD".index(record["answer"])}


# Of each format: the harness's task, records, and those that shots are taken of.
CASES = [
    ("arc", "arc/arc_easy.yaml", 0, [
        arc("What melts ice?", ["Salt", " a saw ", "ink", "Ökobutter\u00a0"], "A"),
        arc("Two\nlines, \"quoted\" & <b>?  ", ["1", "2", "3", "4", "5"], "4", "12345"),
        arc(" {{braces}} and \\n", ["yes", "no", "neither"], "C"),
    ], []),
    ("arc", "arc/arc_challenge.yaml", 2, [arc("Last?", ["a", "b"], "B")], [
        arc("First?", ["one", "two"], "B"), arc("Second? ", ["three ", "four"], "A"),
        arc("Third?", ["five", "six"], "A")]),
    ("hellaswag", "hellaswag/hellaswag.yaml", 0, [
        swag("Roof shingle removal", "A man is sitting on a roof.", "he",
             ["is using wrap to wrap a pair of skis.", "is ripping level tiles off.",
              "is holding a rubik's cube.", "starts pulling up roofing on a roof."], "3"),
        swag("Home and Garden", "How to cook [title] Boil it. [step] Take   a POT",
             "then go to NEW York  [substeps] ÉTÉ Über",
             ["[title] Stir [step] well", " [a] b [[c]] d]", "an [open\nbracket] here",
              "\u3000wide  spaces    here\u2003"], "0"),
        swag("[header] X", "", "", ["a [b", "c] d", "[]e", "  f [title] [title] g"], "1"),
        swag(" Tabs\t", "\u00a0A.", "élan VITAL. it's", ["x", "y", "z", "w"], "2"),
    ], []),
    ("hellaswag", "hellaswag/hellaswag.yaml", 1, [
        swag("Swimming", "She dives.", "she", ["swims.", "sings.", "flies.", "reads."], "0")], [
        swag("Running", "He runs.", "then HE", ["[step] stops.", "sits.", "eats.", "sews."], "0")]),
    ("piqa", "piqa/piqa.yaml", 0, [
        {"goal": "dresser", "sol1": "replace drawer with bobby pin ",
         "sol2": "finish, woodgrain with  bobby pin ", "label": 1},
        {"goal": " Wie öffnet man das?\n", "sol1": "Mit Öl", "sol2": "mit 油", "label": 0},
    ], []),
    ("openbookqa", "openbookqa/openbookqa.yaml", 0, [
        book("The sun is the source of", ["heat", "cold "], "A"),
        book("Fog is around: ", ["a marsh", "a tundra", "the plains", "a desert"], " D"),
    ], []),
    ("winogrande", "winogrande/default.yaml", 0, [
        {"sentence": "Sarah was better than Maria so _ got the easier cases.",
         "option1": "Sarah", "option2": "Maria", "answer": "2"},
        {"sentence": "_'s dog, not _, \u00a0barks. ", "option1": "Ann Lee", "option2": "É", "answer": "1"},
    ], []),
    ("winogrande", "winogrande/default.yaml", 2, [
        {"sentence": "The cup fell off the table as the _ shook.", "option1": "cup",
         "option2": "table", "answer": "2"}], [
        {"sentence": "He sat, the _ was low.", "option1": "chair", "option2": "sky", "answer": "1"},
        {"sentence": "It rains, _ falls.", "option1": "fire", "option2": "water", "answer": "2"}]),
    ("mmlu", "mmlu/default/mmlu_abstract_algebra.yaml", 0, [
        mmlu("abstract_algebra", " Find the order of Z_4.\n", ["0", "4 ", " 2", "6"], 1)], []),
    ("mmlu", "mmlu/default/mmlu_high_school_european_history.yaml", 2, [
        mmlu("high_school_european_history", "Who?", ["w", "x", "y", "z"], 3)], [
        mmlu("high_school_european_history", "When? ", ["1", "2", "3", "4"], 0),
        mmlu("high_school_european_history", "Where?\nHere", ["e", "f", "g", "h"], 2),
        mmlu("high_school_european_history", "Why?", ["i", "j", "k", "l"], 1)]),
    ("longbench_v2", "longbench2/table.yaml", 0, [
        longbench("Single-Document QA", "A long\ntext. ", "  What is it? ",
                  ["this", " that ", "all", "none"], "B")], []),
    ("cloze", "lambada/lambada_openai.yaml", 0, [
        {"text": "He  said\n\n\"I don't care about signs"},
        {"text": "Straße und\u00a0Ende\nwort"},
        {"text": "alone"},
    ], []),
]


def task_of(yaml, records, shots):
    config = load_yaml(TASKS / yaml)
    config["dataset_path"] = "json"
    config["dataset_name"] = None
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        split = config.get("test_split") or config["validation_split"]
        for key in ("test_split", "validation_split", "training_split"):
            config[key] = split if config.get(key) == split else None
        for name, lines in ((split, records), ("shots", shots or records)):
            path = pathlib.Path(folder) / (name + ".jsonl")
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            files[name] = str(path)
        config["dataset_kwargs"] = {"data_files": files, "cache_dir": folder}
        # Which examples are drawn is the data set's; ours are the first ones.
        config["fewshot_split"] = "shots"
        config["fewshot_config"] = {"sampler": "first_n"}
        return ConfigurableTask(config=config)


def requests_of(yaml, shots, records, shot_records):
    """[[{"context", "continuation"}, ...], ...] and the golds."""
    if "longbench2" in yaml:
        records = [as_read_by_longbench(r) for r in records]
    task = task_of(yaml, records, shot_records)
    requests, golds = [], []
    for doc in task.eval_docs:
        context = task.fewshot_context(doc, shots)
        instances = task.construct_requests(doc=doc, ctx=context)
        instances = instances if isinstance(instances, list) else [instances]
        requests.append([dict(zip(("context", "continuation"), i.args)) for i in instances])
        if len(instances) > 1:
            gold = task.doc_to_text(doc) if task.multiple_input else task.doc_to_target(doc)
            golds.append(int(gold))
    return requests, golds


def main():
    logging.disable(logging.WARNING)
    cases = []
    for name, yaml, shots, records, shot_records in CASES:
        requests, golds = requests_of(yaml, shots, records, shot_records)
        cases.append({"format": name, "task": yaml, "shots": shots, "records": records,
                      "shot_records": shot_records, "requests": requests, "golds": golds})
    text = json.dumps({"lm_eval": lm_eval.__version__, "cases": cases}, indent=1,
                      ensure_ascii=True) + "\n"
    if sys.argv[1:] == ["--check"]:
        assert OUT.read_text() == text, f"{OUT} is not what lm_eval gives"
    else:
        OUT.write_text(text)


main()
