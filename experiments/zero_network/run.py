#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which ZeRO stage for which network? usage: run.py [--check]"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import chart  # noqa: E402
from question import answer_with, column, expect, percent, row_of, simulate  # noqa: E402

RATES = (10, 25, 50, 100, 200, 400)
STAGES = {"none": "no sharding", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3"}
CONFIG = {"model": "llama2-7b", "cluster": "dgx-a100-80gb", "gpus": 64,
          "plan": {"micro_batch_size": 1, "gradient_accumulation": 4, "recompute": "none"}}


def rows():
    return simulate(CONFIG, [({"nic_gbit_per_s": rate, "sharding": stage},
                              {"cluster.nic_bandwidth": f"{rate} Gb/s", "plan.sharding": stage})
                             for stage in STAGES for rate in RATES])


def answer(table):
    def behind(stage, rate):
        return (row_of(table, sharding=stage, nic_gbit_per_s=rate)["step_time_s"] /
                row_of(table, sharding="zero1", nic_gbit_per_s=rate)["step_time_s"])

    memory = {stage: row_of(table, sharding=stage, nic_gbit_per_s=200)["peak_memory_gib"] for stage in STAGES}
    expect(row_of(table, sharding="none", nic_gbit_per_s=200)["verdict"] == "does not fit", "nothing fits unsharded")
    expect(all(behind(stage, rate) > 1 for stage in ("zero2", "zero3") for rate in RATES), "ZeRO-1 is the fastest")
    expect(behind("zero3", 100) < 1.2 < behind("zero3", 50), "ZeRO-3 comes close from 100 Gb/s on")
    return (f"ZeRO-1 is the fastest on every network as long as it fits; ZeRO-3 takes {percent(behind('zero3', 200) - 1, 0)} "
            f"longer with eight NICs of 200 Gb/s and {percent(behind('zero3', 100) - 1, 0)} with 100, but {behind('zero3', 25):.1f} "
            f"times as long with 25 and {behind('zero3', 10):.1f} times with 10 Gb/s. What it buys is memory: "
            f"{memory['none']:.0f} GiB per GPU without sharding, {memory['zero1']:.0f} with ZeRO-1, {memory['zero2']:.0f} with "
            f"ZeRO-2 and {memory['zero3']:.0f} with ZeRO-3.")


def figure(table):
    series = {label: column(table, "step_time_s", sharding=stage) for stage, label in STAGES.items()}
    rings = {label: [verdict == "does not fit" for verdict in column(table, "verdict", sharding=stage)]
             for stage, label in STAGES.items()}
    return chart.lines("Step time of Llama 2 7B on 64 A100", "Gb/s of each of eight NICs", "step time (s)", RATES, series,
                       hollow=rings)


if __name__ == "__main__":
    answer_with(__file__, rows, answer, figure)
