"""Exported code's rows of every normalizer against tests/golden/normalizers.safetensors, which has
rows of one key, of equal logits and of logits up to 1e4."""

import argparse
import json
import math
import pathlib

import torch
from safetensors import safe_open

GOLDEN = pathlib.Path(__file__).parents[1] / "tests" / "golden" / "normalizers.safetensors"
TOLERANCE = 1e-4
CLEAR = 1e-3  # from the threshold of entmax: weights of keys at it, and more so gradients, jump


class Rows:
    def __init__(self, modeling):
        with safe_open(GOLDEN, "pt") as file:
            self.golden = {name: file.get_tensor(name) for name in file.keys()}
            self.choices = json.loads(file.metadata()["config"])
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
    for n, alpha in enumerate(rows.choices["alpha"]):
        clear = golden["entmax.margin"][n] > CLEAR
        of_alpha = golden["entmax.p"][n], golden["entmax.dz_bounded"][n], clear
        rows.check({"name": "entmax", "alpha": alpha, "learned": False}, *of_alpha)
        a = alpha - 1
        theta = torch.tensor([a + math.log(-math.expm1(-a))], requires_grad=True)
        rows.check({"name": "entmax", "alpha": 1.5, "learned": True}, *of_alpha, theta)
        dalpha = float(theta.grad / theta.detach().sigmoid())
        truth = float(golden["entmax.dalpha_bounded"][n][clear].sum())
        assert abs(dalpha - truth) <= TOLERANCE * (1 + abs(truth)) / min(1, a * a), (alpha, dalpha)


def check_rows(modeling):
    rows = Rows(modeling)
    every = torch.ones(len(rows.visible), dtype=torch.bool)
    check_entmax(rows)
    for n, k in enumerate(rows.choices["k"]):
        rows.check({"name": "topk", "k": k, "of": "row"}, rows.golden["topk.p"][n],
                   rows.golden["topk.dz"][n], every)
    rows.check({"name": "stick_breaking"}, rows.golden["stick_breaking.p"],
               rows.golden["stick_breaking.dz"], every)
    print("rows of every normalizer and their gradients are the golden ones")
