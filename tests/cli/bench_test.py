#!/usr/bin/env python3
"""Runs `trainsim bench` on clusters whose collectives can be worked out by hand.

usage: bench_test.py TRAINSIM
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
# 100 GB/s inside nodes, 10 GB/s per NIC, no protocol but Simple; 10 us to start, 1 us a step inside, 4 us between.
CLUSTER = """name: square
gpu: h100-sxm
gpus_per_node: 4
nics_per_node: 4
intra_node: {kind: nvswitch, bandwidth: 100 GB/s, efficiency: 1, latency: 1 us}
pcie: {bandwidth: 100 GB/s, efficiency: 1, latency: 1 us}
nic: {bandwidth: 10 GB/s, efficiency: 1, latency: 2 us}
fabric: {kind: fat-tree, nodes_per_leaf: 16, switch_latency: 1 us}
collective_latency: 10 us
point_to_point_latency: 10 us
max_gpus: 64
"""


def run(*arguments):
    return subprocess.run([PROGRAM, "bench", *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          check=False)


class Bench(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.cluster = self.write("square.yaml", CLUSTER)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, *arguments):
        done = run("--cluster", self.cluster, *arguments, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["rows"]

    def test_a_broadcast_passes_everything_on(self):
        # 1 GB at 100 GB/s after 10 us and 3 steps of 1 us.
        (row,) = self.rows("--op", "broadcast", "--sizes", "1 GB")
        self.assertAlmostEqual(row["time_s"], 10e-3 + 13e-6, places=9)
        self.assertAlmostEqual(row["busbw_GBps"], row["algbw_GBps"], places=9)

    def test_an_all_to_all_sends_to_each_other(self):
        # 3 / 4 of 1 GB at 100 GB/s after 10 us and one step of 1 us.
        (row,) = self.rows("--op", "all_to_all", "--sizes", "1 GB")
        self.assertEqual(row["algorithm"], "pairs")
        self.assertAlmostEqual(row["time_s"], 7.5e-3 + 11e-6, places=9)
        # Two nodes: 4 of 8 parts cross the own NIC at 10 GB/s; PCIe 1 us, NIC 2 us, one switch 1 us.
        (row,) = self.rows("--op", "all_to_all", "--sizes", "1 GB", "--gpus", 8)
        self.assertAlmostEqual(row["time_s"], 50e-3 + 14e-6, places=9)
        done = run("--cluster", self.cluster, "--op", "all_to_all", "--gpus", 516)
        self.assertEqual(done.returncode, 2)
        self.assertIn("516 GPUs: at most 512 are simulated", done.stderr)

    def test_a_ring_in_a_node(self):
        # 2 * 3 / 4 of 1 GB at 100 GB/s after 10 + 6 us.
        (row,) = self.rows("--sizes", "1 GB")
        self.assertEqual((row["algorithm"], row["protocol"]), ("ring", "simple"))
        self.assertAlmostEqual(row["time_s"], 15e-3 + 16e-6, places=9)
        self.assertAlmostEqual(row["busbw_GBps"], 1.5 / (15e-3 + 16e-6), places=6)
        self.assertAlmostEqual(row["algbw_GBps"], 1 / (15e-3 + 16e-6), places=6)

    def test_a_gather_over_two_nodes(self):
        # 7 / 8 of 1 GB per member; the four NICs of a node share it: 10 GB/s each. The latencies of steps inside hide
        # behind them, not that of the last part between nodes (PCIe, NIC and one leaf: 1 + 2 + 1 us).
        (row,) = self.rows("--op", "all_gather", "--gpus", 8, "--sizes", "1 GB")
        self.assertAlmostEqual(row["time_s"], 7 / 8 / 4 / 10 + 10e-6 + 4e-6, places=9)
        self.assertAlmostEqual(row["busbw_GBps"], 7 / 8 / row["time_s"], places=6)

    def test_trees_take_over_small_tensors_and_can_be_forced(self):
        small, large = self.rows("--gpus", 64, "--sizes", "1 KiB, 1 GiB")
        self.assertEqual((small["algorithm"], large["algorithm"]), ("tree", "ring"))
        # Up and down 3 steps of 1.6 us and 4 of 4 us.
        self.assertAlmostEqual(small["time_s"], 10e-6 + 2 * (3 * 1.6e-6 + 4 * 4e-6) +
                               2 * 1024 / 0.9 / 0.78 / 4 / 10e9, delta=2e-9)
        (forced,) = self.rows("--gpus", 64, "--sizes", "1 KiB", "--set", "cluster.collectives.algorithm=ring")
        self.assertEqual(forced["algorithm"], "ring")
        self.assertGreater(forced["time_s"], small["time_s"])

    def test_a_hierarchical_all_reduce_follows_its_closed_form(self):
        # Three quarters of 1 GB at 100 GB/s and back, after 10 + 3 us each; between two nodes a quarter of it at 10
        # GB/s, 2 * 1 / 2 times, after 10 us and two steps of 4 us.
        (row,) = self.rows("--gpus", 8, "--sizes", "1 GB", "--set", "cluster.collectives.algorithm=hierarchical")
        self.assertEqual(row["algorithm"], "hierarchical")
        self.assertAlmostEqual(row["time_s"] / (2 * (7.5e-3 + 13e-6) + 25e-3 + 18e-6), 1, delta=1e-6)

    def test_switches_of_the_fabric_add_up(self):
        # A quarter of 1 GB at 10 GB/s. CollNet starts 8.4 us earlier, takes twice a step of 1.3 us and 3 members of
        # 0.4 us in the node, and 4 + 17 us between nodes.
        (row,) = self.rows("--gpus", 8, "--sizes", "1 GB", "--set", "cluster.fabric.in_network_reduction=true")
        self.assertEqual(row["algorithm"], "in-network")
        self.assertAlmostEqual(row["time_s"] / (25e-3 + 1.6e-6 + 2 * 2.5e-6 + 21e-6), 1, delta=1e-6)

    def published(self, cluster, gpus, sizes, *overrides):
        flags = [word for override in overrides for word in ("--set", "cluster." + override)]
        done = run("--cluster", cluster, "--gpus", gpus, "--sizes", sizes, *flags, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["rows"]

    def test_published_all_reduces_of_nvls_trees(self):
        # Two nodes of 8 H20, whose NVLink is that of the H100 (nccl issue 1244).
        rows = self.published("dgx-h100", 16, "4 MiB..64 MiB", "collectives.algorithm=nvls-tree")
        for row, measured in zip(rows, (127.6e-6, 146.5e-6, 203.0e-6, 298.5e-6, 467.9e-6), strict=True):
            self.assertEqual(row["algorithm"], "nvls-tree")
            self.assertLess(abs(row["time_s"] / measured - 1), 0.10, row)
        # Two nodes of 8 H800 with 8 ports of 100 Gb/s each (nccl-tests issue 153); of 8 H100 with 8 of 400 Gb/s (nccl
        # issue 1221); many of these (GTC 2024, in nccl issue 1649).
        for cluster, gpus, nic, measured in (("hgx-h800", 16, "edr-100", 161), ("dgx-h100", 16, "ndr-400", 430),
                                             ("dgx-h100", 512, "ndr-400", 375)):
            (row,) = self.published(cluster, gpus, "8 GiB", "collectives.algorithm=nvls-tree", "nic=" + nic)
            self.assertLess(abs(row["busbw_GBps"] / measured - 1), 0.10, row)

    def test_published_all_reduces_of_switches_that_add_up(self):
        # H100 (nccl issue 1219); A100 with 8 ports and with 4, where 110 and 80 GB/s are a rule of thumb of NCCL's
        # authors (nccl issue 320).
        sharp = "fabric.in_network_reduction=true"
        (row,) = self.published("dgx-h100", 256, "8 GiB", sharp)
        self.assertLess(abs(row["busbw_GBps"] / 480 - 1), 0.10, row)
        for nics, measured in ((8, 110), (4, 80)):
            (row,) = self.published("dgx-a100-80gb", 256, "8 GiB", sharp, f"nics_per_node={nics}")
            self.assertEqual(row["algorithm"], "in-network")
            self.assertLess(abs(row["algbw_GBps"] / measured - 1), 0.15, row)

    def test_overrides_change_the_cluster(self):
        (slow,) = self.rows("--sizes", "1 GB", "--set", "cluster.intra_node.bandwidth=50 GB/s")
        self.assertAlmostEqual(slow["time_s"], 30e-3 + 16e-6, places=9)

    def test_text_and_csv(self):
        text = run("--cluster", self.cluster, "--sizes", "1 MiB..4 MiB").stdout
        self.assertIn("all_reduce over 4 GPUs on 1 node of square", text)
        self.assertEqual(text.count(" MiB "), 3)
        lines = run("--cluster", "dgx-h100", "--gpus", "16", "--format", "csv").stdout
        rows = list(csv.DictReader(io.StringIO(lines)))
        self.assertEqual(len(rows), 11)
        self.assertEqual((rows[0]["cluster"], rows[0]["size_bytes"]), ("dgx-h100", "1048576"))

    def test_comparison_with_measured_output(self):
        ranks = "".join(f"#  Rank  {i} Group  0 Pid 1 on node device {i}\n" for i in range(4))
        output = self.write("measured.txt", "# Collective test starting: all_reduce_perf\n" + ranks +
                            "1000000000 250000000 float sum -1 30032 33.3 49.9 0 30032 33.3 49.9 0\n")
        (row,) = self.rows("--compare", output)
        self.assertAlmostEqual(row["measured_s"], 30.032e-3, places=9)
        self.assertAlmostEqual(row["error"], -0.5, places=6)
        text = run("--cluster", self.cluster, "--compare", output).stdout
        self.assertIn("Mean absolute error of the time: 50.0 % (1 size) from 8 MiB up, none below", text)
        for arguments, message in ((("--gpus", 8), "was measured on 4"), (("--op", "all_gather"), "holds all_reduce"),
                                   (("--sizes", "1 MB"), "exclude each other")):
            done = run("--cluster", self.cluster, "--compare", output, *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(message, done.stderr)

    def test_bad_command_lines(self):
        for arguments, message in (
                ((), "--cluster is required"),
                (("--cluster", "dgx-h10"), "dgx-h100"),
                (("--cluster", self.cluster, "--op", "all_reduc"), "did you mean 'all_reduce'?"),
                (("--cluster", self.cluster, "--gpus", 6), "more than a node needs whole nodes of 4"),
                (("--cluster", self.cluster, "--gpus", 1), "a collective needs 2 at least"),
                (("--cluster", self.cluster, "--gpus", 128), "the cluster has 64"),
                (("--cluster", self.cluster, "--sizes", "12"), "--sizes: 12 has no unit"),
                (("--cluster", self.cluster, "--compare", self.folder / "none.txt"), "none.txt"),
                (("--cluster", self.cluster, "--set", "gpus=4"), "only what is below cluster can be set"),
                (("--cluster", self.cluster, "--set", "cluster.collectives.algorithm=in-switch"),
                 "needs intra_node.nvls_bandwidth, which this cluster lacks"),
                (("--cluster", self.cluster, "--set", "cluster.collectives.algorithm=in-network"),
                 "needs fabric.in_network_reduction: true, which this cluster lacks"),
                (("--cluster", self.cluster, "--set", "cluster.collectives.algorithm=rings"), "ring")):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
