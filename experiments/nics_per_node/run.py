#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many NICs does a node need? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

NICS = (1, 2, 4, 8)
LARGE = "175B, TP8 PP8"
SHARDED = {"model": "llama2-7b", "cluster": "dgx-h100", "gpus": 64,
           "plan": {"micro_batch_size": 1, "sharding": "zero3", "recompute": "none"}}
SIZES = (1, 2, 4)


def name(size):
    return f"7B, ZeRO-3, {size} per GPU"


def rows():
    large = simulate("gpt175b", [({"case": LARGE, "nics_per_node": nics}, {"cluster.nics_per_node": nics}) for nics in NICS])
    sharded = simulate(SHARDED, [({"case": name(size), "nics_per_node": nics},
                                  {"cluster.nics_per_node": nics, "plan.micro_batch_size": size})
                                 for size in SIZES for nics in NICS])
    return large + sharded


def answer(table):
    def kept(case, nics):
        few, all_of_them = (row_of(table, case=case, nics_per_node=n)["tokens_per_s_per_gpu"] for n in (nics, 8))
        return few / all_of_them

    expect(kept(LARGE, 4) > 0.95, "four NICs are enough for 175B")
    expect(kept(name(1), 1) < 0.4 and kept(name(4), 2) > 0.9, "ZeRO-3 needs NICs with small micro-batches and few with large")
    return (f"GPT-3 175B with tensor and pipeline parallelism loses {percent(1 - kept(LARGE, 4), 0)} with four of eight NICs, "
            f"{percent(1 - kept(LARGE, 2), 0)} with two and {percent(1 - kept(LARGE, 1), 0)} with one. A 7B model sharded by "
            f"ZeRO-3 over 64 H100 loses {percent(1 - kept(name(1), 4), 0)}, {percent(1 - kept(name(1), 2), 0)} and "
            f"{percent(1 - kept(name(1), 1), 0)} with one sequence per GPU, but with four only "
            f"{percent(1 - kept(name(4), 4), 0)}, {percent(1 - kept(name(4), 2), 0)} and {percent(1 - kept(name(4), 1), 0)}, "
            f"because the same bytes hide under four times the work.")


def figure(table):
    series = {}
    for case in [LARGE, *map(name, SIZES)]:
        found = column(table, "tokens_per_s_per_gpu", case=case)
        series[case] = [100 * value / found[-1] for value in found]
    return chart.lines("Throughput by NICs per node, eight = 100", "NICs per node of eight GPUs", "throughput (%)", NICS, series)


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
