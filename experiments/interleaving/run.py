#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What do interleaving and zero-bubble schedules gain? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

CHUNKS = (1, 2, 3, 4, 6, 12)
COUNTS = (8, 32, 96)
ZERO_BUBBLE = ("zb-h1", "zb-h2")
REPLICAS = 16


def rows():
    points = []
    for count in COUNTS:
        for chunks in CHUNKS:
            schedule = "interleaved" if chunks > 1 else "1f1b"
            # Megatron-LM overlaps transfers with interleaving only.
            points.append(({"micro_batches": count, "chunks": chunks, "schedule": schedule},
                           {"plan.virtual_pipeline": chunks, "plan.schedule": schedule,
                            "plan.overlap_point_to_point": chunks > 1, "plan.global_batch_size": REPLICAS * count}))
        for schedule in ZERO_BUBBLE:
            points.append(({"micro_batches": count, "chunks": 1, "schedule": schedule},
                           {"plan.virtual_pipeline": 1, "plan.schedule": schedule, "plan.overlap_point_to_point": True,
                            "plan.global_batch_size": REPLICAS * count}))
    return simulate("gpt175b", points)


def by_chunks(table, name, count):
    return [row[name] for row in table if row["micro_batches"] == count and row["schedule"] not in ZERO_BUBBLE]


def answer(table):
    parts = []
    for count in (8, 96):
        plain = row_of(table, micro_batches=count, schedule="1f1b")
        finest = row_of(table, micro_batches=count, chunks=12)
        parts.append(f"{percent(plain['bubble_ratio'], 0)} to {percent(finest['bubble_ratio'], 0)} and the step by "
                     f"{percent(1 - finest['step_time_s'] / plain['step_time_s'], 0)} at {count} micro-batches")
    for count in COUNTS:
        times = by_chunks(table, "step_time_s", count)
        expect(times == sorted(times, reverse=True), "more chunks are never slower")
        gained = [before - after for before, after in zip(times, times[1:])]
        expect(gained[0] == max(gained), "the second chunk gains most")
    zero_bubble = []
    for count in (8, 96):
        plain = row_of(table, micro_batches=count, schedule="1f1b")
        split = row_of(table, micro_batches=count, schedule="zb-h1")
        expect(split["bubble_ratio"] < 0.6 * plain["bubble_ratio"], "H1 takes most of the bubble away")
        expect(split["step_time_s"] > by_chunks(table, "step_time_s", count)[1], "two chunks are faster than H1")
        zero_bubble.append((split["step_time_s"] / plain["step_time_s"] - 1, split["tensor_share"] - plain["tensor_share"]))
    expect(zero_bubble[0][0] < 0 < zero_bubble[1][0], "H1 gains at few micro-batches only")
    return (f"Twelve chunks per stage instead of one cut the bubble from {parts[0]}, but from {parts[1]}. Two or three chunks "
            f"bring most of it; further ones gain less and less, while transfers grow in number with the chunks. The zero-bubble "
            f"schedule H1 makes the step {percent(-zero_bubble[0][0], 0)} shorter at 8 micro-batches, and "
            f"{percent(zero_bubble[1][0], 0)} longer at 96, where it takes nearly half of the bubble away and gives that back as "
            f"exposed tensor-parallel communication ({percent(zero_bubble[1][1], 0)} of the step more).")


def figure(table):
    return chart.lines("Bubble of GPT-3 175B on 8 stages", "model chunks per stage, or zero-bubble schedule", "bubble (%)",
                       (*CHUNKS, "H1", "H2"),
                       {f"{count} micro-batches": [100 * value for value in column(table, "bubble_ratio", micro_batches=count)]
                        for count in COUNTS})


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
