#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many micro-batches does GPT-3 175B need, and how large should they be? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

COUNTS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 384, 768)
SIZES = (1, 2, 3, 4, 6)
REPLICAS = 16


def rows():
    counts = [({"varied": "count", "micro_batches": count, "micro_batch_size": 1},
               {"plan.global_batch_size": REPLICAS * count}) for count in COUNTS]
    sizes = [({"varied": "size", "micro_batches": 96 // size, "micro_batch_size": size},
              {"plan.micro_batch_size": size}) for size in SIZES]
    return simulate("gpt175b", counts + sizes)


def answer(table):
    def gain(count):
        """Throughput gained by twice as many micro-batches."""
        return (row_of(table, varied="count", micro_batches=2 * count)["tokens_per_s_per_gpu"] /
                row_of(table, varied="count", micro_batches=count)["tokens_per_s_per_gpu"] - 1)

    few, usual = (row_of(table, varied="count", micro_batches=count) for count in (8, 96))
    expect(gain(192) > 0.01 > gain(384), "a doubling gains under 1 % beyond 384 micro-batches and not before")
    sizes = [row for row in table if row["varied"] == "size"]
    best = min((row for row in sizes if row["verdict"] != "does not fit"), key=lambda row: row["step_time_s"])
    expect(best["micro_batch_size"] == 3, "micro-batches of 3 are the fastest that fit")
    expect(column(sizes, "verdict", micro_batch_size=6) == ["does not fit"], "micro-batches of 6 do not fit")
    return (f"From 8 to 96 micro-batches per step the bubble of GPT-3 175B falls from {percent(few['bubble_ratio'])} to "
            f"{percent(usual['bubble_ratio'])}; doubling them again from 96 gains {percent(gain(96))} of throughput, and "
            f"beyond 384 a doubling gains under 1 %. At a fixed batch of 1536 sequences micro-batches of 3 are the fastest "
            f"that fit, {percent(sizes[0]['step_time_s'] / best['step_time_s'] - 1)} faster than of 1: kernels gain more "
            f"than the bubble takes, up to there.")


def figure(table):
    counted = [row for row in table if row["varied"] == "count"]
    return chart.lines("Bubble of GPT-3 175B, 8 stages of 3 chunks", "micro-batches per step", "bubble (%)", COUNTS,
                       {"simulated": [100 * value for value in column(counted, "bubble_ratio")],
                        "closed form": [100 * value for value in column(counted, "bubble_ratio_theory")]})


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
