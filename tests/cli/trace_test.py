#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim run --trace: the rules of the format, sums that equal those of the JSON result, and bad input.

usage: trace_test.py TRAINSIM
"""
import collections
import copy
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import chrome_trace  # noqa: E402
from chrome_trace import nanoseconds  # noqa: E402

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUBBLE = str(ROOT / "configs/bubble-4x8.yaml")
CONFIG = {
    "model": {"num_layers": 8, "hidden_size": 512, "num_attention_heads": 8, "vocab_size": 8192,
              "sequence_length": 256, "dropout": 0, "tie_word_embeddings": True},
    "cluster": "dgx-a100-80gb", "gpus": 8,
    "plan": {"micro_batch_size": 1, "global_batch_size": 32},
}
PIPELINE = ("plan.pipeline_parallel=2", "plan.data_parallel=4")
SLOW = "cluster={extends: dgx-a100-80gb, slow_gpus: [{gpu: 1, slowdown: 1.5}]}"
# Every schedule, kind of sharding, network and way to overlap, in some combination.
PLANS = {
    "1f1b": PIPELINE,
    "gpipe": (*PIPELINE, "plan.schedule=gpipe"),
    "interleaved, zero1": (*PIPELINE, "plan.schedule=interleaved", "plan.virtual_pipeline=2", "plan.sharding=zero1"),
    "tensor parallel": ("plan.tensor_parallel=2", "plan.pipeline_parallel=2"),
    "tensor and sequence parallel, full recomputation": ("plan.tensor_parallel=2", "plan.sequence_parallel=true",
                                                         "plan.pipeline_parallel=2", "plan.recompute=full"),
    "unequal stages": ("model.num_layers=9", *PIPELINE, "plan.pipeline_layout=[5, 4]"),
    "zero2": ("plan.sharding=zero2",),
    "zero3": ("plan.sharding=zero3",),
    "hybrid zero3": ("gpus=16", "plan.sharding={stage: 3, group: node}"),
    "ideal network": (*PIPELINE, "simulation.network=ideal"),
    "free network": (*PIPELINE, "simulation.network=free"),
    "every step of a ring": ("gpus=2", "plan.global_batch_size=4", "simulation.network=step"),
    "a slow GPU": (*PIPELINE, SLOW),
}


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)


class Files(unittest.TestCase):
    """Tests in a folder of their own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.config = self.folder / "plan.yaml"
        self.config.write_text(json.dumps(CONFIG), encoding="utf-8")
        self.file = self.folder / "trace.json"

    def trace(self, *arguments, config=None):
        """The result and the trace of a run."""
        done = run(str(config or self.config), "--format", "json", "-q", "--trace", str(self.file), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), chrome_trace.parse(self.file.read_text(encoding="utf-8"))


def rows_of(trace):
    """Complete events by rank and the name of their thread; layers within slots count as a thread of their own."""
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"]
             if event["name"] == "thread_name"}
    rows = collections.defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            row = "layers" if event["cat"] == "layer" else names[event["pid"], event["tid"]]
            rows[event["pid"], row].append(event)
    return rows


def total(events):
    return sum(nanoseconds(event["dur"]) for event in events) / 1e9


class Sums(Files):
    """Checks that the trace of a run keeps the rules, and adds up to the result."""

    def check(self, *arguments, config=None):
        result, trace = self.trace(*arguments, config=config)
        self.assertEqual(chrome_trace.problems(trace), [])
        rows = rows_of(trace)
        for rank in result["ranks"]:
            self.check_rank(result, rank, rows, trace)
        self.check_breakdown(result, rows)
        self.assertAlmostEqual(float(trace["otherData"]["step_time_s"]), result["step_time_s"], delta=1e-12)
        return result, trace

    def check_rank(self, result, rank, rows, trace):
        compute = rows[rank["rank"], "compute"]
        # Each end is rounded to a nanosecond.
        tolerance = 1e-9 * len(compute)
        now = 0
        for event in compute:
            self.assertEqual(nanoseconds(event["ts"]), now)
            now += nanoseconds(event["dur"])
        self.assertAlmostEqual(now / 1e9, result["step_time_s"], delta=1e-9)
        for cause, seconds in rank["breakdown"].items():
            events = [event for event in compute if event["cat"] == cause]
            self.assertAlmostEqual(total(events), seconds, delta=tolerance, msg=cause)
        self.assertAlmostEqual(total(rows[rank["rank"], "schedule"]), rank["busy_s"], delta=tolerance)
        memory = [event["args"]["bytes"] for event in trace["traceEvents"]
                  if event["ph"] == "C" and event["pid"] == rank["rank"]]
        self.assertEqual(max(memory), rank["peak_memory_bytes"])

    def check_breakdown(self, result, rows):
        world = sum(rank["represents"] for rank in result["ranks"])
        for cause, seconds in result["breakdown"].items():
            mean = sum(rank["represents"] * total(event for event in rows[rank["rank"], "compute"]
                                                  if event["cat"] == cause)
                       for rank in result["ranks"]) / world
            longest = max(len(rows[rank["rank"], "compute"]) for rank in result["ranks"])
            self.assertAlmostEqual(mean, seconds, delta=1e-9 * longest, msg=cause)


class Plans(Sums):
    def test_plans(self):
        for name, plan in PLANS.items():
            with self.subTest(name):
                self.check(*(word for override in plan for word in ("--set", override)))

    def test_unfolded_every_rank_is_a_process(self):
        _, trace = self.check("--set", "plan.pipeline_parallel=2", "--fold", "off")
        self.assertEqual({event["pid"] for event in trace["traceEvents"]}, set(range(8)))
        self.assertEqual(trace["otherData"]["represents"], "every rank")

    def test_a_slot_of_unequal_ranks_shows_what_they_wait_for(self):
        result, trace = self.check("--set", "plan.pipeline_parallel=2", "--set", SLOW)
        self.assertGreater(result["breakdown"]["imbalance"], 0)
        names = [event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"]
        self.assertEqual(sum("a slow GPU" in name for name in names), 1)
        self.assertIn("wait for slower ranks", {event["name"] for event in trace["traceEvents"]})


class Contents(Files):
    def test_four_stages_and_eight_micro_batches(self):
        # Equal slots and free communication: F0 of stage 3 begins after 3 forward slots, and B7 of stage 0 ends the
        # step after 8 + 3 pairs of slots.
        result, trace = self.trace(config=BUBBLE)
        rows = rows_of(trace)
        stages = [rank["rank"] for rank in sorted(result["ranks"], key=lambda rank: rank["stage"])]
        self.assertEqual([event["name"] for event in rows[stages[3], "schedule"]],
                         [kind + str(micro_batch) for micro_batch in range(8) for kind in "FB"])
        self.assertEqual([event["name"] for event in rows[stages[0], "schedule"]],
                         ["F0", "F1", "F2", "F3", "B0", "F4", "B1", "F5", "B2", "F6", "B3", "F7", "B4", "B5", "B6", "B7"])
        first, last = rows[stages[0], "schedule"], rows[stages[3], "schedule"]
        forward, backward = nanoseconds(first[0]["dur"]), nanoseconds(first[4]["dur"])
        self.assertAlmostEqual(nanoseconds(last[0]["ts"]), 3 * forward, delta=3)
        self.assertAlmostEqual(nanoseconds(first[-1]["ts"]) + backward, 11 * (forward + backward), delta=30)
        # Each of the 3 boundaries is crossed by 8 activations and 8 gradients.
        self.assertEqual(sum(event["ph"] == "s" for event in trace["traceEvents"]), 3 * 2 * 8)

    def test_names_and_arguments(self):
        _, trace = self.trace("--set", "plan.tensor_parallel=2", "--set", "plan.pipeline_parallel=2")
        about = trace["otherData"]
        self.assertEqual((about["config"], about["cluster"], about["network"], about["world_size"],
                          about["simulated_ranks"]), ("plan", "dgx-a100-80gb", "flow", 8, 2))
        self.assertEqual("trainsim " + about["trainsim_version"], run("--version").stdout.strip())
        self.assertIn("one of each kind", about["represents"])
        events = trace["traceEvents"]
        self.assertEqual([event["args"]["name"] for event in events if event["name"] == "process_name"],
                         ["rank 0 (stage 0, one of 4 alike)", "rank 4 (stage 1, one of 4 alike)"])
        reduction = next(event for event in events if event["name"] == "nccl:all_reduce" and "layer" in event["args"])
        # The whole activation, 256 tokens of 512 elements of 2 bytes, over 2 ranks, in layer 0 of the first forward.
        self.assertEqual(reduction["cat"], "tensor_communication")
        self.assertEqual(reduction["args"], {"micro_batch": 0, "chunk": 0, "layer": 0, "bytes": 256 * 512 * 2,
                                             "group": "tensor", "group_size": 2})
        send = next(event for event in events if event["name"] == "nccl:send")
        self.assertEqual(send["cat"], "pipeline_communication")
        # Each tensor-parallel rank sends its half.
        self.assertEqual(send["args"], {"micro_batch": 0, "chunk": 0, "bytes": 256 * 512, "to_rank": 4})

    def test_compressed(self):
        self.trace()
        plain = self.file.read_bytes()
        compressed = self.folder / "trace.json.gz"
        self.assertEqual(run(str(self.config), "-q", "--trace", str(compressed)).returncode, 0)
        self.assertEqual(gzip.decompress(compressed.read_bytes()), plain)

    def test_equal_runs_give_equal_bytes(self):
        self.trace()
        first = self.file.read_bytes()
        self.trace()
        self.assertEqual(self.file.read_bytes(), first)

    def test_the_result_is_the_same_with_a_trace(self):
        result, _ = self.trace()
        plain = json.loads(run(str(self.config), "--format", "json", "-q").stdout)
        del result["simulation"]["wall_s"], plain["simulation"]["wall_s"]
        self.assertEqual(result, plain)

    def test_layers_are_nested_in_slots(self):
        _, trace = self.trace("--set", "plan.pipeline_parallel=2", "--set", "plan.schedule=interleaved",
                              "--set", "plan.virtual_pipeline=2")
        rows = rows_of(trace)
        # 8 layers on 2 stages with 2 chunks each: rank 0 has layers 0, 1 and 4, 5.
        first, later = [[layer["name"] for layer in rows[0, "layers"]
                         if slot["ts"] <= layer["ts"] < slot["ts"] + slot["dur"]]
                        for slot in (next(slot for slot in rows[0, "schedule"]
                                          if slot["name"] == name and slot["args"]["chunk"] == chunk)
                                     for name, chunk in (("F0", 0), ("B0", 1)))]
        self.assertEqual((first, later), (["layer 0", "layer 1"], ["layer 5", "layer 4"]))


class LongTraces(Sums):
    """The same sums hold for a trace that is shortened."""

    def test_gpt175b_is_small(self):
        result, trace = self.check(config="gpt175b")
        self.assertLess(self.file.stat().st_size, 30e6)
        self.assertTrue(trace["otherData"]["compact"])
        self.assertEqual(len({event["pid"] for event in trace["traceEvents"]}), len(result["ranks"]))
        names = {event["name"] for event in trace["traceEvents"]}
        # Its weight gradients run beside a collective, but one after the other.
        self.assertIn("mlp backward … norm + residual backward", names)
        done = run("gpt175b", "--format", "json", "--trace", str(self.file))
        self.assertRegex(done.stderr, r"the trace has \d+ events and is shortened \(docs/trace.md\); all of it goes into "
                                      r"a file whose name ends in .gz")

    def test_compressed_it_is_complete(self):
        compressed = self.folder / "trace.json.gz"
        done = run("gpt175b", "--trace", str(compressed))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = gzip.decompress(compressed.read_bytes()).decode()
        self.assertIn('"compact":false', text)
        self.assertIn('"layer":95', text)


class Checker(Files):
    """What is wrong with a trace is found."""

    def test_faults(self):
        _, sound = self.trace("--set", "plan.pipeline_parallel=2")
        def first(trace, phase):
            return next(event for event in trace["traceEvents"] if event["ph"] == phase)
        def without(phase):
            def spoil(trace):
                trace["traceEvents"].remove(first(trace, phase))
            return spoil
        def with_field(phase, key, value):
            def spoil(trace):
                first(trace, phase)[key] = value
            return spoil
        def into_the_next(trace):
            one, two = [event for event in trace["traceEvents"] if event["ph"] == "X"][:2]
            one["dur"] = two["ts"] - one["ts"] + two["dur"] - 1
        faults = {
            "not an object": lambda trace: trace.pop("traceEvents"),
            "phase": with_field("X", "ph", "Q"),
            "fields": with_field("X", "color", "red"),
            "dur is no time": with_field("X", "dur", -1),
            "sticks out": into_the_next,
            "one end only": without("s"),
            "backwards in time": lambda trace: first(trace, "s").update(
                {key: [event for event in trace["traceEvents"] if event["ph"] == "X"][-1][key]
                 for key in ("pid", "tid", "ts")}),
            "no event begins": with_field("f", "tid", 99),
            "has no process_name": without("M"),
            "a counter must count": with_field("C", "args", {"bytes": "many"}),
            "goes back in time": with_field("C", "ts", 10**9),
        }
        for expected, spoil in faults.items():
            with self.subTest(expected):
                spoiled = copy.deepcopy(sound)
                spoil(spoiled)
                self.assertIn(expected, " ".join(chrome_trace.problems(spoiled)))


class BadInput(Files):
    def expect(self, code, message, *arguments):
        done = run(str(self.config), "-q", *arguments)
        self.assertEqual((done.returncode, done.stderr), (code, message))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["plan.yaml"])
        return done

    def test_a_folder_that_does_not_exist(self):
        done = self.expect(2, "trainsim: error: can't write '/nonexistent/trace.json': No such file or directory; name a "
                           "file in a folder that exists and that you may write to\n", "--trace", "/nonexistent/trace.json")
        self.assertEqual(done.stdout, "")

    def test_the_same_file_as_the_result(self):
        target = str(self.folder / "one.json")
        message = "trainsim: error: --trace and --output both name '{}'; give each a file of its own\n"
        self.expect(2, message.format(target), "--trace", target, "-o", target)
        other = str(self.folder / "." / ".." / self.folder.name / "one.json")
        self.expect(2, message.format(target), "--trace", target, "-o", other)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk(self):
        # The result comes first.
        result = self.folder / "result.txt"
        done = run(str(self.config), "-q", "--trace", "/dev/full", "-o", str(result))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "trainsim: error: can't write the result to "
                                                                              "'/dev/full': No space left on device\n"))
        self.assertIn("step time", result.read_text(encoding="utf-8"))

    def test_bad_configurations_leave_nothing(self):
        done = run(str(self.config), "-q", "--trace", str(self.file), "--set", "plan.tensor_parallel=3")
        self.assertEqual(done.returncode, 2)
        self.assertFalse(self.file.exists())

    def test_a_trace_that_fails_leaves_the_old_file(self):
        self.file.write_text("old", encoding="utf-8")
        self.assertEqual(run(str(self.config), "-q", "--trace", str(self.file), "--set", "gpus=0").returncode, 2)
        self.assertEqual(self.file.read_text(encoding="utf-8"), "old")


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
