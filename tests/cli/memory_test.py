#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim memory: its text, its JSON, its questions and its exit codes.

usage: memory_test.py TRAINSIM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
CONFIG = {
    "model": {"num_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000,
              "sequence_length": 1024, "dropout": 0},
    "cluster": "dgx-a100-80gb", "gpus": 8,
    "plan": {"pipeline_parallel": 2, "data_parallel": 4, "micro_batch_size": 2, "global_batch_size": 64},
}


class Memory(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = pathlib.Path(temporary.name) / "plan.yaml"
        self.path.write_text(json.dumps(CONFIG), encoding="utf-8")

    def run_memory(self, *arguments):
        return subprocess.run([PROGRAM, "memory", str(self.path), "--quiet", *arguments], capture_output=True,
                              text=True, timeout=120, check=False)

    def json_of(self, *arguments):
        done = self.run_memory("--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_tensors_and_categories_add_up_to_the_peak(self):
        result = self.json_of()
        self.assertEqual(sum(result["memory_at_peak"].values()), result["peak_memory_bytes"])
        self.assertEqual(sum(tensor["bytes"] for tensor in result["tensors_at_peak"]), result["peak_memory_bytes"])
        sizes = [tensor["bytes"] for tensor in result["tensors_at_peak"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_the_curve_covers_the_step_and_reaches_the_peak(self):
        result = self.json_of()
        curve = result["curve"]
        self.assertEqual(curve[0]["begin_s"], 0)
        for before, after in zip(curve, curve[1:]):
            self.assertEqual(before["end_s"], after["begin_s"])
            self.assertEqual(before["end_bytes"], after["begin_bytes"])
        self.assertEqual(max(span["peak_bytes"] for span in curve), result["peak_memory_bytes"])
        self.assertEqual(curve[0]["end_bytes"], curve[-1]["end_bytes"])
        at = [span for span in curve if span["begin_s"] <= result["peak_time_s"] <= span["end_s"]]
        self.assertIn(result["peak_memory_bytes"], [span["peak_bytes"] for span in at])

    def test_a_rank_of_a_stage(self):
        first = self.json_of("--rank", "1")
        last = self.json_of("--rank", "7")
        self.assertEqual((first["rank"], first["stage"]), (1, 0))
        self.assertEqual((last["rank"], last["stage"]), (7, 1))
        self.assertEqual(first["memory_at_most"]["logits"], 0)
        self.assertGreater(last["memory_at_most"]["logits"], 0)
        done = self.run_memory("--rank", "8")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "trainsim: error: --rank 8: there are ranks 0 to 7\n")

    def test_the_largest_that_fits(self):
        result = self.json_of("--largest", "micro_batch_size")
        largest = result["answers"][0]["value"]
        peaks = [self.json_of("--set", f"plan.micro_batch_size={size}", "--set", f"plan.global_batch_size={32 * size}")
                 for size in (largest, largest + 1)]
        self.assertEqual([peak["fits"] for peak in peaks], [True, False])

    def test_the_fewest_gpus(self):
        answer = self.json_of("--fewest-gpus", "--set", "cluster.gpu.memory=3 GiB")["answers"][0]
        self.assertGreater(answer["value"], 1)
        self.assertIn("TP", answer["note"])

    def test_changes_are_named_on_a_miss_and_do_what_they_say(self):
        tight = ["--set", "cluster.gpu.memory=3 GiB"]
        result = self.json_of(*tight)
        self.assertFalse(result["fits"])
        self.assertTrue(result["changes"])
        costs = [change["relative_step_time"] for change in result["changes"]]
        self.assertEqual(costs, sorted(costs))
        for change in result["changes"]:
            with self.subTest(change=change["set"]):
                sets = [argument for override in change["set"] for argument in ("--set", override)]
                again = self.json_of(*tight, *sets)
                self.assertTrue(again["fits"])
                self.assertEqual(again["peak_memory_bytes"], change["peak_memory_bytes"])
        self.assertEqual(self.json_of()["changes"], [])

    def test_auto_recomputes_as_little_as_fits(self):
        def chosen(memory):
            result = self.json_of("--set", "plan.recompute=auto", "--set", f"cluster.gpu.memory={memory}",
                                  "--set", "plan.micro_batch_size=8", "--set", "plan.global_batch_size=128",
                                  "--set", "memory.reserve=0 B")
            return result["chosen"], result["fits"], result["peak_memory_bytes"]

        text, fits, whole = chosen("80 GiB")
        self.assertIn("chose none", text)
        self.assertTrue(fits)
        text, fits, less = chosen(f"{0.95 * whole:.0f} B")
        self.assertNotIn("chose none", text)
        self.assertTrue(fits)
        self.assertLess(less, 0.95 * whole)
        text, fits, _ = chosen("1 GiB")
        self.assertIn("found none", text)
        self.assertFalse(fits)
        self.assertEqual(self.json_of()["chosen"], "")

    def test_parameters_may_stay_gathered(self):
        one = ["--set", "plan.pipeline_parallel=1", "--set", "plan.data_parallel=8"]
        kept = self.json_of(*one, "--set", "plan.sharding={stage: 3, reshard_after_forward: false}")
        again = self.json_of(*one, "--set", "plan.sharding=zero3")
        self.assertEqual(kept["peak_memory_bytes"],
                         self.json_of(*one, "--set", "plan.sharding=zero2")["peak_memory_bytes"])
        self.assertGreater(kept["peak_memory_bytes"], again["peak_memory_bytes"])
        self.assertEqual(kept["curve"][0]["end_bytes"], again["curve"][0]["end_bytes"])

    def test_exit_codes(self):
        self.assertEqual(self.run_memory("--require-fit").returncode, 0)
        self.assertEqual(self.run_memory("--require-fit", "--set", "cluster.gpu.memory=3 GiB").returncode, 3)
        wrong = self.run_memory("--largest", "micro_batchsize")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'micro_batch_size'?", wrong.stderr)

    def test_the_text_says_what_takes_the_memory(self):
        text = self.run_memory("--set", "cluster.gpu.memory=3 GiB").stdout
        for part in ("does not fit", "By category", "Alive at the peak", "Over the step", "All stages",
                     "Changes, each simulated", "optimizer moments"):
            self.assertIn(part, text)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
