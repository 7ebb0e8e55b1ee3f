#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `trainsim import` on logs of Megatron-LM's timers and traces of PyTorch's profiler with times set by hand.

usage: import_times_test.py TRAINSIM
"""
import json
import pathlib
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
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}],
                           "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": 8},
                           "traceEvents": self.events, "traceName": "trace.json"})


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

    def test_a_long_log_is_read_to_its_end(self):
        lines = ITERATION.format(number=10, samples=1, batch=32) * 6000
        log = self.written(lines + ranged((400, 400), (800, 800)), "log")
        self.assertGreater(pathlib.Path(log).stat().st_size, 2**20)
        times, _ = self.imported(self.script(tensor=2), log)
        self.assert_times(times, [400 / 4, 800 / 4])

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
        trace.kernel("outside", 5000, 5100, 1000)
        times, said = self.imported(self.script(), self.written(trace.text(), "trace.json"))
        # 32 sequences in micro-batches of 2 on 8 replicas: 2 micro-batches, as in the trace
        self.assert_times(times, [0.150, 0.350])
        self.assertIn("# kernels of 1 rank, median of 3 steps, over 2 micro-batches", self.yaml)
        self.assertIn("3 collectives in the trace are simulated instead", said)
        # From 100 to 2800 us, without the collective: 2 * (150 + 350) + 400, and 2 * (300 + 550) + 400 in the first step,
        # where two kernels of the backward overlap. Idle are 48, 48 and 22 %.
        self.assertIn("in the trace the GPU was idle for 40 % of a step", said)

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
        self.assertIn("tensor-parallel communication takes no time: no collective in the trace says", said)

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
        self.assertIn("is compressed; unpack it with gunzip first", self.refused(script, self.compressed()))

    def compressed(self):
        path = self.folder / "trace.json.gz"
        path.write_bytes(b"\x1f\x8b\x08\x00rest")
        return str(path)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
