#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs: days, GPU-hours and money that people published or reckoned.

usage: run_cases.py TRAINSIM

Each test names its case and source. Where a source gives throughput, steps are made to take as long by a profile, so
that what is tested is the way from a step to a run; the others are simulated.
"""
import sys

from plan_case import TERA, PlanCase, main, merged

SEQUENCE = 2048


def at_rate(gpus, tokens_per_gpu, cluster="dgx-a100-80gb"):
    """A configuration that trains this many tokens per second on each GPU, in 64 micro-batches a step."""
    # Next to nothing but the profile takes time: a tiny model, and no network.
    model = {"num_layers": 1, "hidden_size": 128, "num_attention_heads": 1, "vocab_size": 512,
             "sequence_length": SEQUENCE}
    micro_batch = SEQUENCE / tokens_per_gpu
    profile = {"forward": f"{micro_batch / 3:.9f} s", "backward": f"{micro_batch * 2 / 3:.9f} s"}
    return {"model": model, "cluster": cluster, "gpus": gpus, "simulation": {"network": "free"},
            "plan": {"global_batch_size": 64 * gpus, "profile": profile, "overlap_gradient_reduction": False}}


class Cases(PlanCase):
    def whole_run(self, base, **run):
        return self.run_plan(merged(base, {"run": run}))["run"]

    def test_B10_narayanan_et_al(self):
        # arXiv 2104.04473, section 5.3: 8 T P / (n X) seconds; 34 and 84 days in the text.
        for parameters, tokens, gpus, rate, days in ((175e9, 300e9, 1024, 140, 33.9), (1e12, 450e9, 3072, 163, 83.2)):
            base = at_rate(gpus, rate * TERA / (8 * parameters))
            self.near(self.whole_run(base, tokens=tokens)["days"], days, 0.002)

    def test_B10_simulated(self):
        # The plan of that paper's table 1 for 145.6 billion parameters, with 175 billion on 1024 GPUs. Step times of
        # that table are off by 7.8 % at most (docs/accuracy.md), and the formula leaves out attention and logits, 3 %.
        base = {"model": "gpt3-175b", "cluster": "dgx-a100-80gb", "gpus": 1024,
                "plan": {"tensor_parallel": 8, "pipeline_parallel": 8, "virtual_pipeline": 2, "micro_batch_size": 2,
                         "global_batch_size": 1536, "recompute": "full", "precision": "fp16", "gradient_dtype": "fp16",
                         "overlap_gradient_reduction": False, "overlap_tensor_communication": False,
                         "overlap_point_to_point": False},
                "software": {"gradient_accumulation_fusion": False, "persistent_norm": False}}
        self.near(self.whole_run(base, tokens=300e9)["days"], 33.9, 0.11)

    def test_B19_seven_billion_parameters_on_two_trillion_tokens(self):
        run = self.whole_run(at_rate(128, 3700), tokens=2.2e12)
        self.near(run["gpu_hours"], 165_000, 0.03)
        self.near(run["days"], 53.8, 0.03)

    def test_B23_megatron_llama(self):
        # alibaba/Megatron-LLaMA: 10 billion tokens in 40.3 h on 32 GPUs for 4445 USD.
        run = self.whole_run(at_rate(32, 10e9 / (40.3 * 3600 * 32)), tokens=10e9, price_per_gpu_hour="3.45 USD")
        self.near(run["wall_s"] / 3600, 40.3, 0.01)
        self.near(run["cost"]["amount"], 4445, 0.02)
        self.near(self.whole_run(at_rate(256, 1890), tokens=1e12)["days"], 23.9, 0.01)

    def test_F01_bigscience_notes(self):
        # The 8 counts full recomputation: 8 N T / (n X).
        self.near(self.whole_run(at_rate(256, 45 * TERA / (8 * 13e9)), tokens=300e9)["days"], 31.35, 0.002)
        nodes_of_ten = {"extends": "dgx-a100-80gb", "gpus_per_node": 10, "nics_per_node": 10}
        base = at_rate(350, 150 * TERA / (8 * 200e9), nodes_of_ten)
        self.near(self.whole_run(base, tokens=300e9)["days"], 105.82, 0.002)

    def test_F02_mpt_7b(self):
        # 110.6 TFLOP/s of 6 N per token: 9.5 days, 100,320 GPU-hours, about 200,000 USD at 2 USD.
        base = at_rate(440, 110.6 * TERA / (6 * 6.66e9), "dgx-a100-40gb")
        run = self.whole_run(base, tokens=1e12, price_per_gpu_hour="2 USD")
        self.near(run["gpu_hours"], 100_320, 0.01)
        self.near(run["cost"]["amount"], 200_000, 0.1)
        self.near(run["days"], 9.5, 0.01)

    def test_F03_llama_65b(self):
        # arXiv 2302.13971: 380 tokens per second and GPU.
        self.near(self.whole_run(at_rate(2048, 380), tokens=1.4e12)["days"], 20.8, 0.01)

    def test_F05_seventy_billion_parameters_on_1024_h100(self):
        # NVIDIA NeMo: 1.124 to 1.184 million tokens per second in bf16, 1.487 to 1.657 in fp8.
        self.near(self.whole_run(at_rate(1024, 1.15e6 / 1024, "dgx-h100"), tokens=15e12)["days"], 151, 0.04)
        self.near(self.whole_run(at_rate(1024, 1.57e6 / 1024, "dgx-h100"), tokens=15e12)["days"], 110, 0.06)

    def test_F06_deepseek_v3(self):
        # arXiv 2412.19437, table 1: 180,000 GPU-hours for a trillion tokens; 2.788 million in all, at 2 USD.
        base = at_rate(2048, 1e12 / 180e3 / 3600, "hgx-h800")
        self.near(self.whole_run(base, tokens=14.8e12)["days"], 54.2, 0.01)
        everything = self.whole_run(base, tokens=int(2.788e6 / 180e3 * 1e12), price_per_gpu_hour="2 USD")
        self.near(everything["cost"]["amount"], 5_576_000, 0.001)

    def test_F12_tinyllama(self):
        # 24,000 tokens per second on each of 16 A100: 3 trillion in 90 days.
        self.near(self.whole_run(at_rate(16, 24e3, "dgx-a100-40gb"), tokens=3e12)["days"], 90.4, 0.02)

    def test_G15_a_thousandth_of_the_operations(self):
        # 6 N T = 8.4e22 operations for 7 billion parameters and 2 trillion tokens: 3116 GPU-days at the whole peak.
        base = at_rate(8, 312 * TERA / (6 * 7e9))
        run = self.whole_run(base, tokens=2e12, price_per_gpu_hour="3 USD")
        self.near(run["gpu_hours"] / 24, 3116, 0.002)
        self.near(run["cost"]["amount"], 224_000, 0.005)

    def test_G24_the_time_of_the_whole_run(self):
        done = self.call("run", at_rate(8, 1000), {"run": {"tokens": 7e9}})
        self.assertEqual(done.returncode, 0, done.stderr)
        # 7e9 / 8000 tokens per second are 10.13 days.
        self.assertRegex(done.stdout, r"The whole run\n.*\n  time +10\.1 days")

    def test_A01_the_checkpoint_of_bloom(self):
        # bigscience-workshop/bigscience, tr11-176B-ml: 2.3 TB with the optimizer's state, 329 GB of weights; both are
        # powers of 1024, as 2 bytes for each of 176.2 billion parameters are 328 GiB.
        base = {"model": "bloom-176b", "cluster": "dgx-a100-80gb", "gpus": 384, "simulation": {"network": "ideal"},
                "plan": {"tensor_parallel": 4, "pipeline_parallel": 12, "global_batch_size": 64, "sharding": "zero1"}}
        run = self.whole_run(base, steps=1000, checkpoint={"interval": "100 steps", "write_bandwidth": "10 GB/s"})
        # "2.3" may be 2.25 to 2.35; the step's own bytes are 14 for each parameter of the padded vocabulary.
        self.near(run["checkpoint"]["size_bytes"] / 2**40, 2.3, 0.03)


if __name__ == "__main__":
    main(sys.argv)
