# SPDX-License-Identifier: Apache-2.0
"""What tests of cases share: configurations as mappings, and running them."""
import json
import pathlib
import subprocess
import tempfile
import unittest


def merged(base, change):
    """A mapping with the changes laid on it, key by key."""
    result = dict(base)
    for key, value in change.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


class PlanCase(unittest.TestCase):
    """Runs configurations with the program that is set before the tests start."""
    program = ""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def result(self, command, base, change=None, arguments=()):
        """The JSON result of a command on a configuration with some of it changed."""
        path = self.folder / "case.yaml"
        path.write_text(json.dumps(merged(base, change or {})), encoding="utf-8")
        done = subprocess.run([self.program, command, str(path), "--format", "json", "--quiet", *arguments],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_plan(self, base, change=None, *arguments):
        return self.result("run", base, change, arguments)


def main(arguments):
    """Runs the tests of the calling module; the first argument is the program."""
    PlanCase.program = str(pathlib.Path(arguments.pop(1)).resolve())
    unittest.main(module="__main__", argv=arguments, verbosity=1)
