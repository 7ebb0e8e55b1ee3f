#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trainsim run --placement: other orders of ranks and other nodes, in all formats.

usage: placement_test.py TRAINSIM
"""
import csv
import io
import json
import pathlib
import subprocess
import sys
import unittest

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SMALL = str(ROOT / "configs/small-tp2-pp2-dp2.yaml")
# 16 nodes of two GPUs, four to a leaf with an eighth of the bandwidth upwards; a job on eight of them.
NODES = ("cluster.gpus_per_node=2", "cluster.nics_per_node=2", "cluster.max_gpus=32", "cluster.fabric.nodes_per_leaf=4",
         "cluster.fabric.oversubscription=8", "gpus=16", "plan.data_parallel=4", "plan.global_batch_size=32")


def run(*arguments, settings=NODES):
    command = [PROGRAM, "run", SMALL, "--quiet", *arguments]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


class Placement(unittest.TestCase):
    def result(self, *arguments, settings=NODES):
        done = run("--format", "json", *arguments, settings=settings)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_row_is_a_run_of_its_own(self):
        result = self.result("--placement")
        rows = result["placement"]["rows"]
        # Half of each leaf takes all four of them. One node of each would take eight, which there are not.
        self.assertEqual({row["meaning"] for row in rows}, {
            "order tp-pp-dp", "order dp-tp-pp", "order dp-pp-tp", "order pp-tp-dp", "order pp-dp-tp", "half of each leaf",
            "the first nodes, alternating between leaves"})
        self.assertEqual([row["step_time_s"] for row in rows], sorted(row["step_time_s"] for row in rows))
        for row in rows:
            alone = self.result(settings=NODES + tuple(row["set"]))
            self.assertEqual(alone["step_time_s"], row["step_time_s"], row["meaning"])
            self.assertAlmostEqual(row["relative"], row["step_time_s"] / result["step_time_s"], places=12)
            nodes = {}
            for group in alone["communication_groups"]:
                nodes[group["group"]] = max(nodes.get(group["group"], 0), group["nodes"])
            self.assertEqual(nodes, row["group_nodes"], row["meaning"])

    def test_tensor_parallel_groups_lie_where_the_order_puts_them(self):
        rows = {row["meaning"]: row for row in self.result("--placement")["placement"]["rows"]}
        # Two neighbours of one order's innermost axis share a node of two GPUs.
        self.assertEqual(rows["order tp-pp-dp"]["group_nodes"]["tensor"], 1)
        self.assertEqual(rows["order dp-tp-pp"]["group_nodes"]["tensor"], 2)
        self.assertEqual(rows["order dp-tp-pp"]["group_nodes"]["data"], 2)
        self.assertEqual(rows["order pp-tp-dp"]["group_nodes"]["pipeline"], 1)
        self.assertIn("tensor groups on 2 nodes instead of 1", rows["order dp-tp-pp"]["why"])

    def test_nothing_is_asked_by_itself(self):
        self.assertIsNone(self.result()["placement"])
        self.assertNotIn("placement", run().stdout)

    def test_text_and_csv_have_the_same_rows(self):
        rows = self.result("--placement")["placement"]["rows"]
        text = run("--placement").stdout
        places = [text.index(row["meaning"]) for row in rows]
        self.assertEqual(places, sorted(places))
        table = list(csv.DictReader(io.StringIO(run("--placement", "--format", "csv").stdout)))
        self.assertEqual([row["meaning"] for row in table], ["own"] + [row["meaning"] for row in rows])
        self.assertEqual([float(row["step_time_s"]) for row in table][1:], [row["step_time_s"] for row in rows])
        twice = run("--placement", "--sensitivity", "--format", "csv")
        self.assertEqual(twice.returncode, 2)
        self.assertIn("one of --what-if, --sensitivity and --placement", twice.stderr)

    def test_a_job_on_one_node_has_no_others_to_take(self):
        placement = self.result("--placement", settings=())["placement"]
        self.assertTrue(all(row["set"][0].startswith("plan.order=") for row in placement["rows"]))
        self.assertIn("one node", placement["sentences"][-1])

    def test_verbose_shows_groups(self):
        usual, more = run().stdout, run("--verbose").stdout
        self.assertNotIn("Communication by group", usual)
        table = more.split("Communication by group")[1].split("\n\n")[0].splitlines()[2:]
        self.assertEqual(len(table), len(self.result()["communication_groups"]))


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
