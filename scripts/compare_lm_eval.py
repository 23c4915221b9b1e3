#!/usr/bin/env python3
"""Compares multiple choice and cloze with lm-evaluation-harness, on an export of the same checkpoint.

Run by hand. Needs lm_eval 0.4.13, torch and transformers of the Python that runs it, the files of
--data (JSON lines: arc_easy.test, hellaswag_val.converted, piqa.validation, openbookqa.test,
winogrande.validation, lambada_test) and a checkpoint whose folder for Hugging Face needs no code of
ours, or --trust:

    venv/bin/python scripts/compare_lm_eval.py --checkpoint out/quickstart/rope/checkpoint-00000300 \\
        --data DIR

Of the first --limit examples of each file the harness forms the requests and scores them in fp32.
The same requests go through `bamtrain eval --task requests`, whose log-likelihoods are to be the
harness's but for 1e-5 of their size; and the file itself through `--task choice` or `cloze`, whose
accuracies are to be the same numbers.
"""

import argparse
import json
import logging
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import lm_eval  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks.winogrande import preprocess_winogrande  # noqa: E402

TOLERANCE = 1e-5

CHOICE = {"output_type": "multiple_choice",
          "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True},
                          {"metric": "acc_norm", "aggregation": "mean", "higher_is_better": True}]}
CLOZE = {"output_type": "loglikelihood",
         "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True},
                         {"metric": "perplexity", "aggregation": "perplexity",
                          "higher_is_better": False}]}
READY = CHOICE | {"doc_to_text": "{{query}}", "doc_to_choice": "choices", "doc_to_target": "gold"}
# Of each task: its file, the harness's reading of it, and ours.
TASKS = {
    "arc_easy": ("arc_easy.test.jsonl", READY, ["choice"]),
    "hellaswag": ("hellaswag_val.converted.jsonl",
                  CHOICE | {"doc_to_text": "{{ctx}}", "doc_to_choice": "endings",
                            "doc_to_target": "label"},
                  ["choice"]),
    # As the harness's own piqa.yaml.
    "piqa": ("piqa.validation.jsonl",
             CHOICE | {"doc_to_text": "Question: {{goal}}\nAnswer:",
                       "doc_to_choice": "{{[sol1, sol2]}}", "doc_to_target": "label"},
             ["choice", "format=piqa"]),
    "openbookqa": ("openbookqa.test.jsonl", READY, ["choice"]),
    # As its winogrande.
    "winogrande": ("winogrande.validation.jsonl",
                   CHOICE | {"doc_to_text": preprocess_winogrande.doc_to_text,
                             "doc_to_choice": preprocess_winogrande.doc_to_choice,
                             "doc_to_target": preprocess_winogrande.doc_to_target},
                   ["choice"]),
    # As its lambada_openai.yaml.
    "lambada": ("lambada_test.jsonl",
                CLOZE | {"doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}",
                         "doc_to_target": "{{' '+text.split(' ')[-1]}}"},
                ["cloze"]),
}


def harness(lm, name, file, config, limit, work):
    """Its results, and [(context, continuation, log-likelihood, greedy), ...]."""
    head = work / f"{name}.jsonl"  # other lines may have other fields
    with open(file) as lines:
        head.write_text("".join(line for _, line in zip(range(limit), lines)))
    task = ConfigurableTask(config=config | {
        "task": name, "dataset_path": "json", "test_split": "test",
        "dataset_kwargs": {"data_files": {"test": str(head)}, "cache_dir": str(work / "cache")}})
    out = lm_eval.simple_evaluate(model=lm, tasks=[task], log_samples=True, bootstrap_iters=0)
    requests = []
    for sample in out["samples"][name]:
        for arguments, answers in zip(sample["arguments"], sample["resps"]):
            requests.append((*arguments, float(answers[0][0]), bool(answers[0][1])))
    return out["results"][name], requests


def bamtrain(arguments, task, settings, output, *more):
    command = [arguments.bamtrain, "eval", "--checkpoint", arguments.checkpoint, "--precision",
               "fp32", "--task", task, "--output", str(output), *more]
    for setting in settings:
        command += ["--task-set", setting]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def compare(lm, arguments, name, work):
    file, config, (task, *settings) = TASKS[name]
    path = pathlib.Path(arguments.data) / file
    results, requests = harness(lm, name, path, config, arguments.limit, work)

    asked, answered = work / f"{name}.requests", work / f"{name}.answers"
    asked.write_text("".join(json.dumps({"context": r[0], "continuation": r[1]}) + "\n"
                             for r in requests))
    bamtrain(arguments, "requests", [f"file={asked}"], answered)
    answers = [json.loads(line) for line in answered.read_text().splitlines()]
    assert len(answers) == len(requests), f"{name}: {len(answers)} of {len(requests)} requests"
    worst = max(abs(a["logprob"] - r[2]) / abs(r[2]) for a, r in zip(answers, requests))
    greedy = sum(r[3] for r in requests)
    differ = sum(a["is_greedy"] != r[3] for a, r in zip(answers, requests))

    output = work / f"{name}.json"
    bamtrain(arguments, task, [f"file={path}", *settings], output, "--samples",
             str(arguments.limit))
    scores = json.loads(output.read_text())["scores"]
    ok = worst <= TOLERANCE and differ == 0
    line = f"{name}: {len(requests)} log-likelihoods, largest difference {worst:.1e}, " \
           f"{greedy} greedy, {differ} differ in that"
    for metric in ("acc", "acc_norm", "perplexity"):
        if metric not in scores:
            continue
        theirs, ours = results[f"{metric},none"], scores[metric]
        if metric == "perplexity":  # exp of a mean of log-likelihoods
            same = abs(math.log(ours) - math.log(theirs)) <= TOLERANCE * math.log(theirs)
        else:
            same = abs(ours - theirs) < 1e-12
        ok = ok and same
        line += f"; {metric} {ours:.6g} and {theirs:.6g}{'' if same else ' DIFFER'}"
    print(line + ("" if ok else "  FAILED"), flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--data", required=True, help="folder of the files")
    parser.add_argument("--bamtrain", default="build/src/bamtrain")
    parser.add_argument("--limit", type=int, default=300, help="examples of each task (300)")
    parser.add_argument("--tasks", default=",".join(TASKS), help="of " + ", ".join(TASKS))
    parser.add_argument("--trust", action="store_true", help="run the folder's code")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        subprocess.run([arguments.bamtrain, "export", "--checkpoint", arguments.checkpoint,
                        "--output", str(work / "model")], check=True, stdout=subprocess.DEVNULL)
        lm = HFLM(pretrained=str(work / "model"), dtype="float32", device="cpu", batch_size=16,
                  max_length=1 << 16, trust_remote_code=arguments.trust)
        print(f"lm_eval {lm_eval.__version__}, {arguments.checkpoint}: ours and the harness's")
        ok = [compare(lm, arguments, name, work) for name in arguments.tasks.split(",")]
    sys.exit(0 if all(ok) else 1)


main()
