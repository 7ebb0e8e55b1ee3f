#!/usr/bin/env python3
"""Runs the program as a user would and checks exit codes, streams and messages.

usage: command_line_test.py TRAINSIM
"""
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs/small-tp2-pp2-dp2.yaml")
BUBBLE = str(ROOT / "configs/bubble-4x8.yaml")
PROGRAM = ""


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)


class Results(unittest.TestCase):
    def test_config_alone_means_run(self):
        plain, named = run(BUBBLE, "-q"), run("run", BUBBLE, "-q")
        self.assertEqual((plain.returncode, named.returncode), (0, 0))
        self.assertEqual(plain.stdout.splitlines()[:-1], named.stdout.splitlines()[:-1])

    def test_bubble_of_four_stages_and_eight_micro_batches(self):
        # (4 - 1) / (8 + 4 - 1) = 3 / 11 = 27.3 %
        self.assertIn("bubble ratio          27.3 % (closed form 27.3 %)", run(BUBBLE).stdout)
        result = json.loads(run(BUBBLE, "--format", "json").stdout)
        self.assertAlmostEqual(result["bubble_ratio"], 3 / 11, delta=1e-9)
        self.assertAlmostEqual(result["bubble_ratio_theory"], 3 / 11, delta=1e-12)

    def test_json_breakdown_adds_up(self):
        result = json.loads(run(SMALL, "--format", "json").stdout)
        total = sum(result["breakdown"].values())
        self.assertAlmostEqual(total / result["step_time_s"], 1.0, delta=1e-9)
        self.assertEqual(sum(rank["represents"] for rank in result["ranks"]), 8)

    def test_csv_has_a_header_and_one_row(self):
        lines = run(SMALL, "--format", "csv").stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertEqual(len(lines[0].split(",")), len(lines[1].split(",")))

    def test_presets_are_found_from_anywhere(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(run("bubble-4x8", cwd=folder).returncode, 0)

    def test_a_configuration_from_standard_input(self):
        text = pathlib.Path(SMALL).read_text(encoding="utf-8")
        read = json.loads(run("/dev/stdin", "--format", "json", input=text).stdout)
        self.assertEqual(read["step_time_s"], json.loads(run(SMALL, "--format", "json").stdout)["step_time_s"])
        # Both simulate variants of a configuration that can be read only once.
        for arguments in (["run", "/dev/stdin", "--uncertainty", "--samples", "10"],
                          ["memory", "/dev/stdin", "--set", "cluster.gpu.memory=2 GiB"]):
            done = run(*arguments, input=text)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        # Paths in it start from the working directory.
        text = "{model: models/llama2-7b.yaml, cluster: dgx-a100-80gb, gpus: 8, plan: {}}"
        self.assertEqual(run("check", "/dev/stdin", input=text, cwd=ROOT).returncode, 0)
        self.assertEqual(run("check", "/dev/stdin", input=text, cwd="/").returncode, 2)

    def test_set_changes_the_result(self):
        before = json.loads(run(SMALL, "--format", "json").stdout)
        after = json.loads(run(SMALL, "--set", "plan.micro_batch_size=2", "--format", "json").stdout)
        self.assertEqual(after["plan"]["micro_batches"] * 2, before["plan"]["micro_batches"])
        self.assertNotEqual(after["step_time_s"], before["step_time_s"])

    def test_fold_off_simulates_every_rank(self):
        result = json.loads(run(SMALL, "--fold", "off", "--format", "json").stdout)
        self.assertEqual(len(result["ranks"]), 8)
        self.assertFalse(result["simulation"]["folded"])

    def test_equal_runs_give_equal_bytes(self):
        def stable():
            result = json.loads(run(SMALL, "--format", "json").stdout)
            del result["simulation"]["wall_s"]
            return json.dumps(result)
        self.assertEqual(stable(), stable())

    def test_output_file_is_written_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            target = pathlib.Path(folder) / "result.json"
            done = run(SMALL, "--format", "json", "-o", str(target))
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertIn("step_time_s", json.loads(target.read_text()))
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["result.json"])

    def test_check_names_derived_values_and_defaults(self):
        text = run("check", SMALL).stdout
        for expected in ("data_parallel", "micro-batches per step", "padded vocabulary", "taken as"):
            self.assertIn(expected, text)
        self.assertTrue(json.loads(run("check", SMALL, "--format", "json").stdout)["valid"])

    def test_lists_presets(self):
        models = run("list", "models").stdout
        for name in ("gpt3-175b", "llama2-7b", "llama2-70b", "llama3-8b", "llama3-70b", "llama3-405b", "bloom-176b"):
            self.assertIn(name, models)
        clusters = run("list", "clusters").stdout
        for name in ("dgx-a100-40gb", "dgx-a100-80gb", "dgx-h100", "dgx-h200", "dgx-b200"):
            self.assertIn(name, clusters)
        self.assertIn("h100-sxm", run("list", "gpus").stdout)
        self.assertIn("gpt175b", run("list", "configs").stdout)

    def test_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^trainsim \d+\.\d+\.\d+\n$")
        self.assertIn("check", run("--help").stdout)


class Uncertainty(unittest.TestCase):
    def result(self, *arguments):
        done = run(SMALL, "--format", "json", "--uncertainty", "--samples", "20", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_interval_holds_the_step_time(self):
        result = self.result()
        uncertainty = result["uncertainty"]
        self.assertLess(uncertainty["step_time_low_s"], result["step_time_s"])
        self.assertGreater(uncertainty["step_time_high_s"], result["step_time_s"])
        self.assertEqual((uncertainty["samples"], uncertainty["seed"]), (20, 1))

    def test_constants_are_ordered_by_their_effect(self):
        constants = self.result()["uncertainty"]["constants"]
        effects = [abs(c["step_time_at_high_s"] - c["step_time_at_low_s"]) for c in constants]
        self.assertEqual(effects, sorted(effects, reverse=True))
        first = next(c for c in constants if c["name"] == "cluster.gpu.launch_interval_eager")
        self.assertEqual((first["grade"], first["value"], first["low"], first["high"]),
                         ("fitted", "63 us", "55 us", "70 us"))
        self.assertLess(first["step_time_at_low_s"], first["step_time_at_high_s"])

    def test_a_seed_repeats_its_samples(self):
        one, again, other = self.result(), self.result(), self.result("--seed", "2")
        self.assertEqual(one["uncertainty"], again["uncertainty"])
        self.assertNotEqual(one["uncertainty"]["step_time_high_s"], other["uncertainty"]["step_time_high_s"])

    def test_a_given_constant_is_not_varied(self):
        constants = self.result("--set", "cluster.gpu.launch_interval_eager=63 us")["uncertainty"]["constants"]
        self.assertNotIn("cluster.gpu.launch_interval_eager", [constant["name"] for constant in constants])

    def test_it_is_null_unless_asked_for_and_can_be_asserted(self):
        self.assertIsNone(json.loads(run(SMALL, "--format", "json").stdout)["uncertainty"])
        done = run(SMALL, "--uncertainty", "--samples", "10", "--assert", "uncertainty.step_time_high_s<0", "-q")
        self.assertEqual(done.returncode, 4)
        self.assertIn("How sure the step time is", done.stdout)
        self.assertIn("hangs on", done.stdout)

    def test_samples_are_limited(self):
        done = run(SMALL, "--uncertainty", "--samples", "9")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--samples", done.stderr)


class ExitCodes(unittest.TestCase):
    def expect(self, code, *arguments, message=""):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        return done

    def test_assertions(self):
        self.expect(0, BUBBLE, "--assert", "bubble_ratio<=0.28", "--assert", "breakdown.bubble > 0.0")
        done = self.expect(4, BUBBLE, "--assert", "bubble_ratio<=0.10", message="bubble_ratio is 0.2727")
        self.assertIn("bubble ratio", done.stdout)

    def test_malformed_assertions_are_bad_input(self):
        self.expect(2, BUBBLE, "--assert", "bubble_ratio", message="not an assertion")
        self.expect(2, BUBBLE, "--assert", "bubble_ratio<=ten", message="not an assertion")
        done = self.expect(2, BUBBLE, "--assert", "buble_ratio<=0.1", message="did you mean 'bubble_ratio'")
        self.assertEqual(done.stdout, "")

    def test_require_fit(self):
        too_big = ("--set", "cluster.gpu.memory=1 GiB", "--set", "memory.reserve=1000 MiB")
        self.expect(0, SMALL, *too_big)
        self.expect(3, SMALL, *too_big, "--require-fit", message="does not fit")
        self.assertFalse(json.loads(run(SMALL, *too_big, "--format", "json").stdout)["fits"])

    def test_bad_command_lines(self):
        self.expect(2, message="no configuration given")
        self.expect(2, SMALL, "--frobnicate", message="--frobnicate")
        self.expect(2, SMALL, "--format", "jsn", message="did you mean 'json'")
        self.expect(2, SMALL, "--fold", "on", message="use auto or off")
        self.expect(2, "list", "modles", message="did you mean 'models'")
        self.expect(2, "check", SMALL, "--format", "csv", message="--format 'csv' is not known; use text or json")
        self.expect(2, SMALL, "extra", message="'extra' is one argument too many")
        self.expect(2, "check", SMALL, "--trace", "t.json", message="'--trace' is not an option of this command")
        self.expect(2, "no-such-file.yaml", message="no-such-file.yaml")

    def test_unwritable_output_fails_before_the_run(self):
        done = self.expect(2, SMALL, "-o", "/nonexistent/result.json", message="can't write")
        self.assertEqual(done.stdout, "")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full_disk(self):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, SMALL], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't write the result to standard output", done.stderr)

    def test_errors_go_to_standard_error_only(self):
        done = self.expect(2, SMALL, "--set", "plan.tensor_parallel=3")
        self.assertEqual(done.stdout, "")
        self.assertIn("--set plan.tensor_parallel=3:1:22: error: plan.tensor_parallel: 3 does not divide", done.stderr)

    def test_interrupt_ends_at_once_without_a_trace(self):
        command = [PROGRAM, str(ROOT / "configs/gpt175b.yaml"), "--fold", "off"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(1.0)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertEqual((out, err), ("", ""))

    def test_interrupt_leaves_no_file(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with tempfile.TemporaryDirectory() as folder:
                files = ("--report", folder + "/a.html", "-o", folder + "/a.json", "--trace", folder + "/a.trace")
                command = [PROGRAM, str(ROOT / "configs/gpt175b.yaml"), "--fold", "off", "--format", "json", *files]
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      start_new_session=True) as process:
                    until = time.monotonic() + 30
                    while len(os.listdir(folder)) < 3 and time.monotonic() < until:
                        time.sleep(0.01)
                    os.killpg(process.pid, number)
                    _, err = process.communicate(timeout=30)
                self.assertEqual(process.returncode, -number)
                self.assertEqual(err, "trainsim: error: interrupted before the result was complete; no file was written\n")
                self.assertEqual(os.listdir(folder), [])

    def test_interrupt_after_the_result_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            result = pathlib.Path(folder) / "a.json"
            # The page needs further simulations, which take a while.
            command = [PROGRAM, str(ROOT / "configs/gpt175b.yaml"), "--format", "json", "-q", "-o", str(result), "--report",
                       folder + "/a.html"]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
                until = time.monotonic() + 240
                while not result.exists() and time.monotonic() < until and process.poll() is None:
                    time.sleep(0.01)
                os.killpg(process.pid, signal.SIGINT)
                _, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, -signal.SIGINT)
            self.assertEqual(err, "trainsim: error: interrupted; what was complete by then is written\n")
            self.assertEqual(os.listdir(folder), ["a.json"])
            self.assertGreater(json.loads(result.read_text())["step_time_s"], 0)

    def test_a_closed_pipe_is_a_failure(self):
        for command in ((BUBBLE,), ("check", BUBBLE, "--format", "json"), ("list", "gpus")):
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([PROGRAM, *command], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
            os.close(writer)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("can't write the result to standard output: Broken pipe", done.stderr)

    def test_a_page_that_cannot_be_written_does_not_cost_the_result(self):
        done = self.expect(1, BUBBLE, "--report", "/dev/full", message="can't write the result to '/dev/full'")
        self.assertIn("step time", done.stdout)

    def test_options_that_would_have_no_effect(self):
        for option in ("--report", "--trace", "-o"):
            self.expect(2, BUBBLE, option, "", message="is empty; name a file")
        for option in ("--samples", "--seed"):
            self.expect(2, BUBBLE, option, "20", message=f"{option} requires --uncertainty")
        for price in ("nan", "NaN"):
            self.expect(2, "search", BUBBLE, "--price", price, message="--price: is no number")

    def test_null_takes_a_value_back(self):
        self.expect(2, SMALL, "--set", "plan.gradient_accumulation=2", message="or leave one of the three out")
        self.expect(0, "check", SMALL, "--set", "plan.gradient_accumulation=2", "--set", "plan.global_batch_size=null")
        self.expect(2, SMALL, "--set", "plan.lora=null",
                    message="plan.lora: is not set in the configuration, so that null has nothing to take back")

    def test_a_key_that_is_set_already_may_be_meant(self):
        self.expect(2, SMALL, "--set", "plan.pipelin_parallel=2", message="did you mean pipeline_parallel?")

    def test_a_file_that_others_must_not_read_stays_so(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result"
            path.touch(0o600)
            self.expect(0, BUBBLE, "-o", str(path))
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            self.assertIn("step time", path.read_text())

    def test_scripts_are_executable(self):
        for script in ("scripts/trainsim", "scripts/test", ".ci/run"):
            self.assertTrue((ROOT / script).stat().st_mode & stat.S_IXUSR, script)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
