#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory: what people measured, or what ran out, as values and verdicts that must come out.

usage: memory_cases.py TRAINSIM

Each test names its case and source. What a report leaves open is chosen here and said. A tolerance is that of the
measurement and of what is not known about it, never of our own result. GB of nvidia-smi are GiB.
"""
import json
import sys

from plan_case import GIB, PlanCase, main, merged

GB = 1e9
STATE = ("parameters", "gradients", "main_gradients", "optimizer_state")


class Cases(PlanCase):
    def memory(self, base, change=None):
        return self.result("memory", base, change)

    def device(self, base, change=None):
        """What nvidia-smi would show, in GiB."""
        result = self.run_plan(base, change)
        return (result["peak_reserved_bytes"] + result["memory_reserve_bytes"]) / GIB

    def state(self, base, change=None):
        """Bytes that the fullest rank holds between steps."""
        result = self.memory(base, change)
        return sum(result["memory_at_peak"][category] for category in STATE)

    # ---- Micro-batches that recompute nothing (Korthikanti et al. 2022, arXiv 2205.05198, appendix C) ----
    def without_recomputation(self, config, micro_batches):
        """The result when that many of the micro-batches in flight recompute nothing."""
        recompute = f"plan.recompute={{granularity: selective, partial_micro_batches: {micro_batches}}}"
        change = ["--set", recompute] if micro_batches > 0 else []
        done = self.run_program("run", config, *change, "--format", "json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_as_many_micro_batches_as_fit_recompute_nothing(self):
        # MFU rises by 0.7 points to 52.3 % for 175B; from 56.0 (table 5) to 56.4 % for 530B. Their table has 51.4 where
        # the text has 51.6, hence the tolerance.
        for config, gain in (("korthikanti-175b-selective", 0.007), ("korthikanti-530b-selective", 0.004)):
            with self.subTest(config=config):
                fits, too_many = 0, 64
                while too_many - fits > 1:
                    middle = (fits + too_many) // 2
                    if self.without_recomputation(config, middle)["verdict"] == "fits":
                        fits = middle
                    else:
                        too_many = middle
                self.assertGreater(fits, 0)
                mfu = self.without_recomputation(config, fits)["mfu"]
                self.near(mfu - self.without_recomputation(config, 0)["mfu"], gain, absolute=0.002)

    # ---- BLOOM and the trials before it (bigscience-workshop/bigscience, tr11-176B-ml) ----
    BIGSCIENCE = {
        "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4, "nic": "opa-100"}, "gpus": 384,
        "model": {"vocab_size": 250680, "sequence_length": 2048, "attention": "standard", "dropout": 0.1,
                  "position_embedding": "alibi", "embedding_norm": True},
        "plan": {"global_batch_size": 2048, "recompute": "full", "sharding": "zero1", "precision": "fp16",
                 "gradient_dtype": "fp16", "overlap_gradient_reduction": False,
                 "overlap_tensor_communication": False},
        "software": {"framework": "deepspeed", "launch": "blocking", "gradient_accumulation_fusion": False,
                     "persistent_norm": False},
    }

    def trial(self, layers, hidden, heads, tensor, pipeline, data, micro_batch, batch=2048, **plan):
        return merged(self.BIGSCIENCE, {
            "gpus": tensor * pipeline * data,
            "model": {"num_layers": layers, "hidden_size": hidden, "num_attention_heads": heads},
            "plan": {"tensor_parallel": tensor, "pipeline_parallel": pipeline, "data_parallel": data,
                     "micro_batch_size": micro_batch, "global_batch_size": batch, **plan}})

    def test_A01_bloom_176b(self):
        base = self.trial(70, 14336, 112, 4, 12, 8, 2, precision="bf16", gradient_dtype="fp32",
                          pipeline_layout=[5] + 10 * [6] + [5])
        result = self.run_plan(base, {"software": {"launch": "eager"}})
        self.assertTrue(result["fits"])
        self.near(result["step_time_s"], 104.7, relative=0.15)
        self.near(result["mfu"], 0.36, absolute=0.04)
        self.near(result["hfu"], 0.48, absolute=0.05)
        # The closed form; the head of 250,880 rows makes the last stage slower than the rest, which adds to it.
        self.near(result["bubble_ratio_theory"], 0.079, absolute=0.01)
        self.near(self.device(base), 59, relative=0.25)

    def test_A02_what_fits_of_181_billion_parameters(self):
        # TP, PP, DP, micro-batch, batch: GB and seconds, or out of memory.
        rows = [
            (8, 1, 48, 1, 2016, None, None), (8, 2, 24, 1, 2016, 65, 145.45), (8, 2, 24, 2, 2016, 76, 136.13),
            (8, 4, 12, 2, 2016, 53, 125.52), (8, 4, 12, 4, 2016, 59, 114.81), (8, 8, 6, 4, 2016, 52, 113.16),
            (4, 12, 8, 2, 2048, 44, 110.48), (4, 12, 8, 4, 2048, 60, 111.89), (4, 6, 16, 2, 2048, 57, 111.71),
            (4, 6, 16, 4, 2048, 75, 117.11), (2, 12, 16, 2, 2048, 63, 112.5), (2, 6, 32, 1, 2048, None, None),
            (2, 6, 32, 2, 2048, None, None), (2, 24, 8, 1, 2048, 44, 119.53), (2, 24, 8, 2, 2048, 53, 122.75)]
        times = {}
        for tensor, pipeline, data, micro_batch, batch, gigabytes, seconds in rows:
            with self.subTest(tensor=tensor, pipeline=pipeline, micro_batch=micro_batch):
                result = self.run_plan(self.trial(72, 14336, 64, tensor, pipeline, data, micro_batch, batch))
                if gigabytes is None:
                    self.assertNotEqual(result["verdict"], "fits")
                    continue
                self.assertTrue(result["fits"])
                device = (result["peak_reserved_bytes"] + result["memory_reserve_bytes"]) / GIB
                self.near(device, gigabytes, relative=0.3)
                self.near(result["step_time_s"], seconds, relative=0.2)
                times[(tensor, pipeline, micro_batch)] = result["step_time_s"] / batch
        # Measured as the fastest. Six stages come out 4 % faster here, less than the mean error of this family's step
        # times (bloomtune, 6.0 %).
        self.assertLessEqual(times[(4, 12, 2)], 1.06 * min(times.values()))

    def test_A03_more_replicas_need_less_memory_with_zero1(self):
        one = self.trial(80, 14400, 96, 8, 10, 1, 1)
        two = self.trial(80, 14400, 96, 8, 10, 2, 1)
        self.near(self.device(one) - self.device(two), 18, absolute=6)
        self.near(self.run_plan(one)["step_time_s"] / self.run_plan(two)["step_time_s"], 1.96, relative=0.05)

    def test_A04_zero0_against_zero1(self):
        sharded = self.device(self.trial(72, 14336, 64, 8, 12, 4, 2))
        whole = self.device(self.trial(72, 14336, 64, 8, 12, 4, 2, sharding="none"))
        self.near(sharded, 37, relative=0.3)
        self.near(whole / sharded, 1.9, absolute=0.5)

    def test_A05_fp32_gradients_beside_bf16_ones(self):
        bf16 = {"precision": "bf16", "gradient_dtype": "fp32"}
        short = self.run_plan(self.trial(106, 12288, 96, 4, 12, 8, 2))["peak_memory_bytes"]
        long = self.run_plan(self.trial(106, 12288, 96, 4, 12, 8, 2, **bf16))["peak_memory_bytes"]
        self.near((long - short) / GIB, 21, relative=0.3)

    # ---- state ----
    def test_A16_seven_billion_parameters_on_40_gb(self):
        # NVIDIA/Megatron-LM issue 606: sequences of 64 tokens, data parallel only, and no distributed optimizer.
        base = {"model": {"extends": "llama2-7b", "sequence_length": 64}, "cluster": "dgx-a100-40gb", "gpus": 8,
                "plan": {}}
        result = self.run_plan(base)
        self.assertEqual(result["verdict"], "does not fit")
        self.near(self.state(base), 121.3 * GB, relative=0.03)
        self.assertTrue(any("largest part is optimizer state" in note for note in result["notes"]), result["notes"])
        # The distributed optimizer alone (50.5 GB) is not enough; what is named is, and was simulated.
        self.assertEqual(self.run_plan(base, {"plan": {"sharding": "zero1"}})["verdict"], "does not fit")
        changes = self.memory(base)["changes"]
        self.assertTrue(changes)
        for change in changes:
            self.assertNotEqual(change["verdict"], "does not fit")

    def test_A19_bytes_per_parameter(self):
        # NVIDIA/Megatron-LM issue 654: 18 with fp32 gradients, 6 + 12 / 8 with the distributed optimizer.
        base = {"model": "llama3-8b", "cluster": "dgx-a100-80gb", "gpus": 8, "plan": {"vocab_padding": 1}}
        parameters = self.run_plan(base)["parameters"]
        self.near(self.state(base) / parameters, 18, relative=1e-6)
        self.near(self.state(base, {"plan": {"sharding": "zero1"}}) / parameters, 7.5, relative=1e-6)

    def test_A20_a_published_plan_at_another_scale(self):
        # NVIDIA/Megatron-LM issue 1031: 70B with TP8 PP2 fits with 48 replicas and not with 2.
        plan = {"tensor_parallel": 8, "pipeline_parallel": 2, "sequence_parallel": True, "sharding": "zero1"}
        base = {"model": {"extends": "llama2-70b", "sequence_length": 4096}, "cluster": "dgx-h100", "gpus": 768,
                "plan": {**plan, "global_batch_size": 768}}
        self.near(self.state(base), 27.3 * GB, relative=0.05)
        few = merged(base, {"gpus": 32, "plan": {"global_batch_size": 32}})
        self.near(self.state(few), 52.5 * GB, relative=0.05)
        more = self.run_plan(few)["peak_memory_bytes"] - self.run_plan(base)["peak_memory_bytes"]
        self.near(more, (52.5 - 27.3) * GB, relative=0.1)

    def test_A21_neither_yes_nor_no(self):
        # NVIDIA-NeMo/Megatron-Bridge pull request 3107: a plan that runs out in a third of its runs. Here the same
        # split in bf16 on larger GPUs (fp8 is not supported), with what the runtime takes set so that 1 % is left.
        base = {"model": "llama3-70b", "cluster": "dgx-h200", "gpus": 32,
                "plan": {"tensor_parallel": 4, "pipeline_parallel": 4, "virtual_pipeline": 5, "sequence_parallel": True,
                         "micro_batch_size": 1, "global_batch_size": 64, "sharding": "zero1"}}
        peak = self.run_plan(base)["peak_memory_bytes"]
        capacity = self.run_plan(base)["memory_capacity_bytes"]
        left = {"memory": {"reserve": f"{capacity - 1.01 * peak:.0f} B"}}
        self.assertEqual(self.run_plan(base, left)["verdict"], "borderline")
        # More chunks keep less in flight on the first stage, and recomputing the MLP keeps less still; recomputing
        # the core of flash attention does next to nothing.
        mlp = {"plan": {"recompute": {"granularity": "selective", "modules": ["mlp"]}}}
        core = {"plan": {"recompute": {"granularity": "selective", "modules": ["core_attn"]}}}
        self.assertEqual(self.run_plan(base, merged(left, mlp))["verdict"], "fits")
        self.assertEqual(self.run_plan(base, merged(left, core))["verdict"], "borderline")
        self.near(self.run_plan(base, mlp)["step_time_s"] / self.run_plan(base)["step_time_s"], 1.16, absolute=0.08)

    def test_A24_first_and_last_stage_need_more(self):
        # deepspeedai/DeepSpeed issue 1378: 1.35 and 1.37 times the middle with a block per stage; the sizes are not
        # stated. Order only, with a vocabulary of GPT-2 and h = 2048.
        base = {"model": {"num_layers": 4, "hidden_size": 2048, "num_attention_heads": 16, "vocab_size": 50257,
                          "sequence_length": 1024, "tie_word_embeddings": True},
                "cluster": "dgx-a100-80gb", "gpus": 4,
                "plan": {"pipeline_parallel": 4, "micro_batch_size": 4, "global_batch_size": 64}}
        peaks = [rank["peak_memory_bytes"] for rank in self.run_plan(base)["ranks"]]
        self.assertGreater(peaks[0], 1.2 * peaks[1])
        self.assertGreater(peaks[3], 1.2 * peaks[2])

    def test_A26_resident_under_zero2_and_zero3(self):
        # deepspeedai/DeepSpeed issue 3734: 13B on 8 A100, GiB between steps.
        base = {"model": {"num_layers": 40, "hidden_size": 5120, "num_attention_heads": 40, "intermediate_size": 13824,
                          "activation": "swiglu", "vocab_size": 32000, "sequence_length": 1024,
                          "normalization": "rmsnorm", "linear_bias": False, "position_embedding": "rotary",
                          "tie_word_embeddings": False, "attention": "flash"},
                "cluster": "dgx-a100-80gb", "gpus": 8, "software": {"framework": "deepspeed"},
                "plan": {"gradient_dtype": "bf16", "recompute": "full"}}
        for stage, expected, tolerance in (("zero2", 45.5, 0.15), ("zero3", 25.3, 0.2)):
            resident = self.memory(base, {"plan": {"sharding": stage}})["curve"][0]["end_bytes"]
            self.near(resident / GIB, expected, relative=tolerance)

    def test_A27_where_20_billion_parameters_fit(self):
        # EleutherAI/gpt-neox issues 606, 616, 707, 892.
        model = {"num_layers": 44, "hidden_size": 6144, "num_attention_heads": 64, "vocab_size": 50432,
                 "sequence_length": 2048, "tie_word_embeddings": False, "position_embedding": "rotary"}
        plan = {"micro_batch_size": 1, "global_batch_size": 32, "recompute": "full", "precision": "fp16"}

        def fits(cluster, gpus, **split):
            return self.run_plan({"model": model, "cluster": cluster, "gpus": gpus, "plan": {**plan, **split}})["fits"]

        self.assertFalse(fits({"extends": "dgx-a100-80gb"}, 2, tensor_parallel=2))
        self.assertFalse(fits({"extends": "dgx-a100-40gb"}, 8, tensor_parallel=8))
        self.assertTrue(fits({"extends": "dgx-a100-80gb"}, 8, tensor_parallel=8))

    def test_A28_A32_seven_billion_parameters_on_one_gpu(self):
        # mosaicml/llm-foundry issue 468 and tatsu-lab/stanford_alpaca: AdamW, 16 bytes for each of 6.7 billion.
        base = {"model": {"extends": "llama2-7b", "sequence_length": 512}, "cluster": "dgx-a100-80gb", "gpus": 1,
                "plan": {"micro_batch_size": 1, "recompute": "full", "gradient_dtype": "bf16"},
                "software": {"framework": "fsdp"}}
        self.assertEqual(self.run_plan(base)["verdict"], "does not fit")
        self.near(self.state(base), 107.8 * GB, relative=0.01)
        for gpus in (2, 4):
            more = merged(base, {"gpus": gpus, "plan": {"sharding": "fsdp", "global_batch_size": gpus}})
            self.assertTrue(self.run_plan(more)["fits"])

    def test_A36_activations_that_grow_with_the_square(self):
        # VITA-MLLM/Long-VITA issue 7: one layer of Qwen2.5-14B, TP4 on H20; scores are materialised.
        base = {"model": {"num_layers": 1, "hidden_size": 5120, "num_attention_heads": 40, "num_key_value_heads": 8,
                          "intermediate_size": 13824, "activation": "swiglu", "vocab_size": 152064,
                          "sequence_length": 4096, "max_position_embeddings": 32768, "normalization": "rmsnorm",
                          "position_embedding": "rotary", "linear_bias": False, "tie_word_embeddings": False,
                          "attention": "standard"},
                "cluster": {"extends": "dgx-h100", "gpu": {"memory": "96 GB"}}, "gpus": 4,
                "plan": {"tensor_parallel": 4}, "software": {"fusion": "none"}}

        def dynamic(sequence):
            result = self.memory(base, {"model": {"sequence_length": sequence}})
            return result["peak_memory_bytes"] - result["curve"][0]["end_bytes"]

        self.near(dynamic(16384) / dynamic(8192), 3.9, absolute=0.3)
        # In the softmax's backward its output and the gradients of both its sides are alive, in fp32, for ten heads.
        # Measured from outside is more: a dense mask, what the allocator caches.
        self.assertGreaterEqual(dynamic(16384), 12 * 10 * 16384**2)
        self.assertLessEqual(dynamic(16384), 41.7 * GB)
        self.assertFalse(self.run_plan(base, {"model": {"sequence_length": 32768}})["fits"])
        flash = {"model": {"sequence_length": 32768, "attention": "flash"}}
        self.assertTrue(self.run_plan(base, flash)["fits"])

    def test_A37_padding_of_a_vocabulary(self):
        # NVIDIA/Megatron-LM issue 92: 305,662 rows become 305,664.
        base = {"model": {"num_layers": 2, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 305662,
                          "sequence_length": 1024},
                "cluster": "dgx-a100-80gb", "gpus": 1, "plan": {}}
        self.assertEqual(self.run_plan(base)["plan"]["padded_vocabulary"], 305664)

    def test_A38_8_billion_parameters_on_16_gb(self):
        # deepspeedai/DeepSpeed issue 115: TP6, and ZeRO was not on. 72 layers of 3072 are 8 billion.
        base = {"model": {"num_layers": 72, "hidden_size": 3072, "num_attention_heads": 24, "vocab_size": 50257,
                          "sequence_length": 1024},
                "cluster": {"extends": "dgx-2", "gpus_per_node": 6, "nics_per_node": 6,
                            "gpu": {"memory": "15.75 GiB"}},
                "gpus": 6,
                "plan": {"tensor_parallel": 6, "precision": "fp16", "gradient_dtype": "fp16", "recompute": "full"}}
        self.assertEqual(self.run_plan(base)["verdict"], "does not fit")
        many = merged(base, {"gpus": 96, "plan": {"sharding": "zero2", "global_batch_size": 16},
                             "software": {"framework": "deepspeed"}})
        self.assertTrue(self.run_plan(many)["fits"])

    # ---- adapters ----
    def test_E03_adapters_over_a_slow_network(self):
        # hiyouga/LLaMA-Factory issues 5014 and 4620: LoRA of an 8B model on two nodes over 10 GbE sockets takes 90 s
        # a step with ZeRO-3, which gathers frozen weights, too, and 4 s on one node; without ZeRO only the adapters'
        # gradients travel. 22 times as long, within 60 %. Four micro-batches, as inferred there, of 4096 tokens, so that
        # one node takes about as long as there.
        base = {"model": {"extends": "llama3-8b", "sequence_length": 4096},
                "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 1, "nic": "tcp-10g"}, "gpus": 16,
                "plan": {"micro_batch_size": 1, "gradient_accumulation": 4, "lora": {"rank": 8}, "sharding": "zero3",
                         "gradient_dtype": "bf16"}}
        two = self.run_plan(base)["step_time_s"]
        one = self.run_plan(base, {"gpus": 8})["step_time_s"]
        self.near(one, 4, relative=0.4)
        self.near(two / one, 22, relative=0.6)
        whole = merged(base, {"plan": {"sharding": "none"}})
        self.assertLess(self.run_plan(whole)["step_time_s"], 1.5 * self.run_plan(whole, {"gpus": 8})["step_time_s"])

    # ---- mixtures of experts ----
    def test_A10_experts_on_eight_b200(self):
        # SimuMax 1.2 (MooreThreads), four layers of DeepSeek-V3 with Megatron-LM: 104.3 GiB allocated with EP8; with two
        # stages and EP4 the one with more experts needs more.
        base = {"model": {"extends": "deepseek-v3", "num_layers": 4, "experts": {"dense_layers": 1}},
                "cluster": "dgx-b200", "gpus": 8,
                "plan": {"expert_parallel": 8, "gradient_accumulation": 4, "sharding": "zero1",
                         "overlap_gradient_reduction": False},
                "software": {"loss": "fused"}}
        spread = self.run_plan(base)["peak_memory_bytes"] / GIB
        self.near(spread, 104.3, relative=0.1)
        staged = self.run_plan(base, {"plan": {"expert_parallel": 4, "pipeline_parallel": 2}})
        self.assertGreater(staged["peak_memory_bytes"] / GIB, spread)

    # ---- estimators that were wrong ----
    def test_G05_more_than_what_states_take(self):
        # deepspeedai/DeepSpeed issue 4527: the estimator, states only, says 0.49 GB for 7B with ZeRO-3 and all offloaded;
        # 14.7 to 21 GB were seen. Batch and length were not given: one sequence of 2,048 without recomputation here.
        base = {"model": {"extends": "llama2-7b", "sequence_length": 2048}, "cluster": "dgx-a100-80gb", "gpus": 8,
                "plan": {"sharding": {"stage": 3, "offload": {"optimizer": "cpu", "parameters": "cpu"}}},
                "software": {"framework": "deepspeed"}}
        self.near(self.device(base), (14.7 + 21) / 2, absolute=(21 - 14.7) / 2)
        self.assertGreater(self.run_plan(base)["peak_memory_bytes"], 2 * 0.49 * GB)

    def test_the_largest_model_on_one_v100(self):
        # Ren et al. 2021, ZeRO-Offload: 13 billion parameters on one V100 of 32 GB, ten times what fits without, and 10
        # billion at 40 TFLOP/s; layers of 4096.
        base = {"model": {"num_layers": 50, "hidden_size": 4096, "num_attention_heads": 32, "vocab_size": 50257,
                          "sequence_length": 1024, "attention": "standard"},
                "cluster": "dgx-2", "gpus": 1,
                "plan": {"precision": "fp16", "recompute": "full",
                         "sharding": {"stage": 2, "offload": {"optimizer": "cpu"}}},
                "software": {"framework": "deepspeed"}}
        self.assertTrue(self.run_plan(base, {"model": {"num_layers": 63}})["fits"])
        self.assertFalse(self.run_plan(base, {"model": {"num_layers": 75}})["fits"])
        kept = {"plan": {"sharding": "none"}}
        self.assertTrue(self.run_plan(base, merged(kept, {"model": {"num_layers": 5}}))["fits"])
        self.assertFalse(self.run_plan(base, merged(kept, {"model": {"num_layers": 8}}))["fits"])
        fast = self.run_plan(base, {"plan": {"micro_batch_size": 8, "global_batch_size": 512}})
        self.near(fast["model_tflops_per_gpu"], 40, relative=0.2)

    def test_a_host_that_is_too_small(self):
        # 6.7 billion parameters on one GPU take 16 bytes each of the host: 108 GB of 100.
        base = {"model": "llama2-7b", "gpus": 1, "cluster": {"extends": "dgx-a100-80gb", "host": {"memory": "100 GB"}},
                "plan": {"sharding": {"stage": 2, "offload": {"optimizer": "cpu"}}, "recompute": "auto"},
                "software": {"framework": "deepspeed"}}
        small = self.run_plan(base)
        self.assertEqual((small["fits"], small["verdict"]), (False, "does not fit"))
        self.assertEqual(small["host_memory_bytes"], 16 * small["parameters"])
        self.assertGreater(small["memory_headroom_bytes"], 0)
        self.assertEqual(self.memory(base)["changes"], [])
        # What is left out of recomputation is judged by the same verdict.
        self.assertEqual(small["plan"]["recompute"]["granularity"], "full")
        large = self.run_plan(base, {"cluster": {"host": {"memory": "2 TB"}}})
        self.assertTrue(large["fits"])
        self.assertEqual(large["plan"]["recompute"]["granularity"], "none")

    def test_G09_liveness_and_stages(self):
        # NVIDIA/Megatron-LM pull request 482: Llama 2 7B on 16 H800, PP2 DP8, micro-batches of 2: 69.1 GB; the
        # distributed optimizer is an assumption.
        base = {"model": "llama2-7b", "cluster": "hgx-h800", "gpus": 16,
                "plan": {"pipeline_parallel": 2, "micro_batch_size": 2, "global_batch_size": 128, "sharding": "zero1"}}
        self.near(self.device(base), 69.1, relative=0.15)
        first, last = (rank["peak_memory_bytes"] for rank in self.run_plan(base)["ranks"])
        self.assertGreater(first, 1.1 * last)

    def test_G11_never_a_constant(self):
        base = {"model": "llama3-8b", "cluster": "mi300x-8", "gpus": 8, "plan": {"sharding": "zero1"}}
        one = self.run_plan(base)["peak_memory_bytes"]
        self.assertGreater(self.run_plan(base, {"plan": {"micro_batch_size": 2}})["peak_memory_bytes"], one)

    def test_G18_an_mfu_that_cannot_be(self):
        # karpathy/nanoGPT pull request 464 and others: MFU of 104 % and nobody is told.
        base = {"model": "llama2-7b", "cluster": "dgx-a100-80gb", "gpus": 8,
                "plan": {"profile": {"forward": "10 ms", "backward": "20 ms"}}}
        result = self.run_plan(base)
        self.assertGreater(result["mfu"], 1)
        self.assertTrue(any("more than the GPU can do" in warning for warning in result["warnings"]), result["warnings"])

    def test_G20_logits_are_part_of_it(self):
        base = {"model": "llama3-8b", "cluster": "dgx-a100-80gb", "gpus": 8, "plan": {"sharding": "zero1"}}
        self.assertGreater(self.memory(base)["memory_at_most"]["logits"], 0)


if __name__ == "__main__":
    main(sys.argv)
