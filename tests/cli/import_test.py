#!/usr/bin/env python3
"""Runs `trainsim import` on files in the style of real ones and checks what it writes and says.

usage: import_test.py TRAINSIM
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

PROGRAM = ""
FILES = pathlib.Path(__file__).resolve().parent.parent / "imports"


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False,
                          **options)


class Import(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def imported(self, *arguments):
        """The configuration as a tree, and what was said."""
        done = run("import", *arguments, cwd=FILES)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.yaml = done.stdout
        return yaml.safe_load(done.stdout), done.stderr

    def refused(self, *arguments):
        done = run("import", *arguments, cwd=FILES)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.strip()

    def written(self, text, name="file"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def assert_has(self, tree, section, expected):
        self.assertEqual({key: tree[section].get(key) for key in expected}, expected)

    def assert_legal(self, *overrides):
        """`trainsim check` takes the last configuration."""
        path = self.written(self.yaml, "imported.yaml")
        done = run("check", path, *(part for each in overrides for part in ("--set", each)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_gpt3_175b_of_megatron(self):
        tree, said = self.imported("megatron-gpt3-175b.sh", "--cluster", "dgx-a100-80gb")
        self.assertEqual(tree["gpus"], 8 * 128)
        self.assert_has(tree, "model", {"num_layers": 96, "hidden_size": 12288, "num_attention_heads": 96,
                                        "vocab_size": 50257, "sequence_length": 2048, "activation": "gelu",
                                        "position_embedding": "learned", "dropout": 0.1, "tie_word_embeddings": True})
        # Megatron-LM's defaults are not ours: gradients in the format of fp16, nothing overlapped, nothing sharded.
        self.assert_has(tree, "plan", {"tensor_parallel": 8, "pipeline_parallel": 16, "micro_batch_size": 1,
                                       "global_batch_size": 1536, "precision": "fp16", "gradient_dtype": "fp16",
                                       "sharding": "none", "recompute": "none", "overlap_gradient_reduction": False})
        self.assertEqual(tree["run"], {"steps": 500000,
                                       "rampup_batch_size": {"start": 16, "increment": 16, "samples": 5859375}})
        self.assertNotIn("--rampup-batch-size", said)
        self.assertIn("Without effect on step time and memory: ", said)
        self.assertIn("time and memory: --master-addr, --weight-decay, --adam-beta1", said)
        self.assertNotIn("Unknown", said)
        self.assert_legal()

    def test_lengths_of_whole_runs(self):
        options = self.MODEL + "--micro-batch-size 2 --tensor-model-parallel-size 2 "
        batch = "--global-batch-size 32 "
        for more, length in ((batch + "--train-iters 1000", {"steps": 1000}),
                             # Whole batches of 32 only: 1000 / 32 = 31.25
                             (batch + "--train-samples 1000", {"steps": 31}),
                             # With a ramp steps differ, and 64 tokens are in a sequence.
                             (batch + "--train-samples 1000 --rampup-batch-size 16 8 200",
                              {"tokens": 64000, "rampup_batch_size": {"start": 16, "increment": 8, "samples": 200}}),
                             ("--train-samples 1000", {"tokens": 64000}),
                             # Training ends with what is first: 1000 iterations are 2,048,000 tokens.
                             (batch + "--train-iters 1000 --train-tokens 1000000", {"tokens": 1000000}),
                             (batch + "--train-iters 1000 --train-tokens 3000000", {"steps": 1000}),
                             (batch + "--train-tokens 3000000", {"tokens": 3000000}),
                             (batch, None)):
            with self.subTest(more):
                tree, said = self.imported(self.written(options + more), "--cluster", "dgx-h100", "--gpus", "8")
                self.assertEqual(tree.get("run"), length)
                self.assertNotIn("--train", said)
                if "--global" in more:
                    self.assert_legal()
        self.assertIn("error: --train-iters has no value", self.refused(self.written(options + "--train-iters")))
        # What no step depends on may stay open.
        tree, said = self.imported(self.written(options + "--train-iters $STEPS"))
        self.assertNotIn("run", tree)
        self.assertIn("Without effect on step time and memory: --train-iters $STEPS", said)

    def test_iterations_against_tokens_without_a_batch(self):
        options = (self.MODEL + "--train-iters 1000 ").replace("-length 64", "-length 2048").replace("-embeddings 64",
                                                                                                     "-embeddings 2048")
        # 8 replicas of micro-batches of 4: 1000 x 32 x 2048 = 65,536,000 tokens
        for tokens, length in ((20000000, {"tokens": 20000000}), (65535999, {"tokens": 65535999}),
                               (65536000, {"steps": 1000}), (0, {"steps": 1000})):
            with self.subTest(tokens):
                tree, said = self.imported(self.written(f"{options} --micro-batch-size 4 --train-tokens {tokens}"),
                                           "--cluster", "dgx-h100", "--gpus", "8")
                self.assertEqual(tree["run"], length)
                self.assertNotIn("Not supported", said)
                self.assertEqual("Without effect on step time and memory: --train-tokens 0" in said, tokens == 0)
                self.assert_legal()
        for more, gpus in (("--micro-batch-size 4 ", ()), ("", ("--gpus", "8"))):
            with self.subTest(more):
                tree, said = self.imported(self.written(options + more + "--train-tokens 20000000"), *gpus)
                self.assertEqual(tree["run"], {"steps": 1000})
                self.assertIn("--train-tokens 20000000: whether the run ends with it or with --train-iters hangs on the "
                              "tokens of a step, which need --seq-length and --global-batch-size, or --micro-batch-size "
                              "and the number of GPUs (--gpus N); the run is simulated with --train-iters", said)

    def test_batches_that_cannot_grow_so(self):
        options = self.MODEL + "--micro-batch-size 2 --tensor-model-parallel-size 2 --global-batch-size 32 "
        full = ", so that the run is simulated with the full batch all along"
        # 4 replicas of 2 GPUs with micro-batches of 2
        for ramp, why in (("12 8 200", "12 and 8 are no multiples of 8 (micro-batch size x replicas)"),
                          ("8 16 200", "steps of 16 do not lead from 8 to the batch of 32"),
                          ("40 8 200", "steps of 8 do not lead from 40 to the batch of 32"),
                          ("8 0 200", "a batch starts with a sequence and grows by one at least")):
            tree, said = self.imported(self.written(f"{options} --train-iters 100 --rampup-batch-size {ramp}"),
                                       "--cluster", "dgx-h100", "--gpus", "8")
            self.assertEqual(tree["run"], {"steps": 100})
            self.assertIn(f"--rampup-batch-size {ramp}: {why}{full}", said)
            self.assert_legal()
        tree, said = self.imported(self.written(options + "--rampup-batch-size 8 8 200"))
        self.assertNotIn("run", tree)
        self.assertIn("--rampup-batch-size 8 8 200: every step is simulated with the full batch; of a whole run, "
                      "run.rampup_batch_size has the ramp", said)
        _, said = self.imported(self.written(options + "--rampup-batch-size 8 8 $SAMPLES"))
        self.assertIn("--rampup-batch-size 8 8 $SAMPLES: only a running shell knows it; the run is simulated with the full "
                      "batch all along", said)
        self.assertIn("error: --rampup-batch-size needs a start, an increment and a number of samples, not 2 numbers",
                      self.refused(self.written(options + "--rampup-batch-size 8 8")))

    def test_gpus_that_hold_no_replica(self):
        options = self.MODEL + "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 "
        fault = ("gpus is 8, which is no multiple of plan.tensor_parallel 8 x plan.pipeline_parallel 16 = 128; correct it, "
                 "or give --gpus N")
        path = self.written("torchrun --nproc-per-node 8 --nnodes 1 pretrain_gpt.py " + options)
        self.assertIn(fault, self.imported(path)[1])
        self.assertNotIn("no multiple of plan", self.imported(path, "--gpus", "256")[1])
        # With a cluster it is for the check to say.
        said = self.imported(path, "--cluster", "dgx-h100")[1]
        self.assertNotIn(fault, said)
        self.assertIn("refuses", said)

    def test_clusters_that_there_are_not(self):
        target = self.folder / "out.yaml"
        said = self.refused("options.txt", "--cluster", "nosuch", "-o", target)
        self.assertIn("trainsim: error: --cluster nosuch: no cluster preset is called so; known: b200-efa, dgx-2,", said)
        self.assertFalse(target.exists())
        self.assertEqual(self.refused("options.txt", "--cluster", "dgx-h10"),
                         "trainsim: error: --cluster dgx-h10: no cluster preset is called so; did you mean dgx-h100?")
        self.assertEqual(self.refused("options.txt", "--cluster", "./nosuch.yaml"),
                         "trainsim: error: --cluster ./nosuch.yaml: no such file")

    def test_conditions_and_arrays(self):
        tree, said = self.imported("megatron-llama3-8b.sh", "--cluster", "dgx-h100")
        self.assertEqual(tree["gpus"], 8)
        # The null tokenizer adds a token to the 128255.
        self.assert_has(tree, "model", {"num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 14336,
                                        "activation": "swiglu", "normalization": "rmsnorm", "vocab_size": 128256,
                                        "position_embedding": "rotary", "linear_bias": False, "dropout": 0,
                                        "tie_word_embeddings": False})
        self.assert_has(tree, "plan", {"tensor_parallel": 2, "sequence_parallel": True, "sharding": "zero1",
                                       "precision": "bf16", "gradient_dtype": "bf16",
                                       "overlap_gradient_reduction": True, "overlap_parameter_gather": True})
        self.assertNotIn("context_parallel", tree["plan"])
        self.assertIn("--cross-entropy-loss-fusion: the native kernels keep tensors as large as the logits", said)
        self.assert_legal()

    def test_a_variable_from_outside(self):
        tree, said = self.imported("megatron-llama3-8b.sh", "--define", "DTYPE=fp8", "--define", "TP_SIZE=4")
        self.assertEqual(tree["plan"]["tensor_parallel"], 4)
        self.assert_has(tree, "plan", {"precision": "fp8", "fp8": {"recipe": "delayed", "parameters": True}})
        self.assertNotIn("--fp8", said)

    # What the model is hangs on arguments, one of them by way of branches, and on a variable that nobody sets.
    ARGUMENTS = """SIZE=$2
TP=${10}
case $SIZE in
8B) LAYERS=4 ;;
70B) LAYERS=8; WIDE=yes ;;
esac
if [ $WIDE = yes ]; then HIDDEN=128; else HIDDEN=64; fi
if [ $MODE = long ]; then
SEQ=128
elif [ $MODE = short ]; then
SEQ=64
fi
CMD="torchrun --nproc-per-node $GPUS_PER_NODE pretrain_gpt.py --num-layers $LAYERS --hidden-size $HIDDEN --num-attention-heads 4
 --seq-length $SEQ --max-position-embeddings 128 --vocab-size 100 --tensor-model-parallel-size $TP"
eval $CMD
"""

    def test_all_inputs_of_a_script_are_named_at_once(self):
        path = self.written(self.ARGUMENTS, "train.sh")
        self.assertEqual(self.refused(path).split("error: ")[1],
                         "the values of --num-layers, --seq-length and --tensor-model-parallel-size hang on $2, $10 and "
                         "$MODE, which the script does not set; give them with --define 2=VALUE --define 10=VALUE "
                         "--define MODE=VALUE")
        tree, said = self.imported(path, "-D", "2=70B", "-D", "10=2", "-D", "MODE=short", "--cluster", "dgx-h100")
        self.assert_has(tree, "model", {"num_layers": 8, "hidden_size": 128, "sequence_length": 64})
        self.assertEqual(tree["plan"]["tensor_parallel"], 2)
        self.assertIn("the number of GPUs hangs on $GPUS_PER_NODE, which the script does not set; give it with --define "
                      "GPUS_PER_NODE=VALUE, or --gpus N", said)
        tree, said = self.imported(path, "-D", "2=8B", "-D", "10=2", "-D", "MODE=long", "-D", "GPUS_PER_NODE=4")
        self.assertEqual((tree["gpus"], tree["model"]["hidden_size"], tree["model"]["sequence_length"]), (4, 64, 128))
        self.assertNotIn("hangs on", said)
        # A condition on the variable itself
        path = self.written("if [ $LAYERS = many ]; then LAYERS=96; fi\nrun --num-layers $LAYERS\n")
        self.assertIn("the value of --num-layers hangs on $LAYERS, which", self.refused(path))
        path = self.written("run --num-layers $2 --hidden-size $(width)\n")
        self.assertIn("error: the value of --num-layers hangs on $2, which the script does not set; give it with --define "
                      "2=VALUE; and the value of --hidden-size is $(…), which only a running shell knows; write the value "
                      "into the script", self.refused(path))

    def test_definitions_that_no_script_uses(self):
        path = self.written(self.ARGUMENTS, "train.sh")
        self.assertEqual(self.refused(path, "-D", "SEQ=64", "-D", "MODES=long"),
                         f"trainsim: error: --define MODES=long: {path} never uses $MODES; did you mean MODE?")
        self.assertEqual(self.refused(path, "-D", "3=8B"),
                         f"trainsim: error: --define 3=8B: {path} never uses $3; leave it out")
        self.assertEqual(self.refused(path, "-D", "CHECKPOINTS=yes"),
                         f"trainsim: error: --define CHECKPOINTS=yes: {path} never uses $CHECKPOINTS; leave it out")
        self.assertEqual(self.refused("hf-llama3-8b.json", "-D", "TP=2"),
                         "trainsim: error: --define TP=2: none of the files is a script that has variables")
        # Names in arithmetic, in arrays and behind # count.
        path = self.written("A=1\nB=(${#C})\nrun --num-layers $((A * D)) --hidden-size ${B[0]}\n")
        for name in "ACD":
            self.assertNotIn("never uses", run("import", path, "-D", name + "=4").stderr)
        # What a number in arithmetic is not.
        path = self.written("run --num-layers $((A * 2))\n")
        self.assertIn("never uses $2", self.refused(path, "-D", "2=4"))

    def test_positional_parameters_of_one_digit(self):
        path = self.written('case "$1b" in\n7b) L=32 ;;\n13b) L=40 ;;\nesac\nrun --num-layers $L\n')
        self.assertIn("the value of --num-layers hangs on $1, which the script does not set; give it with --define 1=VALUE",
                      self.refused(path))
        self.assertEqual(self.imported(path, "-D", "1=7")[0]["model"]["num_layers"], 32)
        self.assertEqual(self.imported(path, "-D", "1=13")[0]["model"]["num_layers"], 40)
        self.assertIn("never uses $1b", self.refused(path, "-D", "1b=7b"))
        # Two digits need braces: $12 is $1 and a 2.
        path = self.written("run --num-layers $12 --hidden-size ${13}\n")
        self.assertIn("never uses $12", self.refused(path, "-D", "12=4"))
        tree, _ = self.imported(path, "-D", "1=4", "-D", "13=64")
        self.assert_has(tree, "model", {"num_layers": 42, "hidden_size": 64})

    def test_arithmetic_of_a_command_uses_variables(self):
        path = self.written("if ((TP > (PP + 1))); then echo; fi\n(echo LR)\nrun --num-layers 4\n")
        for name in ("TP", "PP"):
            self.imported(path, "-D", name + "=2")
        self.assertIn("never uses $LR", self.refused(path, "-D", "LR=2"))

    def test_numbers_of_nodes_that_are_no_numbers(self):
        path = self.written("torchrun --nproc-per-node 8 --nnodes $NODES pretrain_gpt.py " + self.MODEL)
        tree, said = self.imported(path, "-D", "NODES=abc")
        self.assertNotIn("gpus", tree)
        self.assertIn("the number of GPUs is open, because --nnodes is 'abc', which is no number; correct it, or give "
                      "--gpus N", said)
        self.assertEqual(self.imported(path, "-D", "NODES=2")[0]["gpus"], 16)
        # torchrun's own words
        self.assertNotIn("no number", self.imported(self.written("torchrun --nproc-per-node gpu x.py " + self.MODEL))[1])

    def test_bloom_of_megatron_deepspeed(self):
        tree, said = self.imported("megatron-deepspeed-bloom.slurm", "--cluster", "dgx-a100-80gb")
        self.assertEqual(tree["gpus"], 48 * 8)
        self.assert_has(tree, "model", {"vocab_size": 250880, "embedding_norm": True, "position_embedding": "alibi"})
        # 70 layers, embedding and head counted as one each, on 12 stages: 6 each, one less on the first and last.
        self.assert_has(tree, "plan", {"pipeline_layout": [5] + 10 * [6] + [5], "micro_batch_size": 2,
                                       "global_batch_size": 2048, "precision": "bf16", "sharding": "none"})
        self.assertEqual(tree["plan"]["recompute"], {"granularity": "full", "method": "uniform", "layers": 1})
        self.assertIn("recompute: {granularity: full, method: uniform, layers: 1}  # --checkpoint-activations\n", self.yaml)
        self.assert_has(tree, "software", {"framework": "deepspeed", "attention": "standard"})
        self.assertIn("--rampup-batch-size", said)
        self.assert_legal()

    def test_options_in_a_variable(self):
        tree, said = self.imported("megatron-sc21.sh")
        self.assert_has(tree, "model", {"num_layers": 48, "hidden_size": 8192, "num_attention_heads": 64})
        self.assert_has(tree, "plan", {"tensor_parallel": 8, "pipeline_parallel": 2, "global_batch_size": 1536,
                                       "overlap_gradient_reduction": False})
        self.assert_has(tree, "software", {"attention": "standard", "gradient_accumulation_fusion": False})
        self.assertIn("Still missing: cluster, gpus", said)
        self.assertIn("the options are those of a variable, because no command has them", said)
        self.assertIn("# gpus:  # missing: the number of GPUs, or --gpus N", self.yaml)
        self.assert_legal("cluster=dgx-a100-80gb", "gpus=512")

    def test_a_bare_command_line(self):
        tree, said = self.imported("options.txt", "--cluster", "dgx-h100", "--gpus", "16")
        # 24 layers on 4 stages in chunks of 3: 2 chunks. swiglu without width: 8/3 of 1024 in multiples of 64.
        self.assertEqual(tree["plan"]["virtual_pipeline"], 2)
        self.assertEqual(tree["model"]["intermediate_size"], 2688)
        self.assertEqual(tree["plan"]["recompute"], {"granularity": "full", "method": "block", "layers": 2})
        self.assertIn("Unknown options: --some-new-option 5", said)
        self.assertIn("# Unknown options: --some-new-option 5", self.yaml)
        self.assert_legal()

    def test_offloading_needs_shards(self):
        text = (FILES / "options.txt").read_text(encoding="utf-8") + " --optimizer-cpu-offload"
        done = run("import", "-", input=text)
        self.assertIn("--optimizer-cpu-offload: only a sharded optimizer is offloaded; it stays on the GPU", done.stderr)
        self.assertNotIn("offload", yaml.safe_load(done.stdout)["plan"]["sharding"])

    def test_standard_input(self):
        done = run("import", "-", input=(FILES / "options.txt").read_text(encoding="utf-8"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(yaml.safe_load(done.stdout)["model"]["num_layers"], 24)

    def test_deepspeed_with_a_model(self):
        tree, said = self.imported("hf-llama3-8b.json", "deepspeed-zero3.json", "--cluster", "dgx-h100", "--gpus", "16")
        self.assertEqual(tree["model"]["num_layers"], 32)
        # gradient_accumulation_steps stays open and follows: 256 / (4 x 16).
        self.assert_has(tree, "plan", {"sharding": {"stage": 3, "offload": {"optimizer": "cpu"}},
                                       "global_batch_size": 256, "micro_batch_size": 4,
                                       "precision": "bf16", "bucket_parameters": 500000000, "optimizer": "adam",
                                       "overlap_gradient_reduction": True})
        self.assertNotIn("gradient_accumulation", tree["plan"])
        self.assertEqual(tree["software"]["framework"], "deepspeed")
        self.assertIn("gradient_accumulation_steps: auto: the trainer fills it in", said)
        self.assertIn("Unknown options: zero_optimization.some_new_key: 1", said)
        self.assertNotIn("offload_param:", said)
        self.assert_legal()

    def test_deepspeed_alone(self):
        tree, said = self.imported("deepspeed-zero1.json")
        self.assert_has(tree, "plan", {"sharding": "zero1", "micro_batch_size": 8, "gradient_accumulation": 2,
                                       "precision": "fp16", "gradient_dtype": "fp32",
                                       "bucket_parameters": 200000000, "overlap_gradient_reduction": False})
        self.assertIn("Still missing: model.num_layers, model.hidden_size", said)
        self.assertIn("activation_checkpointing.partition_activations: checkpoints are kept whole", said)
        self.assert_legal("model=gpt-1.7b", "cluster=dgx-a100-80gb", "gpus=8")

    def test_torchtitan(self):
        tree, said = self.imported("torchtitan-llama3-70b.toml", "--cluster", "dgx-h100", "--gpus", "64")
        self.assertEqual(tree["model"], "llama3-70b")
        self.assert_has(tree, "plan", {"tensor_parallel": 8, "sequence_parallel": True, "sharding": "zero3",
                                       "micro_batch_size": 8, "sequence_length": 8192, "recompute": "full",
                                       "precision": "fp8", "fp8": {"recipe": "tensorwise", "parameters": False},
                                       "gradient_dtype": "fp32"})
        self.assertEqual(tree["software"]["framework"], "fsdp")
        self.assert_legal()

    def test_torchtitan_context_parallelism(self):
        job = ('[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 65536\nlocal_batch_size = 1\n'
               '[parallelism]\ncontext_parallel_degree = 4\ndata_parallel_shard_degree = 1\n')
        tree, _ = self.imported(self.written(job, "job.toml"), "--cluster", "dgx-h100")
        # Parameters are sharded over data- and context-parallel ranks.
        self.assertEqual(tree["gpus"], 4)
        self.assert_has(tree, "plan", {"context_parallel": 4, "context_communication": "all_gather",
                                       "sharding": "zero3"})
        self.assert_legal()
        tree, _ = self.imported(self.written(job + 'context_parallel_rotate_method = "alltoall"\n'
                                                   "data_parallel_replicate_degree = 2\n", "job.toml"),
                                "--cluster", "dgx-h100")
        self.assertEqual(tree["gpus"], 8)
        self.assert_has(tree, "plan", {"context_parallel": 4, "sharding": {"stage": 3, "group": 4}})
        self.assertNotIn("context_communication", tree["plan"])

    def test_torchtitan_with_old_names(self):
        tree, said = self.imported("torchtitan-old.toml", "--cluster", "dgx-h100")
        self.assertEqual(tree["gpus"], 16)
        self.assert_has(tree, "plan", {"micro_batch_size": 2, "sharding": {"stage": 3, "group": 8},
                                       "recompute": "operators"})
        self.assert_has(tree, "software", {"launch": "compiled", "fusion": "compiled"})
        self.assertNotIn("loss", tree["software"])
        self.assertNotIn("activation_checkpoint selective op", said)
        self.assert_legal()

    def test_what_torchtitan_compiles(self):
        job = ('[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 1\n[parallelism]\n'
               "tensor_parallel_degree = {tensor}\n[compile]\nenable = {enable}\n{more}")
        both, model, loss = {"fusion": "compiled", "loss": "compiled"}, {"fusion": "compiled"}, {"loss": "compiled"}
        for tensor, enable, more, compiled in ((1, "true", "", both), (1, "false", "", {}), (8, "true", "", model),
                                               (1, "true", 'components = ["model"]\n', model),
                                               (1, "true", 'components = ["loss"]\n', loss)):
            with self.subTest(tensor=tensor, enable=enable, more=more):
                text = job.format(tensor=tensor, enable=enable, more=more)
                tree, _ = self.imported(self.written(text, "job.toml"), "--cluster", "dgx-h100", "--gpus", "8")
                software = tree["software"]
                self.assertEqual(software["fusion"], compiled.get("fusion", "none"))
                self.assertEqual(software.get("loss"), compiled.get("loss"))
                self.assert_legal()

    def test_operators_that_torchtitan_recomputes_of_experts(self):
        job = ('[model]\nname = "qwen3"\nflavor = "30B-A3B"\n[activation_checkpoint]\nmode = "selective"\n'
               'selective_ac_option = "op"\n[training]\nlocal_batch_size = 1\n')
        tree, said = self.imported(self.written(job, "job.toml"), "--cluster", "dgx-h100", "--gpus", "8")
        self.assert_has(tree, "plan", {"recompute": {"granularity": "selective", "modules": ["layernorm", "activation"]}})
        self.assertIn("of a model with experts are approximated by norms and activations", said)
        self.assert_legal()

    def test_models_of_hugging_face(self):
        expected = {
            # Parameters counted from the shape: layers x (attention + MLP + norms) + embedding + head; those of Llama 3,
            # GPT-2 XL, BLOOM and Mistral are the published numbers.
            "hf-llama3-8b.json": ("8.030 B", {"num_key_value_heads": 8, "activation": "swiglu", "sequence_length": 8192}),
            "hf-gpt2-xl.json": ("1.558 B", {"num_layers": 48, "hidden_size": 1600, "tie_word_embeddings": True,
                                           "dropout": 0.1, "position_embedding": "learned"}),
            "hf-bloom-176b.json": ("176", {"embedding_norm": True, "position_embedding": "alibi",
                                           "sequence_length": 2048, "tie_word_embeddings": True}),
            "hf-gpt-neox-20b.json": ("20.55 B", {"position_embedding": "rotary", "tie_word_embeddings": False,
                                                "linear_bias": True}),
            "hf-mistral-7b.json": ("7.242 B", {"num_key_value_heads": 8, "sequence_length": 32768}),
            "hf-qwen2-7b.json": ("7.615 B", {"num_key_value_heads": 4, "tie_word_embeddings": False}),
            "hf-opt-6.7b.json": ("6.658 B", {"activation": "relu", "intermediate_size": 16384, "dropout": 0.1}),
            "hf-falcon-7b.json": ("6.922 B", {"num_key_value_heads": 1, "linear_bias": False,
                                             "tie_word_embeddings": True}),
        }
        for name, (parameters, model) in expected.items():
            with self.subTest(name):
                tree, _ = self.imported(name)
                self.assert_has(tree, "model", model)
                self.assertEqual(tree["plan"], {})
                overrides = ["cluster=dgx-h100", "gpus=8"]
                if "sequence_length" not in tree["model"]:
                    overrides.append("model.sequence_length=2048")
                said = self.assert_legal(*overrides)
                line = next(line for line in said.splitlines() if line.split()[:1] == ["parameters"])
                self.assertTrue(line.split(None, 1)[1].startswith(parameters), line)

    def test_what_models_leave_out_is_said(self):
        for name, words in {"hf-mistral-7b.json": "sliding_window 4096: attention is simulated over the whole sequence",
                            "hf-gpt-neox-20b.json": "parallel residual: attention and MLP run side by side",
                            "hf-qwen2-7b.json": "model type qwen2: biases of queries, keys and values alone"}.items():
            with self.subTest(name):
                self.assertIn(words, self.imported(name)[1])

    def test_models_that_cannot_be_simulated(self):
        path = self.written('{"model_type": "dbrx"}', "config.json")
        self.assertIn("error: a model of type dbrx is a mixture of experts of another kind than mixtral or "
                      "qwen3_moe, which this version cannot simulate; only decoders", self.refused(path))
        path = self.written('{"model_type": "llama", "kv_lora_rank": 512}', "config.json")
        self.assertIn("error: kv_lora_rank: the model has multi-head latent attention (MLA), which is imported "
                      "of the types deepseek_v2, deepseek_v3 and kimi_k2 alone; take the key out, and write "
                      "model.latent_attention into what is imported", self.refused(path))
        path = self.written('{"model_type": "mixtral", "num_local_experts": 8}', "config.json")
        self.assertIn("error: a model of type mixtral needs num_local_experts, num_experts_per_tok and "
                      "intermediate_size", self.refused(path))
        path = self.written('{"model_type": "strange"}', "config.json")
        self.assertIn("error: the model type strange is not known to this version; known are llama, mistral",
                      self.refused(path))
        path = self.written('{"model_type": "llama", "num_local_experts": 8}', "config.json")
        self.assertIn("error: num_local_experts is 8: the model is a mixture of experts", self.refused(path))
        path = self.written("--num-layers 4 --retro-add-retriever")
        self.assertIn("error: --retro-add-retriever: the model has a retrieval-augmented model (RETRO), which this "
                      "version cannot simulate; only decoders", self.refused(path))
        path = self.written('[model]\nname = "llama4"\nflavor = "17bx16e"\n', "job.toml")
        self.assertIn("error: the model llama4 17bx16e is a mixture of experts, and its shape is not known to this "
                      "version; known are deepseek_v3 671B, qwen3 30B-A3B and qwen3 235B-A22B: name one of them, and "
                      "write the model's own shape into what is imported", self.refused(path))
        path = self.written('[model]\nname = "deepseek_v3"\nflavor = "16B"\n', "job.toml")
        self.assertIn("error: the model deepseek_v3 16B is a mixture of experts, and its shape is not known",
                      self.refused(path))

    def test_experts_of_torchtitan(self):
        degrees = ("[parallelism]\nexpert_parallel_degree = 4\ntensor_parallel_degree = {tensor}\n"
                   "data_parallel_shard_degree = {shards}\n[training]\nlocal_batch_size = 1\n")
        for name, flavor, preset, tensor in (("deepseek_v3", "671B", "deepseek-v3", 1),
                                             ("qwen3", "30B-A3B", "qwen3-30b-a3b", 4),
                                             ("qwen3", "235B-A22B", "qwen3-235b-a22b", 4)):
            model = f'[model]\nname = "{name}"\nflavor = "{flavor}"\n'
            with self.subTest(preset):
                # One shard on each replica, which is no FSDP
                path = self.written(model + degrees.format(tensor=tensor, shards=1), "job.toml")
                tree, _ = self.imported(path, "--cluster", "dgx-h100", "--gpus", str(tensor), "--quiet")
                self.assertEqual(tree["model"], preset)
                # torchtitan splits the experts of expert-parallel ranks no further unless it is told to.
                self.assert_has(tree, "plan", {"expert_parallel": 4, "expert_tensor_parallel": 1, "sharding": "none"})
                if tensor == 4:
                    self.assert_legal()
        path = self.written(model + degrees.format(tensor=4, shards=-1), "job.toml")
        tree, said = self.imported(path, "--cluster", "dgx-h100", "--gpus", "64")
        self.assert_has(tree, "plan", {"sharding": "zero3"})
        self.assertNotIn("refuses", said)
        self.assert_legal()

    def test_experts_of_hugging_face(self):
        tree, _ = self.imported("hf-mixtral-8x7b.json")
        self.assertEqual(tree["model"]["experts"], {"count": 8, "per_token": 2, "intermediate_size": 14336})
        tree, said = self.imported("hf-deepseek-v3.json")
        self.assertEqual(tree["model"]["experts"]["count"], 256)
        self.assertEqual(tree["model"]["experts"]["shared_intermediate_size"], 2048)
        self.assertEqual(tree["model"]["experts"]["dense_layers"], 3)
        self.assertEqual(tree["model"]["latent_attention"]["kv_lora_rank"], 512)
        self.assertNotIn("num_key_value_heads", tree["model"])

    def test_predicted_tokens_are_said_once(self):
        config = json.loads((FILES / "hf-deepseek-v3.json").read_text(encoding="utf-8"))
        for layers, said_of_it in ((1, 1), (0, 0)):
            config["num_nextn_predict_layers"] = layers
            _, said = self.imported(self.written(json.dumps(config), "config.json"))
            self.assertEqual(said.count("num_nextn_predict_layers"), said_of_it, said)

    def test_experts_of_megatron(self):
        path = self.written("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                            "--max-position-embeddings 64 --vocab-size 100 --num-experts 8 --moe-router-topk 2 "
                            "--moe-ffn-hidden-size 128 --moe-layer-freq '([0]*1+[1]*3)' --moe-grouped-gemm "
                            "--expert-model-parallel-size 4 --expert-tensor-parallel-size 1 "
                            "--moe-token-dispatcher-type flex")
        tree, said = self.imported(path, "--cluster", "dgx-h100", "--gpus", "8")
        self.assertEqual(tree["model"]["experts"],
                         {"count": 8, "per_token": 2, "intermediate_size": 128, "dense_layers": 1})
        self.assertEqual(tree["plan"]["expert_parallel"], 4)
        self.assertEqual(tree["plan"]["expert_tensor_parallel"], 1)
        self.assertIn("--moe-token-dispatcher-type flex: simulated as alltoall", said)
        self.assertNotIn("refuses", said)

    def test_capacity_of_experts_without_padding(self):
        path = self.written("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                            "--max-position-embeddings 64 --vocab-size 100 --num-experts 8 "
                            "--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity")
        tree, said = self.imported(path)
        self.assertEqual(tree["model"]["experts"]["capacity_factor"], 1.25)
        self.assertIn("--moe-pad-expert-input-to-capacity: experts work on the tokens that they get, without padding "
                      "up to their capacity", said)
        done = run("export", "mixtral-8x7b", "--to", "megatron", "--set", "model.experts.capacity_factor=1.25")
        self.assertIn("--moe-expert-capacity-factor 1.25", done.stdout)
        self.assertNotIn("--moe-pad-expert-input-to-capacity", done.stdout)

    # A model as far as the rules of experts need one.
    MODEL = ("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --max-position-embeddings 64 "
             "--vocab-size 100 ")

    def test_one_expert_of_megatron_deepspeed_is_a_dense_model(self):
        path = self.written(self.MODEL + "--num-experts 1 --moe-expert-parallel-size 1 --moe-loss-coeff 0.01 "
                            "--moe-train-capacity-factor 1.0 --moe-eval-capacity-factor 1.0 --moe-min-capacity 4 "
                            "--mlp-type standard --topk 1 --expert-interval 2 --create-moe-param-group")
        tree, said = self.imported(path, "--cluster", "dgx-h100", "--gpus", "8")
        self.assertNotIn("experts", tree["model"])
        self.assertFalse([key for key in tree["plan"] if key.startswith("expert")])
        self.assertNotIn("Unknown", said)
        self.assertNotIn("Not supported", said)
        self.assertIn("Without effect on step time and memory: --moe-expert-parallel-size, --moe-loss-coeff, "
                      "--moe-train-capacity-factor", said)
        self.assert_legal()

    def test_experts_of_megatron_deepspeed(self):
        options = self.MODEL + "--num-experts 8 --moe-expert-parallel-size 4 "
        tree, said = self.imported(self.written(options), "--cluster", "dgx-h100", "--gpus", "8")
        # Its defaults: one expert for a token, in every second layer, each with a capacity of 1.
        self.assertEqual(tree["model"]["experts"],
                         {"count": 8, "per_token": 1, "layer_interval": 2, "capacity_factor": 1})
        self.assertEqual(tree["plan"]["expert_parallel"], 4)
        self.assertIn("--expert-interval 2, as without the option: layers with experts are counted from the first one "
                      "on, not from the last of each interval", said)
        self.assert_legal()
        tree, said = self.imported(self.written(options + "--topk 2 --expert-interval 1 --moe-train-capacity-factor 1.5"))
        self.assertEqual(tree["model"]["experts"], {"count": 8, "per_token": 2, "capacity_factor": 1.5})
        self.assertNotIn("--expert-interval", said)
        tree, _ = self.imported(self.written(options + "--disable-moe-token-dropping"))
        self.assertNotIn("capacity_factor", tree["model"]["experts"])
        # Experts are not split by tensor parallelism unless an option says so.
        tree, _ = self.imported(self.written(options + "--tensor-model-parallel-size 2"))
        self.assertEqual(tree["plan"]["expert_tensor_parallel"], 1)
        tree, _ = self.imported(self.written(options + "--tensor-model-parallel-size 2 "
                                             "--enable-expert-tensor-parallelism"))
        self.assertNotIn("expert_tensor_parallel", tree["plan"])

    def test_options_that_only_megatron_deepspeed_has(self):
        # Each of them alone brings the other defaults with it: an expert for a token, in every second layer.
        for more, experts in (("--topk 2 --expert-interval 2", {"per_token": 2, "layer_interval": 2, "capacity_factor": 1}),
                              ("--topk 2", {"per_token": 2, "layer_interval": 2, "capacity_factor": 1}),
                              ("--expert-interval 4", {"per_token": 1, "layer_interval": 4, "capacity_factor": 1}),
                              ("--disable-moe-token-dropping", {"per_token": 1, "layer_interval": 2}),
                              ("--enable-expert-tensor-parallelism",
                               {"per_token": 1, "layer_interval": 2, "capacity_factor": 1}),
                              ("--moe-eval-capacity-factor 2",
                               {"per_token": 1, "layer_interval": 2, "capacity_factor": 1})):
            with self.subTest(more):
                tree, said = self.imported(self.written(self.MODEL + "--num-experts 8 " + more), "--cluster", "dgx-h100",
                                           "--gpus", "8")
                self.assertEqual(tree["model"]["experts"], {"count": 8, **experts})
                self.assertNotIn("Without effect on step time and memory: --expert-interval", said)
                self.assertEqual("Without effect on step time and memory: --moe-eval-capacity-factor" in said,
                                 "eval" in more)
                self.assert_legal()
        _, said = self.imported(self.written(self.MODEL + "--num-experts 8 --disable-moe-token-dropping "
                                             "--moe-train-capacity-factor 1.5"))
        self.assertIn("Without effect on step time and memory: --moe-train-capacity-factor", said)

    def test_pyramids_and_residuals_of_experts(self):
        options = self.MODEL + "--moe-expert-parallel-size 2 --mlp-type residual --num-experts "
        tree, said = self.imported(self.written(options + "8 8"), "--cluster", "dgx-h100", "--gpus", "8")
        # An MLP of 4 x 64 beside the experts
        self.assert_has(tree["model"], "experts", {"count": 8, "shared_intermediate_size": 256})
        self.assertIn("--mlp-type residual: the MLP beside the experts is simulated as a shared expert of its width, "
                      "without the coefficients that weigh the two", said)
        self.assertNotIn("Unknown", said)
        self.assert_legal()
        self.assertIn("error: --num-experts is 8 for some layers and 16 for others (PR-MoE), which this version cannot "
                      "simulate; write one number, which all layers with experts have",
                      self.refused(self.written(options + "8 16")))
        self.assertIn("error: --mlp-type has the unknown value 'x'",
                      self.refused(self.written(self.MODEL + "--num-experts 8 --mlp-type x")))

    def test_one_capacity_of_experts_with_options_of_both(self):
        options = self.MODEL + "--moe-expert-parallel-size 2 --num-experts 8 --moe-expert-capacity-factor 2 "
        for more in ("", "--moe-train-capacity-factor 1.5", "--disable-moe-token-dropping"):
            tree, _ = self.imported(self.written(options + more), "--cluster", "dgx-h100", "--gpus", "8")
            self.assertEqual(self.yaml.count("capacity_factor:"), 1)
            self.assertEqual(tree["model"]["experts"]["capacity_factor"], 2)
            self.assert_legal()

    def test_expert_parallelism_without_experts(self):
        for option in ("--moe-expert-parallel-size", "--expert-model-parallel-size"):
            tree, said = self.imported(self.written(f"{self.MODEL} --num-experts 1 {option} 4"), "--cluster", "dgx-h100",
                                       "--gpus", "8")
            self.assertNotIn("expert_parallel", tree["plan"])
            self.assertIn("Without effect on step time and memory: " + option, said)
            self.assert_legal()
        self.assertIn("error: --num-experts has no value", self.refused(self.written(self.MODEL + "--num-experts")))

    def test_zero_bubbles_of_megatron_deepspeed(self):
        options = self.MODEL + "--micro-batch-size 1 --global-batch-size 8 --enable-zbh1-pipeline "
        tree, said = self.imported(self.written(options + "--pipeline-model-parallel-size 2 "
                                                "--enable-zbh1-exact-semantics"), "--cluster", "dgx-h100", "--gpus", "2")
        self.assertEqual(tree["plan"]["schedule"], "zb-h1")
        self.assertIn("--enable-zbh1-exact-semantics: slots are those of zb-h1 as it is without this option", said)
        self.assert_legal()
        tree, said = self.imported(self.written(options + "--pipeline-model-parallel-size 2 "
                                                "--num-layers-per-virtual-pipeline-stage 1"), "--cluster", "dgx-h100",
                                   "--gpus", "2")
        self.assertNotIn("schedule", tree["plan"])
        # 4 layers on 2 stages in chunks of one
        self.assertEqual(tree["plan"]["virtual_pipeline"], 2)
        self.assertIn("--enable-zbh1-pipeline: zb-h1 is not supported together with virtual stages; simulated as "
                      "interleaved", said)
        self.assert_legal()
        tree, said = self.imported(self.written(options))
        self.assertNotIn("schedule", tree["plan"])
        self.assertIn("Without effect on step time and memory: --enable-zbh1-pipeline without a pipeline", said)

    def test_options_of_megatron_fsdp(self):
        options = self.MODEL + "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather --use-megatron-fsdp "
        for strategy, sharding in (("optim_grads_params", "zero3"), ("optim_grads", "zero2")):
            tree, said = self.imported(self.written(options + "--data-parallel-sharding-strategy " + strategy),
                                       "--cluster", "dgx-h100", "--gpus", "8")
            self.assertEqual(tree["plan"]["sharding"], sharding)
            # It gathers under the passes anyway, and the key is for the distributed optimizer.
            self.assertNotIn("overlap_parameter_gather", tree["plan"])
            self.assertNotIn("refuses", said)
            self.assertNotIn("Unknown", said)
            self.assert_legal()
        tree, _ = self.imported(self.written(options + "--data-parallel-sharding-strategy optim"))
        self.assert_has(tree, "plan", {"sharding": "zero1", "overlap_parameter_gather": True})

    def test_documented_options_are_known(self):
        page = (FILES.parent.parent / "docs" / "import.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| (.*?) \|", page.split("### Megatron-LM\n")[1].split("\n### ")[0], re.MULTILINE)
        options = sorted({option for row in rows for option in re.findall(r"--[\w-]+", row)})
        self.assertGreater(len(options), 90)
        values = {"--optimizer": "adam", "--recompute-method": "uniform", "--recompute-granularity": "full",
                  "--pipeline-model-parallel-layout": "Et|t|t|tL", "--mlp-type": "standard", "--rampup-batch-size": "8 8 100",
                  "--decoder-first-pipeline-num-layers": "1 --pipeline-model-parallel-size 2",
                  "--decoder-last-pipeline-num-layers": "1 --pipeline-model-parallel-size 2"}
        # Alone, and beside what leaves others without meaning
        for context in ("", "--use-torch-fsdp2 --num-experts 4", "--multi-latent-attention --use-megatron-fsdp --swiglu "
                        "--fp8-format hybrid --pad-vocab-size-to 128 --group-query-attention"):
            others = [option for option in options if option not in self.MODEL + context]
            # A few at a time, because of those that contradict each other; splits of pipelines always do.
            splits = [option for option in others if "pipeline" in option]
            rest = [option for option in others if option not in splits]
            for few in [*([option] for option in splits), *(rest[first::12] for first in range(12))]:
                words = " ".join(f"{option} {values.get(option, 1)}" for option in few)
                done = run("import", "-", input=f"{self.MODEL} {context} {words}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("Unknown", done.stderr, f"{words} {context}")

    def test_latent_attention_of_megatron(self):
        path = self.written("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                            "--max-position-embeddings 64 --vocab-size 100 --multi-latent-attention "
                            "--kv-lora-rank 16 --v-head-dim 8")
        tree, _ = self.imported(path)
        self.assertEqual(tree["model"]["latent_attention"], {"kv_lora_rank": 16, "qk_nope_head_dim": 128,
                                                             "qk_rope_head_dim": 64, "v_head_dim": 8})

    def test_degrees_that_the_check_refuses(self):
        path = self.written("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                            "--max-position-embeddings 64 --vocab-size 100 --expert-model-parallel-size 2")
        tree, said = self.imported(path, "--cluster", "dgx-h100", "--gpus", "8")
        self.assertEqual(tree["plan"]["expert_parallel"], 2)
        self.assertIn("warning: `trainsim check` refuses what these files say:", said)
        self.assertIn("plan.expert_parallel: 2 needs a model with experts", said)

    def test_context_parallelism(self):
        options = ("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                   "--max-position-embeddings 64 --vocab-size 100 --context-parallel-size 2 ")
        for comm, meant in (("", None), ("--cp-comm-type p2p", None), ("--cp-comm-type a2a", "a2a"),
                            ("--cp-comm-type allgather", "all_gather"), ("--cp-comm-type all_gather", "all_gather")):
            tree, said = self.imported(self.written(options + comm), "--cluster", "dgx-h100", "--gpus", "8")
            self.assertEqual(tree["plan"]["context_parallel"], 2)
            self.assertEqual(tree["plan"].get("context_communication"), meant)
            self.assertNotIn("refuse", said)
        _, said = self.imported(self.written(options + "--cp-comm-type a2a+p2p"), "--cluster", "dgx-h100", "--gpus", "8")
        self.assertIn("--cp-comm-type a2a+p2p: the hierarchy of both is simulated as p2p", said)
        _, said = self.imported(self.written(options + "--cp-comm-type p2p a2a"), "--cluster", "dgx-h100", "--gpus", "8")
        self.assertIn("--cp-comm-type p2p a2a: all layers exchange in one way; the first is taken", said)

    def test_files_that_disagree(self):
        path = self.written("--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 64 "
                            "--max-position-embeddings 64 --vocab-size 100 --micro-batch-size 2")
        tree, said = self.imported(path, "deepspeed-zero1.json")
        self.assertEqual(tree["plan"]["micro_batch_size"], 8)
        self.assertIn("plan.micro_batch_size is 2 (--micro-batch-size) in one file and 8 in deepspeed-zero1.json; the "
                      "latter is taken", said)

    def test_bad_input(self):
        for text, name, words in [
                ("", "empty.sh", "error: is empty"),
                ("a\0b", "binary", "error: is no text (UTF-8)"),
                ("echo hello\n", "hello.sh", "error: no command with options of Megatron-LM, such as --num-layers, was "
                                             "found"),
                ('run "--num-layers 4\n', "open.sh", 'open.sh:1: error: " is never closed; this is no complete shell '
                                                     "script"),
                ("x\ny=${A\n", "brace.sh", "brace.sh:2: error: ${ is never closed"),
                ("--num-layers four", "words", "error: --num-layers needs a whole number, not 'four'"),
                ("--num-layers $LAYERS", "open", "error: the value of --num-layers hangs on $LAYERS, which the script does "
                                                 "not set; give it with --define LAYERS=VALUE"),
                ("--num-layers $(layers 5)", "command", "error: the value of --num-layers is $(…), which only a running "
                                                        "shell knows; write the value into the script"),
                ("--num-layers --hidden-size 4", "novalue", "error: --num-layers has no value"),
                ("--num-layers 5 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2", "chunks",
                 "error: 5 layers on 2 stages do not divide into chunks of 2 "
                 "(--num-layers-per-virtual-pipeline-stage)"),
                ("--num-layers 5 --pipeline-model-parallel-layout 'Et|x'", "layout",
                 "error: --pipeline-model-parallel-layout 'Et|x' is wrong at character 4"),
                ("--num-layers 4 --recompute-granularity some", "granularity",
                 "error: --recompute-granularity has the unknown value 'some'"),
                ('{"a": 1,\n "b": }', "broken.json", "error: is no JSON: it goes wrong at line 2, column 7"),
                ('{"hidden_size": 5}', "nothing.json", "error: has no model_type; it is no config.json of a Hugging Face "
                                                       "model"),
                ('{"model_type": "llama", "num_hidden_layers": "x"}', "text.json",
                 'error: num_hidden_layers needs a whole number, not "x"'),
                ('{"train_batch_size": 8, "zero_optimization": {"stage": 5}}', "stage.json",
                 "error: zero_optimization.stage must be 0 to 3, not 5"),
                ("[model\n", "broken.toml", "error: line 1, column"),
                ('[model]\nflavor = 8\n', "flavor.toml", "error: line 2: model.flavor needs a text, not 8"),
                ("[parallelism]\ntensor_parallel_degree = 0\n", "zero.toml",
                 "error: parallelism.tensor_parallel_degree must be 1 or more, not 0"),
                (' [{"model_type": "llama"}]', "list.json", "error: is a JSON list; a config.json of Hugging Face, a DeepSpeed "
                                                            "configuration and a trace of PyTorch's profiler are objects"),
                ("model: gpt3-175b\n", "config.yaml", "error: YAML is not imported"),
        ]:
            with self.subTest(name):
                self.assertIn(words, self.refused(self.written(text, name)))
        self.assertIn("missing.sh: error: no such file", self.refused("missing.sh"))
        self.assertIn("error: is a folder; give the files in it", self.refused(self.folder))
        self.assertEqual(self.refused("options.txt", "--kind", "megatrn"),
                         "trainsim: error: --kind 'megatrn' is not known; use auto, hf, megatron, deepspeed, "
                         "torchtitan, megatron-log or kineto (did you mean 'megatron'?)")
        self.assertIn("--define needs NAME=VALUE, not 'x'", self.refused("options.txt", "--define", "x"))

    def test_nesting_that_would_overflow_the_stack(self):
        for text in ["x=" + 5000 * "$(", "if a; then " * 5000, "x=" + 5000 * "${a:-", "echo $((" + 5000 * "("]:
            done = run("import", self.written(text))
            self.assertEqual(done.returncode, 2, done.stderr[:300])

    def test_output_file(self):
        target = self.folder / "imported.yaml"
        done = run("import", FILES / "options.txt", "-o", target, "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertTrue(target.read_text(encoding="utf-8").startswith("# Made by `trainsim import` from options.txt."))


class Launchers(unittest.TestCase):
    OPTIONS = (" --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 --max-position-embeddings 512 "
               "--vocab-size 1000 --micro-batch-size 1 --global-batch-size 8\n")

    def gpus(self, command):
        done = run("import", "-", input=command + self.OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return yaml.safe_load(done.stdout).get("gpus")

    def test_torchrun_has_one_node_where_nothing_says_more(self):
        for name in ("torchrun", "/opt/bin/torchrun", "python -m torch.distributed.run", "python3 -m torch.distributed.launch"):
            self.assertEqual(self.gpus(name + " --nproc-per-node 4 pretrain_gpt.py"), 4)
        self.assertEqual(self.gpus("torchrun --nproc-per-node 4 --nnodes 2 pretrain_gpt.py"), 8)
        # A number of nodes that only the running shell knows is not one; nor does Slurm have that default.
        self.assertIsNone(self.gpus("torchrun --nproc-per-node 4 --nnodes $(wc -l < hosts) pretrain_gpt.py"))
        self.assertIsNone(self.gpus("srun --ntasks-per-node 4 python pretrain_gpt.py"))

    def test_nodes_of_slurm(self):
        start = "srun torchrun --nproc_per_node 8 pretrain_gpt.py"
        for line in ("-N 4", "-N4", "--nodes 4", "--nodes=4", "--job-name=x -N 4", "-N 4  # of 16", '--nodes="4"'):
            with self.subTest(line):
                # 4 nodes x 8 GPUs
                self.assertEqual(self.gpus(f"#!/bin/bash\n#SBATCH --partition=a -t 1:00\n#SBATCH {line}\n{start}"), 32)
        self.assertEqual(self.gpus("srun -N4 torchrun --nproc_per_node 8 pretrain_gpt.py"), 32)
        self.assertEqual(self.gpus("srun -N 4 torchrun --nproc_per_node 8 pretrain_gpt.py"), 32)

    def test_torchrun_may_have_more_nodes_than_one(self):
        run_it = "torchrun --nproc_per_node 8 pretrain_gpt.py"
        for command in ("torchrun $EXTRA --nproc_per_node 8 pretrain_gpt.py",
                        "torchrun --nproc_per_node 8 ${DIST_ARGS[@]} pretrain_gpt.py",
                        "torchrun --nproc_per_node=8 --standalone $EXTRA -m pretrain_gpt",
                        "srun " + run_it, "/usr/bin/mpirun -np 2 " + run_it, "#SBATCH --job-name=x\n" + run_it,
                        "export PET_NNODES=$NODES\n" + run_it, "export PET_NNODES=many\n" + run_it):
            with self.subTest(command):
                self.assertIsNone(self.gpus(command))
        self.assertEqual(self.gpus("export PET_NNODES=4\n" + run_it), 32)
        self.assertEqual(self.gpus("PET_NNODES=2:4 " + run_it), 32)
        # The command says more than its environment, and these values hide no number of nodes.
        self.assertEqual(self.gpus("export PET_NNODES=4\ntorchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py"), 16)
        self.assertEqual(self.gpus("torchrun --master_addr $ADDR --nproc_per_node 8 $DIR/pretrain_gpt.py $MORE"), 8)
        done = run("import", "-", input="torchrun $EXTRA --nproc_per_node 8 pretrain_gpt.py" + self.OPTIONS)
        self.assertIn("the number of GPUs hangs on $EXTRA, which the script does not set; give it with --define "
                      "EXTRA=VALUE, or --gpus N", done.stderr)


class Export(unittest.TestCase):
    def test_a_plan(self):
        done = run("export", "gpt175b", "--to", "megatron")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ["torchrun --nproc-per-node 8 --nnodes 128 pretrain_gpt.py", "--num-layers 96",
                      "--tensor-model-parallel-size 8", "--num-virtual-stages-per-pipeline-rank 3",
                      "--sequence-parallel", "--use-distributed-optimizer", "--recompute-granularity selective",
                      "--bf16", "--accumulate-allreduce-grads-in-fp32", "--attention-backend flash"]:
            self.assertIn(words, done.stdout)

    def test_what_has_no_option(self):
        done = run("export", "gpt175b", "--to", "megatron", "--set", "plan.lora={rank: 8}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# Not said: plan.lora: Megatron-LM trains all weights", done.stdout)
        self.assertIn("not said by the script: plan.lora: Megatron-LM trains all weights", done.stderr)

    def test_tf32_is_a_setting_of_pytorch(self):
        done = run("export", "gpt175b", "--to", "megatron", "--set", "plan.precision=tf32")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# Not said: plan.precision: TF32 is a setting of PyTorch", done.stdout)
        self.assertNotIn("--bf16", done.stdout)

    def test_an_offloaded_optimizer_there_and_back(self):
        sharding = "plan.sharding={stage: 1, offload: {optimizer: cpu}}"
        done = run("export", "gpt175b", "--to", "megatron", "--set", sharding)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ["--use-distributed-optimizer", "--optimizer-cpu-offload", "--use-precision-aware-optimizer"]:
            self.assertIn(words, done.stdout)
        back = run("import", "-", input=done.stdout)
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual(yaml.safe_load(back.stdout)["plan"]["sharding"], {"stage": 1, "offload": {"optimizer": "cpu"}})

    def test_offloaded_activations_there_and_back(self):
        done = run("export", "llama2-7b-8gpu", "--to", "megatron", "--set", "plan.activation_offload={layers: 12}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--cpu-offloading-num-layers 12", done.stdout)
        back = run("import", "-", input=done.stdout)
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual(yaml.safe_load(back.stdout)["plan"]["activation_offload"], {"layers": 12})

    def test_micro_batches_that_recompute_less(self):
        done = run("export", "gpt175b", "--to", "megatron", "--set",
                   "plan.recompute={granularity: full, partial_micro_batches: 2}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("--recompute-granularity full", done.stdout)
        self.assertIn("# Not said: plan.recompute.partial_micro_batches: "
                      "num_microbatches_with_partial_activation_checkpoints has no option, only a field", done.stdout)

    def test_units_without_options(self):
        done = run("export", "mpt-7b-fsdp", "--to", "megatron", "--set",
                   "plan.sharding={stage: 3, unit_layers: 2, gathered_units: 3}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("every layer is a unit; unit_layers and unit_parameters have no option", done.stderr)
        self.assertIn("gathered_units and backward_prefetch have no option", done.stderr)

    def test_unknown_target(self):
        done = run("export", "gpt175b", "--to", "megatrn")
        self.assertEqual(done.returncode, 2)
        self.assertIn("megatron", done.stderr)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
