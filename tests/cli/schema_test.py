#!/usr/bin/env python3
"""Checks `trainsim schema`: all files that ship satisfy it, wrong ones do not, and it is itself a JSON Schema.

usage: schema_test.py TRAINSIM
"""
import json
import pathlib
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
#: Kinds of files and the folders that they are in.
KINDS = {"config": "configs", "model": "models", "cluster": "topologies/clusters", "gpu": "topologies/gpus",
         "node": "topologies/nodes", "nic": "topologies/nics", "fabric": "topologies/fabrics"}


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


def schema(kind):
    done = run("schema", kind)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Schema(unittest.TestCase):
    def test_it_is_a_schema(self):
        for kind in KINDS:
            jsonschema.Draft7Validator.check_schema(schema(kind))

    def test_files_that_ship_satisfy_it(self):
        for kind, folder in KINDS.items():
            validator = jsonschema.Draft7Validator(schema(kind))
            files = sorted((ROOT / folder).glob("*.yaml"))
            self.assertGreater(len(files), 1)
            for path in files:
                with self.subTest(path.name):
                    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
                    self.assertEqual([f"{list(error.path)}: {error.message}" for error in validator.iter_errors(tree)], [])

    def test_unknown_and_missing_keys_do_not(self):
        validator = jsonschema.Draft7Validator(schema("config"))
        looked_at = 0
        for path in sorted((ROOT / "tests/bad_inputs").glob("*.err")):
            said = path.read_text(encoding="utf-8")
            # Only what is wrong with the file itself; files that it names are not seen here.
            own = re.search(rf"^{path.stem}\.yaml:.*(unknown key|unknown word)", said, re.MULTILINE)
            if not own:
                continue
            with self.subTest(path.stem):
                tree = yaml.safe_load(path.with_suffix(".yaml").read_text(encoding="utf-8"))
                self.assertFalse(validator.is_valid(tree))
                looked_at += 1
        self.assertGreater(looked_at, 10)
        self.assertFalse(validator.is_valid({"model": "gpt3-175b", "cluster": "dgx-h100", "gpus": 8}))

    def test_values(self):
        validator = jsonschema.Draft7Validator(schema("config"))

        def judged(plan):
            return validator.is_valid({"model": "gpt3-175b", "cluster": "dgx-h100", "gpus": 8, "plan": plan})

        for good in [{}, {"tensor_parallel": 8}, {"bucket_parameters": "40M"}, {"bucket_parameters": "1_000"},
                     {"recompute": {"granularity": "full"}}, {"sharding": {"stage": 3, "group": "node"}},
                     {"sharding": "fsdp"}, {"profile": {"forward": "2 ms", "backward": "4.5ms"}}]:
            self.assertTrue(judged(good), good)
        for bad in [{"tensor_parallel": 0}, {"tensor_parallel": 1.5}, {"tensor_parallel": True}, {"schedule": "2f2b"},
                    {"recompute": "some"}, {"recompute": {"method": "block"}}, {"sharding": {"stage": 4}},
                    {"profile": {"forward": 2, "backward": "4 ms"}}, {"tensor_paralel": 2}]:
            self.assertFalse(judged(bad), bad)

    def test_what_editors_show(self):
        plan = schema("config")["properties"]["plan"]["properties"]
        self.assertEqual(plan["tensor_parallel"]["default"], 1)
        self.assertTrue(plan["tensor_parallel"]["description"].startswith("count; divides query heads"))
        self.assertEqual(plan["schedule"]["enum"][:3], ["gpipe", "1f1b", "interleaved"])
        # What follows from other keys has no default.
        self.assertNotIn("default", plan["data_parallel"])

    def test_every_key_is_documented(self):
        def undescribed(rule, path):
            for name, inner in rule.get("properties", {}).items():
                below = f"{path}.{name}" if path else name
                if not inner.get("description") and name not in ("value", "grade", "range"):
                    yield below
                for each in [inner, *inner.get("anyOf", [])]:
                    yield from undescribed(each, below)
                    yield from undescribed(each.get("items", {}), below + "[]")

        self.assertEqual(list(undescribed(schema("config"), "")), [])

    def test_unknown_kind(self):
        done = run("schema", "modle")
        self.assertEqual(done.returncode, 2)
        self.assertIn("KIND 'modle' is not known; use config, model, cluster, gpu, node, nic or fabric (did you mean "
                      "'model'?)", done.stderr)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
