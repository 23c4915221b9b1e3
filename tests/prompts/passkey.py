#!/usr/bin/env python3
"""Independent check of passkeys: every sequence that bamdata prints is read as text, and made again here.

    passkey.py BAMDATA TOKENIZER     TOKENIZER: a tokenizer.json, byte-level, that splits digits

Ids become text by the file's vocabulary; what the text says (key, place, fillers) becomes ids again by a
byte-pair encoding written here, piece by piece, and must be the same. Altered sequences must be noticed.
"""
import json
import os
import re
import subprocess
import sys
from collections import Counter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tasks'))
from independent import LEAST_P, Wrong, need, survival  # noqa: E402

TASK = ('There is an important info hidden inside a lot of irrelevant text. Find it and memorize them. '
        'I will quiz you about the important information there.')
FILLER = 'The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.'
NEEDLE = 'The pass key is {0}. Remember it. {0} is the pass key.'
QUESTIONS = {'published': 'What is the pass key? The pass key is', 'paper': 'The passkey is:'}


class Tokenizer:
    """Of ASCII text, which is its own spelling in a byte-level vocabulary but for the space."""

    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            model = json.load(file)['model']
        self.ids = model['vocab']
        self.pieces = {i: piece for piece, i in self.ids.items()}
        merges = [tuple(m.split(' ')) if isinstance(m, str) else tuple(m) for m in model['merges']]
        self.rank = {pair: r for r, pair in enumerate(merges)}

    def decode(self, ids):
        return ''.join(self.pieces[i] for i in ids).replace('\u0120', ' ')

    def encode(self, text):
        ids = []
        for part in re.split(r'([0-9])', text):
            for word in re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", part):
                symbols = list(word.replace(' ', '\u0120'))
                while len(symbols) > 1:
                    pairs = [(self.rank[p], i) for i, p in enumerate(zip(symbols, symbols[1:])) if p in self.rank]
                    if not pairs:
                        break
                    at = min(pairs)[1]
                    symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]
                ids += [self.ids[s] for s in symbols]
        return ids


def read(tokenizer, line, digits, given, question):
    """Checks a sequence; its key, fillers and the place of the needle among them."""
    row = json.loads(line)
    ids, targets = row['input'], row['targets']
    asked = digits - given
    need(all(t is None for t in targets[:-asked]) and None not in targets[-asked:], f'{asked} targets at the end',
         targets)
    whole = ids + targets[-1:]
    text = tokenizer.decode(whole)
    found = re.fullmatch('(.*?)(The pass key is ([0-9]+)\\. .*?pass key\\.)(.*)' +
                         re.escape(QUESTIONS[question]) + ' ([0-9]+)', text)
    need(found, 'a passkey', text)
    before, after, key = found[1][len(TASK):], found[4], found[3]
    need(found[1] == TASK + before and len(key) == digits and key[0] != '0', 'the task and a key', text)
    fillers = [len(part) // len(FILLER) for part in (before, after)]
    need([before, after] == [FILLER * n for n in fillers], 'fillers', text)
    need(found[2] == NEEDLE.format(key) and found[5] == key, f'{key} twice and as the answer', text)
    need(tokenizer.decode(targets[-asked:]) == key[given:], key, targets)
    pieces = [TASK, *[FILLER] * fillers[0], NEEDLE.format(key), *[FILLER] * fillers[1], QUESTIONS[question]]
    prompt = [i for piece in pieces for i in tokenizer.encode(piece)]
    need(whole == prompt + tokenizer.encode(' ' + key), prompt, whole)
    need(ids[-asked:] == [whole[-asked - 1]] + targets[-asked:-1], 'each digit behind those before it', ids)
    filler = len(tokenizer.encode(FILLER))
    need(len(prompt) <= row['length'] < len(prompt) + filler, f'the most fillers within {row["length"]}', len(prompt))
    return key, sum(fillers), fillers[0]


def uniform(what, counts, cells):
    """By a chi-squared test."""
    total = sum(counts.values())
    need(set(counts) <= set(cells), cells, counts)
    x = sum((counts[c] - total / len(cells)) ** 2 for c in cells) * len(cells) / total
    p = survival(x, len(cells) - 1)
    need(p >= LEAST_P, f'{what} uniform', f'p {p:.3g}: {counts}')
    return p


def main(bamdata, path):
    tokenizer, least, sequences = Tokenizer(path), 1.0, 0
    def lines(*arguments):
        return subprocess.run([bamdata, 'synth', 'passkey', '--set', 'tokenizer=' + path, '--json', *arguments],
                              stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    for digits, given, question in ((5, 0, 'published'), (6, 1, 'published'), (5, 2, 'paper'), (1, 0, 'paper')):
        settings = [f'digits={digits}', f'prefix_digits={given}', f'question={question}']
        options = [word for s in settings for word in ('--set', s)] + ['--length', '150,700']
        rows = lines(*options, '--count', '1000')
        facts = [read(tokenizer, line, digits, given, question) for line in rows]
        sequences += len(facts)
        least = min(least, uniform('first digits', Counter(key[0] for key, *_ in facts), '123456789'))
        if digits > 1:
            least = min(least, uniform('last digits', Counter(key[-1] for key, *_ in facts), '0123456789'))
        for n in sorted({n for _, n, _ in facts}):
            least = min(least, uniform(f'places among {n}', Counter(a for _, m, a in facts if m == n), range(n + 1))
                        if n else 1.0)
        need(rows[500:510] == lines(*options, '--first', '500', '--count', '10'), '--first 500: the same', 'others')
        for fault in ('target', 'input', 'space', 'filler'):
            row = json.loads(rows[0])
            if fault == 'target':
                row['targets'][-1] = row['targets'][-1] + 1
            elif fault == 'input':
                row['input'][40] += 1
            elif fault == 'space':
                row['targets'][-(digits - given) - 1] = row['input'][-(digits - given)]
            else:
                row['length'] += 1000
            try:
                read(tokenizer, json.dumps(row), digits, given, question)
            except (Wrong, KeyError):
                continue
            raise Wrong(f'expected a fault to be noticed, found that {fault} was not')
    print(f'{sequences} sequences, smallest p {least:.2g}')
    print(f'All tests passed ({sequences} assertions in 1 test case)')


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
