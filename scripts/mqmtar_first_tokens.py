#!/usr/bin/env python3
"""How many of MQMTAR's sequences are answered by who tells words apart by their first tokens alone.

Words of two tokens of 256 are drawn as the task draws them (src/tasks/mqmtar.cpp: 10,000 keys and as
many values, floor(0.8 L / 6) of each in a source, four queries with replacement); of several words with
the first token that is looked for one is guessed, the same for all queries of the sequence. Prints the
share for keys, for values and for both.

    scripts/mqmtar_first_tokens.py [LENGTH ...]
"""

import argparse
import random


def answered(words, asked):
    """Whether each of the words asked for is found by its first token."""
    guess = {}
    for i in asked:
        first = words[i] // 256
        if first not in guess:
            guess[first] = random.choice([j for j, word in enumerate(words) if word // 256 == first])
        if guess[first] != i:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lengths", metavar="LENGTH", nargs="*", type=int, default=[16, 24, 32, 48, 64],
                        help="tokens of a source, 8 to 75000")
    lengths = parser.parse_args().lengths
    for length in lengths:
        if not 8 <= length <= 75_000:
            parser.error(f"LENGTH: expected 8 to 75000, the lengths that MQMTAR has, found {length}")
    random.seed(1)
    keys, values = (random.sample(range(256 * 256), 10_000) for _ in range(2))
    samples = 20_000
    for length in lengths:
        pairs = 8 * length // 60
        by_key = by_value = by_both = 0
        for _ in range(samples):
            asked = {random.randrange(pairs) for _ in range(4)}
            key = answered(random.sample(keys, pairs), asked)
            value = answered(random.sample(values, pairs), asked)
            by_key += key
            by_value += value
            by_both += key and value
        print(
            f"{length:5d} tokens, {pairs} pairs: "
            f"keys {100 * by_key / samples:.1f} %, values {100 * by_value / samples:.1f} %, "
            f"both {100 * by_both / samples:.1f} %"
        )


if __name__ == "__main__":
    main()
