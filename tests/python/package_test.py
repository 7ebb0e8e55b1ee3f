#!/usr/bin/env python3
"""Tests the Python package against the program.

usage: package_test.py TRAINSIM
"""
import ast
import copy
import csv
import os
import pathlib
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True

import trainsim  # noqa: E402  (found by the line above)

# Four equal stages with free communication: an idle share of (p - 1) / (m + p - 1) for m micro-batches.
BUBBLE = "bubble-4x8"
FILE = ROOT / "configs/small-tp2-pp2-dp2.yaml"


def script(folder, text):
    """An executable that stands for the program."""
    path = pathlib.Path(folder) / "trainsim"
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class Run(unittest.TestCase):
    def test_a_preset(self):
        result = trainsim.run(BUBBLE)
        self.assertAlmostEqual(result.bubble_ratio, 3 / 11)
        # 8 + 3 micro-batches of 30 ms on one stage, and an optimizer step without a measured time.
        self.assertGreaterEqual(result.step_time_s, 0.33)
        self.assertEqual([rank.stage for rank in result.ranks], [0, 1, 2, 3])
        self.assertEqual(result.plan.pipeline_parallel, 4)
        self.assertEqual(result.point, {})

    def test_a_path(self):
        for path in (FILE, str(FILE)):
            self.assertEqual(trainsim.run(path).plan.tensor_parallel, 2)

    def test_overrides_and_sections_are_the_same_and_sections_win(self):
        by_key = trainsim.run(FILE, {"plan.micro_batch_size": 2, "gpus": 16})
        by_section = trainsim.run(FILE, {"plan.micro_batch_size": 4}, plan={"micro_batch_size": 2}, gpus=16)
        # 16 sequences over 4 replicas in micro-batches of 2.
        self.assertEqual(by_key.plan.micro_batches, 2)
        self.assertEqual({**by_key.to_dict(), "simulation": 0}, {**by_section.to_dict(), "simulation": 0})

    def test_values_of_every_kind(self):
        result = trainsim.run(FILE, plan={"sequence_parallel": False, "pipeline_layout": [3, 5],
                                          "recompute": {"granularity": "full"}, "gradient_dtype": "bf16"},
                              cluster={"nic_bandwidth": "100 Gb/s"})
        self.assertFalse(result.plan.sequence_parallel)
        self.assertEqual(result.plan.layers_per_virtual_stage, [3, 5])
        self.assertEqual(result.plan.recompute.granularity, "full")
        self.assertEqual(result.plan.gradient_bytes, 2)
        self.assertEqual(result.cluster, "dgx-a100-80gb (modified)")

    def test_a_dictionary_is_a_configuration(self):
        config = {"model": {"extends": str(ROOT / "models/llama2-7b.yaml"), "num_layers": 4}, "cluster": "dgx-a100-80gb",
                  "gpus": 2, "plan": {"tensor_parallel": 2}}
        before = copy.deepcopy(config)
        self.assertEqual(trainsim.run(config, {"plan.global_batch_size": 4}).plan.micro_batches, 4)
        self.assertEqual(config, before)

    def test_paths_in_a_dictionary_start_from_the_working_directory(self):
        config = {"model": "models/llama2-7b.yaml", "cluster": "dgx-a100-80gb", "gpus": 8, "plan": {}}
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(ROOT)
        self.assertEqual(trainsim.check(config).derived["nodes"], "1")

    def test_folding_can_be_switched_off(self):
        self.assertTrue(trainsim.run(FILE).simulation.folded)
        whole = trainsim.run(FILE, fold=False)
        self.assertEqual((whole.simulation.folded, whole.simulation.simulated_ranks), (False, 8))

    def test_uncertainty(self):
        self.assertIsNone(trainsim.run(FILE).uncertainty)
        result = trainsim.run(FILE, uncertainty=True)
        self.assertLess(result.uncertainty.step_time_low_s, result.uncertainty.step_time_high_s)

    def test_a_plan_that_does_not_fit_is_a_result_unless_it_must(self):
        self.assertFalse(trainsim.run("gpt175b", plan={"micro_batch_size": 6}).fits)
        with self.assertRaisesRegex(trainsim.DoesNotFit, "the plan does not fit: .* too much on the fullest rank") as raised:
            trainsim.run("gpt175b", plan={"micro_batch_size": 6}, require_fit=True)
        self.assertFalse(raised.exception.result.fits)


class Errors(Folder):
    def test_the_message_is_the_program_s(self):
        with self.assertRaisesRegex(trainsim.InputError,
                                    "plan.micro_batch_sizes: unknown key; did you mean micro_batch_size?"):
            trainsim.run(FILE, plan={"micro_batch_sizes": 2})
        with self.assertRaisesRegex(trainsim.InputError, "plan.tensor_parallel: "):
            trainsim.run({"model": "llama2-7b", "cluster": "dgx-a100-80gb", "gpus": 8, "plan": {"tensor_parallel": 5}})
        with self.assertRaisesRegex(ValueError, "no such file"):
            trainsim.check("nowhere.yaml")

    def test_what_a_configuration_cannot_hold(self):
        with self.assertRaisesRegex(TypeError, "a configuration can't hold .*object"):
            trainsim.run(FILE, plan={"micro_batch_size": object()})

    def test_the_program_is_looked_for_in_the_environment_then_on_the_path(self):
        named = script(self.folder, "exit 0\n")
        with mock.patch.dict(os.environ, {"TRAINSIM": str(named)}):
            self.assertEqual(trainsim.find_program(), str(named))
        with mock.patch.dict(os.environ, {"TRAINSIM": "", "PATH": str(self.folder)}):
            self.assertEqual(trainsim.find_program(), str(named))
        with mock.patch.dict(os.environ, {"TRAINSIM": "", "PATH": "/nowhere"}):
            self.assertIn(trainsim.find_program(), [str(ROOT / "build/release/trainsim"), str(ROOT / "scripts/trainsim")])
        with mock.patch.dict(os.environ, {"TRAINSIM": "/nowhere/trainsim"}):
            with self.assertRaisesRegex(trainsim.ProgramNotFound, "TRAINSIM names '/nowhere/trainsim', which is not a"):
                trainsim.run(FILE)

    def test_a_package_outside_of_the_source_tree_without_a_program_says_so(self):
        shutil.copytree(ROOT / "python/trainsim", self.folder / "a/b/trainsim")
        done = subprocess.run([sys.executable, "-c", "import trainsim; trainsim.find_program()"], check=False,
                              env={"PATH": "/nowhere", "PYTHONPATH": str(self.folder / "a/b")}, capture_output=True, text=True)
        self.assertIn("the trainsim program is not on the PATH; install it, or set TRAINSIM to its path", done.stderr)

    def test_a_program_that_fails(self):
        for text, message in [("echo broken >&2; exit 1\n", "broken"), ("kill -9 $$\n", "ended with code -9 and said nothing"),
                              ("echo hello\n", "does not print JSON; is it trainsim?"),
                              ("exec sleep 60\n", "took longer than the timeout of 0.2 s")]:
            with mock.patch.dict(os.environ, {"TRAINSIM": str(script(self.folder, text))}):
                with self.assertRaisesRegex(trainsim.ProgramFailed, message):
                    trainsim.run(FILE, timeout=0.2 if "sleep" in text else 60)


class Results(unittest.TestCase):
    def setUp(self):
        self.result = trainsim.run(BUBBLE)

    def test_names_in_the_class_are_names_of_the_result(self):
        for kind, record in [(trainsim.Result, self.result), (trainsim.Rank, self.result.ranks[0]),
                             (trainsim.MemoryReport, trainsim.memory(BUBBLE)), (trainsim.Check, trainsim.check(BUBBLE))]:
            self.assertEqual([name for name in kind.__annotations__ if name not in record], [], kind)

    def test_every_key_is_an_attribute(self):
        for key, value in self.result.to_dict().items():
            if not isinstance(value, (dict, list)):
                self.assertEqual(getattr(self.result, key), value)
            self.assertIn(key, dir(self.result))

    def test_a_missing_name_lists_those_there_are(self):
        with self.assertRaisesRegex(AttributeError, "Result has no 'step_time'; it has .*step_time_s"):
            _ = self.result.step_time
        with self.assertRaises(KeyError):
            _ = self.result.breakdown["nothing"]

    def test_repr_tells_the_headline(self):
        # Peak memory is the program's business; what is checked is form and the closed form of the bubble.
        self.assertRegex(repr(self.result), r"^<Result bubble-4x8: 0\.33\d* s, MFU [\d.]+ %, bubble 27\.3 %, "
                                            r"[\d.]+ of 80\.0 GiB, fits>$")
        self.assertIn("forward=", repr(self.result.breakdown))

    def test_results_can_be_copied_and_kept(self):
        for copied in (copy.deepcopy(self.result), pickle.loads(pickle.dumps(self.result))):
            self.assertEqual(copied, self.result)
        changed = self.result.to_dict()
        changed["plan"]["gpus"] = 0
        self.assertEqual(self.result.plan.gpus, 4)


class Sweeps(Folder):
    def test_the_bubble_follows_its_closed_form(self):
        seen = []
        sweep = trainsim.sweep(BUBBLE, {"plan.global_batch_size": [4, 8, 16]}, jobs=2,
                               progress=lambda done, total: seen.append((done, total)))
        self.assertEqual([round(result.bubble_ratio, 9) for result in sweep],
                         [round(3 / (m + 3), 9) for m in (4, 8, 16)])
        self.assertEqual([result.point for result in sweep], [{"plan.global_batch_size": m} for m in (4, 8, 16)])
        self.assertEqual(seen, [(1, 3), (2, 3), (3, 3)])
        self.assertEqual(sweep.best("bubble_ratio").point, {"plan.global_batch_size": 16})
        self.assertEqual(sweep.best("bubble_ratio", largest=True), sweep[0])
        self.assertEqual(len(sweep[1:]), 2)
        self.assertTrue(repr(sweep).startswith("<Sweep: 3 results, 0 rejected\n  <Result bubble-4x8, plan.global"))

    def test_the_cross_product_and_what_is_rejected(self):
        # Three stages do not divide 4 GPUs.
        sweep = trainsim.sweep(BUBBLE, {"plan.pipeline_parallel": [2, 3], "plan.global_batch_size": [4, 8]})
        self.assertEqual([list(result.point.values()) for result in sweep], [[2, 4], [2, 8]])
        self.assertEqual([list(each.point.values()) for each in sweep.rejected], [[3, 4], [3, 8]])
        self.assertIn("not a multiple of", str(sweep.rejected[0].error))

    def test_a_sweep_of_which_nothing_is_legal_is_an_error(self):
        with self.assertRaisesRegex(trainsim.InputError, "unknown key"):
            trainsim.sweep(BUBBLE, {"plan.global_batch": [4, 8]})
        for vary, message in [({}, "needs something to vary"), ({"gpus": []}, "gpus: the list of values is empty"),
                              ({"gpus": 8}, "gpus: a list of values is needed, not 8"),
                              ({"gpus": "8"}, "gpus: a list of values is needed, not '8'")]:
            with self.assertRaisesRegex(ValueError, message):
                trainsim.sweep(BUBBLE, vary)
        with self.assertRaisesRegex(ValueError, "jobs must be at least 1, not 0"):
            trainsim.sweep(BUBBLE, {"gpus": [4]}, jobs=0)

    def test_nothing_fits(self):
        with self.assertRaisesRegex(ValueError, "no point of the sweep fits in memory"):
            trainsim.sweep("gpt175b", {"plan.micro_batch_size": [6]}).best()

    def test_a_failing_program_ends_the_sweep(self):
        with mock.patch.dict(os.environ, {"TRAINSIM": str(script(self.folder, "exit 1\n"))}):
            with self.assertRaises(trainsim.ProgramFailed):
                trainsim.sweep(BUBBLE, {"plan.global_batch_size": list(range(1, 50))})

    def test_rows_csv_and_pandas(self):
        sweep = trainsim.sweep(BUBBLE, {"plan.global_batch_size": [4, 8]})
        rows = sweep.rows()
        self.assertEqual([row["plan.global_batch_size"] for row in rows], [4, 8])
        causes = sum(value for key, value in rows[0].items() if key.startswith("breakdown."))
        self.assertAlmostEqual(causes, rows[0]["step_time_s"])
        path = self.folder / "rows.csv"
        sweep.to_csv(path)
        with open(path, encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file))
        self.assertEqual([float(row["step_time_s"]) for row in read], [result.step_time_s for result in sweep])
        stand_in = types.SimpleNamespace(DataFrame=lambda given: ("frame", given))
        with mock.patch.dict(sys.modules, {"pandas": stand_in}):
            self.assertEqual(sweep.to_pandas(), ("frame", rows))
        with mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(ImportError, "to_pandas needs pandas, which is not installed"):
                sweep.to_pandas()


class Others(unittest.TestCase):
    def test_memory(self):
        report = trainsim.memory(FILE, rank=4)
        self.assertEqual((report.rank, report.stage), (4, 1))
        self.assertEqual(sum(report.memory_at_peak.to_dict().values()), report.peak_memory_bytes)

    def test_check(self):
        checked = trainsim.check(FILE, plan={"micro_batch_size": 4})
        # 16 sequences over 2 replicas in micro-batches of 4.
        self.assertEqual(checked.derived["micro-batches per step"], "2")
        self.assertTrue(checked.valid)

    def test_presets(self):
        self.assertIn("gpt175b", trainsim.presets("configs"))
        with self.assertRaisesRegex(trainsim.InputError, "'gpu' is not known"):
            trainsim.presets("gpu")


class Package(unittest.TestCase):
    def test_everything_public_has_a_docstring_and_types(self):
        for path in sorted((ROOT / "python/trainsim").glob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            self.assertIsNotNone(ast.get_docstring(tree), path)
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef):
                    self.assertIsNotNone(node.returns, f"{path}: {node.name}")
                overload = any(getattr(mark, "id", "") in ("overload", "property") for mark in getattr(node, "decorator_list", []))
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_") and not overload:
                    nested = node.name == "outcome"
                    self.assertTrue(nested or ast.get_docstring(node), f"{path}: {node.name}")

    def test_names(self):
        self.assertEqual([name for name in trainsim.__all__ if not hasattr(trainsim, name)], [])
        version = subprocess.run([os.environ["TRAINSIM"], "--version"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(version.strip(), f"trainsim {trainsim.__version__}")
        self.assertIn(f'version = "{trainsim.__version__}"', (ROOT / "python/pyproject.toml").read_text(encoding="utf-8"))

    def test_the_example_runs(self):
        done = subprocess.run([sys.executable, str(ROOT / "python/examples/micro_batches.py")], capture_output=True,
                              text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("fastest that fits", done.stdout)


if __name__ == "__main__":
    os.environ["TRAINSIM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
