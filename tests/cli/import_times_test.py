#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `trainsim import` on logs of Megatron-LM's timers and traces of PyTorch's profiler with times set by hand.

usage: import_times_test.py TRAINSIM
"""
import gzip
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import yaml

PROGRAM = ""

SCRIPT = """#!/bin/sh
torchrun --nproc-per-node 8 --nnodes 1 pretrain_gpt.py --num-layers 8 --hidden-size 1024 --num-attention-heads 16 \\
  --seq-length 1024 --max-position-embeddings 1024 --vocab-size 50000 --bf16 --micro-batch-size 2 --global-batch-size 32 \\
  --tensor-model-parallel-size {tensor} --pipeline-model-parallel-size {pipeline} {more}
"""

ITERATION = (" [2024-05-01 10:00:00] iteration {number:8d}/     100 | consumed samples: {samples:12d} | elapsed time per "
             "iteration (ms): 1234.5 | learning rate: 1.0E-04 | global batch size: {batch:5d} | lm loss: 1.0E+01 |\n")


def printed(title, timers):
    """What Megatron-LM's timers print, from name to the text of the value."""
    return title + "\n" + "".join(f"    {(name + ' ').ljust(48, '.')}: {value}\n" for name, value in timers.items())


def ranged(forward, backward, **more):
    timers = {"forward-backward": (1, 2), "forward-compute": forward, "backward-compute": backward, **more}
    return printed("(min, max) time across ranks (ms):",
                   {name.replace("_", "-"): f"({low:.2f}, {high:.2f})" for name, (low, high) in timers.items()})


def of_ranks(forward, backward):
    lines = ["times across ranks (ms):"]
    for name, times in (("forward-backward", [9.0] * len(forward)), ("forward-compute", forward),
                        ("backward-compute", backward), ("optimizer", [1.0] * len(forward))):
        lines += [f"  {name}:"] + [f"     rank {rank:2d}: {time:.2f}" for rank, time in enumerate(times)]
    return "\n".join(lines) + "\n"


class Trace:
    """Builds a trace of Kineto; times are microseconds."""

    def __init__(self, rank=0):
        self.events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}}]
        self.rank = rank
        self.launches = 0

    def host(self, category, name, begin, duration, thread=1, **arguments):
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": begin,
                            "dur": duration, "args": arguments})

    def kernel(self, name, launched, begin, duration, thread=1, category="kernel", **arguments):
        self.launches += 1
        self.host("cuda_runtime", "cudaLaunchKernel", launched, 1, thread, correlation=self.launches)
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": begin, "dur": duration,
                            "args": {"correlation": self.launches, **arguments}})

    def backward(self, begin, duration, thread=2):
        self.host("cpu_op", "autograd::engine::evaluate_function: MmBackward0", begin, duration, thread)

    def text(self):
        job = {"backend": "nccl", "world_size": 8, **({} if self.rank is None else {"rank": self.rank})}
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
                           "distributedInfo": job, "traceEvents": self.events, "traceName": "trace.json"})


class ImportTimes(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def written(self, text, name):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def script(self, tensor=1, pipeline=1, more=""):
        return self.written(SCRIPT.format(tensor=tensor, pipeline=pipeline, more=more), "train.sh")

    def run_import(self, *arguments):
        return subprocess.run([PROGRAM, "import", *arguments, "--cluster", "dgx-a100-80gb"], capture_output=True,
                              text=True, timeout=120, check=False)

    def imported(self, *arguments):
        """plan.profile in milliseconds, as a list of forward and backward, and what was said."""
        done = self.run_import(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.yaml = done.stdout
        profile = yaml.safe_load(done.stdout)["plan"]["profile"]
        times = []
        for stage in profile if isinstance(profile, list) else [profile]:
            for key in ("forward", "backward"):
                number, unit = stage[key].split()
                self.assertEqual(unit, "ms")
                times.append(float(number))
        return times, done.stderr

    def refused(self, *arguments):
        done = self.run_import(*arguments)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        return done.stderr

    def simulated(self):
        path = self.written(self.yaml, "imported.yaml")
        done = subprocess.run([PROGRAM, path, "--format", "json", "--quiet"], capture_output=True, text=True,
                              timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_times(self, times, expected):
        self.assertEqual(len(times), len(expected), times)
        for time, known in zip(times, expected):
            self.assertAlmostEqual(time, known, delta=1e-5 * known)

    # ---- timers ----
    def test_a_range_without_stages_is_its_mean(self):
        # 32 sequences in micro-batches of 2 on 4 replicas: 4 micro-batches. The first report has the warm-up.
        log = "".join(ITERATION.format(number=10 * i, samples=320 * i, batch=32) + times for i, times in enumerate(
            [ranged((9000, 9500), (9000, 9500)), ranged((400, 440), (800, 880)), ranged((404, 444), (804, 884)),
             ranged((300, 340), (700, 780), batch_generator=(20, 20))], 1))
        times, said = self.imported(self.script(tensor=2), self.written(log, "train.log"))
        self.assert_times(times, [420 / 4, 840 / 4])
        self.assertIn("# forward-compute and backward-compute, median of 3 reports, over 4 micro-batches", self.yaml)
        self.assertIn("6 % of forward-compute is batch-generator", said)
        # The simulated step spends this time in its passes, and none in tensor-parallel communication.
        breakdown = self.simulated()["breakdown"]
        self.assertAlmostEqual(breakdown["forward"], 0.420, places=6)
        self.assertAlmostEqual(breakdown["backward"], 0.840, places=6)
        self.assertEqual(breakdown["tensor_communication"], 0)

    def test_a_range_with_stages_is_its_upper_end(self):
        times, said = self.imported(self.script(pipeline=2), self.written(ranged((400, 480), (800, 960)), "log"))
        # 4 replicas again, but of two stages
        self.assert_times(times, [480 / 4, 960 / 4])
        self.assertIn("every stage takes as long as the slowest rank", said)
        self.assertIn("median of 1 report,", self.yaml)

    def test_the_longest_time(self):
        log = printed("max time across ranks (ms):", {"forward-compute": "480.00", "backward-compute": "960.00"})
        times, said = self.imported(self.script(), self.written(log, "log"))
        self.assert_times(times, [480 / 2, 960 / 2])
        self.assertIn("every rank takes as long as the slowest", said)

    def test_times_of_all_ranks_make_those_of_stages(self):
        # Ranks 0 to 3 hold stage 0, 4 to 7 stage 1; 2 replicas and 8 micro-batches.
        forward = [80, 88, 80, 88, 160, 168, 160, 168]
        log = self.written(of_ranks(forward, [2 * time for time in forward]), "log")
        times, _ = self.imported(self.script(2, 2), log)
        self.assert_times(times, [84 / 8, 168 / 8, 164 / 8, 328 / 8])
        ranks = self.simulated()["ranks"]
        for rank, total in zip(ranks, (0.084, 0.164)):
            self.assertAlmostEqual(rank["breakdown"]["forward"], total, places=6)
        # In Megatron-LM's other order, pairs of ranks alternate.
        times, _ = self.imported(self.script(2, 2, "--use-tp-pp-dp-mapping"), log)
        self.assert_times(times, [124 / 8, 248 / 8] * 2)

    def test_context_parallel_ranks_share_a_stage(self):
        # Replicas of 2 x 2 of 8 GPUs: 2 replicas, so 32 sequences are 8 micro-batches of 2. Without the context-parallel
        # pairs there would be 4 replicas and 4 micro-batches.
        forward = [80, 88, 80, 88, 160, 168, 160, 168]
        log = self.written(of_ranks(forward, [2 * time for time in forward]), "log")
        times, _ = self.imported(self.script(1, 2, "--context-parallel-size 2"), log)
        self.assertIn("over 8 micro-batches", self.yaml)
        self.assert_times(times, [84 / 8, 168 / 8, 164 / 8, 328 / 8])
        # In the other order pairs of ranks alternate: 0, 1, 4, 5 hold stage 0, the others stage 1; here 4 and 5 are slow.
        forward = [80, 80, 80, 80, 160, 160, 80, 80]
        log = self.written(of_ranks(forward, [2 * time for time in forward]), "log")
        times, _ = self.imported(self.script(1, 2, "--context-parallel-size 2 --use-tp-pp-dp-mapping"), log)
        self.assert_times(times, [120 / 8, 240 / 8, 80 / 8, 160 / 8])

    def test_micro_batches_that_are_no_whole_number(self):
        log = self.written(ranged((400, 400), (800, 800)), "log")
        cure = "; import what started the measured run, with the --gpus that it had"
        # 32 sequences on 3 replicas, in micro-batches of 2
        self.assertIn("log: error: a global batch of 32 does not divide into micro-batches of 2 on 3 replicas, so that "
                      "nobody knows how many its times are of" + cure, self.refused(self.script(), log, "--gpus", "3"))
        # A batch smaller than one micro-batch on every replica
        self.assertIn("log: error: a global batch of 32 does not divide into micro-batches of 2 on 32 replicas",
                      self.refused(self.script(), log, "--gpus", "32"))
        self.assertIn("log: error: 6 GPUs do not divide into replicas of 4 (tensor x context x pipeline parallelism), so "
                      "that nobody knows how many micro-batches its times are of" + cure,
                      self.refused(self.script(2, 2), log, "--gpus", "6"))

    def test_the_line_of_older_versions(self):
        log = ("time (ms) | model-and-optimizer-setup: 1736.32 | train/valid/test-data-iterators-setup: 2674.95\n"
               " time (ms) | forward-compute: 58.16 | backward-compute: 142.66 | backward-params-all-reduce: 21.43 | "
               "optimizer: 57.50 | batch-generator: 0.24\n"
               " time (ms) | forward-compute: 40.00 | backward-compute: 80.00 | optimizer: 57.50\n")
        times, said = self.imported(self.script(1, 4), self.written(log, "log"))
        self.assert_times(times, [40 / 8, 80 / 8])
        self.assertIn("every stage takes as long as the last one", said)

    def test_the_optimizer_is_what_the_rank_that_waits_least_takes(self):
        parts = {"optimizer-copy-to-main-grad": (1, 2), "optimizer-clip-main-grad": (4, 9), "optimizer-inner-step": (20, 21),
                 "optimizer-copy-main-to-model-params": (3, 4), "params-all-gather": (50, 60), "optimizer": (80, 90)}
        more = {name.replace("-", "_"): times for name, times in parts.items()}
        for pipeline in (1, 4):
            self.imported(self.script(1, pipeline), self.written(ranged((400, 400), (800, 800), **more), "log"))
            self.assertIn("optimizer: 28 ms}", self.yaml)
        # 28 ms on the GPU instead of some that are modelled, and the gathering of parameters beside it
        self.assertAlmostEqual(self.simulated()["breakdown"]["optimizer"], 0.028, delta=1e-6)
        ranks = of_ranks([80.0, 160.0], [160.0, 320.0]) + "  optimizer-inner-step:\n     rank  0: 30.00\n     rank  1: 25.00\n"
        self.imported(self.script(1, 2), self.written(ranks, "log"), "--gpus", "2")
        self.assertEqual(self.yaml.count("optimizer: 25 ms}"), 2)

    def test_the_optimizer_of_skipped_iterations_does_not_count(self):
        reports = ""
        for number, (skipped, update) in enumerate(((0, 99), (1, 5), (0, 30), (0, 34), (0, 32), (1, 6))):
            line = ITERATION.format(number=number, samples=1, batch=32)
            reports += line.replace("lm loss", f"number of skipped iterations: {skipped:3d} | lm loss")
            reports += f" time (ms) | forward-compute: 40.00 | backward-compute: 80.00 | optimizer: {update}.00\n"
        self.imported(self.script(), self.written(reports, "log"))
        self.assertIn("optimizer: 32 ms}", self.yaml)
        for log in (reports.replace("iterations:   0", "iterations:   1"),
                    printed("max time across ranks (ms):", {"forward-compute": "400.00", "backward-compute": "800.00",
                                                            "optimizer-inner-step": "20.00"})):
            self.imported(self.script(), self.written(log, "log"))
            self.assertNotIn("optimizer:", yaml.safe_dump(yaml.safe_load(self.yaml)["plan"]["profile"]))

    def test_the_batch_may_be_in_the_log_alone(self):
        log = ITERATION.format(number=10, samples=1, batch=64) + ranged((400, 400), (800, 800))
        path = self.written(SCRIPT.replace("--global-batch-size 32", "").format(tensor=1, pipeline=1, more=""), "a.sh")
        times, _ = self.imported(path, self.written(log, "log"))
        self.assert_times(times, [400 / 4, 800 / 4])
        self.assertIn("global_batch_size: 64", self.yaml)

    def test_logs_that_say_too_little(self):
        log = self.written(ranged((400, 400), (800, 800)), "log")
        self.assertIn("log: error: its times are those of all micro-batches of a step, and without "
                      "plan.global_batch_size and gpus nobody knows how many; import what started the run with it",
                      self.refused(log))
        early = self.written(ITERATION.format(number=10, samples=1, batch=64), "early")
        self.assertIn("early: error: no times of forward-compute and backward-compute; Megatron-LM prints them with "
                      "--timing-log-level 2", self.refused(self.script(), early))
        many = self.written(of_ranks([1.0] * 16, [2.0] * 16), "many")
        self.assertIn("many: error: rank 8 is none of the 8 GPUs of the plan; give --gpus", self.refused(
            self.script(), many))
        # Of alternating stages too, where any rank would have one
        self.assertIn("many: error: rank 8 is none of the 8 GPUs of the plan; give --gpus", self.refused(
            self.script(1, 2, "--use-tp-pp-dp-mapping"), many))
        # What has no number of a rank ends the report, which then has no backward.
        for rank in ("1e300", "-1", "1.5"):
            odd = self.written(of_ranks([1.0] * 2, [2.0] * 2).replace("rank  1", "rank " + rank), "odd")
            self.assertIn("odd: error: no times of forward-compute and backward-compute", self.refused(
                self.script(), odd))

    def test_the_stage_of_a_rank_needs_the_number_of_gpus(self):
        plan = self.written('[parallelism]\npipeline_parallel_degree = 2\n[training]\nlocal_batch_size = 4\n', "job.toml")
        log = self.written(of_ranks([80, 160], [160, 320]), "log")
        self.assertIn("log: error: without gpus nobody knows which stage rank 0 holds; give --gpus",
                      self.refused(plan, log))
        times, _ = self.imported(plan, log, "--gpus", "2")
        self.assert_times(times, [80 / 4, 160 / 4, 160 / 4, 320 / 4])

    def test_a_long_log_is_read_to_its_end(self):
        lines = ITERATION.format(number=10, samples=1, batch=32) * 6000
        log = self.written(lines + ranged((400, 400), (800, 800)), "log")
        self.assertGreater(pathlib.Path(log).stat().st_size, 2**20)
        times, _ = self.imported(self.script(tensor=2), log)
        self.assert_times(times, [400 / 4, 800 / 4])

    # ---- kinds ----
    def test_kinds_of_measurements_leave_scripts_alone(self):
        log = self.written(ranged((400, 400), (800, 800)), "log")
        for order in ((self.script(tensor=2), log), (log, self.script(tensor=2))):
            times, _ = self.imported(*order, "--kind", "megatron-log")
            self.assert_times(times, [400 / 4, 800 / 4])
            self.assertIn("tensor_parallel: 2", self.yaml)
        trace = Trace()
        self.step(trace, 10_000)
        times, _ = self.imported(self.script(), self.written(trace.text(), "trace.json"), "--kind", "kineto")
        self.assert_times(times, [0.150, 0.350])

    def test_kinds_of_measurements_that_no_file_has(self):
        script = self.script()
        log = self.written(ranged((400, 400), (800, 800)), "log")
        why = "; leave --kind out to read them for what they are\n"
        self.assertEqual(self.refused(script, "--kind", "megatron-log"),
                         "trainsim: error: --kind megatron-log is for logs of Megatron-LM's timers (with \"across ranks "
                         f"(ms):\" or \"time (ms) |\"), and of these files none is one: {script}" + why)
        self.assertEqual(self.refused(script, log, "--kind", "kineto"),
                         "trainsim: error: --kind kineto is for traces of PyTorch's profiler (JSON with traceEvents), and "
                         f"of these files none is one: {script}, {log}" + why)

    def test_a_log_that_its_beginning_does_not_show(self):
        log = self.written("Loading extension module…\n" * 60_000 + ranged((400, 400), (800, 800)), "log")
        self.assertGreater(pathlib.Path(log).stat().st_size, 2**20)
        self.assertIn("log: error: is larger than 1 MiB, as no configuration or script is, and not known for a log or a "
                      "trace by its beginning; say --kind megatron-log or kineto if it is one",
                      self.refused(self.script(tensor=2), log))
        other = self.written("nothing\n" * 200_000, "other")
        self.assertIn("other: error: is larger than 1 MiB, as no configuration or script is, and neither a log of "
                      "Megatron-LM's timers nor a trace of PyTorch's profiler",
                      self.refused(other, log, "--kind", "megatron-log"))
        times, _ = self.imported(self.script(tensor=2), log, "--kind", "megatron-log")
        self.assert_times(times, [400 / 4, 800 / 4])

    # ---- several measurements ----
    def test_a_log_and_a_trace_exclude_each_other(self):
        batch = ITERATION.format(number=10, samples=1, batch=32)
        log = self.written(batch + ranged((400, 400), (800, 800)), "train.log")
        trace = Trace()
        self.step(trace, 10_000)
        trace = self.written(trace.text(), "trace.json")
        # The number of sequences, which only the log has, counts for the trace too.
        script = self.written(SCRIPT.replace("--global-batch-size 32", "").format(tensor=1, pipeline=1, more=""), "a.sh")
        times, said = self.imported(script, log, trace)
        self.assert_times(times, [0.150, 0.350])
        self.assertIn(f"the times of {log} are left out: those of {trace}, which comes later, count", said)
        times, said = self.imported(script, trace, log)
        self.assert_times(times, [400 / 2, 800 / 2])
        self.assertIn(f"the times of {trace} are left out: those of {log}, which comes later, count", said)

    def test_of_two_logs_the_later_counts(self):
        names = [self.written(ranged((time, time), (2 * time, 2 * time)), f"{time}.log") for time in (400, 500)]
        times, said = self.imported(self.script(), *names)
        self.assert_times(times, [500 / 2, 1000 / 2])
        self.assertIn(f"the times of {names[0]} are left out: those of {names[1]}, which comes later, count", said)

    def test_traces_of_the_same_rank(self):
        names = []
        for name, rank, scale in (("a", 0, 2), ("b", 6, 2), ("c", 0, 1)):
            trace = Trace(rank)
            self.step(trace, 10_000, scale)
            names.append(self.written(trace.text(), name + ".json"))
        times, said = self.imported(self.script(1, 2), *names)
        self.assert_times(times, [0.300 / 4, 0.700 / 4, 0.600 / 4, 1.100 / 4])
        self.assertIn(f"the times of rank 0 in {names[0]} are left out, because a later file has them too", said)
        self.assertIn("# kernels of 2 ranks,", self.yaml)

    def test_traces_without_a_rank(self):
        names = []
        for name, scale in (("a", 1), ("b", 2), ("c", 2)):
            trace = Trace(None)
            self.step(trace, 10_000, scale)
            names.append(self.written(trace.text(), name + ".json"))
        # All count, with their mean: (300 + 2 * 600) / 3 and (700 + 2 * 1100) / 3 us
        times, said = self.imported(self.script(), *names)
        self.assert_times(times, [0.500 / 2, 2.900 / 3 / 2])
        self.assertIn("# kernels of 3 ranks,", self.yaml)
        self.assertNotIn("every stage", said)
        times, said = self.imported(self.script(1, 2), *names)
        self.assert_times(times, [0.500 / 4, 2.900 / 3 / 4])
        self.assertIn("every stage takes as long as the mean of what was measured, because no rank is named "
                      "(distributedInfo in the trace)", said)
        # Beside one whose rank is known they say nothing of a stage.
        trace = Trace(5)
        self.step(trace, 10_000)
        known = self.written(trace.text(), "known.json")
        times, said = self.imported(self.script(), names[1], known)
        self.assert_times(times, [0.300 / 2, 0.700 / 2])
        self.assertIn(f"the times of {names[1]} are left out: those of {known}, which comes later, count", said)

    # ---- traces ----
    def step(self, trace, begin, scale=1, **collective):
        """A step of two micro-batches: on the GPU 300 us of forward and 700 us of backward, then the optimizer."""
        trace.host("user_annotation", "ProfilerStep#3", begin, 3000)
        trace.host("gpu_user_annotation", "ProfilerStep#3", begin + 50, 3000, 99)
        for half in (0, 1):
            launch = begin + 10 + 1000 * half
            on_gpu = begin + 100 + 1000 * half
            trace.kernel("gemm", launch, on_gpu, 100 * scale)
            trace.kernel("norm", launch + 5, on_gpu + 100 * scale, 50 * scale)
            trace.backward(launch + 100, 60)
            trace.kernel("gemm", launch + 110, on_gpu + 300, 200 * scale, thread=2)
            trace.backward(launch + 200, 60)
            trace.kernel("gemm", launch + 210, on_gpu + 500 + 50, 150 * scale, thread=2)
            if collective:
                # 30 us beside the last multiply, 20 us alone
                trace.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING", launch + 215, on_gpu + 550 + 120 * scale, 50 * scale,
                             thread=2, **collective)
        trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING", begin + 1220, begin + 1800, 500, thread=2,
                     **{"Process Group Description": "DATA_PARALLEL_GROUP"})
        trace.kernel("multi_tensor_adam", begin + 2000, begin + 2400, 400)
        trace.kernel("Memcpy HtoD (Pinned -> Device)", begin + 5, begin + 20, 70, category="gpu_memcpy")

    def test_kernels_of_forward_and_backward(self):
        trace = Trace()
        for i, scale in enumerate((2, 1, 1)):
            self.step(trace, 10_000 * (i + 1), scale)
        # Before, between and behind the steps, which last 3000 us each
        for moment in (5000, 14_000, 40_000):
            trace.kernel("outside", moment, moment + 100, 1000)
        # Nothing says that events are in order.
        random.Random(1).shuffle(trace.events)
        times, said = self.imported(self.script(), self.written(trace.text(), "trace.json"))
        # 32 sequences in micro-batches of 2 on 8 replicas: 2 micro-batches, as in the trace
        self.assert_times(times, [0.150, 0.350])
        # One optimizer in a step
        self.assertIn("optimizer: 0.4 ms}  # kernels of 1 rank, median of 3 steps, over 2 micro-batches", self.yaml)
        self.assertIn("3 collectives in the trace are simulated instead", said)
        # From 100 to 2800 us, without the collective: 2 * (150 + 350) + 400, and 2 * (300 + 550) + 400 in the first step,
        # where two kernels of the backward overlap. Idle are 48, 48 and 22 %.
        self.assertIn("in the trace the GPU was idle for 40 % of a step", said)

    def test_a_trace_of_another_number_of_gpus(self):
        trace = Trace()
        self.step(trace, 10_000)
        path = self.written(trace.text(), "trace.json")
        words = "the trace is of a job of 8 ranks (distributedInfo.world_size), and the plan has 16 GPUs"
        times, said = self.imported(self.script(), path, "--gpus", "16")
        # 32 sequences on 16 replicas are one micro-batch of 2 in a step, with the times of both of the trace.
        self.assert_times(times, [0.300, 0.700])
        self.assertIn(words + ", to which its times may not apply; import what started the measured run, with the --gpus "
                      "that it had", said)
        self.assertNotIn("the trace is of a job", self.imported(self.script(), path)[1])
        # Nothing to compare with
        path = self.written(trace.text().replace('"world_size": 8, ', ""), "trace.json")
        self.assertNotIn("the trace is of a job", self.imported(self.script(), path, "--gpus", "16")[1])

    def test_tensor_parallel_collectives_are_part_of_a_pass(self):
        for description in ("TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp"):
            trace = Trace()
            self.step(trace, 10_000, **{"Process Group Description": description})
            times, said = self.imported(self.script(tensor=4), self.written(trace.text(), "trace.json"))
            # Two replicas, 8 micro-batches; the collective adds what is not beside the multiply.
            self.assert_times(times, [0.300 / 8, 0.740 / 8])
            self.assertIn("1 collective in the trace is simulated instead", said)
        trace = Trace()
        self.step(trace, 10_000)
        _, said = self.imported(self.script(tensor=4), self.written(trace.text(), "trace.json"))
        self.assertIn("tensor-parallel communication takes no time: no collective in the trace says that its group is "
                      "tensor-parallel", said)

    def test_collectives_of_other_groups_inside_of_a_pass(self):
        experts = "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4"
        # Context parallelism leaves two replicas and 8 micro-batches, expert parallelism eight and 2.
        for more, kind, parts, inner, outer in (
                ("--context-parallel-size 4", "context-parallel", 8,
                 ("CONTEXT_PARALLEL_GROUP", "TENSOR_AND_CONTEXT_PARALLEL_GROUP", "mesh_cp"),
                 ("DATA_PARALLEL_GROUP_WITH_CP", "mesh_dp_shard_cp", "PIPELINE_MODEL_PARALLEL_GROUP")),
                (experts, "expert-parallel", 2,
                 ("EXPERT_MODEL_PARALLEL_GROUP", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "mesh_ep"),
                 ("EXPERT_DATA_PARALLEL_GROUP", "mesh_dp_shard_in_ep", "mesh_tp"))):
            silent = f"{kind} communication takes no time: no collective in the trace says that its group is {kind}"
            for group in inner + outer:
                with self.subTest(group):
                    trace = Trace()
                    self.step(trace, 10_000, **{"Process Group Description": group})
                    times, said = self.imported(self.script(1, 1, more), self.written(trace.text(), "trace.json"))
                    backward = 0.740 if group in inner else 0.700
                    self.assert_times(times, [0.300 / parts, backward / parts])
                    self.assertEqual(silent in said, group in outer, said)
        # Tokens may be exchanged without NCCL.
        trace = Trace()
        self.step(trace, 10_000)
        trace.kernel("void deep_ep::intranode::dispatch<768>(int4*)", 10_030, 10_260, 20)
        times, said = self.imported(self.script(1, 1, experts), self.written(trace.text(), "trace.json"))
        self.assert_times(times, [0.320 / 2, 0.700 / 2])
        self.assertNotIn("takes no time", said)

    def test_a_profile_has_all_communication_of_passes(self):
        """What the table of imports says of groups holds because the simulated step has no such communication."""
        for more in ("--context-parallel-size 4", "--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 4"):
            trace = Trace()
            self.step(trace, 10_000)
            self.imported(self.script(1, 1, more), self.written(trace.text(), "trace.json"))
            breakdown = self.simulated()["breakdown"]
            self.assertAlmostEqual(breakdown["forward"], 0.000300, places=7)
            self.assertEqual(breakdown.get("context_communication", 0) + breakdown.get("expert_communication", 0), 0)

    def test_traces_of_several_stages(self):
        names = []
        for rank, scale in ((0, 1), (6, 2)):
            trace = Trace(rank)
            self.step(trace, 10_000, scale)
            names.append(self.written(trace.text(), f"rank{rank}.json"))
        times, _ = self.imported(self.script(1, 2), *names)
        # At scale 2 the kernels of a backward last 400 and 300 us, 150 of them side by side.
        self.assert_times(times, [0.300 / 4, 0.700 / 4, 0.600 / 4, 1.100 / 4])
        times, said = self.imported(self.script(1, 2), names[0])
        self.assert_times(times, [0.300 / 4, 0.700 / 4])
        self.assertIn("stages that nobody measured (1) take the mean of the others", said)

    def test_a_trace_without_steps(self):
        trace = Trace()
        self.step(trace, 10_000)
        trace.events = [event for event in trace.events if not event["name"].startswith("ProfilerStep")]
        times, said = self.imported(self.script(), self.written(trace.text(), "trace.json"))
        self.assert_times(times, [0.150, 0.350])
        self.assertIn("the trace is of one step, because it has no ProfilerStep", said)

    def test_traces_that_say_too_little(self):
        script = self.script()

        def said(trace, name="trace.json"):
            return self.refused(script, self.written(trace, name))

        self.assertIn("trace.json: error: has no kernels of a GPU; record it with activities=", said(Trace().text()))
        trace = Trace()
        trace.kernel("gemm", 10, 20, 30)
        self.assertIn("error: has no operations of the autograd engine", said(trace.text()))
        trace.backward(100, 10)
        self.assertIn("error: has no step with kernels of both forward and backward", said(trace.text()))
        whole = Trace()
        self.step(whole, 10_000)
        self.assertIn("trace.json: error: is no complete trace: ", said(whole.text()[:-40]))

    def test_numbers_as_texts(self):
        trace = Trace("0")
        self.step(trace, 10_000)
        for event in trace.events:
            for key in ("ts", "dur"):
                if key in event:
                    event[key] = f"{event[key]}.0"
            event["tid"] = f"thread {event['tid']}"
            if "correlation" in event["args"]:
                event["args"]["correlation"] = str(event["args"]["correlation"])
        times, said = self.imported(self.script(), self.written(trace.text(), "trace.json"))
        self.assert_times(times, [0.150, 0.350])
        self.assertNotIn("left out", said)

    def test_numbers_that_are_none(self):
        script = self.script()
        for broken in ("soon", None, "nan", [], -1):
            trace = Trace()
            self.step(trace, 10_000)
            trace.kernel("gemm", 10_020, 10_700, broken)
            trace.backward(10_500, broken)
            times, said = self.imported(script, self.written(trace.text(), "trace.json"))
            self.assert_times(times, [0.150, 0.350])
            self.assertIn("2 events of the trace are left out, because ts or dur is no number of microseconds", said)
        trace = Trace()
        self.step(trace, 10_000)
        for event in trace.events:
            event["ts"] = "soon"
        self.assertIn("error: ts or dur of its events are no numbers of microseconds",
                      self.refused(script, self.written(trace.text(), "trace.json")))

    def test_correlations_that_are_none(self):
        # What has none, or one that 64 bits cannot hold, is not found by it: one of 11 kernels, 9 %.
        for broken in (2**64 - 1, 1e300, 1.5, "x", None):
            trace = Trace()
            self.step(trace, 10_000)
            trace.kernel("lost", 10_020, 10_700, 50)
            for event in trace.events[-2:]:
                event["args"]["correlation"] = broken
            times, said = self.imported(self.script(), self.written(trace.text(), "trace.json"))
            self.assert_times(times, [0.150, 0.350])
            self.assertIn("of the kernels in the trace, whose launch is not in it, belong to no pass", said)

    def test_ranks_that_are_none(self):
        for broken, shown in ((-1, "-1"), (1.5, "1.5"), (1e300, "1e+300"), (2**64 - 1, "18446744073709551615"),
                              ("first", '"first"')):
            trace = Trace(broken)
            self.step(trace, 10_000)
            self.assertIn(f"trace.json: error: distributedInfo.rank is {shown}, and no rank",
                          self.refused(self.script(), self.written(trace.text(), "trace.json")))

    # ---- compressed files ----
    def compressed(self, text, name):
        path = self.folder / name
        path.write_bytes(gzip.compress(text.encode()))
        return str(path)

    def test_compressed_files(self):
        trace = Trace()
        self.step(trace, 10_000)
        # Larger than what is read to find out what it is
        trace.events += [{"ph": "i", "name": "x" * 100, "ts": i} for i in range(20_000)]
        path = self.compressed(trace.text(), "trace.json.gz")
        times, _ = self.imported(self.script(), path)
        self.assert_times(times, [0.150, 0.350])
        done = subprocess.run([PROGRAM, "import", self.script(), "-"], input=pathlib.Path(path).read_bytes(),
                              capture_output=True, timeout=120, check=False)
        self.assertIn(b"profile: {forward: 0.15 ms, backward: 0.35 ms, optimizer: 0.4 ms}", done.stdout, done.stderr)
        log = self.compressed(ranged((400, 400), (800, 800)), "log.gz")
        times, _ = self.imported(self.compressed(pathlib.Path(self.script(tensor=2)).read_text(encoding="utf-8"), "a.gz"),
                                 log)
        self.assert_times(times, [400 / 4, 800 / 4])
        plan = self.compressed("[training]\nlocal_batch_size = 4\nseq_len = 512\n", "job.toml.gz")
        done = self.run_import(plan, "--gpus", "8")
        self.assertIn("micro_batch_size: 4  # local_batch_size", done.stdout, done.stderr)

    def test_compressed_files_that_are_damaged(self):
        trace = Trace()
        self.step(trace, 10_000)
        whole = gzip.compress(trace.text().encode())
        path = self.folder / "trace.json.gz"
        for bad in (whole[:-20], whole[:-8] + b"12345678", b"\x1f\x8b\x08\x00rest", whole[:200] + whole[300:]):
            path.write_bytes(bad)
            self.assertIn("trace.json.gz: error: is a gzip file that is damaged or cut off; write or copy it once more",
                          self.refused(self.script(), str(path)))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
