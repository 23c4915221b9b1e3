"""Exported code's rows of every normalizer against those of tests/golden/normalizer_NAME.safetensors,
which have rows of one key, of equal logits and of logits up to 1e4."""

import argparse
import json
import math
import pathlib

import torch
from safetensors import safe_open

GOLDEN = pathlib.Path(__file__).parents[1] / "tests" / "golden"
TOLERANCE = 1e-4
CLEAR = 1e-3  # from the threshold of entmax: weights of keys at it, and more so gradients, jump


class Rows:
    def __init__(self, modeling, name):
        with safe_open(GOLDEN / f"normalizer_{name}.safetensors", "pt") as file:
            self.golden = {key.removeprefix("rows."): file.get_tensor(key) for key in file.keys()
                           if key.startswith("rows.")}
            options = json.loads(file.metadata()["rows"])["options"]
        self.choices = [{"name": name, **of_rows} for of_rows in options]
        self.modeling = modeling
        index, last = torch.arange(self.golden["z"].shape[1]), self.golden["count"].long() - 1
        self.visible = index <= last[:, None]
        self.rows = argparse.Namespace(past=0, distance=last[:, None, None] - index,
                                       tokens=self.golden["count"])

    def check(self, normalizer, p, dz, clear, alpha=None):
        """Weights and gradients of the rows that are `clear` (rows) bool."""
        z = self.golden["z"].float()[:, None, None].requires_grad_()
        hidden = ~self.visible[:, None, None]
        logits = z.masked_fill(hidden, -math.inf)
        found = self.modeling.weights(normalizer, {"alpha": alpha}, logits, self.visible[:, None],
                                      self.rows)[:, 0, 0]
        dp = self.golden["dp"].float() * clear[:, None]
        (found * dp).sum().backward()
        for value, truth in ((found, p), (z.grad[:, 0, 0], dz)):
            assert torch.isfinite(value).all(), normalizer
            error = (value - truth).abs().amax(-1) / (1 + truth.abs().amax(-1))
            assert (error[clear] <= TOLERANCE).all(), (normalizer, error)


def check_entmax(rows):
    golden = rows.golden
    for n, choice in enumerate(rows.choices):
        alpha = choice["alpha"]
        clear = golden["margin"][n] > CLEAR
        of_alpha = golden["p"][n], golden["dz_bounded"][n], clear
        rows.check(choice, *of_alpha)
        a = alpha - 1
        theta = torch.tensor([a + math.log(-math.expm1(-a))], requires_grad=True)
        rows.check({"name": "entmax", "alpha": 1.5, "learned": True}, *of_alpha, theta)
        dalpha = float(theta.grad / theta.detach().sigmoid())
        truth = float(golden["dalpha_bounded"][n][clear].sum())
        assert abs(dalpha - truth) <= TOLERANCE * (1 + abs(truth)) / min(1, a * a), (alpha, dalpha)


def check_rows(modeling, names):
    """Of the normalizers of these names."""
    for name in names:
        rows = Rows(modeling, name)
        if name == "entmax":
            check_entmax(rows)
            continue
        every = torch.ones(len(rows.visible), dtype=torch.bool)
        for n, choice in enumerate(rows.choices):
            rows.check(choice, rows.golden["p"][n], rows.golden["dz"][n], every)
    print("rows of", ", ".join(names), "and their gradients are the golden ones")
