"""Cells and tables of the reports."""

import statistics


def number(x):
    return f"{x:,.{0 if abs(x) >= 1000 else 1 if abs(x) >= 1 else 3}f}"


def cell(values, unit=""):
    """Median and range, or the only value; "-" of none."""
    if not values:
        return "-"
    if len(values) == 1:
        return number(values[0]) + unit
    return (f"{number(statistics.median(values))}{unit} "
            f"({number(min(values))} to {number(max(values))})")


def ratios(above, below, target=None, most=None):
    """Median and range of the ratios of pairs, and whether the median meets the target: at least
    `target`, at most `most`."""
    pairs = [a / b for a, b in zip(above, below)]
    if not pairs:
        return "-"
    text = f"{statistics.median(pairs):.3f}"
    if len(pairs) > 1:
        text += f" ({min(pairs):.3f} to {max(pairs):.3f})"
    if most is not None:
        return text + verdict([-pair for pair in pairs], -most)
    return text + verdict(pairs, target)


def verdict(values, target):
    """", missed" where the median is below the target."""
    if target is None or not values:
        return ""
    return ", **missed**" if statistics.median(values) < target else ", met"


def table(header, rows):
    lines = ["| " + " | ".join(str(c) for c in header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows])
