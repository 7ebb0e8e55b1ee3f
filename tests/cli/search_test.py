#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim search and trainsim neighbours: formats, limits, objectives, Ctrl-C, bad input.

usage: search_test.py TRAINSIM
"""
import csv
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
CONFIG = {
    "model": {"num_layers": 8, "hidden_size": 1024, "num_attention_heads": 8, "vocab_size": 8192,
              "sequence_length": 512, "attention": "flash"},
    "cluster": "dgx-a100-80gb", "gpus": 8,
    "plan": {"tensor_parallel": 2, "pipeline_parallel": 2, "micro_batch_size": 1, "global_batch_size": 32},
}
SMALL = ["--vary", "recompute=none", "--vary", "sharding=none,zero2", "--vary", "micro_batch_size=1,4",
         "--vary", "schedule=1f1b,interleaved"]


class Case(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.path = self.folder / "plan.yaml"
        self.write(CONFIG)

    def write(self, config):
        self.path.write_text(json.dumps(config), encoding="utf-8")

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments, "--quiet"], capture_output=True, text=True, timeout=300,
                              check=False)

    def output(self, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def search(self, *arguments):
        return json.loads(self.output("search", str(self.path), "--format", "json", *arguments))

    def time_of(self, overrides):
        options = [part for override in overrides for part in ("--set", override)]
        return json.loads(self.output("run", str(self.path), "--format", "json", *options))["step_time_s"]

    def fails(self, text, *arguments, code=2):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")


class Search(Case):
    def test_finds_plans_that_run_as_it_says(self):
        result = self.search(*SMALL, "--top", "3")
        times = [plan["step_time_s"] for plan in result["plans"]]
        self.assertEqual(len(times), 3)
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[0], result["own"]["step_time_s"])
        for plan in result["plans"]:
            self.assertAlmostEqual(self.time_of(plan["overrides"]), plan["step_time_s"], delta=1e-9)
            degrees = plan["tensor_parallel"] * plan["pipeline_parallel"] * plan["data_parallel"]
            self.assertEqual((degrees, plan["global_batch_size"]), (8, 32))
            self.assertAlmostEqual(sum(plan["breakdown"].values()), plan["step_time_s"], places=9)
            self.assertAlmostEqual(plan["relative"], plan["step_time_s"] / times[0], places=12)
        self.assertAlmostEqual(self.time_of([]), result["own"]["step_time_s"], delta=1e-9)

    def test_counts_add_up(self):
        result = self.search(*SMALL)
        illegal = sum(each["count"] for each in result["illegal"])
        self.assertEqual(result["considered"], result["legal"] + illegal)
        rejected = sum(each["count"] for each in result["rejected"])
        self.assertEqual(result["legal"], rejected + len(result["plans"]))

    def test_is_the_same_with_any_number_of_workers(self):
        command = ["search", str(self.path), *SMALL, "--format", "json"]
        self.assertEqual(self.output(*command, "-j", "1"), self.output(*command, "-j", "3"))

    def test_text_and_table(self):
        # Only FSDP shards gradients in a pipeline.
        text = self.output("search", str(self.path), *SMALL, "--set", "software.framework=megatron", "--top", "2")
        for part in ("plans with the smallest step time", "    1", "    2", "yours", "Searched:", "Left out",
                     "Illegal, by the first rule that they break", "--set "):
            self.assertIn(part, text)
        table = list(csv.DictReader(io.StringIO(self.output("search", str(self.path), *SMALL, "--top", "2",
                                                            "--format", "csv"))))
        self.assertEqual([row["rank"] for row in table], ["1", "2", "own"])
        self.assertEqual({row["complete"] for row in table}, {"true"})
        self.assertGreaterEqual(float(table[1]["step_time_s"]), float(table[0]["step_time_s"]))

    def test_keeps_limits(self):
        free = self.search(*SMALL, "--top", "1")["plans"][0]
        limit = f"peak_memory_bytes<{free['peak_memory_bytes']}"
        limited = self.search(*SMALL, "--top", "1", "--limit", limit)
        self.assertLess(limited["plans"][0]["peak_memory_bytes"], free["peak_memory_bytes"])
        self.assertGreaterEqual(limited["plans"][0]["step_time_s"], free["step_time_s"])
        self.assertIn("break the limit " + limit, [each["reason"] for each in limited["rejected"]])
        # Of the configuration's own plan, too, it is said whether it keeps them.
        own = limited["own"]["peak_memory_bytes"]
        for bound, keeps in ((own, True), (own - 1, False)):
            arguments = (*SMALL, "--top", "1", "--limit", f"peak_memory_bytes<={bound}")
            result = self.search(*arguments)
            self.assertEqual((len(result["plans"]), result["own_keeps_limits"]), (1, keeps))
            text = self.output("search", str(self.path), *arguments)
            self.assertEqual("\nYours breaks a limit.\n" in text, not keeps, text)
        flat = self.search(*SMALL, "--top", "1", "--limit", "bubble_ratio<=0.01")["plans"][0]
        self.assertLessEqual(flat["bubble_ratio"], 0.01)
        none = self.search(*SMALL, "--limit", "mfu>1")
        self.assertEqual(none["plans"], [])
        self.assertIn("No plan was found", self.output("search", str(self.path), *SMALL, "--limit", "mfu>1"))

    def test_fewest_gpus(self):
        fastest = self.search(*SMALL, "--top", "1", "--gpus", "2,8,4")["plans"][0]
        self.assertEqual(fastest["gpus"], 8)
        fewest = self.search(*SMALL, "--top", "1", "--gpus", "2,8,4", "--objective", "gpus")["plans"][0]
        self.assertEqual(fewest["gpus"], 2)
        self.assertAlmostEqual(self.time_of(fewest["overrides"]), fewest["step_time_s"], delta=1e-9)
        # Two GPUs are too slow now; halves of the configuration's eight are tried on their own.
        limit = f"step_time_s<{0.9 * fewest['step_time_s']}"
        self.assertEqual(self.search(*SMALL, "--top", "1", "--objective", "gpus", "--limit", limit)["plans"][0]["gpus"],
                         4)

    def test_cost(self):
        result = self.search(*SMALL, "--gpus", "2,4,8", "--objective", "cost", "--price", "2.5")
        hours = [plan["gpu_hours_per_step"] for plan in result["plans"]]
        self.assertEqual(hours, sorted(hours))
        best = result["plans"][0]
        self.assertAlmostEqual(best["gpu_hours_per_step"], best["gpus"] * best["step_time_s"] / 3600, places=12)
        self.assertEqual(result["price_per_gpu_hour"], 2.5)
        # The run's own price, in dollars.
        for price, shown in (("3 USD", 3), ("3 EUR", None)):
            run = ("--set", "run.tokens=1B", "--set", f"run.price_per_gpu_hour={price}")
            self.assertEqual(self.search(*SMALL, *run)["price_per_gpu_hour"], shown)
        table = self.output("search", str(self.path), *SMALL, "--top", "1", "--price", "2.5", "--format", "csv")
        for row in csv.DictReader(io.StringIO(table)):
            self.assertAlmostEqual(float(row["cost_per_step"]), 2.5 * float(row["gpu_hours_per_step"]), places=12)
        text = self.output("search", str(self.path), *SMALL, "--top", "1", "--price", "2.5")
        self.assertIn("GPU-hours a step, $", text)

    def test_own_plan_is_compared_where_it_is_outside_of_the_space(self):
        config = json.loads(json.dumps(CONFIG))
        config["plan"].update(recompute={"granularity": "full", "method": "uniform", "layers": 2}, data_parallel=2)
        self.write(config)
        narrow = ["--vary", "tensor_parallel=2", "--vary", "pipeline_parallel=2"]
        self.assertGreater(self.search(*narrow, *SMALL, "--top", "1")["own"]["relative"], 1)

    def test_gradient_accumulation_follows(self):
        config = json.loads(json.dumps(CONFIG))
        del config["plan"]["global_batch_size"]
        config["plan"]["gradient_accumulation"] = 16
        self.write(config)
        for plan in self.search(*SMALL, "--top", "4")["plans"]:
            self.assertEqual(plan["global_batch_size"], 32)
            self.assertAlmostEqual(self.time_of(plan["overrides"]), plan["step_time_s"], delta=1e-9)

    def test_recompute_auto_is_resolved(self):
        config = json.loads(json.dumps(CONFIG))
        config["plan"]["recompute"] = "auto"
        self.write(config)
        self.assertEqual(self.search(*SMALL, "--top", "1")["own"]["recompute"], "none")

    def test_writes_a_file(self):
        self.output("search", str(self.path), *SMALL, "--format", "json", "-o", str(self.folder / "out.json"))
        self.assertTrue(json.loads((self.folder / "out.json").read_text(encoding="utf-8"))["complete"])

    def test_ctrl_c_keeps_what_was_found(self):
        out = self.folder / "out.json"
        command = [PROGRAM, "search", str(self.path), "--top", "1000", "--format", "json", "-o", str(out), "--verbose"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stderr:
                if re.search(r" [1-9]\d* simulated", line):
                    break
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            self.assertEqual(process.wait(60), 1)
        self.assertIn("interrupted; the result holds what was found until then, and is marked as incomplete", rest)
        result = json.loads(out.read_text(encoding="utf-8"))
        self.assertFalse(result["complete"])
        self.assertGreaterEqual(len(result["plans"]), 1)
        self.assertEqual(list(self.folder.glob("*.partial*")), [])

    def test_ctrl_c_before_anything_was_found(self):
        out = self.folder / "out.json"
        command = [PROGRAM, "search", str(self.path), "-o", str(out), "--verbose"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            self.assertEqual(process.wait(60), 1)
        self.assertIn("interrupted before a plan was found; there is no result", rest)
        self.assertFalse(out.exists())

    def test_bad_input(self):
        path = str(self.path)
        self.fails("no such file, and no preset configuration is called so", "search", "nothing")
        self.fails("'tensor_paralel' is not a setting that a search varies", "search", path, "--vary",
                   "tensor_paralel=2")
        self.fails("--objective 'speed' is not known; use step_time, cost or gpus", "search", path, "--objective",
                   "speed")
        self.fails("--limit 'memory<=1': error: the result has no number 'memory'", "search", path, "--limit",
                   "memory<=1")
        self.fails("--limit 'mfu': error: not an assertion", "search", path, "--limit", "mfu")
        self.fails("--top", "search", path, "--top", "0")
        self.fails("--gpus", "search", path, "--gpus", "8,many")
        self.fails("--price", "search", path, "--price", "-1")
        self.fails("--format 'yaml' is not known", "search", path, "--format", "yaml")
        self.fails("can't write", "search", path, "-o", str(self.folder / "none" / "out.json"))
        # Nothing is legal: a statement of how many were tried and why, and no error.
        text = self.output("search", path, "--vary", "tensor_parallel=3")
        self.assertIn("No plan was found", text)
        self.assertIn("does not divide the 8 attention heads", text)

    def test_configurations_that_no_plans_can_be_compared_for(self):
        config = json.loads(json.dumps(CONFIG))
        config["plan"]["profile"] = {"forward": "10 ms", "backward": "20 ms"}
        self.write(config)
        for command in ("search", "neighbours"):
            self.fails("plan.profile: measured times of one plan's stages say nothing of other plans; " + command +
                       " needs a configuration without it", command, str(self.path))
        self.write(CONFIG)
        for command in ("search", "neighbours"):
            self.fails("simulation.network: " + command + " compares plans by what their communication costs; write "
                       "flow, or ideal for no contention", command, str(self.path), "--set", "simulation.network=free")


class Neighbours(Case):
    def test_every_neighbour_runs_as_it_says(self):
        result = json.loads(self.output("neighbours", str(self.path), "--format", "json"))
        times = [each["step_time_s"] for each in result["neighbours"]]
        self.assertEqual(times, sorted(times))
        changes = [each["change"] for each in result["neighbours"]]
        self.assertEqual(len(set(changes)), len(changes))
        self.assertIn("tensor_parallel 2 -> 4, data_parallel 2 -> 1", changes)
        self.assertIn("overlap_point_to_point false -> true", changes)
        for each in result["neighbours"][::5]:
            self.assertAlmostEqual(self.time_of(each["overrides"]), each["step_time_s"], delta=1e-9)
            self.assertAlmostEqual(each["relative"], each["step_time_s"] / result["own"]["step_time_s"], places=12)

    def test_text_and_table(self):
        text = self.output("neighbours", str(self.path))
        self.assertRegex(text, r"^plan: yours is .* % (slower|faster) than ")
        self.assertIn("neighbours simulated", text)
        table = list(csv.DictReader(io.StringIO(self.output("neighbours", str(self.path), "--format", "csv"))))
        self.assertEqual(table[0]["change"], "")
        self.assertEqual(float(table[0]["relative"]), 1)

    def test_those_that_do_not_fit_come_last(self):
        config = json.loads(json.dumps(CONFIG))
        config["cluster"] = {"extends": "dgx-a100-80gb", "gpu": {"extends": "a100-80gb", "memory": "2.9 GiB"}}
        config["plan"].update(micro_batch_size=8)
        self.write(config)
        result = json.loads(self.output("neighbours", str(self.path), "--format", "json"))
        fits = [each["verdict"] != "does not fit" for each in result["neighbours"]]
        self.assertEqual(fits, sorted(fits, reverse=True))
        self.assertIn(False, fits)
        self.assertIn("These do not fit into memory", self.output("neighbours", str(self.path)))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
