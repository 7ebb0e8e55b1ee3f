#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plan search: questions of people who plan training, with the plans that must be found, or must not.

usage: search_cases.py TRAINSIM

Each test names its case and source. What a report leaves open is chosen here and said.
"""
import sys

from plan_case import PlanCase, main


class Cases(PlanCase):
    def plans(self, base, *vary):
        options = [part for text in vary for part in ("--vary", text)]
        return self.result("search", base, arguments=["--top", "1", *options])["plans"]

    def test_F10_gpt_neox_175b_which_splits_fit(self):
        # EleutherAI/gpt-neox: 175e9 / 32 = 5.47e9 parameters a rank at 6 + 12 / DP bytes. On eight replicas that is
        # 41 GB, and activations: TP8 PP4 fits 80 GB with recomputation, and not 40 GB, which needs PP8.
        base = {"model": "gpt3-175b", "cluster": "dgx-a100-80gb", "gpus": 256,
                "plan": {"tensor_parallel": 8, "pipeline_parallel": 4, "global_batch_size": 256, "precision": "fp16",
                         "gradient_dtype": "fp32", "sharding": "zero1"}}
        small = dict(base, cluster="dgx-a100-40gb")
        fixed = ["tensor_parallel=8", "virtual_pipeline=1", "schedule=1f1b", "sharding=zero1", "micro_batch_size=1"]
        self.assertTrue(self.plans(base, *fixed, "pipeline_parallel=4"))
        self.assertFalse(self.plans(small, *fixed, "pipeline_parallel=4"))
        found = self.plans(small, *fixed, "pipeline_parallel=4,8,16")
        self.assertGreaterEqual(found[0]["pipeline_parallel"], 8)


if __name__ == "__main__":
    main(sys.argv)
