#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Buy H100 or B200 for Llama 3 405B? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, expect, percent, simulate, trainsim  # noqa: E402

CONFIG = {"model": "llama3-405b", "cluster": "dgx-h100", "gpus": 1024,
          "plan": {"sequence_parallel": True, "sequence_length": 8192, "global_batch_size": 512, "sharding": "zero1",
                   "gradient_dtype": "bf16", "recompute": "auto"}}
CLUSTERS = {"dgx-h100": 700, "dgx-b200": 1000}  # rated power of a GPU in W, from the data sheets
SPLITS = ((8, 16, 1), (8, 16, 2), (8, 16, 4), (8, 8, 2), (8, 8, 4), (8, 4, 4), (4, 16, 2), (4, 16, 4), (4, 8, 4))
CAUSES = {"forward and backward": ("forward", "backward"), "recomputation": ("recompute",),
          "tensor communication": ("tensor_communication",), "bubble and imbalance": ("bubble", "imbalance")}


def seconds(result):
    """The breakdown in the groups of the figure, and what else there is."""
    parts = {label: sum(result.breakdown[cause] for cause in causes) for label, causes in CAUSES.items()}
    return parts | {"other": result.step_time_s - sum(parts.values()),
                    "recompute_granularity": result.plan.recompute.granularity}


def overrides(cluster, split, size):
    tensor, pipeline, chunks = split
    return {"cluster": cluster, "plan.tensor_parallel": tensor, "plan.pipeline_parallel": pipeline,
            "plan.virtual_pipeline": chunks, "plan.micro_batch_size": size}


def rows():
    points = [({"cluster": cluster, "tensor_parallel": split[0], "pipeline_parallel": split[1], "chunks": split[2],
                "micro_batch_size": size}, overrides(cluster, split, size))
              for cluster in CLUSTERS for split in SPLITS for size in (1, 2)]
    table = simulate(CONFIG, points, seconds)
    for row in table:
        row["low_s"] = row["high_s"] = None
    for cluster in CLUSTERS:
        row = best(table, cluster)
        split = (row["tensor_parallel"], row["pipeline_parallel"], row["chunks"])
        interval = trainsim.run(CONFIG, overrides(cluster, split, row["micro_batch_size"]), uncertainty=True).uncertainty
        row["low_s"], row["high_s"] = interval.step_time_low_s, interval.step_time_high_s
    return table


def best(table, cluster):
    """The fastest plan with memory to spare."""
    return min((row for row in table if row["cluster"] == cluster and row["verdict"] == "fits"),
               key=lambda row: row["step_time_s"])


def plan(row):
    return f"TP{row['tensor_parallel']} PP{row['pipeline_parallel']}"


def answer(table):
    h100, b200 = (best(table, cluster) for cluster in CLUSTERS)
    ratio = h100["step_time_s"] / b200["step_time_s"]
    least, most = h100["low_s"] / b200["high_s"], h100["high_s"] / b200["low_s"]
    energy = ratio * CLUSTERS["dgx-h100"] / CLUSTERS["dgx-b200"]
    expect(1.5 < least and energy > 1, "B200 is faster, and per watt too")
    expect(b200["tensor_parallel"] == 4 and h100["tensor_parallel"] == 8, "B200 prefers TP4 and H100 TP8")
    return (f"A B200 trains Llama 3 405B {ratio:.1f} times as fast as an H100 ({h100['tokens_per_s_per_gpu']:.0f} against "
            f"{b200['tokens_per_s_per_gpu']:.0f} tokens/s per GPU, each with its own best plan, {plan(h100)} and {plan(b200)}), so it "
            f"is the better buy if it costs less than {ratio:.1f} times as much to own and run; at rated power it needs "
            f"{percent(1 - 1 / energy, 0)} less energy per token. If all constants err within their ranges, each on its own, "
            f"the ratio is somewhere between {least:.1f} and {most:.1f}.")


def figure(table):
    found = [best(table, cluster) for cluster in CLUSTERS]
    labels = [f"{row['cluster']}: {plan(row)} x {row['chunks']} chunks" for row in found]
    return chart.bars("One step of Llama 3 405B on 1,024 GPUs, 4.2 M tokens", "seconds, mean over ranks", labels,
                      {label: [row[label] for row in found] for label in [*CAUSES, "other"]})


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
