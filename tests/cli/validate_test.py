#!/usr/bin/env python3
"""Runs `trainsim validate` as a user would: on good rows, bad rows, and folders that are none.

usage: validate_test.py TRAINSIM
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""

ROWS = """\
source: a paper
defaults:
  kind: train_step
  tier: A
  model: {layers: 24, hidden: 2048, heads: 16, vocab: 51200, seq: 1024}
  plan: {tp: 1, pp: 1, mbs: 1, gbs: 16, recompute: none, precision: fp16}
  hardware: {gpu: A100-SXM4-80GB, count: 8, gpus_per_node: 8}
rows:
- {id: tp1, measured: {iteration_time_s: 0.5}}
- {id: tp2, plan: {tp: 2}, measured: {iteration_time_s: 0.6}}
- {id: tp4, plan: {tp: 4}, measured: {iteration_time_s: 0.8}}
- {id: fp4, plan: {precision: NVFP4}, measured: {iteration_time_s: 0.5}}
- {id: illegal, plan: {tp: 3}, measured: {iteration_time_s: 0.5}}
- {id: misspelt, plan: {tpp: 2}, measured: {iteration_time_s: 0.5}}
- {id: vague, model: {vocab: null}, plan: {gbs: 32}, measured: {iteration_time_s: 1}}
"""
TABLE = """\
gpu,peak_tflops,batch,m,n,k,layout,accumulate,out_dtype,fraction_of_peak
a100-80gb,312,1,4096,4096,4096,TN,False,bf16,0.8
a100-80gb,312,1,4096,4096,many,TN,False,bf16,0.8
v100,125,1,4096,4096,4096,TN,False,bf16,0.8
"""


def run(*arguments):
    return subprocess.run([PROGRAM, "validate", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)


class Validate(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        (self.folder / "runs.yaml").write_text(ROWS, encoding="utf-8")
        (self.folder / "kernels.csv").write_text(TABLE, encoding="utf-8")
        (self.folder / "notes.txt").write_text("not a row", encoding="utf-8")

    def result(self, *arguments):
        done = run(self.folder, "--format", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_row_is_compared_skipped_or_malformed(self):
        result = self.result()
        self.assertEqual(sorted(row["id"] for row in result["rows"] if row["family"] == "runs"),
                         ["tp1", "tp2", "tp4", "vague"])
        self.assertEqual({row["id"]: row["reason"] for row in result["skipped"]}, {
            "fp4": "precision 'NVFP4' is not supported by this version",
            "v100 multiply 1x4096x4096x4096": "there is no preset for the GPU 'v100'"})
        self.assertEqual(result["malformed"], {"kernels": 1, "runs": 2})
        self.assertEqual(len(result["problems"]), 3)

    def test_roles_and_statistics(self):
        families = {(f["family"], f["role"]): f for f in self.result()["families"]}
        self.assertEqual(sorted(families), [("kernels", "fitted"), ("runs", "assumed"), ("runs", "tested")])
        tested = families["runs", "tested"]
        rows = [row for row in self.result()["rows"] if row["role"] == "tested"]
        errors = [abs(row["simulated"] / row["measured"] - 1) for row in rows]
        self.assertAlmostEqual(tested["mean_absolute_error"], sum(errors) / 3, delta=1e-12)
        self.assertEqual(tested["rows"], 3)

    def test_plans_of_one_model_are_ranked(self):
        groups = self.result()["groups"]
        self.assertEqual([group["rows"] for group in groups], [3])
        self.assertEqual(groups[0]["kendall_tau"], 1.0)
        self.assertEqual(groups[0]["regret"], 0.0)

    def test_malformed_rows_are_reported_with_their_place(self):
        errors = run(self.folder).stderr
        for part in ("runs.yaml:13:28: error: plan.tensor_parallel: 3", "runs.yaml:14:25: error: plan.tpp: is not a key",
                     "did you mean tp?", "kernels.csv:3:1: error: k: "):
            self.assertIn(part, errors)

    def test_assumptions_are_stated(self):
        vague = next(row for row in self.result()["rows"] if row["id"] == "vague")
        self.assertEqual(vague["assumptions"], ["The vocabulary is not stated; 50,257 (GPT-2's) is taken."])

    def test_workers_do_not_change_the_result(self):
        one, many = self.result("-j", "1"), self.result("-j", "5")
        one["wall_s"] = many["wall_s"] = 0
        self.assertEqual(one, many)

    def test_other_formats_and_the_picture(self):
        rows = list(csv.DictReader(io.StringIO(run(self.folder, "--format", "csv").stdout)))
        self.assertEqual(len(rows), 5)
        self.assertIn("### Tested only", run(self.folder, "--format", "markdown").stdout)
        picture = self.folder / "picture.svg"
        text = run(self.folder, "--picture", picture).stdout
        self.assertIn("5 comparisons, 2 rows skipped, 3 malformed", text)
        self.assertIn("tp4: measured 800.0 ms", picture.read_text(encoding="utf-8"))

    def test_set_changes_every_run(self):
        slow = self.result("--set", "cluster.gpu.matmul_efficiency=0.1")
        times = {row["id"]: row["simulated"] for row in self.result()["rows"]}
        for row in slow["rows"]:
            if row["family"] == "runs":
                self.assertGreater(row["simulated"], 2 * times[row["id"]])

    def test_one_file_is_enough(self):
        done = run(self.folder / "runs.yaml", "--format", "json")
        self.assertEqual(len(json.loads(done.stdout)["rows"]), 4)

    def test_bad_command_lines(self):
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, message in (([self.folder / "nowhere"], "no such file or folder"),
                                   ([empty], "has no measured runs"),
                                   ([], "DIR is required"),
                                   ([self.folder, "-j", "0"], "--jobs"),
                                   ([self.folder, "--format", "xml"], "--format 'xml' is not known"),
                                   ([self.folder, "--picture", self.folder / "no/such/folder.svg"], "can't write")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(message, done.stderr)

    def test_a_file_that_is_no_yaml_is_one_problem(self):
        (self.folder / "broken.yaml").write_text("- [", encoding="utf-8")
        result = self.result()
        self.assertEqual(result["malformed"]["broken"], 1)
        self.assertEqual(len([row for row in result["rows"] if row["family"] == "runs"]), 4)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
