#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bandwidth and topology: what people measured or reported, as orderings and ratios that must come out.

usage: network_cases.py TRAINSIM

Each test names its case and source. What a report leaves open (batch, sequence) is chosen here and said. A range is
that of the measurement and of what is not known about it, never of our own result.
"""
import json
import sys

from plan_case import PlanCase, main, merged


class Cases(PlanCase):
    def step_time(self, base, change=None):
        return self.run_plan(base, change)["step_time_s"]

    def bus_bandwidth(self, cluster, gpus, size="1 GiB", op="all_reduce"):
        """GB/s of a collective on a cluster (a preset or a mapping)."""
        if not isinstance(cluster, str):
            cluster = self.written(cluster, "cluster")
        done = self.run_program("bench", "--cluster", cluster, "--gpus", str(gpus), "--sizes", size, "--op", op, "--format",
                                "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["rows"][0]["busbw_GBps"]

    def between(self, value, low, high):
        self.assertGreaterEqual(value, low)
        self.assertLessEqual(value, high)

    # ---- tensor parallelism ----
    # vTrain's Megatron-LM of 2021 on nodes with 800 Gb/s (VIA-Research/vTrain, ground_truth_multi.csv).
    VTRAIN = {
        "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4},
        "plan": {"micro_batch_size": 2, "recompute": "full", "precision": "fp16", "gradient_dtype": "fp16",
                 "overlap_gradient_reduction": False, "overlap_tensor_communication": False},
    }

    def vtrain(self, hidden, layers, heads, gpus, batch):
        model = {"num_layers": layers, "hidden_size": hidden, "num_attention_heads": heads, "vocab_size": 50257,
                 "sequence_length": 2048, "attention": "standard", "dropout": 0.1}
        return merged(self.VTRAIN, {"model": model, "gpus": gpus, "plan": {"global_batch_size": batch}})

    def test_E01_tensor_parallelism_across_two_nodes(self):
        # Measured: 10.453 -> 20.415 s (18.4B, 256 GPUs) and 8.881 -> 13.472 s (3.6B, 64 GPUs). The runs of 3.6B with TP8
        # are slower than their other plans and sizes explain, so that for them only the order and a floor hold.
        for config, low, high in [(self.vtrain(6144, 40, 48, 256, 1024), 1.45, 2.45),
                                  (self.vtrain(3072, 30, 32, 64, 512), 1.17, 3.0)]:
            inside = self.run_plan(config, {"plan": {"tensor_parallel": 8}})
            across = self.run_plan(config, {"plan": {"tensor_parallel": 16}})
            self.between(across["step_time_s"] / inside["step_time_s"], low, high)
            self.assertIn("tensor-parallel communication leaves the node", " ".join(across["warnings"]))
            self.assertNotIn("leaves the node", " ".join(inside["warnings"]))

    def test_E01_more_tensor_parallelism_is_slower_all_the_way(self):
        # Measured for 3.6B: TP1 3.700, TP2 4.264, TP4 6.228, TP8 8.881, TP16 13.472 s.
        config = self.vtrain(3072, 30, 32, 64, 512)
        times = [self.step_time(config, {"plan": {"tensor_parallel": tp}}) for tp in (1, 2, 4, 8, 16)]
        self.assertEqual(times, sorted(times))
        self.between(times[4] / times[0], 2.6, 4.6)  # 3.6 measured

    def test_E28_tensor_parallelism_8_against_4_at_bloom_scale(self):
        # BigScience, trials before BLOOM, on 384 A100: TP4 is 10 to 16 % faster than TP8.
        config = {
            "model": {"num_layers": 72, "hidden_size": 14336, "num_attention_heads": 64, "vocab_size": 250680,
                      "sequence_length": 2048, "attention": "standard", "dropout": 0.1,
                      "position_embedding": "alibi", "embedding_norm": True},
            "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4, "nic": "opa-100"},
            "gpus": 384,
            "plan": {"pipeline_parallel": 12, "micro_batch_size": 2, "global_batch_size": 2048, "recompute": "full",
                     "sharding": "zero1", "precision": "fp16", "gradient_dtype": "fp16",
                     "overlap_gradient_reduction": False, "overlap_tensor_communication": False},
        }
        ratio = self.step_time(config, {"plan": {"tensor_parallel": 8}}) / self.step_time(
            config, {"plan": {"tensor_parallel": 4}})
        self.between(ratio, 1.12 - 0.08, 1.12 + 0.08)

    # ---- sharded parameters over slow networks ----
    SEVEN_B = {
        "model": "llama2-7b", "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 1},
        "plan": {"micro_batch_size": 1, "sharding": "fsdp", "recompute": "full", "gradient_dtype": "bf16"},
    }

    def test_E02_sixteen_gpus_without_infiniband(self):
        # mosaicml/llm-foundry issue 336: 8 times slower on two nodes over sockets, fine with InfiniBand. 38 GB of a 7B
        # model's gathers and scatters take 30 s at 10 Gb/s. One sequence of 4096 per GPU here.
        one = self.step_time(self.SEVEN_B, {"gpus": 8})
        sockets = self.run_plan(self.SEVEN_B, {"gpus": 16, "cluster": {"nic": "tcp-10g"}})
        self.assertGreaterEqual(sockets["step_time_s"] / one, 8)
        self.between(sockets["step_time_s"], 25, 45)
        good = self.step_time(self.SEVEN_B, {"gpus": 16, "cluster": {"nics_per_node": 8}})
        self.assertLessEqual(good / one, 1.3)

    def test_E04_zero3_on_two_small_nodes(self):
        # deepspeedai/DeepSpeed issue 5770: Qwen2-1.5B, 2 A10 in one node 2.46 s per step, 4 on two nodes 8.68 s;
        # 15 Gb/s of Ethernet. Batch not stated: 8 sequences of 1024 per GPU make the 0.36 s of its forward.
        config = {
            "model": {"num_layers": 28, "hidden_size": 1536, "num_attention_heads": 12, "num_key_value_heads": 2,
                      "intermediate_size": 8960, "vocab_size": 151936, "sequence_length": 1024, "activation": "swiglu",
                      "position_embedding": "rotary", "normalization": "rmsnorm"},
            "cluster": {"extends": "pcie-a100-8", "gpu": "a10", "gpus_per_node": 2,
                        "nic": {"extends": "tcp-10g", "bandwidth": "15 Gb/s"}},
            "plan": {"micro_batch_size": 8, "sharding": "zero3", "gradient_dtype": "bf16"},
        }
        slowdown = self.step_time(config, {"gpus": 4}) / self.step_time(config, {"gpus": 2})
        self.between(slowdown, 2.5, 4.5)

    def test_E05_a_second_node_can_make_the_whole_slower(self):
        # deepspeedai/DeepSpeed issue 4281: Llama 2 70B on 16 A100 is slower than on 8.
        config = {"model": "llama2-70b", "cluster": {"extends": "dgx-a100-40gb", "nics_per_node": 1, "nic": "tcp-10g"},
                  "plan": {"micro_batch_size": 1, "sharding": "zero3", "recompute": "full"}}
        small = self.run_plan(config, {"gpus": 8})
        large = self.run_plan(config, {"gpus": 16})
        self.assertLess(large["tokens_per_s"], small["tokens_per_s"])

    def test_E07_zero3_needs_the_network(self):
        # deepspeedai/DeepSpeed issue 2928: 176B on 384 V100 (DGX-2): below 20 TFLOP/s with 100 Gb/s per node, 30 to 40
        # with 200 to 400, above 40 with 800. Batch not stated: one sequence per GPU here.
        config = {
            "model": {"extends": "bloom-176b", "attention": "standard"}, "gpus": 384,
            "cluster": {"extends": "dgx-2", "nics_per_node": 1},
            "plan": {"micro_batch_size": 1, "sharding": "zero3", "recompute": "full", "precision": "fp16",
                     "gradient_dtype": "fp16"},
        }
        rates = [self.run_plan(config, {"cluster": {"nics_per_node": nics}})["hardware_tflops_per_gpu"]
                 for nics in (1, 2, 4, 8)]
        self.assertEqual(rates, sorted(rates))
        self.between(rates[3], 28, 60)
        self.assertLess(rates[0] / rates[3], 0.6)
        # Saturates: the last doubling of the network brings less than the first.
        self.assertLess(rates[3] / rates[2], rates[1] / rates[0])

    def test_E10_a_network_that_is_not_used(self):
        # pytorch/torchtitan issue 676: Llama 3 70B on 32 H200 at 200 tokens/s, where 829 were measured elsewhere.
        config = {
            "model": {"extends": "llama3-70b", "sequence_length": 8192}, "cluster": "dgx-h200", "gpus": 32,
            "plan": {"micro_batch_size": 1, "sharding": "fsdp", "recompute": "full"},
            "software": {"launch": "compiled", "fusion": "compiled"},
        }
        good = self.run_plan(config)["tokens_per_s_per_gpu"]
        self.between(good, 829 * 0.65, 829 * 1.35)
        bad = self.run_plan(config, {"cluster": {"extends": "dgx-h200", "nics_per_node": 1,
                                                 "nic_bandwidth": "75 Gb/s"}})["tokens_per_s_per_gpu"]
        self.between(bad, 200 * 0.3, 200 * 1.7)

    def test_E11_hybrid_sharding_on_64_gpus(self):
        # foundation-model-stack/fms-fsdp issue 78: Llama 2 7B, HSDP, 2 sequences of 4096 per H100 without recomputation:
        # 7500 tokens/s per GPU over RDMA, 1000 where the network fell back to sockets (about 26 Gb/s per node). The order
        # only: eager kernels one by one come out at 10600; what else that early version ran is not stated.
        config = {
            "model": "llama2-7b", "cluster": "dgx-h100", "gpus": 64, "software": {"launch": "eager", "fusion": "none"},
            "plan": {"micro_batch_size": 2, "sharding": {"stage": 3, "group": "node"}, "gradient_dtype": "bf16"},
        }
        good = self.run_plan(config)["tokens_per_s_per_gpu"]
        sockets = {"extends": "dgx-h100", "nics_per_node": 1, "nic": {"extends": "tcp-10g", "bandwidth": "26 Gb/s"}}
        bad = self.run_plan(config, {"cluster": sockets})["tokens_per_s_per_gpu"]
        self.assertGreater(good, 7500 * 0.7)
        self.assertLess(bad, good / 2)

    def test_E12_two_nodes_of_four_gpus(self):
        # allenai/OLMo issue 845: 12,000 tokens/s per A100-40GB on one node of four, 9,000 on two. Model and network are not
        # stated: OLMo's 1B shape here, with FSDP over the one NIC of a node (200 Gb/s).
        config = {
            "model": {"num_layers": 16, "hidden_size": 2048, "num_attention_heads": 16, "intermediate_size": 8192,
                      "vocab_size": 50304, "sequence_length": 2048, "activation": "swiglu", "linear_bias": False,
                      "position_embedding": "rotary", "dropout": 0},
            "cluster": {"extends": "dgx-a100-40gb", "gpus_per_node": 4, "nics_per_node": 1},
            "plan": {"micro_batch_size": 4, "sharding": "fsdp", "gradient_dtype": "fp32"},
        }
        one = self.run_plan(config, {"gpus": 4})["tokens_per_s_per_gpu"]
        two = self.run_plan(config, {"gpus": 8})["tokens_per_s_per_gpu"]
        self.between(two / one, 0.60, 0.90)  # 0.75 measured

    def test_E13_a_second_node_behind_one_nic(self):
        # verl-project/verl issue 2579: MFU falls from 0.5 to 0.17 (a third) with the second node; the plan is not stated. An
        # 8B model with FSDP over all ranks, one sequence per GPU, and one NIC of 100 Gb/s per node here.
        config = {
            "model": "llama3-8b", "cluster": {"extends": "dgx-h100", "nics_per_node": 1, "nic": {"bandwidth": "100 Gb/s"}},
            "plan": {"micro_batch_size": 1, "sharding": "fsdp", "recompute": "full", "gradient_dtype": "fp32"},
            "software": {"attention": "flash-2"},
        }
        one = self.run_plan(config, {"gpus": 8})
        two = self.run_plan(config, {"gpus": 16})
        self.near(two["mfu"] / one["mfu"], 0.34, absolute=0.15)
        self.assertGreater(two["breakdown"]["data_communication"], 0.5 * two["step_time_s"])

    # ---- gradients over slow networks ----
    def test_E06_bert_over_40_gigabit_ethernet(self):
        # huggingface/transformers issue 3274: 2 steps/s on 4 V100, 0.25 on two nodes; 1.5 to 1.8 Gb/s were reached.
        config = {
            "model": {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "vocab_size": 30522,
                      "sequence_length": 512, "attention": "standard", "dropout": 0.1},
            "cluster": {"extends": "dgx-2", "gpus_per_node": 4, "nics_per_node": 1,
                        "nic": {"extends": "tcp-10g", "bandwidth": "40 Gb/s", "efficiency": 0.0375}},
            "plan": {"micro_batch_size": 8, "precision": "fp32", "gradient_dtype": "fp32"},
        }
        two = self.run_plan(config, {"gpus": 8})
        self.between(two["step_time_s"], 2, 6)
        self.assertGreater(two["step_time_s"] / self.step_time(config, {"gpus": 4}), 4)
        self.assertGreater(two["breakdown"]["data_communication"], 0.5 * two["step_time_s"])

    def test_E09_remote_direct_memory_access_against_sockets(self):
        # 2 x 4 A40, Llama-3.2-3B with DDP: 2.51 s per step with RoCE (5.8 GB/s reached), 5.72 s over sockets (2.2 GB/s),
        # 0.58 s of computing. The network's rates are given as reached.
        config = {
            "model": {"num_layers": 28, "hidden_size": 3072, "num_attention_heads": 24, "num_key_value_heads": 8,
                      "intermediate_size": 8192, "vocab_size": 128256, "sequence_length": 512, "activation": "swiglu",
                      "position_embedding": "rotary", "normalization": "rmsnorm"},
            "cluster": {"extends": "pcie-a100-8", "gpu": "a40", "gpus_per_node": 4,
                        "nic": {"extends": "edr-100", "bandwidth": "5.8 GB/s", "efficiency": 1.0}},
            "gpus": 8, "plan": {"micro_batch_size": 4, "precision": "bf16", "gradient_dtype": "bf16"},
        }
        self.between(self.step_time(config), 2.51 * 0.65, 2.51 * 1.35)
        sockets = {"cluster": {"nic": {"bandwidth": "2.2 GB/s"}}}
        self.between(self.step_time(config, sockets), 5.72 * 0.5, 5.72 * 1.5)

    def test_E14_two_cards_without_a_bridge(self):
        # kohya-ss/sd-scripts issue 1434: two H100 PCIe 1.23 times as fast as one, 1.27 s per step alone; about 10 GB of
        # fp32 gradients. The measured computing time is given.
        config = {
            "model": {"num_layers": 32, "hidden_size": 2560, "num_attention_heads": 20, "vocab_size": 50257,
                      "sequence_length": 2048},
            "cluster": {"extends": "pcie-a100-8", "gpu": "h100-pcie", "gpus_per_node": 2},
            "plan": {"gradient_dtype": "fp32", "overlap_gradient_reduction": False,
                     "profile": {"forward": "0.42 s", "backward": "0.83 s"}},
        }
        speedup = 2 * self.step_time(config, {"gpus": 1}) / self.step_time(config, {"gpus": 2})
        self.between(speedup, 1.23 - 0.2, 1.23 + 0.2)

    # ---- links ----
    def test_E16_two_gpus_below_one_switch_without_peer_to_peer(self):
        # NVIDIA/nccl issue 1309: two RTX 4090 below one switch are slower than across sockets.
        def pair(gpus_per_switch, peer_to_peer):
            node = {"extends": "pcie4-tree", "gpus_per_switch": gpus_per_switch, "peer_to_peer": peer_to_peer,
                    "sockets": 2 // gpus_per_switch}
            if gpus_per_switch == 1:
                node["socket_bandwidth"] = "60 GB/s"
            return {"extends": "pcie-4090-8", "gpus_per_node": 2, "intra_node": node}
        self.assertLess(self.bus_bandwidth(pair(2, False), 2), 0.6 * self.bus_bandwidth(pair(1, False), 2))
        self.assertGreaterEqual(self.bus_bandwidth(pair(2, True), 2), self.bus_bandwidth(pair(1, True), 2))

    def test_E19_one_direction_of_nvlink(self):
        # NVIDIA/nccl issue 1264: 900 GB/s are two directions of 450, of which 0.78 to 0.87 are reached.
        done = self.run_program("topology", "dgx-h100", "--gpus", "8", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        reached = json.loads(done.stdout)["distances"][0]["bandwidth_Bps"]
        self.between(reached / 450e9, 0.78, 0.87)
        self.between(self.bus_bandwidth("dgx-a100-80gb", 8, "8 GiB"), 235 * 0.95, 235 * 1.05)
        self.between(self.bus_bandwidth("hgx-h800", 8, "8 GiB"), 215 * 0.95, 215 * 1.05)

    def test_E20_a_mesh_gives_two_gpus_one_link(self):
        # rccl-tests on MI300X: 47.67 GB/s of bus bandwidth for 2 GPUs, 312.9 for 8.
        self.between(self.bus_bandwidth("mi300x-8", 2), 47.67 * 0.9, 47.67 * 1.1)
        self.between(self.bus_bandwidth("mi300x-8", 8), 312.9 * 0.9, 312.9 * 1.1)

    def test_E21_one_slow_gpu_slows_all(self):
        # BigScience: a GPU that was 2.5 % slow in a benchmark took 384 from 149 to 140 TFLOP/s. Synchronous training is
        # as slow as its slowest rank, and no slower: the other 3.5 % say that it was slower in training.
        config = {
            "model": "bloom-176b", "gpus": 384,
            "cluster": {"extends": "dgx-a100-80gb", "nics_per_node": 4, "nic": "opa-100"},
            "plan": {"tensor_parallel": 4, "pipeline_parallel": 12, "micro_batch_size": 2, "global_batch_size": 2048,
                     "recompute": "full", "sharding": "zero1"},
        }
        alone = self.step_time(config)
        for slowdown, low, high in [(1.025, 1.015, 1.025), (1.06, 1.03, 1.06)]:
            ratio = self.step_time(config, {"cluster": {"slow_gpus": [{"gpu": 100, "slowdown": slowdown}]}}) / alone
            self.between(ratio, low, high)

    def test_E22_a_network_that_differs_from_day_to_day(self):
        # BigScience on Jean Zay: the same job of a 52B model on 64 V100 took 129, 217, 125 and 225 s; all-reduces reached 23
        # to 55 of 400 Gb/s on 16 nodes. What a range of the network does to the step must be shown, not a single number.
        config = {
            "model": {"num_layers": 64, "hidden_size": 8192, "num_attention_heads": 64, "vocab_size": 50257,
                      "sequence_length": 2048, "attention": "standard", "dropout": 0.1},
            "cluster": {"extends": "dgx-2", "gpus_per_node": 4, "nics_per_node": 4, "nic": "opa-100"}, "gpus": 64,
            "plan": {"tensor_parallel": 1, "pipeline_parallel": 16, "micro_batch_size": 1, "global_batch_size": 1024,
                     "recompute": "full", "precision": "fp16", "gradient_dtype": "fp16",
                     "overlap_gradient_reduction": False},
        }
        times = [self.step_time(config, {"cluster": {"nic": {"extends": "opa-100", "efficiency": reached / 400}}})
                 for reached in (55, 23)]
        self.assertLess(times[0], times[1])
        jittered = self.run_plan(config, {"simulation": {"steps": 8, "jitter": {"network": 0.4}}})["jitter"]
        self.assertLess(jittered["p50_s"], jittered["p90_s"])

    def test_E29_an_efficiency_that_is_given_is_reached(self):
        # aws/aws-ofi-nccl issues 19 and 33: EFA of 2019 reached 50 to 60 of 100 Gb/s on 8 to 32 nodes.
        cluster = {"extends": "dgx-2", "nics_per_node": 1, "nic": {"efficiency": 0.55}}
        self.between(self.bus_bandwidth(cluster, 16 * 16, "4 GiB") / 12.5, 0.45, 0.65)

    # ---- fabric ----
    def test_E23_hashed_paths_collide_in_an_all_to_all(self):
        # deepseek-ai/DeepEP issues 493 and 82: 44 -> 12.5 GB/s from 2 to 4 nodes on RoCE without adaptive routing. What
        # hashing does to flows of equal size is here; the congestion control that makes it worse is not.
        def nodes(spreading):
            return {"extends": "dgx-h200", "fabric": {"extends": "fat-tree-a100", "nodes_per_leaf": 2,
                                                      "spreading": spreading}}
        two = self.bus_bandwidth(nodes("ecmp"), 16, op="all_to_all")
        four = self.bus_bandwidth(nodes("ecmp"), 32, op="all_to_all")
        spread = self.bus_bandwidth(nodes("ideal"), 32, op="all_to_all")
        self.assertLess(four, 0.75 * two)
        self.assertLess(four, spread)

    def test_E24_rails_without_a_spine(self):
        # arXiv 2307.12169: dense models lose nothing without a spine; an all-to-all does, as traffic to another rail
        # crosses the node first (8 to 11 % where that is not overlapped; overlapped here, so that only the order holds).
        config = {"model": "gpt-7.5b", "gpus": 64, "plan": {"tensor_parallel": 4, "pipeline_parallel": 2,
                                                           "micro_batch_size": 1, "global_batch_size": 128}}
        spine = {"extends": "dgx-h100", "fabric": {"kind": "rail-optimized"}}
        rails = {"extends": "dgx-h100", "fabric": {"kind": "rail-only"}}
        self.assertAlmostEqual(self.step_time(config, {"cluster": rails}) / self.step_time(config, {"cluster": spine}),
                               1.0, delta=0.01)
        self.assertGreaterEqual(self.bus_bandwidth(spine, 64, op="all_to_all") * (1 + 1e-9),
                                self.bus_bandwidth(rails, 64, op="all_to_all"))

    def test_an_oversubscribed_fabric_slows_what_crosses_it(self):
        config = {"model": "gpt-18.4b", "gpus": 256, "cluster": {"extends": "dgx-a100-80gb", "fabric": {"nodes_per_leaf": 4}},
                  "plan": {"tensor_parallel": 8, "micro_batch_size": 2, "global_batch_size": 256,
                           "overlap_gradient_reduction": False}}
        times = [self.step_time(config, {"cluster": {"fabric": {"oversubscription": o}}}) for o in (1, 4, 8, 16)]
        # A ring through four nodes of a leaf leaves it by one of them: a quarter of the bandwidth is enough.
        self.assertEqual(times[0], times[1])
        self.assertLess(times[1], times[2])
        self.assertLess(times[2], times[3])

    def test_a_lost_nic_slows_a_data_parallel_plan(self):
        config = {"model": "gpt-3.6b", "gpus": 32, "cluster": "dgx-a100-80gb",
                  "plan": {"micro_batch_size": 4, "global_batch_size": 128, "overlap_gradient_reduction": False}}
        whole = self.step_time(config)
        lost = self.step_time(config, {"cluster": {"extends": "dgx-a100-80gb", "faults": [{"nic": 3, "failed": True}]}})
        slow = self.step_time(config, {"cluster": {"extends": "dgx-a100-80gb", "faults": [{"nic": 3, "bandwidth": 0.5}]}})
        self.assertGreater(lost, 1.02 * whole)
        self.assertAlmostEqual(lost, slow, delta=0.02 * lost)  # two rings through one NIC: half for each


if __name__ == "__main__":
    main(sys.argv)
