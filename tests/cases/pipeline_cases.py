#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines and steps: bubbles that people reckoned or ran into, and what steps of other sizes took.

usage: pipeline_cases.py TRAINSIM

Each test names its case and source. What a report leaves open is chosen here and said. A tolerance is that of the
measurement and of what is not known about it, never of our own result.
"""
import re
import sys

from plan_case import GIB, PlanCase, main, merged


class Cases(PlanCase):
    def equal_stages(self, stages, micro_batches, chunks=1, schedule=None):
        """The result of equal stages with free transfers, a layer to each chunk."""
        # Zero-bubble schedules must know which part of backward they can put off.
        weight = {"weight": "3 ms"} if schedule else {}
        return self.run_plan({
            "model": {"num_layers": stages * chunks, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 51200,
                      "sequence_length": 1024},
            "cluster": "dgx-a100-80gb", "gpus": stages, "simulation": {"network": "free"},
            "plan": {"pipeline_parallel": stages, "virtual_pipeline": chunks, "global_batch_size": micro_batches,
                     "profile": {"forward": "3 ms", "backward": "6 ms", **weight},
                     **({"schedule": schedule} if schedule else {})}})

    # ---- throughput ----
    def test_A07_recomputation_of_a_small_model(self):
        # BigScience, tr3-1B3: 29 s with, 23 s without recomputation, 4/3 of the operations. The memory that these notes
        # state, 16 GB, is less than 16 bytes for each of 1.3 billion parameters, so that it is not compared.
        base = {"model": {"num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "vocab_size": 50257,
                          "sequence_length": 2048, "attention": "standard", "dropout": 0.1},
                "cluster": {"extends": "dgx-2", "gpus_per_node": 4, "nics_per_node": 4, "nic": "opa-100"}, "gpus": 8,
                "plan": {"global_batch_size": 512, "precision": "fp16", "gradient_dtype": "fp16"},
                "software": {"gradient_accumulation_fusion": False, "persistent_norm": False}}
        times = [self.run_plan(base, {"plan": {"recompute": recompute}})["step_time_s"] for recompute in ("full", "none")]
        self.near(times[0] / times[1], 1.3, absolute=0.08)

    def test_B12_hardly_a_micro_batch_for_each_stage(self):
        # EleutherAI/gpt-neox issue 903: 33 TFLOP/s with four stages, 170 with one.
        base = {"model": {"num_layers": 44, "hidden_size": 6144, "num_attention_heads": 64, "vocab_size": 50432,
                          "sequence_length": 2048, "tie_word_embeddings": False, "position_embedding": "rotary"},
                "cluster": "dgx-a100-80gb", "gpus": 128,
                "plan": {"tensor_parallel": 2, "micro_batch_size": 4, "precision": "fp16", "recompute": "full",
                         "sharding": "zero1"}}
        four = self.run_plan(base, {"plan": {"pipeline_parallel": 4}})
        self.near(four["bubble_ratio"], 0.75, absolute=0.15)
        self.assertTrue(any("Twice the micro-batches" in note for note in four["notes"]), four["notes"])
        one = self.run_plan(base)
        self.assertLess(four["hardware_tflops_per_gpu"], 0.4 * one["hardware_tflops_per_gpu"])

    def test_B17_steps_of_five_sizes(self):
        # BigScience, trials before BLOOM: 182 billion parameters, seconds by batch; 0.743 s (m + 11) + 3.81 s.
        base = {"model": {"num_layers": 78, "hidden_size": 13824, "num_attention_heads": 108, "vocab_size": 250680,
                          "sequence_length": 2048, "attention": "standard", "dropout": 0.1,
                          "position_embedding": "alibi", "embedding_norm": True},
                "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4, "nic": "opa-100"}, "gpus": 384,
                "plan": {"tensor_parallel": 4, "pipeline_parallel": 12, "micro_batch_size": 2, "recompute": "full",
                         "sharding": "zero1", "precision": "fp16", "gradient_dtype": "fp16",
                         "overlap_gradient_reduction": False, "overlap_tensor_communication": False},
                "software": {"framework": "deepspeed", "gradient_accumulation_fusion": False, "persistent_norm": False}}
        results = {batch: self.run_plan(base, {"plan": {"global_batch_size": batch}}) for batch in (512, 1024, 1536, 2048)}
        # Stages are not equal in truth: the last has the head, which the closed form leaves out.
        self.near(results[512]["bubble_ratio_theory"], 0.256, absolute=0.005)
        self.near(results[2048]["bubble_ratio_theory"], 0.079, absolute=0.005)
        self.near(results[512]["step_time_s"] / results[2048]["step_time_s"], 0.334, relative=0.07)
        # Each time is known within the error of this family's step times (bloomtune in docs/accuracy.md, 6.0 %).
        for batch, seconds in ((512, 35.77), (1024, 59.65), (1536, 83.11), (2048, 107.12)):
            self.near(results[batch]["step_time_s"], seconds, relative=0.06)

    def test_B07_single_precision_on_16_a100(self):
        # NVIDIA/Megatron-LM issue 1000: 20 TFLOP/s per GPU of Llama 3 70B, without --bf16 and with a batch of one sequence. What
        # its container multiplied in is not stated: the units of fp32 have a peak of 19.5, TF32 on tensor cores one of 156.
        base = {"model": {"extends": "llama3-70b", "sequence_length": 4096}, "cluster": "dgx-a100-80gb", "gpus": 16,
                "plan": {"tensor_parallel": 8, "pipeline_parallel": 2, "global_batch_size": 1}}
        results = {precision: self.run_plan(base, {"plan": {"precision": precision}}) for precision in ("fp32", "tf32", "bf16")}
        for result in results.values():
            self.near(result["bubble_ratio"], 0.5, absolute=0.01)
            self.assertTrue(any("fewer micro-batches (1) than pipeline stages (2)" in warning
                                for warning in result["warnings"]), result["warnings"])
        self.assertLess(results["fp32"]["model_tflops_per_gpu"], 20)
        self.assertGreater(results["tf32"]["model_tflops_per_gpu"], 20)
        self.assertEqual(results["fp32"]["peak_memory_bytes"], results["tf32"]["peak_memory_bytes"])
        self.assertGreater(results["bf16"]["model_tflops_per_gpu"], results["tf32"]["model_tflops_per_gpu"])

    # ---- published throughput ----
    def test_B18_fsdp_on_128_a100_and_96_h100(self):
        # foundation-model-stack/fms-fsdp, README: tokens/s per GPU with torch.compile, 2 sequences of 4096 per GPU. 7B shards
        # within a node and recomputes nothing, 70B shards everywhere and recomputes some blocks (most, by its HFU).
        llama = {"sequence_length": 4096, "attention": "flash-2"}
        base = {"model": {"extends": "llama2-7b", **llama},
                "plan": {"micro_batch_size": 2, "gradient_dtype": "bf16", "sharding": {"stage": 3, "group": "node"}},
                "software": {"launch": "compiled", "fusion": "compiled"}}
        a100 = {"cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4}, "gpus": 128}
        h100 = {"cluster": {"extends": "dgx-h100", "nic": {"bandwidth": "100 Gb/s"}}, "gpus": 96}
        large = {"model": {"extends": "llama2-70b", **llama},
                 "plan": {"sharding": "fsdp", "recompute": {"granularity": "full", "method": "block", "layers": 60}}}
        for change, measured in ((a100, 4550), (h100, 9600), (merged(h100, large), 890)):
            self.near(self.run_plan(base, change)["tokens_per_s_per_gpu"], measured, relative=0.25)

    def test_B27_eight_bits_on_32_and_64_h200(self):
        # pytorch/torchtitan, benchmarks for H200: 10938 and 10753 tokens/s per GPU for Llama 3 8B in 8 bits.
        config = {
            "model": {"extends": "llama3-8b", "sequence_length": 8192, "attention": "flash-2"}, "cluster": "dgx-h200",
            "plan": {"micro_batch_size": 2, "sharding": "fsdp", "precision": "fp8",
                     "fp8": {"recipe": "tensorwise", "parameters": True}, "gradient_dtype": "fp32"},
            "software": {"launch": "compiled", "fusion": "compiled"},
        }
        four, eight = (self.run_plan(config, {"gpus": gpus}) for gpus in (32, 64))
        self.near(four["tokens_per_s_per_gpu"], 10938, relative=0.25)
        self.near(eight["tokens_per_s_per_gpu"], 10753, relative=0.25)
        self.near(eight["tokens_per_s_per_gpu"] / four["tokens_per_s_per_gpu"], 10753 / 10938, absolute=0.05)
        # State of 16 bytes per parameter on half as many more ranks: 16 * 8.03e9 / 64 = 1.9 GiB less.
        self.near((four["peak_memory_bytes"] - eight["peak_memory_bytes"]) / GIB, 1.9, relative=0.2)

    def test_B22_smaller_steps_of_1024_gpus(self):
        # InternEvo, doc/en/train_performance.md: 184, 160 and 136 TFLOP/s per GPU with 8, 4 and 2 sequences of 2048 tokens in a
        # step, gradients and parameters of which are exchanged all the same. The network is 4 x 100 Gb/s per node.
        base = {"model": {"num_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 11008,
                          "vocab_size": 103168, "sequence_length": 2048, "activation": "swiglu", "position_embedding": "rotary",
                          "normalization": "rmsnorm", "linear_bias": False, "tie_word_embeddings": False,
                          "attention": "flash-1"},
                "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4, "nic": {"bandwidth": "100 Gb/s"}}, "gpus": 1024,
                "plan": {"sharding": {"stage": 1, "group": "node"}, "recompute": "full", "gradient_dtype": "bf16"},
                "software": {"framework": "internevo", "fusion": "none", "loss": "fused"}}
        rates = [self.run_plan(base, {"plan": {"micro_batch_size": size, "gradient_accumulation": 1}})["model_tflops_per_gpu"]
                 for size in (8, 4, 2)]
        self.near(rates[2] / rates[0], 0.74, absolute=0.12)
        self.assertEqual(rates, sorted(rates, reverse=True))

    def test_B29_accumulation_gathers_again(self):
        # marin-community/marin: 1536 sequences in two micro-batches are slower for each token than 1024 in one. Where the
        # network is the limit: one NIC for eight H100.
        base = {"model": "llama2-7b", "gpus": 256, "cluster": {"extends": "dgx-h100", "nics_per_node": 1},
                "plan": {"sharding": "zero3", "gradient_dtype": "bf16", "recompute": "full"}}
        one = self.run_plan(base, {"plan": {"micro_batch_size": 4, "gradient_accumulation": 1}})
        two = self.run_plan(base, {"plan": {"micro_batch_size": 3, "gradient_accumulation": 2}})
        self.assertLess(two["tokens_per_s"], one["tokens_per_s"])
        self.assertLess(two["mfu"], one["mfu"])

    # ---- bubbles ----
    def test_C01_fewer_micro_batches_than_stages(self):
        # pytorch/torchtitan issue 775: such a job hung. It is legal, and not what anybody wants: (p-1) / (m+p-1).
        result = self.equal_stages(8, 4)
        self.near(result["bubble_ratio"], 7 / 11, absolute=1e-6)
        self.assertTrue(any("fewer micro-batches (4) than pipeline stages (8)" in warning
                            for warning in result["warnings"]), result["warnings"])
        self.assertEqual(self.equal_stages(8, 8)["warnings"], [])

    def test_C04_interleaving_two_stages_and_one(self):
        # NVIDIA/Megatron-LM issue 750: two stages were refused once and are legal today, one never is.
        self.near(self.equal_stages(2, 4, 2)["bubble_ratio"], 1 / (2 * 4 + 1), absolute=1e-6)
        done = self.call("check", {"model": "gpt-1.7b", "cluster": "dgx-a100-80gb", "gpus": 8,
                                   "plan": {"virtual_pipeline": 2, "global_batch_size": 16}})
        self.assertEqual(done.returncode, 2)
        self.assertIn("plan.virtual_pipeline: 2 chunks need a pipeline", done.stderr)

    def test_C07_layers_that_do_not_divide(self):
        # Fewer layers on the first and the last stage, for embedding and head: 46 on 4, 92 on 8.
        def layers_of(layers, stages, **plan):
            done = self.call("check", {"model": {"extends": "llama3-70b", "num_layers": layers}, "cluster": "dgx-h100",
                                       "gpus": 8 * stages,
                                       "plan": {"tensor_parallel": 8, "pipeline_parallel": stages, "sequence_parallel": True,
                                                "global_batch_size": 32, **plan}})
            self.assertEqual(done.returncode, 0, done.stderr)
            return [int(number) for number in re.search(r"layers per virtual stage +(.*)", done.stdout)[1].split(",")]
        self.assertEqual(layers_of(46, 4), [11, 12, 12, 11])
        layout = [10, 12, 12, 12, 12, 12, 12, 10]
        self.assertEqual(layers_of(92, 8, pipeline_layout=layout), layout)
        # What is taken without a layout differs by one layer at most, and gives what remains to the middle.
        self.assertEqual(layers_of(92, 8), [11, 11, 12, 12, 12, 12, 11, 11])

    def test_C09_a_layout_that_contradicts_the_chunks(self):
        # NVIDIA-NeMo/Megatron-Bridge issue 1502.
        done = self.call("check", {"model": "gpt-1.7b", "cluster": "dgx-a100-80gb", "gpus": 8,
                                   "plan": {"pipeline_parallel": 4, "virtual_pipeline": 1, "global_batch_size": 16,
                                            "pipeline_layout": [3, 3, 3, 3, 3, 3, 3, 3]}})
        self.assertEqual(done.returncode, 2)
        self.assertIn("plan.pipeline_layout: 8 entries, but pipeline_parallel 4 x virtual_pipeline 1 = 4 stages",
                      done.stderr)

    def test_C11_the_fullest_stage_counts(self):
        # NVIDIA-NeMo/Megatron-Bridge pull request 5077: eight layers as 1, 2, 2, 3 of the model in that estimator's tests.
        # A layer has 12 h^2 weights and two norms of 2 h; with the final norm and the tied embedding the last stage holds
        # 9952. A mean over stages and an embedding were 6792, 31.8 % too few.
        hidden, vocabulary, layers = 16, 32, 8
        base = {"model": {"num_layers": layers, "hidden_size": hidden, "num_attention_heads": 4, "vocab_size": vocabulary,
                          "sequence_length": 8, "position_embedding": "rotary", "linear_bias": False},
                "cluster": "dgx-h200", "gpus": 4,
                "plan": {"pipeline_parallel": 4, "pipeline_layout": [1, 2, 2, 3], "vocab_padding": 1}}
        result = self.run_plan(base)
        parameters = [rank["memory_at_peak"]["parameters"] / 2 for rank in result["ranks"]]  # in bf16
        layer, embedding = 12 * hidden**2 + 4 * hidden, hidden * vocabulary
        self.assertEqual(parameters, [layer + embedding, 2 * layer, 2 * layer, 3 * layer + 2 * hidden + embedding])
        self.assertEqual(max(parameters), 9952)
        estimate = (result["parameters"] - embedding) / 4 + embedding
        self.assertEqual(estimate, 6792)
        self.near(1 - estimate / max(parameters), 0.318, absolute=0.002)
        self.assertEqual(result["peak_memory_bytes"], max(rank["peak_memory_bytes"] for rank in result["ranks"]))
        # A GPU that would hold the mean and not the largest is too small.
        mean = sum(rank["peak_memory_bytes"] for rank in result["ranks"]) / 4
        self.assertGreater(result["peak_memory_bytes"], 1.2 * mean)
        small = {"cluster": {"extends": "dgx-h200", "gpu": {"memory": f"{1.1 * mean:.0f} B"}}, "memory": {"reserve": "1 B"}}
        self.assertEqual(self.run_plan(base, small)["verdict"], "does not fit")

    def test_C13_closed_forms(self):
        # sail-sg/zero-bubble-pipeline-parallelism: 1F1B, interleaving and ZB-H1; p = 8, m = 24. ZB-H1 has a third of
        # 1F1B's bubble in its memory, on every stage; ZB-H2 none but that stages start one after the other, in twice that.
        self.near(self.equal_stages(8, 24)["bubble_ratio"], 0.226, absolute=0.001)
        self.near(self.equal_stages(8, 24, 3)["bubble_ratio"], 0.0886, absolute=0.002)
        self.near(self.equal_stages(8, 24, schedule="zb-h1")["bubble_ratio"], 0.0886, absolute=0.002)
        self.near(self.equal_stages(8, 24, schedule="zb-h2")["bubble_ratio_stage"], 0, absolute=1e-9)

    def test_C18_four_micro_batches(self):
        # BigScience, experiments on V100: 4 micro-batches through 4 to 64 stages.
        for stages, bubble in ((4, 0.43), (8, 1 - 0.36), (16, 1 - 0.21), (32, 1 - 0.114), (64, 0.94)):
            self.near(self.equal_stages(stages, 4)["bubble_ratio"], bubble, absolute=0.005)

    def test_C21_tokens_per_second_by_micro_batches(self):
        # Two desktop machines as two stages: 1073, 1197, 1337, 1438 and 1462 tokens/s for 4 to 64 micro-batches, m / (m+1)
        # and a little for the transfers.
        rates = [self.equal_stages(2, count)["tokens_per_s"] for count in (4, 8, 16, 32, 64)]
        self.assertEqual(rates, sorted(rates))
        self.near(rates[0] / rates[-1], 0.73, absolute=0.09)

    def test_C22_a_rule_of_thumb(self):
        # EleutherAI/gpt-neox: 4 or 8 micro-batches for each stage are 81 or 90 % of the ideal.
        for count, efficiency, tolerance in ((32, 0.82, 0.02), (64, 0.9, 0.01)):
            self.near(1 - self.equal_stages(8, count)["bubble_ratio"], efficiency, absolute=tolerance)


if __name__ == "__main__":
    main(sys.argv)
