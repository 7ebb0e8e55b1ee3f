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

    def test_F09_sequences_of_262144_tokens_and_experts_on_128_h100(self):
        # NVIDIA-NeMo/Megatron-Bridge issue 3463, on Nemotron 3 Super: TP2, CP16 or CP32, EP64, a batch of 16. That model
        # mixes state-space layers in; Qwen3-235B-A22B, which is larger, stands for it. A rank has 262,144 / 32 = 8,192
        # tokens of a sequence, or 16,384.
        base = {"model": "qwen3-235b-a22b", "cluster": "dgx-h100", "gpus": 128,
                "plan": {"tensor_parallel": 2, "sequence_parallel": True, "context_parallel": 32, "expert_parallel": 64,
                         "expert_tensor_parallel": 1, "sequence_length": 262144, "global_batch_size": 16,
                         "sharding": "zero1", "recompute": "full"}}
        self.assertTrue(self.run_plan(base)["fits"])
        fixed = ["tensor_parallel=2", "pipeline_parallel=1", "sharding=zero1", "recompute=full", "micro_batch_size=1"]
        found = self.plans(base, *fixed, "context_parallel=16,32", "expert_parallel=8,64")
        self.assertEqual(found[0]["expert_parallel"], 64)
        self.assertIn(found[0]["context_parallel"], (16, 32))


if __name__ == "__main__":
    main(sys.argv)
