#!/usr/bin/env python3
"""Runs `trainsim topology` on clusters that can be counted by hand.

usage: topology_test.py TRAINSIM
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
CLUSTER = """name: {name}
gpu: h100-sxm
gpus_per_node: 4
nics_per_node: 4
intra_node: {{kind: nvswitch, bandwidth: 100 GB/s, efficiency: 1, latency: 1 us}}
pcie: {{bandwidth: 100 GB/s, efficiency: 1, latency: 1 us}}
nic: {{bandwidth: 10 GB/s, efficiency: 0.5, latency: 2 us}}
fabric: {{switch_latency: 1 us, {fabric}}}
collective_latency: 10 us
point_to_point_latency: 10 us
"""


def run(*arguments, **options):
    return subprocess.run([PROGRAM, "topology", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False, **options)


class Topology(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def cluster(self, fabric):
        path = self.folder / "cluster.yaml"
        path.write_text(CLUSTER.format(name="counted", fabric=fabric), encoding="utf-8")
        return path

    def looked_at(self, fabric, *arguments):
        done = run(self.cluster(fabric), *arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_an_oversubscribed_fat_tree(self):
        # Two nodes of 4 NICs with 5 GB/s below each leaf: 40 GB/s from below, 10 above. 4 nodes can send 80.
        seen = self.looked_at("kind: fat-tree, nodes_per_leaf: 2, oversubscription: 4", "--gpus", 32)
        self.assertEqual(seen["switches"], {"leaves": 4, "spine_layers": 1})
        self.assertEqual((seen["bisection_Bps"], seen["injection_Bps"]), (20e9, 80e9))
        self.assertEqual([(d["gpus"], d["nearest"], d["bandwidth_Bps"]) for d in seen["distances"]],
                         [(3, 1, 100e9), (4, 4, 5e9), (24, 8, 5e9)])
        # PCIe 1 us, NIC 2 us, three switches.
        self.assertAlmostEqual(seen["distances"][2]["latency_s"], 6e-6)
        self.assertEqual(seen["distances"][1]["slowest"], "nic 0 -> leaf 0")

    def test_three_levels_of_switches_with_eight_ports(self):
        # 8 ports: one node of 4 NICs below a leaf, 4 leaves in a pod, 8 pods: 32 nodes. Non-blocking.
        seen = self.looked_at("kind: fat-tree, radix: 8, levels: 3, spreading: ecmp", "--gpus", 128)
        self.assertEqual(seen["switches"], {"leaves": 32, "spines": 32, "cores": 16})
        self.assertEqual(seen["bisection_Bps"], seen["injection_Bps"])
        done = run(self.cluster("kind: fat-tree, radix: 8, levels: 3"), "--gpus", 132)
        self.assertEqual(done.returncode, 2)
        self.assertIn("gpus: 132 needs 33 nodes, more than the 32 that the fabric can connect", done.stderr)

    def test_a_torus(self):
        # 4 x 4 nodes; the halves are joined by two rows of four cables of 6 GB/s x 0.5.
        seen = self.looked_at("kind: torus, dimensions: [4, 4], link_bandwidth: 6 GB/s", "--gpus", 64)
        self.assertEqual(seen["bisection_Bps"], 8 * 3e9)
        self.assertEqual(sum(d["gpus"] for d in seen["distances"]), 63)

    def test_a_rail_only_fabric_has_full_bisection_but_no_way_between_rails(self):
        seen = self.looked_at("kind: rail-only, nodes_per_leaf: 2", "--gpus", 32)
        self.assertEqual(seen["bisection_Bps"], 80e9)
        longest = seen["distances"][-1]["way"]
        self.assertEqual(longest[:4], ["gpu 0", "node switch 0", "gpu 1", "nic 1"])

    def test_the_text_names_what_there_is(self):
        done = run(self.cluster("kind: fat-tree, nodes_per_leaf: 2, oversubscription: 4"), "--gpus", 32,
                   "--set", "cluster.faults=[{nic: 3, failed: true}, {leaf: 1, bandwidth: 0.5}]")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ["counted (modified): 32 GPUs in 8 nodes",
                     "fat tree: 4 leaves, 1 spine layer; 2 nodes below a leaf, 25.0 % of the bandwidth above",
                     "NIC 3 is gone", "uplinks of leaf 1 at 50.0 %"]:
            self.assertIn(text, " ".join(done.stdout.split()))

    def test_every_preset_can_be_looked_at(self):
        listed = subprocess.run([PROGRAM, "list", "clusters", "--format", "json"], capture_output=True, text=True,
                                check=True)
        for preset in json.loads(listed.stdout):
            done = run(preset["name"])
            self.assertEqual((done.returncode, done.stderr), (0, ""), preset["name"])

    def test_pictures(self):
        cluster = self.cluster("kind: rail-optimized, nodes_per_leaf: 2")
        dot = self.folder / "seen.dot"
        self.assertEqual(run(cluster, "--gpus", 32, "--picture", dot).returncode, 0)
        drawn = dot.read_text(encoding="utf-8")
        for text in ['"nodes 0-1" -- "leaf 0-3"', '"leaf 0-3" -- "spine layer 0" [label="4 x 10.00 GB/s"]',
                     '"own gpu 0" -- "own node switch 0"']:
            self.assertIn(text, drawn)
        wrong = run(cluster, "--picture", self.folder / "seen.png")
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("ends neither in .svg nor in .dot", wrong.stderr)
        without = run(cluster, "--picture", self.folder / "seen.svg", env={**os.environ, "PATH": "/nowhere"})
        self.assertEqual((without.returncode, without.stdout), (2, ""))
        self.assertIn("drawing SVG needs Graphviz", without.stderr)
        self.assertFalse((self.folder / "seen.svg").exists())
        if shutil.which("dot"):
            svg = self.folder / "seen.svg"
            self.assertEqual(run(cluster, "--picture", svg).returncode, 0)
            self.assertIn("</svg>", svg.read_text(encoding="utf-8"))

    def test_faults_that_hit_nothing_are_named(self):
        done = run(self.cluster("kind: fat-tree, nodes_per_leaf: 2"), "--gpus", 8, "--set",
                   "cluster.faults=[{nic: 9, failed: true}]")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--set cluster.faults=[{nic: 9, failed: true}]:1:23: error: cluster.faults[0].nic: 9 is not within "
                      "reach of the job, which sees 0 to 7", done.stderr)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
