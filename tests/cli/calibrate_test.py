#!/usr/bin/env python3
"""Runs `trainsim calibrate` on tables whose constants are known, and on tables that determine nothing.

usage: calibrate_test.py TRAINSIM
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
MULTIPLIES = "gpu,peak_tflops,batch,m,n,k,layout,accumulate,out_dtype,fraction_of_peak\n"
ATTENTION = "gpu,peak_tflops,pass,batch,seq,heads,kv_heads,qk_head_dim,v_head_dim,fraction_of_peak\n"


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def value(yaml, name):
    return float(re.search(rf"{name}: {{value: ([0-9.]+)", yaml)[1])


class Calibrate(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def multiplies(self, efficiency, half_k, inner=(64, 256, 1024, 8192)):
        """Full waves of 128 x 256 tiles on the 108 multiprocessors of an A100, timed by hand."""
        rows = ""
        for waves in (1, 2, 3, 4):
            for k in inner:
                rows += f"mine,312,1,{128 * 108 * waves},256,{k},TN,False,bf16,{efficiency * k / (k + half_k)}\n"
        return self.write("multiplies.csv", MULTIPLIES + rows)

    def test_constants_are_found_again(self):
        done = run("calibrate", self.multiplies(0.7, 200), "--gpu", "a100-80gb")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(value(done.stdout, "matmul_efficiency"), 0.7, delta=0.02)
        self.assertAlmostEqual(value(done.stdout, "matmul_half_k"), 200, delta=25)
        self.assertIn("16 multiplies: mean absolute error", done.stdout)

    def test_the_result_is_a_gpu_that_can_be_used(self):
        gpu = self.folder / "mine.yaml"
        self.assertEqual(run("calibrate", self.multiplies(0.4, 128), "--gpu", "a100-80gb", "-o", gpu).returncode, 0)
        config = self.write("run.yaml", "model: {num_layers: 4, hidden_size: 8192, num_attention_heads: 64, "
                                        "vocab_size: 1000, sequence_length: 2048}\n"
                                        "cluster: {extends: dgx-a100-80gb, gpu: mine.yaml}\n"
                                        "gpus: 1\nplan: {micro_batch_size: 4}\n")
        slow = json.loads(run(config, "--format", "json", "--uncertainty", "--samples", "10").stdout)
        fast = json.loads(run(config, "--format", "json", "--set", "cluster.gpu=a100-80gb").stdout)
        self.assertGreater(slow["step_time_s"], 1.5 * fast["step_time_s"])
        names = [constant["name"] for constant in slow["uncertainty"]["constants"]]
        self.assertIn("cluster.gpu.matmul_efficiency", names)

    def test_what_the_data_cannot_determine_is_refused_by_name(self):
        done = run("calibrate", self.multiplies(0.7, 128, inner=(30000, 60000)), "--gpu", "a100-80gb")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("matmul_half_k can't be determined from these multiplies", done.stderr)
        self.assertNotIn("matmul_half_k: {", done.stdout)
        self.assertIn("# matmul_half_k can't be determined", done.stdout)

    def test_data_that_determine_nothing_are_refused(self):
        table = self.write("two.csv", MULTIPLIES + "mine,312,1,4096,4096,4096,TN,False,bf16,0.8\n" * 2)
        done = run("calibrate", table, "--gpu", "a100-80gb")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("nothing can be calibrated from these files", done.stderr)
        self.assertIn("matmul_efficiency can't be determined", done.stderr)

    def test_links_from_nccl_tests(self):
        ranks = "".join(f"#  Rank  {i} Group  0 Pid 1 on node device {i}\n" for i in range(8))
        lines = ""
        for exponent in range(20, 33):
            size = 2 ** exponent
            # 8 members of a ring send 1.75 N at 150 GB/s after 60 us.
            time = 60 + 1.75 * size / 150e3
            rate = f"{time:.2f} {size / time / 1e3:.3f} {1.75 * size / time / 1e3:.3f} 0"
            lines += f"{size} {size // 4} float sum -1 {rate} {rate}\n"
        done = run("calibrate", self.write("out.txt", ranks + lines), "--cluster", "dgx-a100-80gb")
        self.assertEqual(done.returncode, 0, done.stderr)
        # The ring copies a quarter of its share once more per phase: 1 + 0.25 / 7.
        self.assertAlmostEqual(value(done.stdout, "efficiency"), 150 / 300 * (1 + 0.25 / 7), delta=0.01)
        self.assertIn("13 collectives inside a node", done.stdout)

    def test_a_value_at_the_end_of_the_search_is_warned_of(self):
        copies = self.write("fast.csv", "gpu,bytes,time_us\n" + "".join(
            f"mine,{size},{size / (2 * 2039e3)}\n" for size in (1e8, 1e9, 2e9, 1e10)))
        done = run("calibrate", copies, "--gpu", "a100-80gb")
        self.assertIn("memory_efficiency stands at the end of what is searched (1.00)", done.stderr)
        self.assertIn("# memory_efficiency stands at the end", done.stdout)

    def test_copies_and_attention(self):
        copies = self.write("copies.csv", "gpu,bytes,time_us\n" + "".join(
            f"mine,{size},{size / (0.9 * 2039e3) + 5}\n" for size in (1e6, 1e7, 1e8, 1e9, 1e10)))
        attention = self.write("attention.csv", ATTENTION + "".join(
            f"mine,312,fwd,1,{s},32,32,128,128,0.9\n" for s in (2048, 4096, 8192)))
        done = run("calibrate", copies, attention, "--gpu", "a100-80gb")
        self.assertAlmostEqual(value(done.stdout, "memory_efficiency"), 0.9, delta=0.01)
        self.assertAlmostEqual(value(done.stdout, "kernel_overhead"), 5, delta=0.5)
        self.assertIn("attention_efficiency_forward: {value:", done.stdout)
        self.assertNotIn("attention_efficiency_backward", done.stdout)

    def test_bad_lines_are_named_and_left_out(self):
        table = self.multiplies(0.7, 128)
        with open(table, "a", encoding="utf-8") as file:
            file.write("mine,312,1,4096,x,4096,TN,False,bf16,0.8\n")
        done = run("calibrate", table, "--gpu", "a100-80gb")
        self.assertEqual(done.returncode, 0)
        self.assertIn("multiplies.csv:18:1: error: n: ", done.stderr)

    def test_bad_command_lines(self):
        table = self.multiplies(0.7, 128)
        mixed = self.write("mixed.csv", MULTIPLIES + "a,312,1,64,64,64,TN,False,bf16,0.1\n"
                                                     "b,312,1,64,64,64,TN,False,bf16,0.1\n")
        for arguments, message in (([table], "calibrate needs --gpu or --cluster"),
                                   ([table, "--gpu", "a100"], "no GPU preset is called a100"),
                                   ([table, "--gpu", "b200", "--cluster", "dgx-b200"], "excludes"),
                                   ([self.folder / "none.csv", "--gpu", "b200"], "none.csv"),
                                   ([mixed, "--gpu", "b200"], "several GPUs (a, b)"),
                                   ([table, "--gpu", "b200", "-o", self.folder / "no/x.yaml"], "can't write")):
            done = run("calibrate", *arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), (arguments, done.stderr))
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
