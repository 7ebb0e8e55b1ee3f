#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--report of sweep, merge, compare and search: what the pages hold, and what happens when they can't be written.

usage: report_pages_test.py TRAINSIM
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import page_parser

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Four equal stages, free communication: a step takes (m + 3) times 30 ms, and the optimizer next to nothing.
BUBBLE = str(ROOT / "configs/bubble-4x8.yaml")
SMALL = str(ROOT / "configs/small-tp2-pp2-dp2.yaml")
LARGEST_PAGE = 2_000_000
HOSTILE = "</script><script>alert(1)</script><!-- & \u2028"
RANKS = ("SLURM_", "OMPI_", "PMI_", "PMIX_", "PARALLEL_")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(RANKS)}


def beaten(points, index):
    """Whether another point is no worse in both numbers and better in one."""
    x, y = points[index]
    return any(a <= x and b <= y and (a < x or b < y) for a, b in points)


class Pages(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.path = self.folder / "page.html"

    def run_program(self, *arguments):
        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=300, check=False,
                              cwd=self.folder, env=CLEAN)

    def expect(self, code, *arguments):
        done = self.run_program(*arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def page_of(self, command, *arguments):
        """The data of a command's page, and its JSON result."""
        done = self.expect(0, command, *arguments, "--quiet", "--format", "json", "--report", str(self.path))
        page, data = page_parser.parse(self.path)
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(page.handlers, [])
        for reference in page.references:
            self.assertIn(reference[1:], page.ids)
        self.assertLessEqual(self.path.stat().st_size, LARGEST_PAGE)
        # Every mark of its template was replaced.
        self.assertNotRegex(self.path.read_text(encoding="utf-8"), r"@[A-Z0-9]+@")
        if command != "compare":
            self.assertLess({"front", "memory-front", "memory-front-lead", "cost-front"}, set(page.ids))
        return data, json.loads(done.stdout)

    def config_file(self, name="plan", **changes):
        config = {
            "model": {"num_layers": 8, "hidden_size": 1024, "num_attention_heads": 16, "vocab_size": 32000,
                      "sequence_length": 1024, "dropout": 0},
            "cluster": "dgx-a100-80gb", "gpus": 8,
            "plan": {"pipeline_parallel": 2, "micro_batch_size": 2, "global_batch_size": 64},
        }
        config.update(changes)
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        return str(path)

    def check_cannot_write(self, *arguments):
        (self.folder / "taken").mkdir()
        for target, cause in (("missing/page.html", "No such file or directory"), ("taken", "Is a directory")):
            done = self.expect(2, *arguments, "--report", target)
            self.assertEqual(done.stderr, f"trainsim: error: can't write '{target}': {cause}; name a file in a folder that "
                                          "exists and that you may write to\n")
            self.assertEqual(done.stdout, "")

    def check_same_file(self, *arguments):
        done = self.expect(2, *arguments, "-o", "same.html", "--report", "./same.html")
        self.assertEqual(done.stderr, "trainsim: error: --report and --output both name './same.html'; give each a file of "
                                      "its own\n")
        self.assertEqual([path.name for path in self.folder.iterdir() if path.suffix != ".yaml"], [])


def table_of(data):
    """The points of a sweep's page as dictionaries."""
    return [dict(zip(data["points"]["columns"], row)) for row in data["points"]["rows"]]


class SweepPage(Pages):
    def test_its_numbers_are_those_of_the_json_output(self):
        data, rows = self.page_of("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2,3", "--vary",
                                  "plan.recompute=none,full")
        points = table_of(data)
        self.assertEqual(len(points), len(rows))
        # 16 sequences don't make micro-batches of 3 on two replicas: such a point has a reason and no numbers.
        self.assertTrue(any(row["error"] for row in rows))
        for point, row in zip(points, rows):
            for column in set(point) - {"time_s", "gpu_hours"}:
                self.assertEqual(point[column], row[column], column)
            if row["error"] is None:
                self.assertEqual(point["time_s"], row["step_time_s"])
                self.assertAlmostEqual(point["gpu_hours"], row["gpus"] * row["step_time_s"] / 3600, places=12)
            else:
                self.assertIsNone(point["time_s"])
        self.assertEqual(data["keys"], ["plan.micro_batch_size", "plan.recompute"])
        legal = [row for row in rows if row["error"] is None]
        self.assertEqual(data["counts"], {"points": 6, "legal": len(legal), "fit": sum(row["fits"] for row in legal)})

    def test_the_best_point_and_the_curves_through_it(self):
        data, rows = self.page_of("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2,4", "--vary",
                                  "plan.recompute=none,full")
        rates = [row["tokens_per_s_per_gpu"] for row in rows]
        self.assertEqual(data["best"], rates.index(max(rates)))
        best = rows[data["best"]]
        for axis, key, other in zip(data["axes"], data["keys"], reversed(data["keys"])):
            self.assertEqual(axis["keys"], [key])
            expected = [index for index, row in enumerate(rows) if row[other] == best[other]]
            self.assertEqual(axis["curve"]["points"], expected)
            for index, row in enumerate(rows):
                self.assertEqual(axis["values"][axis["positions"][index]], [str(row[key])])

    def test_the_knee_is_where_doublings_gain_less_than_a_hundredth(self):
        # m micro-batches take (m + 3) slots: m -> 2m gains 3 / (2m + 3), which is 1.16 % for 128 and 0.58 % for 256.
        data, _ = self.page_of("sweep", BUBBLE, "--vary", "plan.global_batch_size=1..1024*2")
        curve = data["axes"][0]["curve"]
        self.assertEqual(table_of(data)[curve["knee"]]["plan.global_batch_size"], 256)
        self.assertTrue(any("Beyond m = 256 micro-batches" in note for note in data["notes"]))
        self.assertEqual(data["axes"][0]["numbers"], [2 ** n for n in range(11)])

    def test_no_knee_is_marked_where_there_is_none(self):
        data, _ = self.page_of("sweep", BUBBLE, "--vary", "plan.global_batch_size=1..64*2")
        self.assertIsNone(data["axes"][0]["curve"]["knee"])
        self.assertTrue(any(note.startswith("No knee up to m = 64") for note in data["notes"]))

    def test_the_front_holds_what_no_other_point_beats(self):
        data, rows = self.page_of("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2,4,8", "--vary",
                                  "plan.recompute=none,selective,full")
        numbers = [(row["step_time_s"], row["peak_memory_bytes"]) for row in rows]
        self.assertTrue(all(row["fits"] for row in rows))
        expected = {index for index in range(len(rows)) if not beaten(numbers, index)}
        self.assertEqual(set(data["memory_front"]["points"]), expected)
        times = [numbers[index][0] for index in data["memory_front"]["points"]]
        self.assertEqual(times, sorted(times))
        self.assertIsNone(data["cost_front"])

    def test_cost_where_gpus_vary_and_time_of_tokens_where_batches_do(self):
        data, rows = self.page_of("sweep", self.config_file(), "--vary", "gpus=4,8,16")
        self.assertEqual(data["per"], "step")
        costs = [(row["step_time_s"], row["gpus"] * row["step_time_s"]) for row in rows]
        expected = {index for index in range(len(rows)) if not beaten(costs, index)}
        self.assertEqual(set(data["cost_front"]["points"]), expected)
        data, rows = self.page_of("sweep", self.config_file(), "--vary", "plan.global_batch_size=32,64")
        self.assertEqual(data["per"], "token")
        for point, row in zip(table_of(data), rows):
            tokens = row["global_batch_size"] * 1024
            self.assertAlmostEqual(point["time_s"] / (row["step_time_s"] / tokens * 1e6), 1, places=9)
            self.assertAlmostEqual(point["gpu_hours"] / (8 * row["step_time_s"] / 3600 / tokens * 1e9), 1, places=9)

    def test_zipped_keys_are_one_axis(self):
        data, _ = self.page_of("sweep", self.config_file(), "--zip", "plan.micro_batch_size=1,2", "--zip",
                               "plan.recompute=none,full", "--vary", "plan.sharding=none,zero1")
        self.assertEqual([axis["keys"] for axis in data["axes"]],
                         [["plan.micro_batch_size", "plan.recompute"], ["plan.sharding"]])
        self.assertEqual(data["axes"][0]["values"], [["1", "none"], ["2", "full"]])

    def test_points_that_do_not_fit_are_never_on_the_front(self):
        model = {"num_layers": 24, "hidden_size": 16384, "num_attention_heads": 64, "vocab_size": 32000,
                 "sequence_length": 2048}
        data, rows = self.page_of("sweep", self.config_file(model=model), "--vary", "plan.tensor_parallel=1,2,4")
        self.assertFalse(any(row["fits"] for row in rows))
        self.assertEqual(data["memory_front"]["points"], [])
        self.assertTrue(data["headline"].startswith("No point fits into memory."))

    def test_shards_merged_and_resumed_sweeps_have_the_same_page(self):
        vary = ("--vary", "plan.micro_batch_size=1,2,4", "--vary", "plan.recompute=none,full")
        whole, _ = self.page_of("sweep", SMALL, *vary)
        for shard in ("1/2", "2/2"):
            self.expect(0, "sweep", SMALL, *vary, "--shard", shard, "-o", "rows-{shard}.jsonl", "--quiet")
        self.expect(0, "merge", "rows-2-of-2.jsonl", "rows-1-of-2.jsonl", "-o", "rows.jsonl", "--report", "merged.html")
        _, merged = page_parser.parse(self.folder / "merged.html")
        self.assertEqual(merged.pop("command"), "trainsim merge rows-2-of-2.jsonl rows-1-of-2.jsonl")
        rows = self.folder / "rows.jsonl"
        rows.write_text("".join(rows.read_text(encoding="utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
        self.expect(0, "sweep", SMALL, *vary, "-o", "rows.jsonl", "--resume", "--quiet", "--report", "resumed.html")
        _, resumed = page_parser.parse(self.folder / "resumed.html")
        self.assertIn("--vary plan.micro_batch_size=1,2,4", resumed.pop("command"))
        whole.pop("command")
        self.assertEqual(merged, whole)
        self.assertEqual(resumed, whole)

    def test_rows_of_csv_files_have_the_same_page(self):
        vary = ("--vary", "plan.micro_batch_size=1,2,3")
        whole, _ = self.page_of("sweep", SMALL, *vary)
        self.expect(0, "sweep", SMALL, *vary, "-o", "rows.csv", "--quiet")
        self.expect(0, "merge", "rows.csv", "-o", "same.csv", "--report", "merged.html")
        _, merged = page_parser.parse(self.folder / "merged.html")
        for data in (whole, merged):
            data.pop("command")
        self.assertEqual(merged, whole)

    def test_a_shard_has_a_page_of_its_own(self):
        self.expect(0, "sweep", SMALL, "--vary", "plan.micro_batch_size=1,2,4", "--shard", "2/3", "-o", "rows-{shard}.csv",
                    "--report", "page-{shard}.html", "--quiet")
        _, data = page_parser.parse(self.folder / "page-2-of-3.html")
        self.assertEqual((data["counts"]["points"], data["points_of_sweep"]), (1, 3))

    def test_a_large_sweep_keeps_what_the_page_speaks_of(self):
        _, rows = self.page_of("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2")
        count = 20000
        lines = []
        for point in range(1, count + 1):
            row = dict(rows[0], **{"plan.micro_batch_size": point, "step_time_s": 1 + (point - 12345) ** 2 * 1e-6,
                                   "point": point, "points": count, "sweep": "0123456789abcdef"})
            row["tokens_per_s"] = 1e6 / row["step_time_s"]
            row["tokens_per_s_per_gpu"] = row["tokens_per_s"] / row["gpus"]
            lines.append(json.dumps(row, separators=(",", ":")))
        (self.folder / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.expect(0, "merge", "rows.jsonl", "-o", "all.jsonl", "--report", str(self.path))
        self.assertLessEqual(self.path.stat().st_size, LARGEST_PAGE)
        _, data = page_parser.parse(self.path)
        points = table_of(data)
        self.assertGreater(len(points), 1000)
        self.assertEqual(data["counts"]["points"], count)
        self.assertEqual(points[data["best"]]["point"], 12345)
        self.assertEqual([points[index]["point"] for index in data["memory_front"]["points"]], [12345])

    def test_texts_stay_texts(self):
        data, _ = self.page_of("sweep", self.config_file(HOSTILE.replace("/", "")), "--vary",
                               f"plan.schedule=1f1b,\"{HOSTILE}\"")
        self.assertEqual(data["name"], HOSTILE.replace("/", ""))
        self.assertIn("alert(1)", table_of(data)[1]["plan.schedule"])

    def test_a_page_that_cannot_be_written(self):
        self.check_cannot_write("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2")

    def test_files_that_would_be_overwritten(self):
        self.check_same_file("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2")
        (self.folder / "rows.csv").write_text("", encoding="utf-8")
        done = self.expect(2, "merge", "rows.csv", "--report", "rows.csv")
        self.assertEqual(done.stderr, "trainsim: error: --report and FILES both name 'rows.csv'; give each a file of its "
                                      "own\n")
        (self.folder / "plans.csv").write_text("micro_batch_size\n1\n", encoding="utf-8")
        done = self.expect(2, "sweep", SMALL, "--plans", "plans.csv", "--report", "plans.csv")
        self.assertEqual(done.stderr, "trainsim: error: --report and --plans both name 'plans.csv'; give each a file of "
                                      "its own\n")

    def test_a_full_disk_loses_no_rows(self):
        sweep = ("sweep", SMALL, "--vary", "plan.micro_batch_size=1,2", "-o", "rows.jsonl", "--quiet")
        done = self.expect(1, *sweep, "--report", "/dev/full")
        self.assertIn("can't write the result to '/dev/full': No space left on device", done.stderr)
        # All rows are there: going on with them simulates nothing, and makes the page.
        rows = (self.folder / "rows.jsonl").read_bytes()
        self.assertEqual(len(rows.splitlines()), 2)
        self.expect(0, *sweep, "--resume", "--report", str(self.path))
        self.assertEqual((self.folder / "rows.jsonl").read_bytes(), rows)
        _, data = page_parser.parse(self.path)
        self.assertEqual(data["counts"]["points"], 2)

    def test_costs_of_whole_runs_are_on_it(self):
        config = self.config_file(run={"tokens": 1_000_000_000, "price_per_gpu_hour": "2 USD"})
        data, rows = self.page_of("sweep", config, "--vary", "plan.micro_batch_size=1,2")
        for point, row in zip(table_of(data), rows):
            self.assertEqual((point["run_days"], point["run_cost"]), (row["run_days"], row["run_cost"]))
            self.assertAlmostEqual(point["run_cost"] / (2 * row["run_gpu_hours"]), 1, places=9)

    def test_nothing_is_left_of_a_sweep_that_does_not_begin(self):
        self.expect(2, "sweep", SMALL, "--vary", "plan.no_such_key=1,2", "--report", str(self.path))
        self.assertEqual(list(self.folder.iterdir()), [])


class ComparePage(Pages):
    def check_stages(self, shown, run):
        """Of the ranks of each stage, all of them, the largest numbers."""
        ranks = run["result"]["ranks"]
        for number, stage in enumerate(shown["stages"]):
            of = [rank for rank in ranks if rank["stage"] == number]
            self.assertEqual(stage, {
                "stage": number, "layers": of[0]["layers"], "busy_s": max(rank["busy_s"] for rank in of),
                "bubble_ratio": max(rank["bubble_s"] / (rank["busy_s"] + rank["bubble_s"]) for rank in of),
                "peak_memory_bytes": max(rank["peak_memory_bytes"] for rank in of)})
        self.assertEqual(len(shown["stages"]), 1 + max(rank["stage"] for rank in ranks))

    def test_stages_are_those_of_all_ranks(self):
        # Stage 1 of two begins at rank 288. No two GPUs are alike, and each is slower than the one before, so that the
        # last of all ranks works longest.
        cluster = {"extends": "dgx-a100-80gb", "slow_gpus": [{"gpu": gpu, "slowdown": 1 + gpu / 575} for gpu in range(576)]}
        config = self.config_file(cluster=cluster, gpus=576, simulation={"network": "ideal"},
                                  plan={"pipeline_parallel": 2, "micro_batch_size": 1, "global_batch_size": 576})
        data, result = self.page_of("compare", config, "@plan.recompute=full")
        for shown, run in zip(data["runs"], result["runs"], strict=True):
            self.assertEqual(len(run["result"]["ranks"]), 576)
            self.check_stages(shown, run)
            self.assertGreater(shown["stages"][1]["busy_s"], shown["stages"][0]["busy_s"])

    def test_its_numbers_are_those_of_the_json_output(self):
        data, result = self.page_of("compare", SMALL, "@plan.recompute=full", "@plan.micro_batch_size=2")
        for shown, run in zip(data["runs"], result["runs"], strict=True):
            self.assertEqual((shown["run"], shown["label"], shown["set"]), (run["run"], run["label"], run["set"]))
            for key, value in shown["result"].items():
                self.assertEqual(value, run["result"][key], key)
            self.check_stages(shown, run)
        self.assertEqual(data["inputs"], result["inputs"])
        self.assertEqual(data["differences"], result["differences"])

    def test_the_waterfalls_add_up(self):
        data, result = self.page_of("compare", SMALL, "@plan.recompute=full")
        first, second = (run["result"] for run in result["runs"])
        difference = data["differences"][0]
        moved = sum(part["change_s"] for part in difference["breakdown"].values())
        self.assertAlmostEqual((difference["from_s"] + moved) / second["step_time_s"], 1, places=9)
        self.assertEqual(first["peak_memory_bytes"] + sum(difference["memory_at_peak"].values()), second["peak_memory_bytes"])

    def test_what_to_know_first(self):
        data, _ = self.page_of("compare", BUBBLE, "@plan.global_batch_size=16")
        # 11 slots for 8 micro-batches become 19 for 16: 19/16 over 11/8 slots per micro-batch, 13.6 % less.
        self.assertTrue(data["headline"].startswith("B takes 13.6 % less time per token than A"), data["headline"])
        data, result = self.page_of("compare", BUBBLE, "@plan.global_batch_size=16", "@plan.global_batch_size=32")
        self.assertTrue(data["headline"].startswith("Of 3 runs C is the fastest that fits into memory. C takes "))
        self.assertEqual([run["run"] for run in result["runs"]], ["A", "B", "C"])
        self.assertEqual(data["name"], f"{BUBBLE} \u2013 @plan.global_batch_size=16 \u2013 @plan.global_batch_size=32")
        data, _ = self.page_of("compare", BUBBLE, *(f"@plan.global_batch_size={size}" for size in (16, 32, 64)))
        self.assertEqual(data["name"], f"{BUBBLE} and 3 others")

    def test_files(self):
        self.check_cannot_write("compare", SMALL, "@plan.recompute=full")

    def test_files_that_would_be_overwritten(self):
        self.check_same_file("compare", SMALL, "@plan.recompute=full")


class SearchPage(Pages):
    def setUp(self):
        super().setUp()
        self.config = self.config_file()
        self.space = ("--vary", "tensor_parallel=1,2", "--vary", "pipeline_parallel=1,2", "--vary", "micro_batch_size=1,2,4",
                      "--top", "3")

    def test_its_numbers_are_those_of_the_json_output(self):
        data, result = self.page_of("search", self.config, *self.space)
        search = data["search"]
        for plan in search["plans"] + [search["own"]]:
            self.assertTrue(plan.pop("label").startswith("TP"))
        self.assertEqual(search, result)

    def test_judged_plans_and_the_front(self):
        data, result = self.page_of("search", self.config, *self.space)
        others = [plan for plan in data["judged"] if plan["simulated"]]
        self.assertEqual(len(others), result["confirmed"] - len(result["plans"]))
        self.assertEqual(data["judged_in_all"], len(data["judged"]))
        simulated = result["plans"] + others
        numbers = [(plan["step_time_s"], plan["peak_memory_bytes"]) for plan in simulated]
        own = (result["own"]["step_time_s"], result["own"]["peak_memory_bytes"])
        if own not in numbers:
            numbers.append(own)
        expected = {index for index in range(len(numbers)) if not beaten(numbers, index)}
        self.assertEqual(set(data["memory_front"]["points"]), expected)
        self.assertIsNone(data["cost_front"])
        for plan in data["judged"]:
            # The best are the best: what is not among them is no faster, even if its time is only a lower bound.
            self.assertGreaterEqual(plan["step_time_s"], result["plans"][-1]["step_time_s"] * (1 - 1e-9))

    def test_cost_where_gpus_vary(self):
        # Room for all plans, so that all are simulated.
        data, result = self.page_of("search", self.config, *self.space[:-1], "100", "--gpus", "4,8", "--objective", "cost",
                                    "--price", "2")
        plans = result["plans"] + [plan for plan in data["judged"] if plan["simulated"]]
        self.assertEqual({plan["gpus"] for plan in plans}, {4, 8})
        # The configuration's own, which is none of the space, competes.
        plans.append(result["own"])
        costs = [(plan["step_time_s"], plan["gpus"] * plan["step_time_s"]) for plan in plans]
        expected = {index for index in range(len(costs)) if not beaten(costs, index)}
        self.assertEqual(set(data["cost_front"]["points"]), expected)
        for plan in data["judged"]:
            self.assertAlmostEqual(plan["gpu_hours_per_step"], plan["gpus"] * plan["step_time_s"] / 3600, places=12)
        self.assertIn("--gpus 4,8 --price 2", data["command"])

    def test_an_own_plan_that_breaks_a_limit(self):
        data, result = self.page_of("search", self.config, *self.space)
        self.assertTrue(result["own_keeps_limits"])
        # The plans found need less than the configuration's own then, and that is on no front.
        limit = result["own"]["peak_memory_bytes"] - 1
        data, result = self.page_of("search", self.config, *self.space, "--limit", f"peak_memory_bytes<={limit}")
        self.assertGreater(len(result["plans"]), 0)
        self.assertFalse(result["own_keeps_limits"])
        self.assertTrue(data["headline"].endswith(" Yours breaks a limit."), data["headline"])
        simulated = result["plans"] + [plan for plan in data["judged"] if plan["simulated"]]
        self.assertLess(max(data["memory_front"]["points"]), len(simulated))

    def test_no_plan(self):
        data, result = self.page_of("search", self.config, *self.space, "--limit", "peak_memory_bytes<=1")
        self.assertEqual(result["plans"], [])
        self.assertTrue(data["headline"].startswith("No plan was found"))

    def test_files(self):
        self.check_cannot_write("search", self.config, *self.space)

    def test_files_that_would_be_overwritten(self):
        self.check_same_file("search", self.config, *self.space)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
