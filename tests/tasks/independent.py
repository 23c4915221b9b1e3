#!/usr/bin/env python3
"""Independent check of the generators of synthetic sequences: the formats of ASEntmax's published generators
and of the Chomsky benchmark, read and made again here, all in one file, from their description.

    independent.py BAMDATA [TASK...]     check what `BAMDATA synth TASK --json` prints
    independent.py --self [TASK...]      the same checks on this file's own generator: they must pass
    independent.py --broken [TASK...]    the same on generators with one fault each: it must be noticed

Every sequence's format is validated and its targets are computed again from its input. Distributions are
compared, by two-sample chi-squared tests, with those of a generator written from the formats' description.
"""
import copy
import itertools
import json
import math
import random
import subprocess
import sys
from collections import Counter, defaultdict

COUNT, SHORT_COUNT, LONG_COUNT, LONG, SEED, LEAST_P = 10000, 2000, 20, 500, 7, 1e-6


class Wrong(Exception):
    """Says what was expected and what was found."""


def need(holds, expected, found):
    if not holds:
        raise Wrong(f'expected {expected}, found {found}')


# ------------------------------------------------------------------------------------------ statistics

def survival(x, df):
    """P(chi-squared of df degrees of freedom > x): the regularised upper incomplete gamma function."""
    a, x = df / 2, x / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        n, term, total = a, 1 / a, 1 / a
        while term > total * 1e-16:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - front * total)
    b, c = x + 1 - a, math.inf
    d = h = 1 / b
    for i in range(1, 100000):
        b += 2
        d = 1 / (b - i * (i - a) * d)
        c = b - i * (i - a) / c
        h *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * h


def two_sample(a, b):
    """p of two counters having one distribution; adjacent values share a bin until both expect >= 10."""
    na, nb = sum(a.values()), sum(b.values())
    if not na or not nb:
        return 1.0 if na == nb else 0.0
    bins, x, y = [], 0, 0
    for value in sorted(a.keys() | b.keys()):
        x, y = x + a[value], y + b[value]
        if (x + y) * min(na, nb) >= 10 * (na + nb):
            bins.append((x, y))
            x = y = 0
    if len(bins) < 2:
        return 1.0
    bins[-1] = bins[-1][0] + x, bins[-1][1] + y
    parts = [(x, (x + y) * na / (na + nb), y, (x + y) * nb / (na + nb)) for x, y in bins]
    return survival(sum((x - ex) ** 2 / ex + (y - ey) ** 2 / ey for x, ex, y, ey in parts), len(bins) - 1)


def share(L, place, places):
    """A place among `places`: exact in short sequences, its eighth in longer ones."""
    return (L, place) if L <= 12 else (13 + L // 10, place * 8 // places)


def excess(count, draws, p):
    """How far a count lies from its mean: the lengths' own spread would hide a small bias."""
    return round(3 * (count - draws * p) / math.sqrt(draws)) if draws else None


# ----------------------------------------------------------------------------------------------- tasks

class Task:
    """make: a source and its answer from random draws; solve: the answer from a source, by other code, and
    the task's own statistics. M is set in appendix B (labels: answers stand at the tokens), I in C.
    """
    M = I = mean = None
    top, labels, sep, setting, default, short, faults = 1, False, True, '', '', (1, 6), {}
    lengths = property(lambda self: (32, 64) if self.M else (1, 40))

    def start(self, rng):
        """Draws what all sequences of one output share."""

    def size(self, L): return L
    def symbols(self, src): return src
    def shape(self, L, src): return L, *src
    def pooled(self, rows): return {}

    def whole(self, rows, ledger, read):
        """Checks all sequences of one output together."""

    def frame(self, src, answer):
        if self.I:
            return src + [self.I] * len(answer), [None] * len(src) + answer
        bos, eos, sep = self.M + 2, self.M + 3, self.M + 5
        if self.labels:
            return [bos, *src, eos], [None, *answer, None]
        stream = [bos, *src, *([sep] if self.sep else []), *answer, eos]
        return stream[:-1], [None] * (len(stream) - 2 - len(answer)) + [*answer, eos]

    def source(self, L, ids):
        size = self.size(L) or len(ids) - 2
        return ids[:size] if self.I else ids[1:1 + size]

    def features(self, L, src, answer, own):
        # One value per sequence and statistic: symbols inside one sequence may depend on each other.
        s, asked = self.symbols(src), self.symbols(answer)
        mid, mean = len(s) // 2, self.top / 2 if self.mean is None else self.mean
        return {'length': L, 'first symbol': s[0], 'middle symbol': s[mid], 'last symbol': s[-1],
                'middle neighbours': tuple(s[mid:mid + 2]) if mid + 1 < len(s) else None,
                'sum of symbols': excess(sum(s), len(s), mean), 'length and symbol': (L % 4, s[mid] % 4),
                'first class': asked[0], 'last class': asked[-1], **own}


class Rule(Task):
    """Independent uniform symbols 0..top, and a rule."""
    def __init__(self, name, top, rule, again, **more):
        vars(self).update(name=name, top=top, rule=rule, again=again, **more)
        self.faults = {'the top symbol is lost': {'top': top - 1}} if top > 1 else {}

    def make(self, rng, L):
        src = [rng.randrange(self.top + 1) for _ in range(L)]
        return src, list(self.rule(src))

    def solve(self, L, src):
        return self.again(L, src), {'distinct symbols': (L // 8, len(set(src))), 'largest symbol': max(src)}


class Mqmtar(Task):
    name, M, top, mean, short, anew, apart, default = 'mqmtar', 259, 258, 1.5, (8, 20), True, True, 'queries=4'
    leading = staticmethod(lambda rng, s: sum(p < s - 1 for p in rng.sample(range(2 * s - 4), s - 6)))
    faults = {'leading spaces uniform': {'leading': lambda rng, s: rng.randint(0, s - 6)},
              'pairs are fixed': {'anew': False}, 'one pool for all outputs': {'apart': False}}

    def __init__(self, queries=4):
        self.queries, self.setting = queries, '' if queries == 4 else f'queries={queries}'

    def slots(self, L): return 2 * L // 15, L // (2 * L // 15)
    def size(self, L): return math.prod(self.slots(L)) + 3 * self.queries

    def start(self, rng):
        rng = rng if self.apart else random.Random(1)
        words = [[a, b] for a in range(3, 259) for b in range(3, 259)]
        self.keys, self.values = rng.sample(words, 10000), rng.sample(words, 10000)

    def make(self, rng, L):
        n, s = self.slots(L)
        which = rng.sample(range(10000), n)
        keys = [self.keys[i] for i in which]
        values = [self.values[i] for i in (rng.sample(range(10000), n) if self.anew else which)]
        src, answer = [], []
        for key, value in zip(keys, values):
            before = self.leading(rng, s)
            src += [0] * before + key + [1] + value + [0] * (s - 5 - before)
        for i in [rng.randrange(n) for _ in range(self.queries)]:
            src, answer = src + [2] + keys[i], answer + [2] + values[i]
        return src, answer

    def unpack(self, L, src):
        """(leading spaces, key, value) of every slot."""
        n, s = self.slots(L)
        for slot in (src[i * s:i * s + s] for i in range(n)):
            lead = next((i for i, t in enumerate(slot) if t), s)
            unit = slot[lead:lead + 6]
            need(len(unit) == 6 and unit[2] == 1 and unit[5] == 0 and min(unit[:2] + unit[3:5]) >= 3
                 and not any(slot[lead + 6:]), 'spaces, k k 1 v v 0, spaces', slot)
            yield lead, tuple(unit[:2]), tuple(unit[3:5])

    def solve(self, L, src):
        (n, s), (lead, keys, values) = self.slots(L), zip(*self.unpack(L, src))
        need(len(set(keys)) == len(set(values)) == n, 'distinct keys and values', (keys, values))
        queries = [(src[i], tuple(src[i + 1:i + 3])) for i in range(n * s, n * s + 3 * self.queries, 3)]
        need(all(q == 2 and key in keys for q, key in queries), f'2 and a key, {self.queries} times', src[n * s:])
        asked = [keys.index(key) for _, key in queries]
        return [t for i in asked for t in (2, *values[i])], {
            'leading spaces, slot 1': (s, lead[0]), 'leading spaces, last slot': (s, lead[-1]),
            'leading spaces, slots 1 and 2': (s, *lead[:2]), 'slot of query 1': (n, asked[0]),
            'slot of the last query': (n, asked[-1]), 'slots of queries 2 and 3': (n, *asked[1:3]),
            'distinct queries': (n, len(set(asked)))}

    # Words come from one pool, so tokens of an output's sequences depend on each other: only kinds of tokens
    # and places are compared there, and tokens among the pool's distinct words.
    def symbols(self, src): return [min(t, 3) for t in src]
    def shape(self, L, src): return L, *(lead for lead, _, _ in self.unpack(L, src))

    def pooled(self, rows):
        slots, result = [list(self.unpack(L, src)) for L, src, *_ in rows], {}
        for place, what in (1, 'key'), (2, 'value'):
            pool = sorted({slot[place] for row in slots for slot in row})
            rank = {word: i * 50 // len(pool) for i, word in enumerate(pool)}
            result.update({f'first tokens of {what}s': Counter(a for a, _ in pool),
                           f'second tokens of {what}s': Counter(b for _, b in pool),
                           f'{what}s of equal tokens': Counter(a == b for a, b in pool),
                           f'rank of the first {what}': Counter(rank[row[0][place]] for row in slots),
                           f'rank of the last {what}': Counter(rank[row[-1][place]] for row in slots)})
        return result

    def whole(self, rows, ledger, read):
        def near(what, expected, found):
            ledger.check(abs(found - expected) <= 6 + 6 * math.sqrt(expected),
                         f'{what}: expected about {expected:.0f}, found {found}')
        slots = [list(self.unpack(L, src)) for L, src, *_ in rows]
        total, keys, values = sum(map(len, slots)), *({s[i] for row in slots for s in row} for i in (1, 2))
        for what, pool in ('keys', keys), ('values', values):
            ledger.check(len(pool) <= 10000, f'distinct {what}: expected <= 10000, found {len(pool)}')
            near(f'{what} never seen', 10000 * math.prod(1 - len(row) / 10000 for row in slots),
                 10000 - len(pool))
        near('pairs seen before', total ** 2 / 2e8, total - len({slot[1:] for row in slots for slot in row}))
        ledger.check(len(keys & values) < 2500, f'words of both pools: expected at most about 1526, '
                     f'found {len(keys & values)}')
        for what, more in ('seed', {'seed': SEED + 1}), ('length range', {'lengths': self.short}):
            other = {key for L, src, *_ in read(300, **more) for _, key, _ in self.unpack(L, src)}
            ledger.check(len(keys & other) < 0.3 * len(other), f'keys shared with another {what}: expected '
                         f'about 0.15 of {len(other)}, found {len(keys & other)}')


class TwoBack(Task):
    name, M, top, mean, labels, high = 'two_back', 15, 15, 8, True, 15
    faults = {'token 15 is lost': {'high': 14}}

    def size(self, L): return L + 1
    def symbols(self, src): return src[1:]

    def make(self, rng, L):
        src = [0] + [rng.randint(1, self.high) for _ in range(L)]
        return src, ([0, 0] + src)[:L + 1]

    def solve(self, L, src):
        need(src[0] == 0 and 0 not in src[1:], '0, then tokens 1-15', src)
        return [src[i - 2] if i > 1 else 0 for i in range(L + 1)], {}


class LocalCount(Task):
    name, M, top, labels, lengths, short, runs = 'local_count', 47, 15, True, (64, 128), (25, 74), (2, 48)
    faults = {'runs of 2-47': {'runs': (2, 47)}, 'runs of 1-48': {'runs': (1, 48)}}

    def size(self, L): return None

    def make(self, rng, L):
        src, answer, token = [], [], rng.randrange(16)
        for _ in range(L // 25):
            token, length = (token + 1 + rng.randrange(15)) % 16, rng.randint(*self.runs)
            src, answer = src + [token] * length, answer + list(range(length))
        return src, answer

    def solve(self, L, src):
        tokens, runs = zip(*((token, len(list(run))) for token, run in itertools.groupby(src)))
        need(len(runs) == L // 25, f'{L // 25} runs', runs)
        need(min(runs) >= 2 and max(runs) <= 48, 'runs of 2-48 tokens', runs)
        return [i for run in runs for i in range(run)], {
            'first run': runs[0], 'middle run': runs[len(runs) // 2], 'last run': runs[-1],
            'first two runs': tuple(run // 6 for run in runs[:2]), 'first two tokens': tokens[:2]}


class FlipFlop(Task):
    name, M, top, mean, sep, short, default = 'flip_flop', 4, 4, 1.7, False, (4, 9), 'ignore=sparse'

    def __init__(self, setting=''):
        self.setting, self.p = setting, 0.8 if setting == 'ignore=dense' else 0.1
        self.drawn, self.faults = self.p, {'writes with P + 0.02': {'drawn': self.p + 0.02}}

    def size(self, L): return L // 2 * 2 - 1

    def make(self, rng, L):
        src, last = [], None
        for i in range(L // 2):
            write = i == 0 or i < L // 2 - 1 and rng.random() < self.drawn
            src += [2 if write else 3, rng.randrange(2)]
            last = src[-1] if write else last
        return src[:-2] + [4], [last]

    def solve(self, L, src):
        commands, bits = src[::2], src[1::2]
        need(commands[0] == 2 and commands[-1] == 4 and set(commands[1:-1]) <= {2, 3} and max(bits) < 2,
             'a write, then writes or ignores, each with a bit, and a read', src)
        last, between = max(i for i, command in enumerate(commands) if command == 2), commands[1:-1]
        return [bits[last]], {
            'writes': excess(between.count(2), len(between), self.p), 'last pair': tuple(src[-3:-1]),
            'pairs since the write': len(bits) - last, 'second pair': tuple(src[2:4]) if between else None}


class MaxRetrieval(Task):
    name, top, mean, lengths, grain, classes = 'max_retrieval', (11 << 24) - 1, 5, (5, 16), 1, 10
    least, echo, faults = 0, False, {
        'priorities of 21 bits': {'grain': 8}, 'class 9 is lost': {'classes': 9},
        'priorities from 0.02 on': {'least': 2 ** 24 // 50}, 'the query is a priority': {'echo': True}}

    def size(self, L): return L + 1
    def symbols(self, src): return [t >> 24 for t in src]
    def frame(self, src, answer): return src, [None] * (len(src) - 1) + answer
    def source(self, L, ids): return ids[:L + 1]
    def order(self, src): return sorted(range(len(src) - 1), key=lambda i: src[i + 1] % 2 ** 24)
    def shape(self, L, src): return L, *self.order(src), src[-1] >> 24

    def make(self, rng, L):
        while True:
            items = [(rng.randrange(self.least, 2 ** 24, self.grain), rng.randrange(self.classes))
                     for _ in range(L)]
            numbers, best = [n for n, _ in items], max(items)
            if numbers.count(best[0]) == 1:
                break
        query = numbers[0] if self.echo else rng.randrange(2 ** 24)
        return [10 * 2 ** 24 + query] + [c * 2 ** 24 + n for n, c in items], [best[1]]

    def solve(self, L, src):
        need(src[0] >> 24 == 10 and max(src[1:]) >> 24 < 10, 'a query, then items of classes 0-9', src)
        order, numbers = self.order(src), [t % 2 ** 24 for t in src]
        best = order[-1]
        need(L == 1 or numbers[order[-2] + 1] < numbers[best + 1], 'one item of the highest priority', src)
        return [src[best + 1] >> 24], {
            'class': src[best + 1] >> 24, 'place of the highest': share(L, best, L),
            'highest priority': (L, numbers[best + 1] >> 20), 'lowest priority': (L, numbers[order[0] + 1] >> 20),
            'query': numbers[0] >> 18, 'first priority': numbers[1] >> 18, 'low digits': numbers[-1] % 64,
            'query and first priority': (numbers[0] >> 21, numbers[1] >> 21),
            'query repeated': numbers[0] in numbers[1:]}


class ModularSimple(Task):
    name, I, top = 'modular_arithmetic_simple', 9, 7

    def size(self, L): return L - 1 + L % 2

    def make(self, rng, L):
        src = [rng.randrange(5)]
        total, term = 0, src[0]
        for _ in range(self.size(L) // 2):
            src += [5 + rng.randrange(3), rng.randrange(5)]
            if src[-2] == 7:
                term *= src[-1]
            else:
                total, term = total + term, src[-1] if src[-2] == 5 else -src[-1]
        return src, [(total + term) % 5]

    def solve(self, L, src):
        ops = src[1::2]
        need(max(src[::2]) <= 4 and min(ops, default=5) >= 5, 'digits and operators in turn', src)
        text = ''.join('01234+-*'[t] for t in src).replace('-', '+-')
        return [sum(math.prod(map(int, term.split('*'))) for term in text.split('+')) % 5], {
            'products': excess(ops.count(7), len(ops), 1 / 3), 'outer operators': tuple(ops[:1] + ops[-1:])}


class Stack(Task):
    name, I, top, mean, spare = 'stack_manipulation', 5, 4, 1.5, 1
    faults = {'at most L - 2 bits': {'spare': 2}}

    def make(self, rng, L):
        bits = rng.randint(1, max(1, L - self.spare))
        src = [rng.randrange(2) for _ in range(bits)] + [rng.randint(2, 4) for _ in range(L - bits)]
        stack = src[:bits]
        for action in src[bits:]:
            if action > 2:
                stack.append(action - 3)
            elif stack:
                stack.pop()
        return src, stack[::-1] + [2] + [0] * (L - len(stack))

    def solve(self, L, src):
        bits, kept, pops = sum(t < 2 for t in src), [], 0
        need(bits and max(src[:bits]) < 2 and (bits < L or L == 1), 'bits, then actions', src)
        # Read backwards, a pop takes away the nearest earlier push that is still there.
        for t in reversed(src):
            if t == 2 or not pops:
                pops, kept = pops + (t == 2), kept + [t % 3] * (t != 2)
            else:
                pops -= 1
        return kept + [2] + [0] * (L - len(kept)), {
            'bits': share(L, bits - 1, max(1, L - 1)), 'height': share(L, len(kept), L + 1),
            'pushes': excess(sum(t > 2 for t in src), L - bits, 2 / 3), 'last bit': src[bits - 1],
            'first action': src[bits] if L > 1 else None}


class Modular(Task):
    name, I, top, ops, brackets, spare = 'modular_arithmetic', 11, 9, '+-*', (8, 9), 4
    faults = {'left of at most L - 5': {'spare': 5}}

    def expression(self, rng, L):
        (opening, closing), a = self.brackets, rng.randrange(5)
        if L <= 4:
            return [[a], [6, a], [opening, a, closing], [opening, 6, a, closing]][L - 1], a if L % 2 else -a
        left, op = rng.randint(1, max(1, L - self.spare)), rng.randrange(len(self.ops))
        (a, x), (b, y) = self.expression(rng, left), self.expression(rng, L - 3 - left)
        return [opening, *a, 5 + op, *b, closing], (x + y, x - y, x * y)[op] % 5

    def value(self, t, i):
        """Value and end of the expression that starts at place i, and (left length, operator)s downwards."""
        minus = t[i] == 6
        if minus or t[i] < 5:
            need(t[i + minus] < 5, f'a digit at {i + minus}', t)
            return -t[i + 1] if minus else t[i], i + minus + 1, ()
        need(t[i] == self.brackets[0], f'the start of an expression at {i}', t)
        x, at, inner = self.value(t, i + 1)
        if t[at] == self.brackets[1]:
            need(at - i <= 3, f'(a), (-a) or (left op right) at {i}', t)
            return x, at + 1, ()
        need(5 <= t[at] < 5 + len(self.ops), f'an operator at {at}', t)
        y, end, _ = self.value(t, at + 1)
        need(t[end] == self.brackets[1], f'a closing bracket at {end}', t)
        return {5: x + y, 6: x - y, 7: x * y}[t[at]], end + 1, ((at - i - 1, t[at]), *inner)

    def evaluate(self, t):
        try:
            value, end, splits = self.value(t, 0)
        except IndexError:
            raise Wrong(f'expected a whole expression, found {t}') from None
        need(end == len(t), 'one expression', t)
        if not splits:
            return value % 5, {'short expression': (end, *t)}
        (left, op), below = splits[0], splits[1:2]
        return value % 5, {
            'left length': share(end, left - 1, end - 4), 'top operator': op,
            'left of the left': share(left, below[0][0] - 1, left - 4) if below else None,
            'levels': (end // 8, len(splits)), 'brackets': (end // 8, t.count(self.brackets[0]))}

    def make(self, rng, L):
        src, value = self.expression(rng, L)
        return src, [value % 5]

    def solve(self, L, src):
        value, own = self.evaluate(src)
        return [value], own


class Equation(Modular):
    name, top, ops, brackets, after = 'solve_equation', 10, '+-', (7, 8), True
    faults = {**Modular.faults, 'x uniform over the digits': {'after': False}}

    def make(self, rng, L):
        if L < 3:
            return [0] * L, [0]
        src, value = self.expression(rng, L - 2)
        place = rng.choice([i for i in range(L - 2) if self.after or src[i] < 5])
        while src[place] > 4:
            place = (place + 1) % (L - 2)
        digit, src[place] = src[place], 9
        return src + [10, value % 5], [digit]

    def solve(self, L, src):
        if L < 3:
            need(not any(src), 'zeros', src)
            return [0], {}
        t, x = src[:-2], src.index(9) if 9 in src else 0
        need(src[-2] == 10 and src[-1] < 5 and src.count(9) == 1, 'an expression with one x, =, value', src)
        tried = [self.evaluate(t[:x] + [digit] + t[x + 1:]) for digit in range(5)]
        fit = [digit for digit, (value, _) in enumerate(tried) if value == src[-1]]
        need(len(fit) == 1, 'one solution', f'{fit} for {src}')
        gap = next(i for i in range(1, L) if t[(x - i) % len(t)] < 5 or i == len(t))
        return fit, {'place of x': share(L, x, L - 2), 'gap before x': gap, 'value and x': (src[-1], *fit),
                     **tried[fit[0]][1]}


class MissingDuplicate(Task):
    name, I, top, mean, low = 'missing_duplicate', 4, 3, 0.6, 0
    faults = {'only the second copy is hit': {'low': 1}}

    def make(self, rng, L):
        if L == 1:
            return [1], [1]
        src = [rng.randrange(2) for _ in range(L // 2)] * 2
        place = rng.randrange(self.low * (L // 2), len(src))
        lost, src[place] = src[place], 2
        return src + [3] * (L % 2), [lost]

    def solve(self, L, src):
        if L == 1:
            need(src == [1], [1], src)
            return [1], {}
        half = L // 2
        need(src[2 * half:] == [3] * (L % 2) and max(src[:2 * half]) == 2, 'bits and 2, 3 to odd length', src)
        unequal = [{a, b} for a, b in zip(src[:half], src[half:]) if a != b]
        need(len(unequal) == 1 and 2 in unequal[0], 'the same bits twice, one of them replaced by 2', src)
        return [min(unequal[0])], {'lost place': share(L, src.index(2), 2 * half)}


class Binary(Task):
    I, top, mean, low, full = 3, 2, 0.6, 1, False
    faults = {'n has 2 digits or more': {'low': 2}, 'the top digit is 1': {'full': True}}

    def __init__(self, name, combine, out, fixed):
        self.name, self.combine, self.out, self.fixed = name, combine, out, fixed

    def answer(self, L, number):
        text = self.fixed.get(L, f'{number:b}'[::-1] + '2')
        return [int(digit) for digit in text.ljust(self.out(L), '0')]

    def make(self, rng, L):
        if L <= 2:
            number = rng.randrange(2 ** L - 1)
            return [number >> i & 1 for i in range(L)], self.answer(L, number)
        first = rng.randint(min(self.low, L - 2), L - 2)
        n, m = (rng.randint(2 ** (d - 1) if self.full else 1, 2 ** d - 1) for d in (first, L - 1 - first))
        joined = n + (m << first + 1)
        return [2 if i == first else joined >> i & 1 for i in range(L)], self.answer(L, self.combine(n, m))

    def solve(self, L, src):
        parts = ''.join(map(str, src)).split('2')
        need(len(parts) == 1 + (L > 2) and all(parts), 'n 2 m, or n if L <= 2', src)
        n, m = numbers = [int(part[::-1], 2) for part in parts + ['1'] * (L <= 2)]
        if L <= 2:
            need(n <= 2 ** L - 2, f'a number of at most {2 ** L - 2}', src)
            return self.answer(L, n), {'single number': (L, n)}
        need(all(numbers), 'numbers from 1', src)
        (dn, dm), result = map(len, parts), self.combine(n, m)
        return self.answer(L, result), {
            'digits of n': share(L, dn - 1, L - 2), 'short n': (dn, n) if dn <= 3 else None,
            'short m': (dm, m) if dm <= 3 else None, 'leading zeros of n': dn - n.bit_length(),
            'leading zeros of m': dm - m.bit_length(), 'lowest digits': (n % 2, m % 2),
            'unused places': L - result.bit_length()}


class Sqrt(Task):
    name, I, low = 'compute_sqrt', 2, 0
    faults = {'the top digit is 1': {'low': 1}}

    def make(self, rng, L):
        number, root = rng.randint(self.low * 2 ** (L - 1) or 1, 2 ** L - 1), 0
        for bit in range(L // 2, -1, -1):
            root += 2 ** bit if (root + 2 ** bit) ** 2 <= number else 0
        return [[n >> i & 1 for i in reversed(range(d))] for n, d in ((number, L), (root, (L + 1) // 2))]

    def solve(self, L, src):
        need(any(src), 'a number from 1', src)
        root = math.isqrt(int(''.join(map(str, src)), 2))
        answer = [int(digit) for digit in f'{root:b}'.zfill(math.ceil(L / 2))]
        return answer, {'leading zeros': src.index(1), 'top digits': tuple(src[:6]),
                        'top of the root': tuple(answer[:3])}


def counted(L, src): return [t for t in range(32) for _ in range(src.count(t))]
def backwards(L, src): return [src[L - 1 - i] for i in range(L)]
def halves(late): return lambda L, src: [src[i] for i in sorted(range(L), key=lambda i: (i % 2 == late, i))]


TASKS = [
    Mqmtar(), Mqmtar(2), Rule('copy', 31, list, lambda L, src: [src[i] for i in range(L)], M=31),
    Rule('reverse', 31, reversed, backwards, M=31), Rule('sort', 31, sorted, counted, M=31),
    TwoBack(), LocalCount(), FlipFlop(), FlipFlop('ignore=dense'), MaxRetrieval(),
    Rule('even_pairs', 1, lambda s: [sum(a != b for a, b in zip(s, s[1:])) % 2],
         lambda L, src: [src[0] ^ src[-1]], I=2),
    ModularSimple(), Rule('parity_check', 1, lambda s: [sum(s) % 2], lambda L, src: [src.count(1) & 1], I=2),
    Rule('cycle_navigation', 2, lambda s: [sum(t - 1 for t in s) % 5],
         lambda L, src: [(src.count(2) + 4 * src.count(0)) % 5], I=3),
    Stack(), Rule('reverse_string', 1, reversed, backwards, I=2), Modular(), Equation(),
    Rule('duplicate_string', 1, lambda s: s * 2, lambda L, src: [src[i % L] for i in range(2 * L)], I=2),
    MissingDuplicate(),
    Rule('odds_first', 1, lambda s: s[1::2] + s[::2], halves(0), I=2, default='first=even'),
    Rule('odds_first', 1, lambda s: s[::2] + s[1::2], halves(1), I=2, setting='first=odd'),
    Binary('binary_addition', lambda n, m: n + m, lambda L: L + 1, {}),
    Binary('binary_multiplication', lambda n, m: n * m, lambda L: L, {1: '2', 2: '02'}),
    Sqrt(), Rule('bucket_sort', 4, sorted, counted, I=5)]


# --------------------------------------------------------------------------------------------- sources

class Program:
    """Lines that an executable prints."""
    def __init__(self, path):
        self.path = path

    def lines(self, task, count, seed=SEED, first=0, lengths=None, setting=''):
        setting = setting or task.setting
        command = [self.path, 'synth', task.name, '--count', str(count), '--seed', str(seed), '--json']
        command += ['--length', '{},{}'.format(*lengths)] if lengths else []
        command += (['--set', setting] if setting else []) + (['--first', str(first)] if first else [])
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Wrong(f'expected a run of {" ".join(command)}, found {error}') from None
        need(done.returncode == 0, f'exit code 0 of {" ".join(command)}',
             f'{done.returncode}, {done.stderr[-300:].decode(errors="replace")}')
        return done.stdout.splitlines()


class Own:
    """Lines of this file's generator, with a fault where one is asked for."""
    def __init__(self, twist=(), rng=random.Random, alter=None, cut=0, key='{} {}'.format, first=True):
        self.twist, self.rng, self.alter, self.cut, self.key, self.first = twist, rng, alter, cut, key, first

    def lines(self, task, count, seed=SEED, first=0, lengths=None, setting=''):
        maker, (low, high), result = copy.copy(task), lengths or task.lengths, []
        vars(maker).update(self.twist)
        maker.start(random.Random(f'{self.key(seed, -1)} {low} {high}'))
        for index in range(first * self.first, first * self.first + count):
            rng = self.rng(self.key(seed, index))
            L = low + int(rng.random() * (high - low + 1 - self.cut * (high > low)))
            ids, targets = task.frame(*maker.make(rng, L))
            if self.alter and index % 500 == 250:
                self.alter(ids, targets, next(i for i, t in enumerate(targets) if t is not None))
            result.append(json.dumps({'length': L, 'input': ids, 'targets': targets}).encode())
        return result


class Loaded(random.Random):
    """Every 12th integer is replaced by the lowest."""
    def randrange(self, start, stop=None, step=1):
        low, high = (0, start) if stop is None else (start, stop)
        return low if self.random() < 1 / 12 else super().randrange(low, high, step)


# ---------------------------------------------------------------------------------------------- checks

class Ledger:
    """What was checked of one test case."""
    def __init__(self):
        self.assertions, self.sequences, self.failures, self.least = 0, 0, [], (1.0, 'nothing')

    def check(self, holds, said):
        self.assertions += 1
        if not holds:
            self.failures.append(said)

    def compare(self, what, expected, found):
        p = two_sample(expected, found)
        self.least = min(self.least, (p, what))
        common = [dict(counts.most_common(8)) for counts in (expected, found)]
        self.check(p >= LEAST_P, f'{what}: expected p >= {LEAST_P}, found {p:.3g}; most common: expected '
                   f'{common[0]}, found {common[1]}')

    def read(self, task, source, count, **options):
        """(length, source, answer, statistics) of every valid sequence."""
        lines, rows = source.lines(task, count, **options), []
        self.check(len(lines) == count, f'lines: expected {count}, found {len(lines)}')
        for index, line in enumerate(lines):
            self.assertions, self.sequences = self.assertions + 1, self.sequences + 1
            try:
                rows.append(parse(task, line, *(options.get('lengths') or task.lengths)))
            except Wrong as wrong:
                self.failures.append(f'sequence {index} of --count {count} {options or ""}: {wrong}')
        return rows


def parse(task, line, low, high):
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise Wrong(f'expected a line of JSON, found {error}: {line[:100]}') from None
    need(isinstance(entry, dict) and sorted(entry) == ['input', 'length', 'targets'],
         'length, input and targets', line[:100])
    L, ids, targets = entry['length'], entry['input'], entry['targets']
    need(type(L) is int and low <= L <= high, f'a length of {low}..{high}', L)
    need(type(ids) is list and all(type(t) is int for t in ids), 'a list of ids', ids)
    need(type(targets) is list and all(t is None or type(t) is int for t in targets), 'ids or null', targets)
    src = task.source(L, ids)
    need(0 < len(src) == (task.size(L) or len(src)), f'a source of {task.size(L)} tokens', ids)
    need(min(src) >= 0 and max(src) <= task.top, f'tokens of 0..{task.top}', src)
    answer, own = task.solve(L, src)
    for what, expected, found in zip(('input', 'targets'), task.frame(src, answer), (ids, targets)):
        if expected == found:  # texts of failures are formed for failures alone
            continue
        need(len(expected) == len(found), f'{len(expected)} {what} for length {L}', f'{len(found)}: {found}')
        for i, (e, f) in enumerate(zip(expected, found)):
            need(e == f, f'{what}[{i}] = {e}', f'{f} with the input {ids}')
    return L, src, answer, own


def tally(task, rows):
    """Counts of every statistic's values."""
    counts, last = defaultdict(Counter), None
    for i, row in enumerate(rows):
        found = task.features(*row)
        now = row[0] % 4, found['middle symbol'] % 4
        if i % 2:
            found.update({'neighbours: lengths': (last[0], now[0]), 'neighbours: symbols': (last[1], now[1])})
        last = now
        for what, value in found.items():
            if value is not None:
                counts[what][value] += 1
    return {**counts, **task.pooled(rows)}


def repeats(rows):
    long = [tuple(src) for _, src, *_ in rows if len(src) >= 30]
    return len(long) - len(set(long))


def reference(task, cache={}):
    """This file's statistics, repeated sources (both at the default lengths) and whole short sources."""
    if task not in cache:
        rng, rows = random.Random(f'reference {task.name} {task.setting}'), []
        task.start(rng)
        for (low, high), count in (task.lengths, COUNT), (task.short, SHORT_COUNT):
            for L in [rng.randint(low, high) for _ in range(count)]:
                src, answer = task.make(rng, L)
                rows.append((L, src, answer, task.solve(L, src)[1]))
        shapes = Counter(task.shape(L, src) for L, src, *_ in rows[COUNT:])
        cache[task] = tally(task, rows[:COUNT]), repeats(rows[:COUNT]), shapes
    return cache[task]


def check_sample(task, source, ledger, count=COUNT):
    rows = ledger.read(task, source, count)
    (expected, again, _), found = reference(task), tally(task, rows) if rows else {}
    for what in expected:
        ledger.compare(what, expected[what], found.get(what, Counter()))
    most = 10 + 3 * again
    ledger.check(repeats(rows) <= most, f'repeated sources: expected at most {most}, found {repeats(rows)}')
    task.whole(rows, ledger, lambda number, **options: ledger.read(task, source, number, **options))


def check_extremes(task, source, ledger):
    rows = ledger.read(task, source, SHORT_COUNT, lengths=task.short)
    ledger.compare('short sources', reference(task)[2], Counter(task.shape(L, src) for L, src, *_ in rows))
    ledger.read(task, source, LONG_COUNT, lengths=(LONG, LONG))


def check_order(task, source, ledger):
    lines, later, other = (source.lines(task, *call) for call in ((110,), (10, SEED, 100), (110, SEED + 1)))
    ledger.check(lines == source.lines(task, 110), 'two runs: expected the same bytes, found other ones')
    ledger.check(lines == source.lines(task, 200)[:110], '--count 200: expected to begin as --count 110 does')
    ledger.check(lines[100:] == later, f'--first 100: expected {lines[100:101]}..., found {later[:1]}...')
    same = len(set(lines) & set(other))
    ledger.check(same < 55, f'next seed: expected other sequences, found {same} of 110 again')
    lengths = [[json.loads(line)['length'] for line in part] for part in (lines, other)]
    ledger.check(lengths[0][1:] != lengths[1][:-1], 'next seed: expected other lengths, found them one later')
    if task.default and not task.setting:
        ledger.check(lines == source.lines(task, 110, setting=task.default),
                     f'without --set: expected the bytes of {task.default}, found other ones')


def examine(task, source, checks=(check_sample, check_extremes, check_order), **options):
    ledger = Ledger()
    for check in checks:
        try:
            check(task, source, ledger, **options)
        except (Wrong, LookupError, TypeError, ValueError) as wrong:
            ledger.check(False, f'{check.__name__}: {wrong!r}')
    return ledger


def off_by_one(ids, targets, place): targets[place] += -1 if targets[place] else 1
def too_long(ids, targets, place): ids.append(ids[-1]), targets.append(targets[-1])
def not_counted(ids, targets, place): targets[place] = None


def examine_broken(task):
    ledger = Ledger()
    faults = [(f'{alter.__name__} in one of 500', Own(alter=alter), check_sample, {'count': 1000})
              for alter in (off_by_one, too_long, not_counted)]
    faults += [(name, Own(**fault), check_sample, {}) for name, fault in (
        ('loaded draws', {'rng': Loaded}), ('the longest length is lost', {'cut': 1}),
        *((name, {'twist': twist}) for name, twist in task.faults.items()))]
    faults += [(name, Own(**fault), check_order, {}) for name, fault in (
        ('seed ignored', {'key': lambda seed, index: index}), ('--first ignored', {'first': False}),
        ('seed + index', {'key': lambda seed, index: seed + index}))]
    for name, source, check, options in faults:
        seen = examine(task, source, [check], **options)
        ledger.check(seen.failures, f'{name}: expected to be noticed, found smallest p {seen.least}')
        print(f'    {name}: {(seen.failures or ["NOT NOTICED"])[0][:75]}', flush=True)
    return ledger


def main(arguments):
    mode, names = (arguments or ['-h'])[0], arguments[1:]
    if mode in ('-h', '--help') or set(names) - {task.name for task in TASKS}:
        print(__doc__, 'Tasks:', *dict.fromkeys(task.name for task in TASKS))
        return 2
    source, ledgers = Own() if mode == '--self' else Program(mode), []
    for task in TASKS:
        if names and task.name not in names:
            continue
        title = f'{task.name} {task.setting}'.strip()
        if mode == '--broken':
            print(title)
        ledger = examine_broken(task) if mode == '--broken' else examine(task, source)
        if mode != '--broken':
            p, what = ledger.least
            print(f'{title:26} {ledger.sequences:6} sequences, smallest p {p:.2g} ({what})', flush=True)
        for said in ledger.failures[:5] + [f'{len(ledger.failures)} failures in all'] * bool(ledger.failures):
            print(f'  FAILED {title}: {said[:1500]}')
        ledgers.append(ledger)
    failed = sum(bool(ledger.failures) for ledger in ledgers)
    print(f'test cases: {len(ledgers)} | {len(ledgers) - failed} passed | {failed} failed' if failed else
          f'All tests passed ({sum(ledger.assertions for ledger in ledgers)} assertions in {len(ledgers)} '
          f'test case{"s" * (len(ledgers) > 1)})')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
