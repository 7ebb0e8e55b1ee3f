#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recompute more, or make micro-batches smaller? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

SIZES = (1, 2, 3, 4, 6)
WAYS = ("none", "selective", "full")


def rows():
    return simulate("gpt175b", [({"attention": attention, "recompute": way, "micro_batch_size": size},
                                 {"software.attention": attention, "plan.recompute": way, "plan.micro_batch_size": size})
                                for attention in ("standard", "flash") for way in WAYS for size in SIZES])


def fits(row):
    return row["verdict"] != "does not fit"


def answer(table):
    full = row_of(table, attention="flash", recompute="full", micro_batch_size=1)
    none = row_of(table, attention="flash", recompute="none", micro_batch_size=1)
    best_full = min(column(table, "step_time_s", attention="flash", recompute="full"))
    smallest_none = none["step_time_s"]
    expect(best_full > smallest_none, "full recomputation at its best size is slower than none at size 1")
    saved = row_of(table, attention="standard", recompute="none", micro_batch_size=1)
    selective = row_of(table, attention="standard", recompute="selective", micro_batch_size=1)
    expect(sum(fits(row) for row in table if row["attention"] == "standard" and row["recompute"] == "none") == 1,
           "with standard attention and no recomputation only size 1 fits")
    expect(all(fits(row) for row in table if row["recompute"] == "full"), "everything fits with full recomputation")
    return (f"Make micro-batches smaller: full recomputation takes {percent(full['step_time_s'] / none['step_time_s'] - 1, 0)} "
            f"more time, and the larger micro-batches that it makes room for give back "
            f"{percent(full['step_time_s'] / best_full - 1, 0)} at most. Selective recomputation is worth its "
            f"{percent(selective['step_time_s'] / saved['step_time_s'] - 1, 0)} only with standard attention, where it takes "
            f"the peak from {saved['peak_memory_gib']:.0f} to {selective['peak_memory_gib']:.0f} GiB; with flash attention "
            f"it frees nothing.")


def figure(table):
    series, rings = {}, {}
    for attention, label in (("standard", "standard"), ("flash", "flash")):
        for way in WAYS:
            found = [row for row in table if row["attention"] == attention and row["recompute"] == way]
            series[f"{label}, {way}"] = [row["step_time_s"] for row in found]
            rings[f"{label}, {way}"] = [not fits(row) for row in found]
    return chart.lines("Step time of GPT-3 175B by attention and recomputation", "sequences per micro-batch", "step time (s)",
                       SIZES, series, hollow=rings)


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
