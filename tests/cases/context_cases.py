#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences that several ranks share: what people measured, or what ran out, as values that must come out.

usage: context_cases.py TRAINSIM

Each test names its case and source. What a report leaves open is chosen here and said. A tolerance is that of the
measurement and of what is not known about it, never of our own result.
"""
import sys

from plan_case import GIB, PlanCase, main, merged

LLAMA = {"activation": "swiglu", "attention": "flash", "dropout": 0, "position_embedding": "rotary",
         "normalization": "rmsnorm", "linear_bias": False, "tie_word_embeddings": False}


class Cases(PlanCase):
    def test_A11_context_parallelism_on_b200(self):
        # SimuMax 1.2, docs/b200/b200_release_v1.2_summary.md: the first 12 layers of Llama 3 70B on 8 B200.
        base = {"model": {"num_layers": 12, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
                          "intermediate_size": 28672, "vocab_size": 128256, "sequence_length": 32768, **LLAMA},
                "cluster": "dgx-b200", "gpus": 8,
                "plan": {"sequence_parallel": True, "micro_batch_size": 1, "global_batch_size": 4, "sharding": "zero1",
                         "overlap_gradient_reduction": False, "overlap_tensor_communication": False},
                "software": {"loss": "fused"}}
        rows = [(32768, 2, 4, 1758.0, 68.43), (32768, 1, 8, 1768.1, 104.51), (131072, 2, 4, 11315.7, 112.67),
                (131072, 1, 8, 11301.9, 147.99)]
        peaks = {}
        times = {}
        for sequence, tensor, context, milliseconds, gibibytes in rows:
            result = self.run_plan(base, {"plan": {"sequence_length": sequence, "tensor_parallel": tensor,
                                                   "context_parallel": context}})
            peaks[sequence, tensor] = result["peak_memory_bytes"] / GIB
            times[sequence, tensor] = 1000 * result["step_time_s"]
            with self.subTest(sequence=sequence, tensor=tensor):
                self.near(peaks[sequence, tensor], gibibytes, relative=0.1)
                self.near(times[sequence, tensor], milliseconds, relative=0.2)
        # Weights do not shrink with context parallelism, attention grows with the square.
        for sequence in (32768, 131072):
            self.assertGreater(peaks[sequence, 1], peaks[sequence, 2])
        self.near(times[131072, 2] / times[32768, 2], 6.44, relative=0.2)

    def test_A14_longer_sequences_with_more_context_ranks(self):
        # torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, tables 5 and 6: 405B on 512 H100. Measured with float8
        # multiplies, which are not supported; parameters sharded in a pipeline are not, either.
        base = {"model": "llama3-405b", "gpus": 512,
                "cluster": {"extends": "meta-llama3-h100",
                            "gpu": {"memory": "96 GB", "memory_bandwidth": "2400 GB/s", "power_limit": "500 W"}},
                "plan": {"tensor_parallel": 8, "pipeline_parallel": 8, "sequence_parallel": True,
                         "micro_batch_size": 4, "global_batch_size": 256, "recompute": "full", "sharding": "zero1",
                         "sequence_length": 8192}}
        plain = self.run_plan(base)["step_time_s"]
        chunks = self.run_plan(base, {"plan": {"virtual_pipeline": 2}})["step_time_s"]
        # 100 and 128 tokens/s per GPU.
        self.near(plain / chunks, 1.28, absolute=0.15)
        # 32,768 tokens to a rank, whatever the sequence: 76, 47, 31 and 16 tokens/s per GPU. These rates are not compared:
        # attention in bf16 takes another share of the time than beside float8 multiplies, and that of late 2024
        # (FlashAttention-2) twice as long as what is simulated. A closed form is: a token's time is a constant and a part
        # that grows with the sequence, so that each doubling adds twice as much as the one before.
        times = []
        for ranks in (1, 2, 4, 8):
            plan = {"micro_batch_size": 1, "context_parallel": ranks, "context_communication": "all_gather",
                    "sequence_length": 32768 * ranks, "global_batch_size": 64 // ranks}
            times.append(1 / self.run_plan(base, {"plan": plan})["tokens_per_s_per_gpu"])
        steps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.near(steps[1] / steps[0], 2, absolute=0.05)
        self.near(steps[2] / steps[1], 2, absolute=0.05)

    def test_A23_more_nodes_do_not_help_a_single_sequence(self):
        # NVIDIA-NeMo/RL issue 903: fine-tuning of a 1.5B model (Qwen 2.5's shape is taken, and GPUs of 80 GB) on
        # Megatron-LM with sequences of 32,768 tokens. It ran out with CP2 on 64 nodes and ran with CP4; with NeMo-Aligner,
        # which leaves the loss to Megatron-LM, the same ran with CP2.
        base = {"model": {"num_layers": 28, "hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2,
                          "intermediate_size": 8960, "vocab_size": 151936, "sequence_length": 32768,
                          **LLAMA, "tie_word_embeddings": True},
                "cluster": "dgx-h100", "gpus": 64 * 8,
                "plan": {"sharding": "zero1", "micro_batch_size": 1, "global_batch_size": 1024}}
        two = self.run_plan(base, {"plan": {"context_parallel": 2}})
        four = self.run_plan(base, {"plan": {"context_parallel": 4}})
        self.assertEqual((two["verdict"], four["verdict"]), ("fits", "fits"))
        # The loss of NeMo-RL is not simulated. For its backward (DistributedLogprob in nemo_rl/distributed/model_utils.py)
        # it holds the softmax in fp32, a one-hot of the targets in int64, and its product with a mask, 20 bytes for each
        # logit in place of the 6 of Megatron-LM's.
        for result, ranks, fits in ((two, 2, False), (four, 4, True)):
            logits = 32768 // ranks * 151936
            self.near(result["ranks"][0]["memory_at_peak"]["logits"], 6 * logits, relative=0.001)
            self.assertEqual((20 - 6) * logits <= result["memory_headroom_bytes"], fits)
        fewer_nodes = self.run_plan(base, {"gpus": 64, "plan": {"context_parallel": 2}})
        # 8 and 64 nodes hold shards of less than 0.5 GB; what runs out is there on any number.
        self.near(fewer_nodes["peak_memory_bytes"], two["peak_memory_bytes"], absolute=0.5 * GIB)
        # Activations and logits are halved.
        halves = [sum(result["ranks"][0]["memory_at_peak"][category] for category in ("activations", "logits"))
                  for result in (two, four)]
        self.near(halves[1], halves[0] / 2, relative=0.01)
        # Where one rank for a sequence runs out, another is a change that helps.
        one = self.run_plan(base)
        self.assertEqual(one["verdict"], "does not fit")
        changes = [" ".join(change["set"]) for change in self.result("memory", base)["changes"]]
        self.assertTrue(any("plan.context_parallel=2" in change for change in changes), changes)

    def test_A25_ways_to_share_a_long_sequence(self):
        # deepspeedai/DeepSpeed issue 5305: a 7B GPT with sequences of 32,768 tokens on 8 A100-80GB, GB and seconds.
        base = {"model": {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 50257,
                          "sequence_length": 32768, "max_position_embeddings": 32768, "attention": "flash",
                          "dropout": 0},
                "cluster": "dgx-a100-80gb", "gpus": 8,
                "plan": {"global_batch_size": 16, "micro_batch_size": 1}, "software": {"framework": "deepspeed"}}
        ulysses = {"plan": {"context_parallel": 4, "context_communication": "a2a"}}

        def run(change, **plan):
            return self.run_plan(merged(base, change), {"plan": plan})

        # Only ratios are compared: 16 such sequences are 3.4e16 operations even with half of the attention, 13.8 s at the
        # peak of eight A100. 13.0 and 10.3 s with ZeRO-3, 13.2 and 10.1 s with ZeRO-2.
        tensor = {recompute: run({"plan": {"tensor_parallel": 4}}, sharding="none", recompute=recompute)["step_time_s"]
                  for recompute in ("none", "full")}
        for sharding in ("zero3", "zero2"):
            off = run(ulysses, sharding=sharding)
            again = run(ulysses, sharding=sharding, recompute="full")
            self.near(again["step_time_s"] / off["step_time_s"], 1.29, absolute=0.06)
            # 75.2 and 52.8 GB, 62.3 and 43.8 GB.
            self.assertGreater(off["peak_memory_bytes"] - again["peak_memory_bytes"], 18.5e9)
            # Four tensor-parallel ranks take longer than four that share sequences, 16.1 and 12.1 s.
            self.assertGreater(tensor["full"], again["step_time_s"])
            self.assertGreater(tensor["none"], off["step_time_s"])


if __name__ == "__main__":
    main(sys.argv)
