# SPDX-License-Identifier: Apache-2.0
"""What tests of cases share: configurations as mappings, and running them."""
import json
import pathlib
import subprocess
import tempfile
import unittest

GIB = 2**30
TERA = 1e12
# Seconds after which a run is ended, and its test fails.
TIMEOUT = 300


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

    def near(self, value, expected, relative=0.0, absolute=0.0):
        """Asserts that a value is as expected, within the larger one of two tolerances."""
        self.assertAlmostEqual(value, expected, delta=max(relative * abs(expected), absolute))

    def written(self, mapping, name="case"):
        """The path of a new file with a configuration or a cluster."""
        path = self.folder / f"{name}.yaml"
        path.write_text(json.dumps(mapping), encoding="utf-8")
        return str(path)

    def run_program(self, *arguments):
        """The ended process of any command."""
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=TIMEOUT, check=False)

    def call(self, command, base, change=None, arguments=()):
        """The ended process of a command on a configuration with some of it changed."""
        return self.run_program(command, self.written(merged(base, change or {})), *arguments)

    def result(self, command, base, change=None, arguments=()):
        """The JSON result of a command that ends well."""
        done = self.call(command, base, change, ["--format", "json", "--quiet", *arguments])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_plan(self, base, change=None, *arguments):
        return self.result("run", base, change, arguments)


def main(arguments):
    """Runs the tests of the calling module; the first argument is the program."""
    PlanCase.program = str(pathlib.Path(arguments.pop(1)).resolve())
    unittest.main(module="__main__", argv=arguments, verbosity=1)
