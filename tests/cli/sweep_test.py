#!/usr/bin/env python3
"""Runs `trainsim sweep` and `trainsim merge` as a user would: rows, shards, interruptions and bad input.

usage: sweep_test.py TRAINSIM
"""
import csv
import fcntl
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs/small-tp2-pp2-dp2.yaml")
# Four equal stages, free communication: a step takes (m + 3) times 30 ms, and the optimizer next to nothing.
BUBBLE = str(ROOT / "configs/bubble-4x8.yaml")
PROGRAM = ""
RANKS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "PARALLEL_")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(RANKS)}
# Enough points that a sweep can be interrupted in its middle.
MANY = ("--vary", "plan.global_batch_size=1..120", "-j", "2")


def run(*arguments, environment=None, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False,
                          env={**CLEAN, **(environment or {})}, **options)


def sweep(*arguments, **options):
    return run("sweep", *arguments, **options)


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


class Folder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def path(self, name):
        return str(self.folder / name)

    def expect(self, code, *arguments, message="", **options):
        done = sweep(*arguments, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        return done


class Points(Folder):
    def test_every_combination_is_a_row(self):
        done = self.expect(0, BUBBLE, "--vary", "plan.micro_batch_size=1,2", "--vary", "plan.global_batch_size=4,8",
                           "--format", "jsonl")
        rows = json_lines(done.stdout)
        points = [(row["plan.micro_batch_size"], row["plan.global_batch_size"]) for row in rows]
        self.assertEqual(points, [(1, 4), (1, 8), (2, 4), (2, 8)])
        # (p - 1) / (m + p - 1) with p = 4 and m = 4, 8, 2, 4.
        for row, expected in zip(rows, (3 / 7, 3 / 11, 3 / 5, 3 / 7)):
            self.assertAlmostEqual(row["bubble_ratio"], expected, delta=1e-9)
        self.assertEqual([row["point"] for row in rows], [1, 2, 3, 4])
        self.assertEqual({row["points"] for row in rows}, {4})
        self.assertEqual(len({row["sweep"] for row in rows}), 1)
        self.assertEqual({row["error"] for row in rows}, {None})

    def test_a_row_has_the_results_of_a_run(self):
        for change in ("plan.global_batch_size=32", "plan.recompute=full"):
            alone = run(SMALL, "--set", change, "--format", "csv")
            row = next(csv.DictReader(self.expect(0, SMALL, "--vary", change, "--format", "csv").stdout.splitlines()))
            for column, value in next(csv.DictReader(alone.stdout.splitlines())).items():
                self.assertEqual(row[column], value, column)

    def test_columns_are_varied_keys_then_those_of_a_run(self):
        run_columns = run(SMALL, "--format", "csv").stdout.splitlines()[0].split(",")
        done = self.expect(0, SMALL, "--vary", "plan.recompute=none", "--vary", "gpus=8", "--format", "csv")
        run_columns.remove("gpus")
        self.assertEqual(done.stdout.splitlines()[0].split(","),
                         ["plan.recompute", "gpus", *run_columns, "error", "point", "points", "sweep"])
        keys = list(json_lines(self.expect(0, SMALL, "--vary", "plan.recompute=none", "--vary", "gpus=8", "--format",
                                           "jsonl").stdout)[0])
        self.assertEqual(keys, done.stdout.splitlines()[0].split(","))

    def test_zipped_lists(self):
        done = self.expect(0, SMALL, "--zip", "plan.tensor_parallel=1,2", "--zip", "plan.pipeline_parallel=4,2",
                           "--format", "jsonl")
        self.assertEqual([(row["tensor_parallel"], row["pipeline_parallel"]) for row in json_lines(done.stdout)],
                         [(1, 4), (2, 2)])
        short = self.expect(0, SMALL, "--zip", "plan.tensor_parallel=1,2", "plan.pipeline_parallel=4,2", "--format",
                            "jsonl")
        self.assertEqual(short.stdout, done.stdout)
        self.expect(2, SMALL, "--zip", "plan.tensor_parallel=1,2", "plan.pipeline_parallel=4",
                    message="zipped lists need the same length")

    def test_plans_of_a_planner(self):
        yaml = self.folder / "plans.yaml"
        yaml.write_text("- {tensor_parallel: 1, pipeline_parallel: 4}\n- {tensor_parallel: 2, recompute: full}\n")
        table = self.folder / "plans.csv"
        table.write_text("tensor_parallel,pipeline_parallel,recompute\n1,4,\n2,,full\n")
        for plans in (yaml, table):
            rows = json_lines(self.expect(0, SMALL, "--plans", str(plans), "--format", "jsonl").stdout)
            self.assertEqual([(row["tensor_parallel"], row["pipeline_parallel"]) for row in rows], [(1, 4), (2, 2)])
            self.assertEqual([row["plan.recompute"] for row in rows], [None, "full"])
            self.assertEqual(rows[0]["breakdown_recompute_s"], 0)
            self.assertGreater(rows[1]["breakdown_recompute_s"], 0)

    def test_points_that_are_not_legal_are_rows_with_the_reason(self):
        done = self.expect(0, SMALL, "--vary", "plan.tensor_parallel=2,3,none", "--format", "jsonl")
        good, three, word = json_lines(done.stdout)
        self.assertIsNone(good["error"])
        self.assertIn("plan.tensor_parallel: 3 does not divide the 16 attention heads; legal here: 1, 2, 4", three["error"])
        self.assertIn("plan.tensor_parallel", word["error"])
        self.assertIsNone(three["step_time_s"])
        self.assertEqual(list(good), list(three))
        self.assertIn("2 of 3 points are not legal", done.stderr)

    def test_a_plan_that_does_not_fit_is_a_row_as_any(self):
        done = self.expect(0, SMALL, "--vary", "cluster.gpu.memory=1 GiB,80 GiB", "--set", "memory.reserve=1000 MiB",
                           "--format", "jsonl")
        self.assertEqual([(row["fits"], row["error"]) for row in json_lines(done.stdout)], [(False, None), (True, None)])

    def test_the_number_of_workers_changes_nothing(self):
        arguments = (BUBBLE, "--vary", "plan.global_batch_size=1..24", "--format", "csv")
        self.assertEqual(sweep(*arguments, "-j", "1").stdout, sweep(*arguments, "-j", "7").stdout)

    def test_values_are_checked_as_those_of_set(self):
        alone = run(SMALL, "--set", "plan.micro_batch_size=3")
        row = json_lines(sweep(SMALL, "--vary", "plan.micro_batch_size=3", "--format", "jsonl").stdout)[0]
        self.assertIn(row["error"].split(";")[0], alone.stderr)

    def test_ranges(self):
        done = self.expect(0, BUBBLE, "--vary", "plan.global_batch_size=1..8*2,12", "--format", "jsonl")
        self.assertEqual([row["global_batch_size"] for row in json_lines(done.stdout)], [1, 2, 4, 8, 12])


class Text(Folder):
    def test_the_table_names_the_knee(self):
        # From m to 2m the rate m / (m + 3) gains 3 / (2m + 3): 1.16 % at 128, 0.58 % at 256.
        text = self.expect(0, BUBBLE, "--vary", "plan.global_batch_size=64..1024*2").stdout
        self.assertIn("Beyond m = 256 micro-batches (plan.global_batch_size = 256) a doubling gains under 1 % in "
                      "tokens/s per GPU.", " ".join(text.split()))
        self.assertIn("Memory is no limit here", text)
        self.assertEqual(len([line for line in text.splitlines() if " fits" in line and line.startswith("  ")
                              and "- " not in line]), 5)

    def test_the_table_names_the_memory_limit(self):
        small = ("--set", "cluster.gpu.memory=8 GiB", "--set", "plan.global_batch_size=64")
        text = " ".join(self.expect(0, SMALL, "--vary", "plan.micro_batch_size=1..32*2", *small).stdout.split())
        rows = json_lines(sweep(SMALL, "--vary", "plan.micro_batch_size=1..32*2", *small, "--format", "jsonl").stdout)
        limit = max(row["plan.micro_batch_size"] for row in rows if row["fits"])
        self.assertTrue(all(row["fits"] == (row["plan.micro_batch_size"] <= limit) for row in rows))
        self.assertLess(limit, 32)
        self.assertIn(f"Memory limit: plan.micro_batch_size = {limit} is the largest that fits", text)

    def test_sentences_go_to_standard_error_beside_rows(self):
        arguments = (BUBBLE, "--vary", "plan.global_batch_size=64..1024*2", "--format", "jsonl")
        self.assertIn("Beyond m = 256", sweep(*arguments).stderr)
        # A key with one value for all changes nothing.
        self.assertIn("Beyond m = 256", sweep(*arguments, "--vary", "plan.precision=bf16").stderr)
        self.assertEqual(sweep(*arguments, "-q").stderr, "")

    def test_the_name_of_the_file_chooses_the_format(self):
        arguments = (BUBBLE, "--vary", "plan.global_batch_size=4,8")
        for name, first in (("a.jsonl", "{"), ("a.csv", "plan.global_batch_size,"), ("a.json", "["), ("a.txt", "  plan")):
            self.expect(0, *arguments, "-o", self.path(name))
            self.assertTrue((self.folder / name).read_text().startswith(first), name)
        self.assertEqual(len(json.loads((self.folder / "a.json").read_text())), 2)


class Interruptions(Folder):
    def rows(self, name):
        path = self.folder / name
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def start(self, *arguments):
        process = subprocess.Popen([PROGRAM, "sweep", BUBBLE, *MANY, *arguments], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=CLEAN, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def interrupt(self, name, number, rows, send=os.kill):
        """Sends a signal once the file has so many lines; returns the ended process and its messages."""
        process = self.start("-o", self.path(name))
        until = time.monotonic() + 120
        while self.rows(name) < rows and process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        send(process.pid, number)
        _, messages = process.communicate(timeout=60)
        return process, messages

    def whole(self, form):
        return self.expect(0, BUBBLE, *MANY, "--format", form).stdout

    def test_killed_and_resumed_gives_the_same_bytes(self):
        for form in ("jsonl", "csv"):
            name = "rows." + form
            process, _ = self.interrupt(name, signal.SIGKILL, 15)
            self.assertEqual(process.returncode, -signal.SIGKILL)
            kept = (self.folder / name).read_text()
            self.assertLess(self.rows(name), 120)
            whole = self.whole(form)
            self.assertTrue(whole.startswith(kept[:kept.rfind("\n") + 1]))
            done = self.expect(0, BUBBLE, *MANY, "-o", self.path(name), "--resume", message="rows are there already")
            self.assertEqual(done.stdout, "")
            self.assertEqual((self.folder / name).read_text(), whole)

    def test_a_torn_line_is_cut_off(self):
        for form in ("jsonl", "csv"):
            path = self.folder / ("torn." + form)
            whole = self.whole(form)
            # In the middle of a row, within its last cell, just before its end, and in the header or first row.
            third = len("".join(whole.splitlines(keepends=True)[:3]))
            for size in (third + 40, third - 5, third - 1, 7, 0):
                path.write_text(whole[:size])
                self.expect(0, BUBBLE, *MANY, "-o", str(path), "--resume")
                self.assertEqual(path.read_text(), whole)

    def test_resuming_what_is_complete_or_not_begun(self):
        path = self.folder / "rows.jsonl"
        self.expect(0, BUBBLE, *MANY, "-o", str(path), "--resume")
        whole = path.read_text()
        self.assertEqual(whole, self.whole("jsonl"))
        self.expect(0, BUBBLE, *MANY, "-o", str(path), "--resume", message="120 of 120 rows are there already")
        self.assertEqual(path.read_text(), whole)

    def test_control_c_keeps_what_was_finished(self):
        # A terminal sends it to the workers too, whatever they are about; a batch system's end does the same.
        whole = self.whole("jsonl")
        for count, (number, code) in itertools.product(range(1, 16, 2), ((signal.SIGINT, 130), (signal.SIGTERM, 143))):
            name = f"rows{count}-{code}.jsonl"
            process, messages = self.interrupt(name, number, count, send=os.killpg)
            self.assertEqual(process.returncode, code)
            rows = self.rows(name)
            self.assertIn(f"interrupted after {rows} of 120 points; the same command with --resume goes on", messages)
            self.assertEqual((self.folder / name).read_text(), "".join(whole.splitlines(keepends=True)[:rows]))
        self.expect(0, BUBBLE, *MANY, "-o", self.path(name), "--resume")
        self.assertEqual((self.folder / name).read_text(), whole)

    def test_termination_is_as_control_c(self):
        process, messages = self.interrupt("rows.csv", signal.SIGTERM, 10)
        self.assertEqual(process.returncode, 143)
        self.assertIn("interrupted after", messages)

    def test_a_second_interrupt_leaves_no_page(self):
        process = self.start("-o", self.path("rows.jsonl"), "--report", self.path("page.html"))
        until = time.monotonic() + 60
        while self.rows("rows.jsonl") < 2 and time.monotonic() < until:
            time.sleep(0.005)
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (130, -signal.SIGINT))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["rows.jsonl"])

    def test_an_interrupted_table_leaves_no_file(self):
        process = self.start("-o", self.path("table.txt"))
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, messages = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("with -o FILE and --format jsonl or csv, --resume could go on", messages)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_different_sweep_is_not_resumed(self):
        name = self.path("rows.jsonl")
        self.interrupt("rows.jsonl", signal.SIGKILL, 3)
        before = pathlib.Path(name).read_bytes()
        words = "holds rows of a different sweep"
        self.expect(2, BUBBLE, "--vary", "plan.global_batch_size=1..121", "-o", name, "--resume", message=words)
        self.expect(2, BUBBLE, *MANY, "--set", "plan.profile.forward=11 ms", "-o", name, "--resume", message=words)
        self.expect(2, BUBBLE, "--vary", "plan.gradient_accumulation=1..120", "-o", name, "--resume", message=words)
        self.expect(2, BUBBLE, *MANY, "--shard", "1/2", "-o", name, "--resume",
                    message="does not hold the first rows of this shard")
        self.expect(2, BUBBLE, *MANY, "--format", "csv", "-o", name, "--resume", message="has rows in another format")
        self.assertEqual(pathlib.Path(name).read_bytes(), before)

    def test_a_changed_configuration_is_a_different_sweep(self):
        config = self.folder / "config.yaml"
        text = pathlib.Path(BUBBLE).read_text()
        config.write_text(text)
        arguments = (str(config), "--vary", "plan.global_batch_size=4,8", "-o", self.path("rows.jsonl"))
        self.expect(0, *arguments)
        config.write_text(text.replace("forward: 10 ms", "forward: 12 ms"))
        self.expect(2, *arguments, "--resume", message="holds rows of a different sweep")

    def test_an_unfinished_file_is_not_overwritten_by_accident(self):
        process, _ = self.interrupt("rows.jsonl", signal.SIGINT, 3)
        self.assertEqual(process.returncode, 130)
        before = (self.folder / "rows.jsonl").read_bytes()
        self.expect(2, BUBBLE, *MANY, "-o", self.path("rows.jsonl"), message="rows already; go on with --resume")
        self.assertEqual((self.folder / "rows.jsonl").read_bytes(), before)
        # Files of other sweeps, and complete ones, are replaced as by any command.
        other = ("--vary", "plan.global_batch_size=4,8", "-o", self.path("rows.jsonl"))
        self.expect(0, BUBBLE, *other)
        self.expect(0, BUBBLE, *other)
        self.assertEqual(self.rows("rows.jsonl"), 2)

    def test_two_writers_of_a_file(self):
        path = self.folder / "rows.jsonl"
        with open(path, "w", encoding="utf-8") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.expect(2, BUBBLE, *MANY, "-o", str(path),
                        message="another process is writing '%s'; give every shard a file of its own, as in -o "
                                "rows-{shard}.jsonl" % path)


class BadSurroundings(Folder):
    POINTS = ("--vary", "plan.global_batch_size=4,8")

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_full_disk(self):
        for form in ("jsonl", "csv"):
            self.expect(1, BUBBLE, *self.POINTS, "--format", form, "-o", "/dev/full",
                        message="can't write a row to '/dev/full': No space left on device")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PROGRAM, "sweep", BUBBLE, *self.POINTS, "--format", "jsonl"], stdout=full,
                                  stderr=subprocess.PIPE, text=True, check=False, env=CLEAN)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't write a row to standard output", done.stderr)

    def test_a_limit_on_the_file_size_leaves_whole_rows(self):
        # As a disk that fills up in the middle: 4 KiB hold a few rows. A signal that asks to stop writing is ignored.
        shell = "trap '' XFSZ; ulimit -f 4; exec \"$0\" \"$@\""
        rows = self.path("rows.jsonl")
        done = subprocess.run(["sh", "-c", shell, PROGRAM, "sweep", BUBBLE, *MANY, "-o", rows], capture_output=True,
                              text=True, check=False, env=CLEAN)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the rows before it are kept, and --resume goes on behind them", done.stderr)
        text = pathlib.Path(rows).read_text()
        self.assertTrue(text.endswith("}\n"))
        self.expect(0, BUBBLE, *MANY, "-o", rows, "--resume")
        self.assertEqual(pathlib.Path(rows).read_text(), sweep(BUBBLE, *MANY, "--format", "jsonl").stdout)

    def test_closed_pipe(self):
        process = subprocess.Popen([PROGRAM, "sweep", BUBBLE, *MANY, "--format", "jsonl"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=CLEAN)
        process.stdout.readline()
        process.stdout.close()
        messages = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), 1)
        self.assertIn("can't write a row to standard output: Broken pipe", messages)

    def test_unwritable_path(self):
        for name in ("/nonexistent/rows.jsonl", "/nonexistent/table.txt"):
            self.expect(2, BUBBLE, *self.POINTS, "-o", name, message="can't write '/nonexistent/")


class BadInput(Folder):
    def test_unknown_keys(self):
        done = self.expect(2, SMALL, "--vary", "plan.micro_batchsize=1,2", "--format", "jsonl", "-o",
                           self.path("rows.jsonl"))
        self.assertEqual(done.stderr.splitlines()[0],
                         "--vary plan.micro_batchsize=1:1:6: error: plan.micro_batchsize: unknown key; did you mean "
                         "micro_batch_size?")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.expect(2, SMALL, "--vary", "plann.micro_batch_size=1", message="unknown key; did you mean plan?")
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size.x=1", message="has no keys")
        plans = self.folder / "plans.csv"
        plans.write_text("tensor_parallel,pipline_parallel\n2,\n2,2\n")
        self.expect(2, SMALL, "--plans", str(plans), message="did you mean pipeline_parallel?")
        self.expect(2, SMALL, "--plans", str(plans), message=f"{plans}: plan.pipline_parallel=2:1:6: error:")
        self.expect(2, SMALL, "--zip", "plan.pipline_parallel=2,4", message="--zip plan.pipline_parallel=2:1:6: error:")

    def test_nothing_to_vary(self):
        self.expect(2, SMALL, message="nothing is varied; give at least one --vary KEY=VALUES")
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size=", message="there are no values")
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size", message="needs a key, '=' and values")
        (self.folder / "none.yaml").write_text("[]\n")
        self.expect(2, SMALL, "--plans", self.path("none.yaml"), message="the list has no plans")

    def test_bad_ranges(self):
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size=8..1", message="ends below its start")
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size=1..8*1", message="does not grow")
        self.expect(2, SMALL, "--vary", "plan.micro_batch_size=1..", message="is no range")

    def test_contradictions(self):
        self.expect(2, SMALL, "--vary", "gpus=8", "--vary", "gpus=16", message="gpus is varied twice")
        self.expect(2, SMALL, "--vary", "gpus=8", "--set", "gpus=16",
                    message="gpus is varied, so that --set gpus would have no effect; remove one of them")

    def test_bad_options(self):
        vary = ("--vary", "gpus=8")
        self.expect(2, SMALL, *vary, "--shard", "3/2", message="'3/2' is no shard")
        self.expect(2, SMALL, *vary, "--format", "jsn", message="did you mean 'json'")
        self.expect(2, SMALL, *vary, "--fold", "on", message="use auto or off")
        self.expect(2, SMALL, *vary, "--resume", message="--resume needs a file of rows to go on with")
        self.expect(2, SMALL, *vary, "--resume", "-o", self.path("a.txt"), message="--resume needs a file of rows")
        self.expect(2, "no-such-config", *vary, message="no-such-config")
        self.expect(2, SMALL, *vary, "--plans", "/nonexistent.yaml", message="/nonexistent.yaml")

    def test_a_file_that_is_no_sweep_is_not_resumed(self):
        path = self.folder / "notes.csv"
        path.write_text("a,b\n1,2\n")
        self.expect(2, BUBBLE, *MANY, "-o", str(path), "--resume", message="this is no file of a sweep")
        self.assertEqual(path.read_text(), "a,b\n1,2\n")


class Shards(Folder):
    VARY = ("--vary", "plan.micro_batch_size=1,2,3", "--vary", "plan.global_batch_size=4..32+4")

    def merge(self, *files, code=0, message=""):
        done = run("merge", *files)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(message, done.stderr)
        return done.stdout

    def whole(self, form):
        return self.expect(0, BUBBLE, *self.VARY, "--format", form).stdout

    def test_merged_shards_equal_the_whole(self):
        for form in ("jsonl", "csv"):
            for index in (1, 2, 3):
                self.expect(0, BUBBLE, *self.VARY, "--shard", f"{index}/3", "-o", self.path("{shard}." + form))
            files = [self.path(f"{index}-of-3.{form}") for index in (3, 1, 2)]
            self.assertEqual(self.merge(*files), self.whole(form))
            self.assertEqual(self.merge(*files, "-o", self.path("whole." + form)), "")
            self.assertEqual((self.folder / ("whole." + form)).read_text(), self.whole(form))
            self.merge(files[0], files[1], code=2, message="the file of shard 2/3 is not among these")

    def test_a_merged_file_shows_its_table(self):
        self.expect(0, BUBBLE, "--vary", "plan.global_batch_size=64..1024*2", "-o", self.path("rows.csv"))
        self.assertIn("Beyond m = 256", self.merge(self.path("rows.csv"), "--table"))

    def test_mixed_sweeps_are_refused(self):
        self.expect(0, BUBBLE, *self.VARY, "--shard", "1/2", "-o", self.path("a.jsonl"))
        self.expect(0, BUBBLE, *self.VARY, "--set", "plan.profile.forward=11 ms", "--shard", "2/2", "-o",
                    self.path("b.jsonl"))
        self.merge(self.path("a.jsonl"), self.path("b.jsonl"), code=2, message="hold rows of different sweeps")

    def test_merge_of_bad_files(self):
        self.merge(self.path("none.jsonl"), code=2, message="can't read '%s': No such file" % self.path("none.jsonl"))
        (self.folder / "text").write_text("hello\n")
        self.merge(self.path("text"), code=2, message="this is no file of a sweep")
        (self.folder / "empty").write_text("")
        self.merge(self.path("empty"), code=2, message="there are no rows in these files")
        self.merge(str(self.folder), code=2, message="can't read")

    def test_ranks_are_picked_up(self):
        ranks = (({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, "Slurm rank 1: this is shard 2/2"),
                 ({"SLURM_ARRAY_TASK_ID": "4", "SLURM_ARRAY_TASK_COUNT": "2", "SLURM_ARRAY_TASK_MIN": "3",
                   "SLURM_ARRAY_TASK_MAX": "4"}, "Slurm array task 4: this is shard 2/2"),
                 ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, "MPI rank 1: this is shard 2/2"),
                 ({"PMI_RANK": "1", "PMI_SIZE": "2"}, "MPI rank 1: this is shard 2/2"))
        expected = self.expect(0, BUBBLE, *self.VARY, "--shard", "2/2", "--format", "jsonl").stdout
        for environment, message in ranks:
            done = self.expect(0, BUBBLE, *self.VARY, "--format", "jsonl", environment=environment, message=message)
            self.assertEqual(done.stdout, expected)
            whole = self.expect(0, BUBBLE, *self.VARY, "--format", "jsonl", "--shard", "1/1", environment=environment)
            self.assertEqual(whole.stdout, self.whole("jsonl"))
        self.expect(2, BUBBLE, *self.VARY, environment={"PMI_RANK": "2", "PMI_SIZE": "2"}, message="PMI_RANK")

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed (Debian package openmpi-bin)")
    def test_mpirun(self):
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", PROGRAM, "sweep", BUBBLE, *self.VARY,
                   "-j", "1", "-o", self.path("rows-{shard}.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=CLEAN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("MPI rank 2: this is shard 3/3", done.stderr)
        files = [self.path(f"rows-{index}-of-3.jsonl") for index in (1, 2, 3)]
        self.assertEqual(self.merge(*files), self.whole("jsonl"))

    @unittest.skipUnless(shutil.which("parallel"), "GNU parallel is not installed (Debian package parallel)")
    def test_gnu_parallel(self):
        for shard in ("{#}/3", "auto/3"):
            arguments = ["parallel", "--will-cite", PROGRAM, "sweep", BUBBLE, *self.VARY, "-j", "1", "--shard", shard,
                         "-o", self.path("part{}.csv"), ":::", "1", "2", "3"]
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False,
                                  env={**CLEAN, "HOME": str(self.folder)})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.merge(*(self.path(f"part{index}.csv") for index in (1, 2, 3))), self.whole("csv"))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
