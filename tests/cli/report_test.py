#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim run --report: what the page holds, and what happens when it can't be written.

usage: report_test.py TRAINSIM
"""
import collections
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import page_parser

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LARGEST_PAGE = 2_000_000
HOSTILE = "</script><script>alert(1)</script><!-- & \u2028"


class Report(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.path = self.folder / "report.html"

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, "run", *arguments, "--quiet"], capture_output=True, text=True, timeout=300,
                              check=False, cwd=self.folder)

    def report_of(self, config, *arguments):
        """The parsed page, its data, and the JSON result of the same run."""
        subject = str(ROOT / "configs" / f"{config}.yaml") if "/" not in str(config) else str(config)
        done = self.run_program(subject, "--report", str(self.path), "--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return (*page_parser.parse(self.path), json.loads(done.stdout))

    def config_file(self, name="plan", **changes):
        config = {
            "model": {"num_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000,
                      "sequence_length": 1024, "dropout": 0},
            "cluster": "dgx-a100-80gb", "gpus": 8,
            "plan": {"pipeline_parallel": 2, "data_parallel": 4, "micro_batch_size": 2, "global_batch_size": 64},
        }
        config.update(changes)
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def test_its_numbers_are_those_of_the_json_output(self):
        _, data, result = self.report_of("gpt175b")
        self.assertEqual(data["result"], result)

    def test_the_whole_run(self):
        _, data, result = self.report_of("gpt175b-300b-tokens")
        self.assertGreater(result["run"]["days"], 0)
        self.assertEqual(data["result"]["run"], result["run"])

    def test_what_was_asked_beside_the_run(self):
        asked = ("--what-if", "gpus=x2", "--what-if", "op.attention.speedup=2", "--sensitivity", "--placement",
                 "--uncertainty", "--samples", "10")
        plan = {"pipeline_parallel": 2, "micro_batch_size": 2, "global_batch_size": 64}
        _, data, result = self.report_of(self.config_file(gpus=16, plan=plan), *asked)
        answers = result.pop("what_if")
        self.assertEqual(data["result"], result)
        self.assertGreater(result["uncertainty"]["step_time_high_s"], result["uncertainty"]["step_time_low_s"])
        self.assertTrue(result["sensitivity"]["rows"])
        self.assertTrue(result["placement"]["rows"])
        self.assertEqual([each["change"] for each in data["what_if"]], ["gpus=x2", "op.attention.speedup=2"])
        for shown, answer in zip(data["what_if"], answers):
            for key in ("change", "set", "difference"):
                self.assertEqual(shown[key], answer[key], key)
            for key, value in shown["result"].items():
                self.assertEqual(value, answer["result"][key], key)
        self.assertIn({"key": "gpus", "values": ["16", "32"]}, data["what_if"][0]["inputs"])

    def test_a_run_that_was_asked_nothing(self):
        _, data, result = self.report_of(self.config_file())
        self.assertEqual(data["what_if"], [])
        for key in ("uncertainty", "sensitivity", "placement"):
            self.assertIsNone(result[key])

    def test_size_of_the_largest_configurations(self):
        for config in ("gpt175b", "llama3-405b", "sc21-1008b"):
            self.report_of(config)
            self.assertLessEqual(self.path.stat().st_size, LARGEST_PAGE, config)

    def test_it_refers_to_nothing_outside(self):
        page, _, _ = self.report_of("small-dp8")
        self.assertTrue(page.references)
        for reference in page.references:
            self.assertTrue(reference.startswith("#"), reference)
            self.assertIn(reference[1:], page.ids)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(page.elements["link"] + page.elements["img"] + page.elements["iframe"], 0)
        self.assertIn("default-src 'none'", self.path.read_text(encoding="utf-8"))

    def test_texts_of_a_configuration_stay_texts(self):
        harmless, _, _ = self.report_of(self.config_file())
        model = {"name": HOSTILE, "num_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000,
                 "sequence_length": 1024, "dropout": 0}
        # A file name can hold all of it but the slash.
        name = HOSTILE.replace("/", "")
        page, data, _ = self.report_of(self.config_file(name, model=model, description=HOSTILE))
        self.assertEqual(page.elements, harmless.elements)
        self.assertEqual(page.handlers, [])
        self.assertEqual(page.title, name + " \u2013 trainsim report")
        self.assertEqual((data["result"]["name"], data["result"]["model"], data["description"]), (name, HOSTILE, HOSTILE))

    def test_a_name_that_is_not_utf8(self):
        path = self.config_file()
        other = self.folder.joinpath(b"pl\xff.yaml".decode("utf-8", "surrogateescape"))
        path.rename(other)
        page, data, _ = self.report_of(other)
        self.assertEqual(data["result"]["name"], "pl\ufffd")
        self.assertTrue(page.title.startswith("pl\ufffd"))

    def test_the_timeline_has_every_slot_once(self):
        _, data, result = self.report_of("gpt175b")
        rows = data["timeline"]["rows"]
        self.assertEqual([row["stage"] for row in rows], list(range(8)))
        ticks = data["timeline"]["ticks_per_step"]
        for row in rows:
            slots = collections.Counter(zip(row["kinds"], row["micro_batches"], row["chunks"]))
            self.assertEqual(slots, collections.Counter(
                (kind, micro, chunk) for kind in "FB" for micro in range(96) for chunk in range(3)))
            ends = [begin + duration for begin, duration in zip(row["begins"], row["durations"])]
            # Slots of a stage follow each other; one tick for rounding.
            for end, begin in zip(ends, row["begins"][1:]):
                self.assertLessEqual(end, begin + 1)
            self.assertLessEqual(ends[-1], row["end"])
            self.assertLessEqual(row["end"], ticks)
            busy = sum(row["durations"]) / ticks * result["step_time_s"]
            self.assertAlmostEqual(busy / result["ranks"][row["stage"]]["busy_s"], 1, places=6)

    def test_a_slot_lists_what_runs_in_it(self):
        _, data, _ = self.report_of("bubble-4x8")
        row = data["timeline"]["rows"][0]
        # A profile of 10 ms forward and 20 ms backward per stage; two layers on each of the four stages.
        forward = data["timeline"]["operations"][row["operations"][row["kinds"].index("F")]]
        backward = data["timeline"]["operations"][row["operations"][row["kinds"].index("B")]]
        self.assertEqual([name for name, _, _ in forward], ["forward"])
        self.assertEqual([runs for _, runs, _ in forward], [2])
        self.assertAlmostEqual(forward[0][2], 0.010, places=12)
        self.assertAlmostEqual(backward[0][2], 0.020, places=12)

    def test_the_parts_of_a_slot_fill_it(self):
        # Kernels, collectives and waits of the compute stream follow each other; a tick each for rounding.
        _, data, _ = self.report_of("gpt175b")
        names, lists = data["timeline"]["parts"]["names"], data["timeline"]["parts"]["lists"]
        self.assertIn("mlp in", names)
        self.assertIn("nccl:all_gather", names)
        with_parts = 0
        for row in data["timeline"]["rows"]:
            for duration, index in zip(row["durations"], row["parts"]):
                if index < 0:
                    continue
                with_parts += 1
                self.assertAlmostEqual(sum(lists[index][2::3]), duration, delta=len(lists[index]))
        self.assertGreater(with_parts, 0)

    def test_the_waterfall_adds_up(self):
        for config in ("gpt175b", "slow-gpu", "small-pcie", "mpt-7b-fsdp"):
            _, data, result = self.report_of(config)
            bars = data["waterfall"]
            at = 0
            for bar in bars:
                if bar["is_total"] and at > 0:
                    self.assertAlmostEqual(bar["seconds"] / at, 1, places=9, msg=bar["name"])
                at = bar["seconds"] if bar["is_total"] else at + bar["seconds"]
            totals = [bar["seconds"] for bar in bars if bar["is_total"]]
            self.assertEqual(len(totals), 3)
            self.assertEqual(totals[2], result["step_time_s"])
            self.assertAlmostEqual(totals[0] / totals[2], result["mfu"], places=12)
            self.assertAlmostEqual(totals[1] / totals[2], result["scaling_efficiency"], places=12)

    def test_twice_the_micro_batches_have_the_bubble_of_the_closed_form(self):
        # Four equal stages, free communication: 3 / (8 + 3) becomes 3 / (16 + 3); a micro-batch takes 11/8 slots before
        # and 19/16 after, so that tokens per second grow by (11 / 8) / (19 / 16) - 1 = 3 / 19.
        _, data, _ = self.report_of("bubble-4x8")
        change = next(each for each in data["changes"] if each["label"].startswith("8 \u2192 16 micro-batches"))
        self.assertAlmostEqual(change["bubble_ratio"], 3 / 19, places=9)
        # The optimizer's small time is part of the step, too.
        self.assertAlmostEqual(change["relative_throughput"], 1 + 3 / 19, delta=2e-3)
        finding = data["diagnosis"]["findings"][0]
        self.assertEqual((finding["name"], finding["amount"]), ("Bubble", "27.3 %"))
        self.assertIn("8 \u2192 16 micro-batches (global batch 8 \u2192 16) would bring it to 15.8 %", finding["advice"])

    def test_changes_are_what_running_them_gives(self):
        _, data, _ = self.report_of(self.config_file(simulation={"network": "ideal"}))
        self.assertGreater(len(data["changes"]), 5)
        gains = [change["relative_throughput"] for change in data["changes"]]
        self.assertEqual(gains, sorted(gains, reverse=True))
        for change in data["changes"][:3]:
            done = self.run_program(str(self.folder / "plan.yaml"), "--format", "json",
                                    *(word for text in change["set"] for word in ("--set", text)))
            self.assertEqual(done.returncode, 0, done.stderr)
            result = json.loads(done.stdout)
            self.assertEqual(change["step_time_s"], result["step_time_s"])
            self.assertEqual(change["bubble_ratio"], result["bubble_ratio"])
            self.assertEqual(change["peak_memory_bytes"], result["peak_memory_bytes"])

    def test_a_batch_given_in_two_ways_can_still_grow(self):
        plan = {"pipeline_parallel": 2, "data_parallel": 4, "gradient_accumulation": 8, "micro_batch_size": 2}
        _, data, _ = self.report_of(self.config_file(plan=plan))
        self.assertTrue(any(change["label"].startswith("8 \u2192 16 micro-batches") for change in data["changes"]))

    def test_faster_kernels(self):
        _, data, _ = self.report_of("gpt175b")
        tried = [kernel for kernel in data["kernels"] if kernel["if_free_s"] is not None]
        self.assertGreater(len(tried), 5)
        for kernel in tried:
            self.assertLess(kernel["if_free_s"], kernel["if_twice_as_fast_s"])
            self.assertLess(kernel["if_twice_as_fast_s"], data["uncontended_step_time_s"])

    def test_a_free_kernel_saves_its_time_where_nothing_else_limits(self):
        # One GPU that communicates with nobody, whose host is far ahead of its large kernels: the step is their sum.
        _, data, _ = self.report_of(self.config_file(gpus=1, plan={"micro_batch_size": 8, "global_batch_size": 16},
                                                     software={"launch": "cuda-graph"}))
        kernel = data["kernels"][0]
        saved = data["uncontended_step_time_s"] - kernel["if_free_s"]
        self.assertAlmostEqual(saved / kernel["seconds"], 1, places=6)

    def test_memory_curves_reach_the_peak(self):
        _, data, result = self.report_of("gpt175b")
        for rank, program in zip(result["ranks"], data["memory"]["program_of_rank"]):
            memory = data["memory"]["programs"][program]
            self.assertEqual(len(memory["highest_mib"]), 600)
            self.assertEqual(max(memory["highest_mib"]), round(rank["peak_memory_bytes"] / 2**20))
            self.assertEqual(sum(tensor["bytes"] for tensor in memory["tensors"]), rank["peak_memory_bytes"])

    def test_what_is_resolved_and_left_open(self):
        _, data, _ = self.report_of(self.config_file())
        check = subprocess.run([PROGRAM, "check", str(self.folder / "plan.yaml"), "--format", "json"], check=True,
                               capture_output=True, text=True)
        self.assertEqual(dict(data["defaults"]), json.loads(check.stdout)["defaults"])

    def test_the_command_that_makes_it_again(self):
        path = self.config_file("it's a plan")
        _, data, result = self.report_of(path, "--set", "plan.micro_batch_size=4")
        again = subprocess.run(data["command"].replace("trainsim", PROGRAM, 1) + " --format json --quiet", shell=True,
                               check=True, capture_output=True, text=True)
        same = json.loads(again.stdout)
        self.assertEqual(same["step_time_s"], result["step_time_s"])

    def test_that_command_asks_the_same(self):
        asked = ["--fold", "off", "--verify-folding", "--uncertainty", "--samples", "12", "--seed", "3", "--what-if",
                 "gpu.hbm_bandwidth=+20%", "--what-if", "network.latency=x0.5", "--sensitivity", "--placement"]
        path = self.config_file()
        _, data, _ = self.report_of(path, *asked)
        self.assertEqual(shlex.split(data["command"]), ["trainsim", "run", str(path), *asked])

    def test_a_plan_that_does_not_fit(self):
        _, data, result = self.report_of("gpt175b", "--set", "plan.sharding=none", "--set", "plan.tensor_parallel=2",
                                         "--set", "plan.sequence_parallel=false")
        self.assertFalse(result["fits"])
        finding = data["diagnosis"]["findings"][-1]
        self.assertEqual((finding["name"], finding["amount"]), ("Memory", "does not fit"))

    def test_unwritable_path(self):
        done = self.run_program(str(self.config_file()), "--report", "nowhere/report.html")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "trainsim: error: can't write 'nowhere/report.html': No such file or directory; "
                         "name a file in a folder that exists and that you may write to\n")

    def test_two_outputs_in_one_file(self):
        for option in ("--output", "--trace"):
            done = self.run_program(str(self.config_file()), "--report", "out.html", option, "./out.html")
            self.assertEqual(done.returncode, 2)
            self.assertEqual(done.stderr, f"trainsim: error: --report and {option} both name 'out.html'; give each a file "
                             "of its own\n")
            self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.yaml"])

    def test_full_disk(self):
        done = self.run_program(str(self.config_file()), "--report", "/dev/full")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "trainsim: error: can't write the result to '/dev/full': No space left on device\n")

    def test_nothing_is_left_of_a_run_that_fails(self):
        path = self.config_file(plan={"pipeline_parallel": 3})
        done = self.run_program(str(path), "--report", str(self.path))
        self.assertEqual(done.returncode, 2)
        self.assertEqual([each.name for each in self.folder.iterdir()], ["plan.yaml"])

    def test_an_assertion_that_fails_leaves_the_report(self):
        done = self.run_program(str(self.config_file()), "--report", str(self.path), "--assert", "mfu>0.99")
        self.assertEqual(done.returncode, 4)
        self.assertTrue(self.path.exists())


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
