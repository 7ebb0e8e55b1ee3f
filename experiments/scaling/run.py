#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far does GPT-3 175B scale? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

REPLICAS = (1, 2, 4, 8, 16, 32, 64, 96, 192)
# One replica is TP8 x PP8.
GPUS = [64 * replicas for replicas in REPLICAS]
BATCH = 1536
WEAK_MICRO_BATCHES = 24


def rows():
    points = []
    for kind in ("strong", "weak"):
        for replicas in REPLICAS:
            batch = BATCH if kind == "strong" else WEAK_MICRO_BATCHES * replicas
            points.append(({"scaling": kind, "micro_batches": batch // replicas},
                           {"gpus": 64 * replicas, "plan.data_parallel": replicas, "plan.global_batch_size": batch}))
    return simulate("gpt175b", points)


def efficiency(table, kind):
    found = column(table, "tokens_per_s_per_gpu", scaling=kind)
    return {gpus: value / found[0] for gpus, value in zip(GPUS, found)}


def answer(table):
    strong, weak = efficiency(table, "strong"), efficiency(table, "weak")
    most = max(gpus for gpus, value in strong.items() if value >= 0.8)
    last = row_of(table, scaling="strong", gpus=12288)
    expect(most == 4096, "strong scaling keeps 80 % of the throughput up to 4,096 GPUs")
    expect(weak[12288] > 0.9, "weak scaling keeps over 90 %")
    return (f"With the batch fixed at 1536 sequences, 1,024 A100 keep {percent(strong[1024], 0)} of the throughput per GPU of 64, "
            f"4,096 keep {percent(strong[4096], 0)} and 12,288 {percent(strong[12288], 0)}, where the bubble takes "
            f"{percent(last['bubble_ratio'], 0)} and gradients {percent(last['data_share'], 0)} of a step of "
            f"{last['step_time_s']:.1f} s. With a batch that grows with the GPUs (24 micro-batches each) 12,288 keep "
            f"{percent(weak[12288], 0)}: the gradients' share is reached at a few hundred GPUs and then stays.")


def figure(table):
    return chart.lines("Throughput per GPU of GPT-3 175B, 64 A100 = 100", "GPUs", "tokens/s per GPU (%)", GPUS,
                       {f"{kind} scaling": [100 * value for value in efficiency(table, kind).values()]
                        for kind in ("strong", "weak")})


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
