#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What does interleaving gain? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

CHUNKS = (1, 2, 3, 4, 6, 12)
COUNTS = (8, 32, 96)
REPLICAS = 16


def rows():
    points = []
    for count in COUNTS:
        for chunks in CHUNKS:
            schedule = "interleaved" if chunks > 1 else "1f1b"
            # Megatron-LM overlaps transfers with interleaving only.
            points.append(({"micro_batches": count, "chunks": chunks},
                           {"plan.virtual_pipeline": chunks, "plan.schedule": schedule,
                            "plan.overlap_point_to_point": chunks > 1, "plan.global_batch_size": REPLICAS * count}))
    return simulate("gpt175b", points)


def answer(table):
    def first_and_last(count):
        return (row_of(table, micro_batches=count, chunks=chunks) for chunks in (1, 12))

    parts = []
    for count in (8, 96):
        plain, finest = first_and_last(count)
        parts.append(f"{percent(plain['bubble_ratio'], 0)} to {percent(finest['bubble_ratio'], 0)} and the step by "
                     f"{percent(1 - finest['step_time_s'] / plain['step_time_s'], 0)} at {count} micro-batches")
    for count in COUNTS:
        times = column(table, "step_time_s", micro_batches=count)
        expect(times == sorted(times, reverse=True), "more chunks are never slower")
        gained = [before - after for before, after in zip(times, times[1:])]
        expect(gained[0] == max(gained), "the second chunk gains most")
    return (f"Twelve chunks per stage instead of one cut the bubble from {parts[0]}, but from {parts[1]}. Two or three chunks "
            f"bring most of it; further ones gain less and less, while transfers grow in number with the chunks.")


def figure(table):
    return chart.lines("Bubble of GPT-3 175B on 8 stages", "model chunks per stage", "bubble (%)", CHUNKS,
                       {f"{count} micro-batches": [100 * value for value in column(table, "bubble_ratio", micro_batches=count)]
                        for count in COUNTS})


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
