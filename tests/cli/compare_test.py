#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim compare, --what-if and --sensitivity: exact waterfalls, closed forms, formats and messages.

usage: compare_test.py TRAINSIM
"""
import csv
import io
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs/small-tp2-pp2-dp2.yaml")
BUBBLE = str(ROOT / "configs/bubble-4x8.yaml")
PROGRAM = ""
# One GPU whose host is never behind, so that the step is the sum of its kernels.
ONE_GPU = {
    "model": {"num_layers": 2, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000,
              "sequence_length": 1024},
    "cluster": "dgx-a100-80gb", "gpus": 1,
    "plan": {"micro_batch_size": 2, "global_batch_size": 8},
}
NO_LAUNCHES = ["--set", "cluster.gpu.launch_interval_eager=0 s"]


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments, "--quiet"], capture_output=True, text=True, timeout=300, check=False,
                          **options)


class WithFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.one_gpu = self.folder / "one.yaml"
        self.one_gpu.write_text(json.dumps(ONE_GPU), encoding="utf-8")

    def json_of(self, *arguments):
        done = run(*arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def expect_error(self, message, *arguments):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn(message, done.stderr)

    def expect_exact(self, difference, before, after):
        """A waterfall adds up to what it explains."""
        scale = before["step_time_s"] if difference["per"] == "step" else difference["from_s"]
        parts = sum(part["change_s"] for part in difference["breakdown"].values())
        self.assertAlmostEqual(parts / scale, difference["change_s"] / scale, delta=1e-9)
        shares = sum(part["share"] for part in difference["breakdown"].values())
        self.assertAlmostEqual(shares, difference["share"], delta=1e-9)
        if difference["per"] == "step":
            self.assertEqual(difference["change_s"], after["step_time_s"] - before["step_time_s"])
        self.assertEqual(difference["change_bytes"], after["peak_memory_bytes"] - before["peak_memory_bytes"])
        self.assertEqual(sum(difference["memory_at_peak"].values()), difference["change_bytes"])


class Compare(WithFolder):
    def test_waterfalls_add_up_and_are_negated_by_the_other_direction(self):
        changed = SMALL + "@plan.recompute=full,plan.sequence_parallel=false"
        there = self.json_of("compare", SMALL, changed)
        back = self.json_of("compare", changed, SMALL)
        before, after = (run["result"] for run in there["runs"])
        self.assertNotEqual(before["step_time_s"], after["step_time_s"])
        self.assertNotEqual(before["peak_memory_bytes"], after["peak_memory_bytes"])
        difference, negated = there["differences"][0], back["differences"][0]
        self.expect_exact(difference, before, after)
        self.expect_exact(negated, after, before)
        for cause, part in difference["breakdown"].items():
            self.assertEqual(part["change_s"], -negated["breakdown"][cause]["change_s"])
        for category, change in difference["memory_at_peak"].items():
            self.assertEqual(change, -negated["memory_at_peak"][category])

    def test_results_are_those_of_run(self):
        compared = self.json_of("compare", SMALL, SMALL + "@plan.micro_batch_size=2")
        alone = self.json_of(SMALL)
        changed = self.json_of(SMALL, "--set", "plan.micro_batch_size=2")
        for result in (alone, changed, *(run["result"] for run in compared["runs"])):
            del result["simulation"]["wall_s"]
        self.assertEqual([run["result"] for run in compared["runs"]], [alone, changed])
        self.assertEqual([run["set"] for run in compared["runs"]], [[], ["plan.micro_batch_size=2"]])

    def test_a_configuration_does_not_differ_from_itself(self):
        result = self.json_of("compare", SMALL, SMALL)
        difference = result["differences"][0]
        self.assertEqual(result["inputs"], [])
        self.assertEqual((difference["change_s"], difference["share"], difference["change_bytes"]), (0, 0, 0))
        self.assertEqual({part["change_s"] for part in difference["breakdown"].values()}, {0})
        text = run("compare", SMALL, SMALL).stdout
        self.assertIn("Nothing in the input differs.", text)
        self.assertIn("B takes as long per step as A", text)

    def test_twice_the_micro_batches_halve_the_bubble_per_token(self):
        # 1F1B with p = 4 stages of 30 ms a slot pair: idle (p - 1) * 30 ms = 90 ms a step whatever m is, so that
        # per token of 8 and of 16 sequences of 256 it is 90 ms / 2048 and 90 ms / 4096.
        result = self.json_of("compare", BUBBLE, "@plan.global_batch_size=16")
        difference = result["differences"][0]
        self.assertEqual(difference["per"], "token")
        self.assertAlmostEqual(difference["breakdown"]["bubble"]["change_s"] * 4096, -0.09, delta=1e-9)
        self.assertAlmostEqual(difference["breakdown"]["forward"]["change_s"], 0, delta=1e-12)
        self.expect_exact(difference, *(run["result"] for run in result["runs"]))
        self.assertIn("times are compared per token", difference["sentences"][0])
        self.assertEqual(result["inputs"][0], {"key": "plan.global_batch_size", "values": ["8", "16"]})

    def test_full_recomputation_costs_what_it_says(self):
        difference = self.json_of("compare", SMALL, "@plan.recompute=full")["differences"][0]
        self.assertGreater(difference["breakdown"]["recompute"]["change_s"], 0)
        self.assertLess(difference["memory_at_peak"]["activations"], 0)
        self.assertRegex(difference["sentences"][0], r"^B takes [\d.]+ % more time per step than A \(.*\): recompute \+")

    def test_changes_may_use_short_names_and_relative_values(self):
        result = self.json_of("compare", SMALL, "@gpu.hbm_bandwidth=+20%", "@network.nic=400Gb/s,gpu.memory=x2")
        self.assertEqual([run["run"] for run in result["runs"]], ["A", "B", "C"])
        self.assertEqual(len(result["differences"]), 2)
        self.assertEqual(result["runs"][2]["set"][0], "cluster.nic.bandwidth=400Gb/s")
        self.assertEqual([row["key"] for row in result["inputs"]],
                         ["cluster.gpu.memory", "cluster.gpu.memory_bandwidth", "cluster.nic.bandwidth"])

    def test_set_is_for_all_and_an_at_sign_goes_on_from_the_first(self):
        result = self.json_of("compare", SMALL + "@plan.micro_batch_size=2", "@plan.recompute=full",
                              "--set", "plan.sequence_parallel=false")
        plans = [run["result"]["plan"] for run in result["runs"]]
        self.assertEqual([plan["micro_batch_size"] for plan in plans], [2, 2])
        self.assertEqual([plan["sequence_parallel"] for plan in plans], [False, False])
        self.assertEqual([plan["recompute"]["granularity"] for plan in plans], ["none", "full"])

    def test_a_file_may_have_the_sign_in_its_name(self):
        odd = self.folder / "one@2=3.yaml"
        odd.write_text(self.one_gpu.read_text(encoding="utf-8"), encoding="utf-8")
        result = self.json_of("compare", str(odd), f"{self.one_gpu}@plan.micro_batch_size=1")
        self.assertEqual([run["result"]["name"] for run in result["runs"]], ["one@2=3", "one"])

    def test_other_models_and_gpu_counts_are_pointed_out(self):
        sentences = self.json_of("compare", "llama2-7b-8gpu", "llama3-8b-16gpu")["differences"][0]["sentences"]
        self.assertTrue(any("not of the same work" in sentence for sentence in sentences), sentences)
        self.assertTrue(any("B uses 16 GPUs, A 8" in sentence for sentence in sentences), sentences)
        text = run("compare", "llama2-7b-8gpu", SMALL).stdout
        self.assertRegex(text, r"model \(\d+ values\) +llama2-7b +llama-small")

    def test_text_shows_both_and_the_parts(self):
        text = run("compare", SMALL, "@plan.recompute=full").stdout
        for part in ("Comparison", "step time", "What differs in the input", "plan.recompute", "From A to B",
                     "time of a step, by cause", "recompute", "peak memory, by category", "together", "of A"):
            self.assertIn(part, text)

    def test_csv_has_a_row_per_run_that_adds_up(self):
        done = run("compare", SMALL, "@plan.recompute=full", "@plan.micro_batch_size=2", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["run"] for row in rows], ["A", "B", "C"])
        self.assertEqual(float(rows[0]["change_time_s"]), 0)
        causes = list(self.json_of(SMALL)["breakdown"])
        for row in rows:
            parts = sum(float(row[f"change_{cause}_s"]) for cause in causes)
            self.assertAlmostEqual(parts, float(row["change_time_s"]), delta=1e-9)
            self.assertEqual(float(row["change_time_s"]), float(row["step_time_s"]) - float(rows[0]["step_time_s"]))

    def test_uncertainty_draws_the_same_constants_for_all(self):
        arguments = ("compare", SMALL, "@plan.recompute=full", "@plan.recompute=none", "--uncertainty", "--samples", "20")
        result = json.loads(run(*arguments, "--format", "json", "-q").stdout)
        full, same = result["differences"]
        interval = full["uncertainty"]
        self.assertEqual((interval["samples"], interval["seed"], interval["same_way"]), (20, 1, 20))
        # Running forward again costs a share of the step that hardly depends on how fast the GPU is.
        self.assertLess(interval["share_low"], interval["share_high"])
        self.assertLess(interval["share_high"] - interval["share_low"], 0.2 * full["share"])
        self.assertAlmostEqual(interval["share_low"] / full["share"], 1, delta=0.2)
        self.assertIn("in 90 % of 20 draws, and takes more in 20 of them.", full["sentences"][-1])
        # Nothing is changed: no draw tells the runs apart, although each is another step time.
        self.assertEqual((same["uncertainty"]["share_low"], same["uncertainty"]["share_high"]), (0, 0))
        self.assertNotIn("draws", same["sentences"][-1])
        again = json.loads(run(*arguments, "--format", "json", "-q", "-j", "1").stdout)
        self.assertEqual(again["differences"][0]["uncertainty"], interval)
        other = json.loads(run(*arguments, "--format", "json", "-q", "--seed", "2").stdout)
        self.assertNotEqual(other["differences"][0]["uncertainty"]["share_low"], interval["share_low"])
        rows = list(csv.DictReader(io.StringIO(run(*arguments, "--format", "csv", "-q").stdout)))
        self.assertEqual([float(row["change_share_low"]) for row in rows], [0, interval["share_low"], 0])
        self.expect_error("--samples requires --uncertainty", *arguments[:3], "--samples", "20")

    def test_uncertainty_keeps_what_auto_has_chosen(self):
        # 680 MiB are too little for all of them, so that auto takes full recomputation, in every draw.
        small = ("--set", "cluster.gpu.memory=680 MiB", "--set", "memory.reserve=0 GiB", "--uncertainty", "--samples", "20",
                 "--format", "json", "-q")
        automatic, full = (json.loads(run("compare", SMALL, f"@plan.recompute={word}", *small).stdout)["differences"][0]
                           for word in ("auto", "full"))
        self.assertGreater(full["share"], 0)
        self.assertEqual(automatic["share"], full["share"])
        self.assertEqual(automatic["uncertainty"], full["uncertainty"])

    def test_a_key_is_not_changed_twice(self):
        self.expect_error("plan.micro_batch_size is changed twice; keep one of its values", "compare", SMALL,
                          "@plan.micro_batch_size=4,plan.micro_batch_size=8")

    def test_bad_input(self):
        self.expect_error("compare needs two configurations or more; for one with a change write `trainsim compare " +
                          SMALL + " @plan.recompute=full`", "compare", SMALL)
        self.expect_error("compare needs two configurations or more", "compare")
        self.expect_error("the first configuration needs a name, as in compare gpt175b @gpus=8", "compare", "@gpus=8",
                          SMALL)
        self.expect_error("no such file", "compare", SMALL, "nowhere.yaml")
        self.expect_error("did you mean 'gpu.hbm_bandwidth'?", "compare", SMALL, "@gpu.hbm_bandwith=+20%")
        self.expect_error("a change needs a '='", "compare", SMALL, SMALL + "@plan.recompute")
        self.expect_error("did you mean full?", "compare", SMALL, "@plan.recompute=ful")
        self.expect_error("--set plan.tensor_parallel=3", "compare", SMALL, "@plan.tensor_parallel=3")


class WhatIf(WithFolder):
    def matmul_seconds(self, result):
        return sum(kernel["seconds"] for kernel in result["kernels"] if kernel["op"] == "matmul")

    def test_twice_as_fast_multiplies_give_half_of_their_time_back(self):
        result = self.json_of(str(self.one_gpu), *NO_LAUNCHES, "--what-if", "op.matmul.speedup=2")
        self.assertAlmostEqual(sum(kernel["seconds"] for kernel in result["kernels"]), result["step_time_s"], delta=1e-12)
        difference = result["what_if"][0]["difference"]
        self.assertAlmostEqual(difference["change_s"], -self.matmul_seconds(result) / 2, delta=1e-12)
        self.expect_exact(difference, result, result["what_if"][0]["result"])
        self.assertTrue(any("op.NAME.speedup" in note for note in result["what_if"][0]["result"]["notes"]))

    def test_the_base_is_the_run_and_each_question_stands_alone(self):
        questions = ["--what-if", "gpu.hbm_bandwidth=+20%", "--what-if", "gpu.hbm_bandwidth=+20%,network.nvlink=x2"]
        result = self.json_of(SMALL, *questions)
        plain = self.json_of(SMALL)
        for each in (result, plain):
            del each["simulation"]["wall_s"]
        answers = result.pop("what_if")
        self.assertEqual(result, plain)
        self.assertEqual([answer["change"] for answer in answers], [questions[1], questions[3]])
        self.assertEqual([len(answer["set"]) for answer in answers], [1, 2])
        self.assertLess(answers[0]["difference"]["change_s"], 0)
        self.assertLess(answers[1]["difference"]["change_s"], answers[0]["difference"]["change_s"])

    def test_text_and_csv(self):
        text = run(SMALL, "--what-if", "network.nvlink=+20%").stdout
        self.assertIn("What if network.nvlink=+20% (B; A is as above)", text)
        self.assertIn("cluster.intra_node.bandwidth", text)
        rows = list(csv.DictReader(io.StringIO(run(SMALL, "--what-if", "gpu.memory=x2", "--format", "csv").stdout)))
        self.assertEqual([row["label"] for row in rows], ["small-tp2-pp2-dp2", "gpu.memory=x2"])
        self.assertEqual(float(rows[1]["change_time_s"]), 0)

    def test_measured_times_do_not_get_faster(self):
        result = self.json_of(BUBBLE, "--what-if", "op.matmul.speedup=2")
        self.assertEqual(result["what_if"][0]["difference"]["change_s"], 0)
        self.assertIn("op.matmul: has no effect on the times of plan.profile", result["what_if"][0]["result"]["warnings"])
        # An optimizer that was not measured does.
        question = ("--what-if", "op.optimizer.speedup=2")
        self.assertLess(self.json_of(BUBBLE, *question)["what_if"][0]["difference"]["change_s"], 0)
        measured = self.json_of(BUBBLE, *question, "--set", "plan.profile.optimizer=10 ms")["what_if"][0]
        self.assertEqual(measured["difference"]["change_s"], 0)
        self.assertIn("op.optimizer: has no effect on the times of plan.profile", measured["result"]["warnings"])

    def test_bad_input(self):
        self.expect_error("'gpu.hbm' is not known (did you mean 'gpu.hbm_bandwidth'?); names are gpu.peak_flops,", SMALL, "--what-if", "gpu.hbm=+20%")
        self.expect_error("'attn' is no operation; operations are matmul,", SMALL, "--what-if", "op.attn.speedup=2")
        self.expect_error("--what-if gpu.matmul_efficiency=x2 is not possible:", SMALL, "--what-if",
                          "gpu.matmul_efficiency=x2")
        self.expect_error("can't be read; write a relative value such as +20%", SMALL, "--what-if", "gpu.memory=+20")
        self.expect_error("speedup", SMALL, "--set", "op.matmul.speedup=0")
        self.expect_error("did you mean matmul?", SMALL, "--set", "op.matmull.speedup=2")


class Sensitivity(WithFolder):
    def test_rows_are_what_if_and_sorted_by_gain(self):
        result = self.json_of(SMALL, "--sensitivity")
        rows = result["sensitivity"]["rows"]
        self.assertEqual(result["sensitivity"]["factor"], 1.1)
        gains = [row["gain_s"] for row in rows]
        self.assertEqual(gains, sorted(gains, reverse=True))
        for row in rows:
            self.assertEqual(row["gain_s"], result["step_time_s"] - row["step_time_s"])
            self.assertAlmostEqual(row["gain"], row["gain_s"] / result["step_time_s"], delta=1e-15)
            expected = math.log(result["step_time_s"] / row["step_time_s"]) / math.log(1.1)
            self.assertAlmostEqual(row["elasticity"], expected, delta=1e-12)
        names = [row["name"] for row in rows]
        for name in ("gpu.peak_flops", "gpu.hbm_bandwidth", "gpu.memory", "network.nvlink", "network.latency",
                     "host.launch_rate", "op.matmul.speedup", "op.norm.speedup"):
            self.assertIn(name, names)
        # Eight GPUs of one node: no NIC carries anything.
        self.assertNotIn("network.nic", names)
        asked = self.json_of(SMALL, "--what-if", rows[0]["change"])
        self.assertEqual(asked["what_if"][0]["result"]["step_time_s"], rows[0]["step_time_s"])

    def test_an_operation_gives_its_share_back(self):
        result = self.json_of(str(self.one_gpu), *NO_LAUNCHES, "--sensitivity")
        rows = {row["name"]: row for row in result["sensitivity"]["rows"]}
        total = 0
        for name, row in rows.items():
            if not name.startswith("op."):
                continue
            op = name.split(".")[1]
            seconds = sum(kernel["seconds"] for kernel in result["kernels"] if kernel["op"] == op)
            self.assertAlmostEqual(row["gain_s"], seconds * (1 - 1 / 1.1), delta=1e-12)
            total += row["gain_s"]
        # Every kernel belongs to one operation, and the step is made of kernels.
        self.assertAlmostEqual(total, result["step_time_s"] * (1 - 1 / 1.1), delta=1e-12)
        self.assertEqual([name for name in rows if name.startswith("network.")], [])
        self.assertEqual(rows["gpu.memory"]["gain_s"], 0)

    def test_measured_stages_are_bound_by_nothing(self):
        result = self.json_of(BUBBLE, "--sensitivity")
        self.assertIn("Bound by no single part of the hardware", result["sensitivity"]["sentences"][0])

    def test_it_is_deterministic_and_null_unless_asked_for(self):
        self.assertEqual(self.json_of(SMALL, "--sensitivity")["sensitivity"],
                         self.json_of(SMALL, "--sensitivity")["sensitivity"])
        self.assertIsNone(self.json_of(SMALL)["sensitivity"])

    def test_more_memory_can_make_it_fit(self):
        peak = self.json_of(SMALL)["peak_memory_bytes"]
        tight = ["--set", "memory.reserve=0 B", "--set", f"cluster.gpu.memory={int(peak * 0.95)} B"]
        result = self.json_of(SMALL, *tight, "--sensitivity")
        verdicts = {row["name"]: row["verdict"] for row in result["sensitivity"]["rows"]}
        self.assertEqual(verdicts["gpu.peak_flops"], "does not fit")
        self.assertIn(verdicts["gpu.memory"], ("fits", "borderline"))

    def test_text_and_csv(self):
        text = run(SMALL, "--sensitivity").stdout
        self.assertIn("What 10 % better would give", text)
        self.assertRegex(text, r"Bound by .* \(elasticity [\d.]+\): 10 % better would take")
        rows = list(csv.DictReader(io.StringIO(run(SMALL, "--sensitivity", "--format", "csv").stdout)))
        self.assertEqual(list(rows[0]), ["name", "meaning", "change", "step_time_s", "gain_s", "gain", "elasticity",
                                         "verdict"])
        self.expect_error("--format csv prints one table; give one of --what-if, --sensitivity and --placement, or use json", SMALL,
                          "--sensitivity", "--what-if", "gpu.memory=x2", "--format", "csv")


class Documentation(unittest.TestCase):
    def known(self, beginning, *arguments):
        """Words that an error message lists after its beginning."""
        message = run(SMALL, *arguments).stderr
        self.assertIn(beginning, message)
        return re.split(r", | or ", message.split(beginning)[1].strip())

    def test_every_name_is_explained(self):
        page = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
        names = [name.split(" ")[0] for name in self.known("names are ", "--what-if", "wheel=x2")]
        names = [name for name in names if name.startswith(("gpu.", "network.", "host.", "op."))]
        self.assertEqual(len(names), 14)
        for name in names:
            self.assertIn(f"`{name}`", page)

    def test_every_operation_is_explained(self):
        page = (ROOT / "docs/output.md").read_text(encoding="utf-8")
        operations = self.known("operations are ", "--what-if", "op.wheel.speedup=2")
        self.assertEqual(len(operations), 12)
        for name in operations:
            self.assertTrue(f"| `{name}` |" in page or f"`op.{name}.speedup`" in page, name)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
