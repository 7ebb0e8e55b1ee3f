#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TP8 or TP16? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

CLUSTERS = {"dgx-a100-80gb": {}, "dgx-b200": {},
            # 64 of a rack's 72 GPUs, because groups of 16 do not divide 72.
            "gb200-nvl72": {"cluster.gpus_per_node": 64, "cluster.nics_per_node": 64}}
SPLITS = ((4, 16), (8, 8), (16, 4))


def rows():
    return simulate("gpt175b", [({"cluster": cluster, "tensor_parallel": tensor, "pipeline_parallel": pipeline},
                                 {"cluster": cluster, **changes, "plan.tensor_parallel": tensor,
                                  "plan.pipeline_parallel": pipeline})
                                for cluster, changes in CLUSTERS.items() for tensor, pipeline in SPLITS])


def answer(table):
    def slower(cluster):
        eight, sixteen = (row_of(table, cluster=cluster, tensor_parallel=t) for t in (8, 16))
        return 1 - sixteen["tokens_per_s_per_gpu"] / eight["tokens_per_s_per_gpu"]

    share = row_of(table, cluster="dgx-b200", tensor_parallel=16)["tensor_share"]
    four, eight = (row_of(table, cluster="dgx-a100-80gb", tensor_parallel=t) for t in (4, 8))
    expect(min(slower(cluster) for cluster in CLUSTERS) > 0.1, "TP16 is clearly slower everywhere")
    expect(slower("dgx-b200") > slower("gb200-nvl72"), "crossing nodes costs more than a larger NVLink domain")
    expect(four["verdict"] == "fits" and four["step_time_s"] < eight["step_time_s"], "TP4 fits and is faster than TP8")
    return (f"TP8: with 16 ranks tensor parallelism leaves the node, and throughput falls by {percent(slower('dgx-a100-80gb'), 0)} "
            f"on DGX A100 and by {percent(slower('dgx-b200'), 0)} on DGX B200, where ranks then wait for its communication "
            f"{percent(share, 0)} of the time. Inside an NVL72 rack TP16 still costs {percent(slower('gb200-nvl72'), 0)}, and in "
            f"the other direction TP4 with twice the stages is {percent(eight['step_time_s'] / four['step_time_s'] - 1, 0)} "
            f"faster than TP8 on A100 as long as its {four['peak_memory_gib']:.0f} GiB fit.")


def figure(table):
    series = {}
    for cluster in CLUSTERS:
        found = column(table, "tokens_per_s_per_gpu", cluster=cluster)
        series[cluster] = [100 * value / found[1] for value in found]
    return chart.lines("Throughput of GPT-3 175B on 1,024 GPUs, TP8 PP8 = 100", "tensor x pipeline parallel",
                       "tokens/s per GPU (%)", [f"{t} x {p}" for t, p in SPLITS], series)


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
