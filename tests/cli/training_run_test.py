#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The section `run` on the command line: formats, assertions, batch ramps, failures, jitter, and what goes wrong.

usage: training_run_test.py TRAINSIM
"""
import csv
import io
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs/small-dp8.yaml")
FAILURES = ("run.steps=100_000", "run.failures={gpu_mtbf: 10 h, restart_time: 10 min}",
            "run.checkpoint={interval: 500 steps, stall: 20 s}")


class TrainingRun(unittest.TestCase):
    program = ""

    def call(self, *settings, arguments=(), config=SMALL):
        command = [self.program, config, "--quiet", *arguments]
        for setting in settings:
            command += ["--set", setting]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    def result(self, *settings, config=SMALL):
        done = self.call(*settings, arguments=("--format", "json"), config=config)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_nothing_changes_without_the_section(self):
        self.assertNotIn("run", self.result())
        row = next(csv.DictReader(io.StringIO(self.call(arguments=("--format", "csv")).stdout)))
        self.assertEqual({row[name] for name in row if name.startswith("run_")}, {""})
        self.assertNotIn("whole run", self.call().stdout)

    def test_a_run_is_made_of_the_step(self):
        step, whole = self.result(), self.result("run.steps=1000")
        run = whole.pop("run")
        for each in (step, whole):
            del each["simulation"]["wall_s"]
        self.assertEqual(step, whole)
        self.assertAlmostEqual(run["wall_s"], 1000 * step["step_time_s"], places=6)
        self.assertAlmostEqual(run["days"] * 86400, run["wall_s"], places=6)
        self.assertAlmostEqual(run["gpu_hours"] * 3600, run["wall_s"] * step["plan"]["gpus"], places=5)
        self.assertEqual(run["goodput"], 1)
        self.assertEqual([run["cost"], run["checkpoint"], run["failures"]], [None, None, None])
        # Utilization is what the breakdown says.
        computing = sum(step["breakdown"][cause] for cause in ("forward", "backward", "recompute", "optimizer"))
        self.assertAlmostEqual(run["energy"]["gpu_utilization"], computing / step["step_time_s"], places=12)

    def test_checkpoints_through_the_compute_fabric_slow_steps(self):
        # On nodes of one GPU and one NIC each all that is sent crosses the NICs.
        nodes = ("cluster.gpus_per_node=1", "cluster.nics_per_node=1")
        writing = "run.checkpoint={interval: 500 steps, stall: 1 s, write_bandwidth: 160 GB/s, size: 800 GB%s}"
        through = self.result(*nodes, "run.steps=1000", writing % ", through: compute")
        storage = self.result(*nodes, "run.steps=1000", writing % "")
        # Of each of eight NICs writing takes 20 GB/s, 40 % of their 50 GB/s; of the usable 92 % 52 % are left.
        slow = self.result(*nodes, "cluster.nic.efficiency=0.52")["step_time_s"]
        checkpoint = through["run"]["checkpoint"]
        self.assertAlmostEqual(checkpoint["slow_step_time_s"] / slow, 1, places=9)
        self.assertGreater(slow, 1.01 * through["step_time_s"])
        # 5 s less the stall, at the pace of slow steps.
        lost = (5 - 1) * (1 - through["step_time_s"] / slow)
        self.assertAlmostEqual(checkpoint["slowed_s"], lost, places=6)
        self.assertEqual((checkpoint["stall_s"], storage["run"]["checkpoint"]["slowed_s"]), (1, 0))
        self.assertLess(through["run"]["goodput"], storage["run"]["goodput"])
        self.assertIsNone(storage["run"]["checkpoint"]["slow_step_time_s"])

    def test_rows_of_a_sweep_have_it(self):
        ramp = "run.rampup_batch_size={start: 16, increment: 16, samples: 1000}"
        command = [self.program, "sweep", SMALL, "--quiet", "--format", "csv", "--set", "run.tokens=10M", "--set", ramp,
                   "--vary", "plan.micro_batch_size=1,2,7"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual(len(rows), 3, done.stderr)
        for row in rows[:2]:
            size = f"plan.micro_batch_size={row['plan.micro_batch_size']}"
            self.assertEqual(float(row["run_days"]), self.result("run.tokens=10M", ramp, size)["run"]["days"])
        self.assertEqual((rows[2]["run_days"], rows[2]["error"] != ""), ("", True))

    def test_a_sweep_of_the_run_alone_shows_it(self):
        ramp = "run.rampup_batch_size={start: 16, increment: 16, samples: 1000}"
        command = [self.program, "sweep", SMALL, "--quiet", "--set", ramp, "--vary", "run.tokens=10M,20M,1",
                   "--set", "run.price_per_gpu_hour=2 USD"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        head, first, second, third = done.stdout.splitlines()[:4]
        self.assertRegex(head, r"^ +run\.tokens +run +goodput +GPU-hours +cost +energy +memory$")
        for line, tokens in ((first, "10M"), (second, "20M")):
            run = self.result(f"run.tokens={tokens}", ramp)["run"]
            seconds = "%.3g" % run["wall_s"]
            self.assertIn(f" {seconds} s  ", line)
        self.assertIn("the run ends after 16 sequences", third)
        self.assertIn("Shortest run of what fits: run.tokens=10M", done.stdout)

    def test_parts_of_the_wall_time_add_up(self):
        run = self.result(*FAILURES)["run"]
        self.assertAlmostEqual(sum(run["breakdown"].values()) / run["wall_s"], 1, places=12)
        self.assertAlmostEqual(run["goodput"], run["breakdown"]["steps_s"] / run["wall_s"], places=12)
        self.assertLess(run["failures"]["goodput_p10"], run["goodput"])
        self.assertGreater(run["failures"]["goodput_p90"], run["goodput"])
        # 8 GPUs that fail once in 10 h each.
        self.assertAlmostEqual(run["failures"]["mtbf_s"], 4500)

    def test_seeds_repeat(self):
        first = self.result(*FAILURES)["run"]
        self.assertEqual(first, self.result(*FAILURES)["run"])
        other = self.result(*FAILURES, "run.failures.seed=2")["run"]
        self.assertNotEqual(first["wall_s"], other["wall_s"])
        self.assertEqual(first["failures"]["goodput_closed_form"], other["failures"]["goodput_closed_form"])

    def test_every_batch_of_a_ramp_is_simulated(self):
        ramp = "run.rampup_batch_size={start: 16, increment: 16, samples: 2400}"
        run = self.result("run.steps=1000", ramp)["run"]
        # Three shares of 800 sequences: 50 steps of 16, 25 of 32, 17 of 48 (16.7), the rest of 64.
        self.assertEqual([(s["global_batch_size"], s["steps"]) for s in run["stages"]],
                         [(16, 50), (32, 25), (48, 17), (64, 908)])
        for stage in run["stages"]:
            alone = self.result(f"plan.global_batch_size={stage['global_batch_size']}")
            self.assertAlmostEqual(stage["step_time_s"], alone["step_time_s"], places=12)
        total = sum(stage["steps"] * stage["step_time_s"] for stage in run["stages"])
        self.assertAlmostEqual(run["wall_s"], total, places=6)
        text = self.call("run.steps=1000", ramp).stdout
        self.assertIn("from 16 to 64 sequences in 4 sizes, each simulated", text)

    def test_folding_is_that_of_the_step(self):
        for mode, simulated in (("auto", 1), ("off", 8)):
            done = self.call_verbosely(mode)
            for size in (16, 32, 48):
                self.assertIn(f"a step of {size} sequences: {simulated} of 8 ranks simulated", done.stderr)

    def call_verbosely(self, mode):
        command = [self.program, SMALL, "--verbose", "--fold", mode, "--set", "run.steps=1000", "--set",
                   "run.rampup_batch_size={start: 16, increment: 16, samples: 2400}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)

    def test_jitter_lengthens_all_steps(self):
        jitter = "simulation={steps: 5, jitter: {compute: 0.1}}"
        result = self.result(jitter, "run.steps=1000")
        self.assertAlmostEqual(result["run"]["wall_s"], 1000 * result["jitter"]["mean_s"], places=6)

    def test_csv_has_the_run_behind_the_step(self):
        done = self.call(*FAILURES, "run.price_per_gpu_hour=2.50 EUR", arguments=("--format", "csv"))
        row = next(csv.DictReader(io.StringIO(done.stdout)))
        run = self.result(*FAILURES, "run.price_per_gpu_hour=2.50 EUR")["run"]
        self.assertEqual(list(row)[-8:], ["run_steps", "run_days", "run_goodput", "run_gpu_hours", "run_cost",
                                          "run_currency", "run_energy_kwh", "run_co2_kg"])
        self.assertEqual(float(row["run_days"]), run["days"])
        self.assertEqual(float(row["run_cost"]), run["cost"]["amount"])
        self.assertEqual(row["run_currency"], "EUR")
        self.assertEqual(row["run_co2_kg"], "")
        self.assertAlmostEqual(run["cost"]["amount"], 2.5 * run["gpu_hours"], places=6)

    def test_text_names_what_is_lost(self):
        text = self.call(*FAILURES, "run.price_per_gpu_hour=2.50 EUR", "run.power.grid_intensity=57 g/kWh").stdout
        for words in ("The whole run", "GPU-hours", "EUR at 2.50 EUR per GPU-hour", "at 57.0 g/kWh", "one every 75.0 min",
                      "every 500 steps", "(Daly)", "(Young)", "lost to checkpoints"):
            self.assertIn(words, text)

    def test_nothing_is_lost_to_failures_without_any(self):
        text = self.call("run.steps=1000", "run.checkpoint={interval: 100 steps, stall: 1 s}").stdout
        self.assertIn("lost to checkpoints", text)
        self.assertNotIn("steps done again", text)
        self.assertNotIn("restarts", text)
        self.assertIn("to steps done again", self.call(*FAILURES).stdout)

    def test_a_poor_interval_is_explained(self):
        # The best is sqrt(2 · 20 · 4500) = 424 s; a step takes about a tenth of a second.
        notes = self.result(*FAILURES, "run.checkpoint.interval=50_000 steps")["notes"]
        self.assertTrue(any("are too seldom: every" in note for note in notes), notes)
        notes = self.result(*FAILURES, "run.checkpoint.interval=20 steps")["notes"]
        self.assertTrue(any("are too often: every" in note for note in notes), notes)

    def test_checkpoints_beside_training_are_as_frequent_as_they_can_be_written(self):
        # 10 GB at 100 MB/s are written in 100 s, training stops for 1 s of them; the best for the stall alone would be
        # sqrt(2 · 1 · 360) = 27 s.
        settings = ("run.steps=100_000", "run.failures={gpu_mtbf: 48 min, restart_time: 10 s}",
                    "run.checkpoint={interval: auto, stall: 1 s, size: 10 GB, write_bandwidth: 100 MB/s}")
        result = self.result(*settings)
        run, step_time = result["run"], result["step_time_s"]
        self.assertEqual(run["checkpoint"]["interval_steps"], math.ceil(99 / step_time))
        self.assertEqual([run["failures"][name] for name in ("young_interval_s", "daly_interval_s", "goodput_closed_form",
                                                             "goodput_at_daly")], [None] * 4)
        # Nobody waits but for the last two: too few steps lie between these, and nothing comes after.
        whole, rest = divmod(100_000, run["checkpoint"]["interval_steps"])
        self.assertLess(rest * step_time, 99)
        self.assertAlmostEqual(run["breakdown"]["checkpoints_s"], whole - 1 + (100 - rest * step_time) + 100, places=6)
        self.assertEqual(result["warnings"], self.result()["warnings"])
        text = " ".join(self.call(*settings).stdout.split())
        self.assertIn("chosen: as short as writing allows", text)
        self.assertIn("Daly's and Young's best intervals are not those of writing beside training", text)
        self.assertNotIn("(Daly)", text)

    def test_assertions_reach_into_the_run(self):
        def code(assertion, *settings):
            return self.call(*settings, arguments=("--assert", assertion)).returncode
        self.assertEqual(code("run.goodput>=0.1", *FAILURES), 0)
        self.assertEqual(code("run.goodput>1", *FAILURES), 4)
        self.assertEqual(code("run.failures.expected>0", *FAILURES), 0)
        self.assertEqual(code("run.days<=1"), 2)
        self.assertEqual(code("run.day<=1", *FAILURES), 2)

    def test_assertions_say_what_they_need_before_the_simulation(self):
        unknown_power = "cluster=" + str(ROOT / "tests/bad_inputs/parts/cluster.yaml")
        for assertion, settings, part, cure in (
                ("run.days<=1", (), "run", "a section run, as in --set run.tokens=300B"),
                ("run.cost.amount<=1", ("run.steps=1",), "run.cost",
                 "run.price_per_gpu_hour, as in --set 'run.price_per_gpu_hour=2 USD'"),
                ("run.energy.co2_kg<=1", ("run.steps=1",), "run.energy.co2_kg",
                 "run.power.grid_intensity, as in --set 'run.power.grid_intensity=385 g/kWh'"),
                ("run.checkpoint.stall_s<=1", ("run.steps=1",), "run.checkpoint",
                 "run.checkpoint, as in --set 'run.checkpoint={interval: 30 min, stall: 20 s}'"),
                ("run.failures.expected<=1", ("run.steps=1",), "run.failures",
                 "run.failures and run.checkpoint, as in --set 'run.failures={gpu_mtbf: 50_000 h, restart_time: 10 "
                 "min}' --set 'run.checkpoint={stall: 20 s}'"),
                ("run.energy.energy_kwh<=1", ("run.steps=1", unknown_power), "run.energy",
                 "cluster.gpu.rated_power and static_power")):
            with self.subTest(assertion=assertion):
                done = self.call(*settings, arguments=("--assert", assertion))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr, f"--assert '{assertion}': error: {part} needs {cure}\n")

    def test_what_only_the_run_can_tell_is_said_after_it(self):
        settings = ("run.steps=100_000", "run.failures={gpu_mtbf: 48 min, restart_time: 10 s}",
                    "run.checkpoint={interval: auto, stall: 1 s, size: 10 GB, write_bandwidth: 100 MB/s}")
        done = self.call(*settings, arguments=("--assert", "run.failures.daly_interval_s>0"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "--assert 'run.failures.daly_interval_s>0': error: "
                                      "'run.failures.daly_interval_s' has no value in this result; docs/output.md says "
                                      "when it has one\n")

    def test_limits_of_a_search_are_about_a_step(self):
        done = subprocess.run([self.program, "search", SMALL, "--limit", "run.days<=40", "--set", "run.tokens=1B"],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "--limit 'run.days<=40': error: search simulates one step of each plan and no "
                                      "whole run; limit what a step has, such as tokens_per_s\n")

    def test_check_counts_steps(self):
        done = subprocess.run([self.program, "check", SMALL, "--set", "run.steps=1000"], capture_output=True, text=True,
                              check=True)
        self.assertRegex(done.stdout, r"steps of the run +1000\n")
        self.assertRegex(done.stdout, r"run\.power\.pue +1\.1\n")

    def test_a_run_that_does_not_end_is_bad_input(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder) / "result.json"
            done = self.call("run.steps=1M", "run.failures={gpu_mtbf: 1 min, restart_time: 1 h}",
                             "run.checkpoint={interval: 1 h, stall: 1 s}",
                             arguments=("--format", "json", "-o", str(output)))
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, r"^trainsim: error: run\.failures: with a failure of the job every 7\.50 s, a "
                                          r"restart of 60\.0 min and .* steps; shorten checkpoint\.interval, stall or "
                                          r"restart_time, or use fewer GPUs\n$")
            self.assertFalse(output.exists())

    def test_a_long_interval_is_a_warning(self):
        result = self.result("run.steps=10", "run.checkpoint={interval: 30 d, stall: 1 s}")
        self.assertTrue(any("nothing is saved before the end" in warning for warning in result["warnings"]))


def without_times(value):
    """A result without the seconds that simulating took."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key != "wall_s"}
    return [without_times(each) for each in value] if isinstance(value, list) else value


class OneStep(unittest.TestCase):
    """Commands that try other plans say the same of a configuration with a section `run` as without it.

    The ramp begins with 16 sequences, which is legal for the plan's 8 ranks with 2 sequences each. It is not
    for 32 GPUs, nor for micro-batches of 4, nor for a batch of 16.
    """
    RUN = """
run:
  tokens: 1B
  rampup_batch_size: {start: 16, increment: 16, samples: 2400}
  failures: {gpu_mtbf: 1000 h, restart_time: 10 min}
  checkpoint: {interval: 100 steps, write_bandwidth: 1 GB/s}
"""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        text = pathlib.Path(SMALL).read_text(encoding="utf-8")
        self.folders = {name: pathlib.Path(temporary.name) / name for name in ("step", "run")}
        for name, folder in self.folders.items():
            folder.mkdir()
            (folder / "small.yaml").write_text(text + (self.RUN if name == "run" else ""), encoding="utf-8")

    def outputs(self, *arguments):
        """What a command says in a folder without, and in one with the section."""
        texts = []
        for folder in self.folders.values():
            done = subprocess.run([TrainingRun.program, *arguments], cwd=folder, capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            texts.append(done.stdout)
        return texts

    def agree(self, *arguments):
        step, run = (json.loads(text) for text in self.outputs(*arguments, "--quiet", "--format", "json"))
        self.assertEqual(without_times(step), without_times(run))
        return step

    def test_search(self):
        vary = [part for text in ("micro_batch_size=2,4", "recompute=none", "sharding=zero1", "tensor_parallel=1,2")
                for part in ("--vary", text)]
        self.assertGreater(len(self.agree("search", "small.yaml", "--gpus", "8,32", *vary)["plans"]), 3)

    def test_neighbours(self):
        changes = self.agree("neighbours", "small.yaml")
        self.assertIn("plan.micro_batch_size=4", json.dumps(changes))

    def test_memory(self):
        for question in (["--largest", "micro_batch_size"], ["--fewest-gpus"], ["--set", "model.sequence_length=131072"]):
            self.agree("memory", "small.yaml", *question)

    def test_compare(self):
        changes = ["@plan.micro_batch_size=4", "@gpus=32", "@plan.global_batch_size=16"]
        self.assertEqual(len(self.agree("compare", "small.yaml", *changes)["runs"]), 4)

    def test_changes_of_the_run_are_for_sweeps(self):
        reason = ("steps are compared here, and nothing of the section run is about a step; `trainsim sweep CONFIG --vary "
                  "run.tokens=VALUES` shows whole runs side by side\n")
        for arguments, where in ((["compare", SMALL, "@run.tokens=1T"], "compare run.tokens=1T"),
                                 (["run", SMALL, "--what-if", "run.tokens=1T"], "--what-if run.tokens=1T")):
            done = subprocess.run([TrainingRun.program, *arguments], capture_output=True, text=True, timeout=300,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr, f"trainsim: error: {where}: {reason}")

    def test_export(self):
        step, run = self.outputs("export", "small.yaml", "--to", "megatron", "--quiet", "--set",
                                 "plan.micro_batch_size=4")
        self.assertEqual(step, run)

    def test_questions_about_a_run(self):
        questions = ["--what-if", "plan.micro_batch_size=4", "--what-if", "plan.global_batch_size=16",
                     "--sensitivity", "--uncertainty", "--samples", "10"]
        step, run = (json.loads(text)
                     for text in self.outputs("run", "small.yaml", "--quiet", "--format", "json", *questions))
        self.assertGreater(run.pop("run")["days"], 0)
        # Notes on the whole run come last.
        run["notes"] = run["notes"][:len(step["notes"])]
        self.assertEqual(without_times(step), without_times(run))

    def test_the_preset(self):
        done = subprocess.run([TrainingRun.program, "memory", "gpt175b-300b-tokens", "--largest", "micro_batch_size",
                               "--format", "json", "--quiet"], capture_output=True, text=True, timeout=300, check=True)
        self.assertGreater(json.loads(done.stdout)["answers"][0]["value"], 1)


if __name__ == "__main__":
    TrainingRun.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
