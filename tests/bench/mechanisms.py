#!/usr/bin/env python3
"""Runs bench/mechanisms on a small model: its table is whole, and its figures are those of the model.

    mechanisms.py PROGRAM [OTHER ...]

The other programs of bench answer --version and refuse an option that they do not have.

Parameters are counted here by hand; ratios must be those of the printed numbers; what cannot be measured must
be named. No time is judged.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

V, C, L, H, F, T = 64, 32, 2, 2, 48, 32
CONFIG = {
    'config_version': 3, 'name': 'small', 'seed': 1, 'out_dir': 'out', 'device': 'cpu',
    'model': {'vocab': V, 'width': C, 'layers': L, 'heads': H, 'mlp': {'kind': 'swiglu', 'hidden': F},
              'norm': {'kind': 'rmsnorm', 'eps': 1e-5}, 'tied': False, 'bias': False, 'init': 'torch',
              'attention': {'prior': {'name': 'rope'}, 'scale': {'name': 'none'}, 'document_mask': False}},
    'data': {'train': 'none', 'val': 'none', 'sequence_length': T},
    'optimizer': {'name': 'radam', 'lr': 1e-3, 'betas': [0.9, 0.95], 'weight_decay': 0.1, 'clip': 1.0},
    'schedule': {'name': 'cosine', 'warmup_steps': 0, 'min_ratio': 0.1},
    'train': {'steps': 10, 'tokens_per_step': 64, 'micro_batch': 2},
    'checkpoint': {'every': 10, 'keep': 2},
    'eval': {'every': 10, 'tokens': 64, 'lengths': [T], 'length_tokens': 0},
    'log': {'every': 1},
}
# Embedding and head; q, k, v, o; gate, up, down; two norms a layer and the last.
NOPE = 2 * V * C + L * (4 * C * C + 3 * C * F + 2 * C) + C
COLUMNS = ['forward, ms', 'backward, ms', 'memory, MiB', 'decode, ms']
checks = 0


def need(true, message):
    global checks
    checks += 1
    if not true:
        raise SystemExit(f'mechanisms.py: {message}')


def run(program, config, *words, status=0):
    done = subprocess.run([program, '--config', config, '--repeats', '2', '--tokens', '3', *words],
                          capture_output=True, text=True, check=False)
    need(done.returncode == status, f'{words}: status {done.returncode}, not {status}: {done.stderr}')
    return done.stdout if status == 0 else done.stderr


def rows_of(text):
    """Rows by their headings, and the lines of what is not measured."""
    table = [line[1:-1].split('|') for line in text.splitlines() if line.startswith('|')]
    table = [[c.strip() for c in row] for row in table]
    need(table[0] == ['length', 'mechanism', 'parameters'] + COLUMNS, f'headings: {table[0]}')
    need(all(len(row) == len(table[0]) for row in table), 'rows of one width')
    return [dict(zip(table[0], row)) for row in table[2:]], [x for x in text.splitlines() if x.startswith('- ')]


def check_ratios(rows):
    """Each against the first row of its length, within what two decimals leave."""
    for row in rows:
        first = next(r for r in rows if r['length'] == row['length'])
        for column in COLUMNS:
            if row[column] == '-':
                continue
            number = re.fullmatch(r'(-?\d+\.\d\d)(?: \((-?\d+\.\d\d)\))?', row[column])
            need(number, f'{column}: {row[column]}')
            if row is first:
                need(number[2] is None or number[2] == '1.00', f'the first to itself: {row[column]}')
            beside = re.match(r'-?\d+\.\d\d', first[column])
            if not beside or column.endswith('ms'):
                continue  # times of less than a hundredth of a millisecond say nothing by their digits
            above, below, half = float(number[1]), float(beside[0]), 0.0051  # of the last digit printed
            least, most = (above - half) / (below + half) - half, (above + half) / (below - half) + half
            need(least <= float(number[2]) <= most, f'{column}: {row[column]} to {first[column]}')


def main(program, *others):
    for other in (program, *others):
        for option, fails in (('--version', False), ('--no-such-option', True)):
            done = subprocess.run([other, option], capture_output=True, text=True, check=False)
            need((done.returncode != 0) == fails, f'{other} {option}: status {done.returncode}')
            need(fails or 'oneDNN' in done.stdout, f'{other} --version: {done.stdout}')
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, 'small.json')
        with open(config, 'w', encoding='utf-8') as file:
            json.dump(CONFIG, file)

        rows, left_out = rows_of(run(program, config, '--lengths', '16,64', '--mechanisms',
                                     'nope,bam,nape+adaptive+entmax,dape over kerple,learned'))
        need([(r['length'], r['mechanism']) for r in rows] ==
             [(n, m) for n in ('16', '64')
              for m in ('nope', 'bam', 'nape+adaptive+entmax', 'dape over kerple', 'learned')], 'the order asked for')
        of = {(r['length'], r['mechanism']): r for r in rows}
        need(of['16', 'nope']['parameters'] == str(NOPE), f"{of['16', 'nope']['parameters']}, not {NOPE}")
        need(of['16', 'learned']['parameters'] == str(NOPE + T * C), 'a row of the table for each position')
        need(int(of['16', 'bam']['parameters']) in range(NOPE + 2 * L * H, NOPE + 3 * L * H + 1), 'two or three a head')
        for (length, name), row in of.items():
            none = length == '64' and name == 'learned'
            need(all((row[c] == '-') == none for c in COLUMNS), f'{length} {name}: {row}')
        need(len(left_out) == 2 and all('learned at 64' in x and str(T) in x for x in left_out),
             f'what a table of {T} positions leaves out: {left_out}')
        check_ratios(rows)
        need(float(of['64', 'nope']['memory, MiB'].split()[0]) > float(of['16', 'nope']['memory, MiB'].split()[0]),
             'more memory for longer sequences')

        # A length of 2^24 tokens has 128 million activations of each kind, and no machine of these tests has that.
        rows, left_out = rows_of(run(program, config, '--lengths', '16777216', '--batch', '4096', '--mechanisms', 'nope'))
        need(rows[0]['forward, ms'] == '-' and rows[0]['memory, MiB'] == '-', f'no room: {rows[0]}')
        need(any('MiB' in x for x in left_out), f'memory is named: {left_out}')

        rows, _ = rows_of(run(program, config, '--lengths', '16', '--mechanisms', 'all'))
        names = [r['mechanism'] for r in rows]
        need(names[0] == 'nope' and len(set(names)) == len(names), 'each once, nope first')
        need({'bam', 'rope', 'transformer_xl', 'dape over kerple', 'nope+ssmax', 'nope+stick_breaking'} <= set(names),
             f'all: {names}')
        need(not any('entropy' in n for n in names), 'none that does not train')

        need("bam" in run(program, config, '--mechanisms', 'bamm', status=2), 'a nearest name')
        need("ssmax" in run(program, config, '--mechanisms', 'bam+ssmaxx', status=2), 'a nearest scale')
        run(program, config, '--mechanisms', 'dape over bamm', status=2)
        run(program, config, '--mechanisms', 'nope', '--lengths', '16777217', status=105)
        run(program, config, '--mechanisms', 'nope+ssmax+stick_breaking', status=3)
    print(f'All tests passed ({checks} assertions in 1 test case)')


if __name__ == '__main__':
    main(*sys.argv[1:])
