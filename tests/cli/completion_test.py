#!/usr/bin/env python3
"""Tests `trainsim completion` and `trainsim manual`: every option is in them, and shells and man accept them.

usage: completion_test.py TRAINSIM
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)


def written(*arguments):
    done = run(*arguments)
    if (done.returncode, done.stderr) != (0, ""):
        raise AssertionError(done.stderr)
    return done.stdout


def commands():
    """Names of all commands, as --help lists them."""
    return re.findall(r"^  ([a-z]+) ", written("--help").split("Subcommands:")[1], re.MULTILINE)


def options_of(command):
    """All options of a command, as its --help lists them."""
    text = written(command, "--help")
    return sorted(set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", "\n".join(re.findall(r"^  (-\S+)", text, re.MULTILINE)))))


class WithScripts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        # Completions call the program by its name.
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin/trainsim").symlink_to(PROGRAM)
        (cls.folder / "some file.yaml").write_text("", encoding="utf-8")
        cls.environment = {**os.environ, "PATH": f"{cls.folder / 'bin'}:{os.environ['PATH']}",
                           "HOME": str(cls.folder), "TRAINSIM_HOME": str(ROOT)}

    def shell(self, *words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, env=self.environment,
                              cwd=self.folder)
        self.assertEqual(done.stderr, "", words)
        return done.stdout.splitlines()

    def script(self, shell):
        path = self.folder / f"completion.{shell}"
        path.write_text(written("completion", shell), encoding="utf-8")
        return path


class Bash(WithScripts):
    def completed(self, *words):
        text = (f"source {self.script('bash')}; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _trainsim; "
                'printf "%s\\n" "${COMPREPLY[@]}"')
        return self.shell("bash", "--norc", "-c", text, "bash", "trainsim", *words)

    def test_every_option_of_every_command(self):
        self.assertGreater(len(commands()), 8)
        for command in commands():
            self.assertEqual([o for o in options_of(command) if o not in self.completed(command, "-")], [], command)

    def test_the_first_word(self):
        first = self.completed("")
        self.assertEqual([command for command in commands() if command not in first], [])
        self.assertIn("gpt175b", first)
        self.assertEqual(self.completed("che"), ["check"])
        # `trainsim CONFIG` is a run, and takes its options.
        self.assertIn("--version", self.completed("--"))
        self.assertIn("--require-fit", self.completed("gpt175b", "--"))
        self.assertNotIn("--jobs", self.completed("gpt175b", "--"))

    def test_values(self):
        self.assertEqual(self.completed("run", "--format", ""), ["text", "json", "csv"])
        self.assertEqual(self.completed("check", "--format", ""), ["text", "json"])
        self.assertEqual(self.completed("run", "--format", "=", "j"), ["json"])
        self.assertEqual(self.completed("run", "--fold", "o"), ["off"])
        self.assertEqual(self.completed("list", ""), ["models", "gpus", "clusters", "configs"])
        self.assertEqual(self.completed("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.completed("run", "gpt17"), ["gpt175b", "gpt175b-300b-tokens"])
        self.assertIn("dgx-h100", self.completed("bench", "--cluster", "dgx"))
        self.assertIn("h100-sxm", self.completed("calibrate", "--gpu", "h"))
        self.assertIn("dgx-h100", self.completed("calibrate", "--cluster", "d"))
        self.assertEqual(self.completed("run", "-o", "some"), ["some file.yaml"])
        self.assertEqual(self.completed("run", "some"), ["some file.yaml"])
        self.assertEqual(self.completed("bench", "--op", "all_r"), ["all_reduce"])
        self.assertEqual(self.completed("search", "--objective", ""), ["step_time", "cost", "gpus"])
        self.assertEqual(self.completed("import", "--kind", "meg"), ["megatron", "megatron-log"])
        self.assertEqual(self.completed("import", "--cluster", "dgx-b"), ["dgx-b200", "dgx-b300"])
        self.assertEqual(self.completed("export", "--to", ""), ["megatron"])
        self.assertIn("cluster", self.completed("schema", "clu"))

    def test_words_that_are_offered_are_accepted(self):
        for mode in self.completed("run", "--fold", ""):
            self.assertEqual(run("bubble-4x8", "--fold", mode, "--quiet").returncode, 0, mode)
        for op in self.completed("bench", "--op", ""):
            self.assertEqual(run("bench", "--cluster", "dgx-h100", "--sizes", "1 MiB", "--op", op).returncode, 0, op)
        for key in self.completed("memory", "--largest", ""):
            self.assertEqual(run("memory", "bubble-4x8", "--largest", key, "--quiet").returncode, 0, key)


class Zsh(WithScripts):
    def setUp(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")

    def arguments(self, *words):
        """What the script hands to zsh's _arguments, _describe and _files."""
        text = ("compdef() { }; _arguments() { print -rl -- $@ }; _describe() { print -rl -- ${(P)2} }; "
                f"_alternative() {{ print -rl -- $names }}; source {self.script('zsh')}; "
                'words=("$@"); CURRENT=$#; _trainsim')
        return self.shell("zsh", "-f", "-c", text, "zsh", "trainsim", *words)

    def test_every_option_of_every_command(self):
        for command in commands():
            offered = {re.match(r"\*?(-[\w-]*)", line)[1] for line in self.arguments(command, "-")
                       if re.match(r"\*?-[\w-]*=?\[", line)}
            self.assertEqual([o for o in options_of(command) if o not in offered], [], command)

    def test_the_first_word_and_configurations(self):
        first = self.arguments("")
        self.assertEqual([c for c in commands() if not any(line.startswith(c + ":") for line in first)], [])
        self.assertIn("gpt175b", first)
        self.assertTrue(any(line.startswith("--require-fit[") for line in self.arguments("gpt175b", "-")))

    def test_values(self):
        check = self.arguments("check", "-")
        self.assertTrue(any(line.endswith(":FORMAT:(text json)") for line in check), check)
        self.assertIn(":CONFIG: _trainsim__presets configs", check)

    def test_it_works_under_the_true_completion_system(self):
        text = f"autoload -U compinit; compinit -u -D; source {self.script('zsh')}; print $_comps[trainsim]"
        self.assertEqual(self.shell("zsh", "-f", "-c", text), ["_trainsim"])


class Fish(WithScripts):
    def setUp(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")

    def completed(self, line):
        done = self.shell("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'")
        return [each.split("\t")[0] for each in done]

    def test_every_option_of_every_command(self):
        for command in commands():
            offered = self.completed(f"trainsim {command} -") + self.completed(f"trainsim {command} --")
            self.assertEqual([o for o in options_of(command) if o not in offered], [], command)

    def test_the_first_word_values_and_configurations(self):
        first = self.completed("trainsim ")
        self.assertEqual([command for command in commands() if command not in first], [])
        self.assertIn("gpt175b", first)
        self.assertIn("--require-fit", self.completed("trainsim gpt175b --re"))
        self.assertEqual(self.completed("trainsim check --format "), ["json", "text"])
        self.assertEqual(self.completed("trainsim list "), ["clusters", "configs", "gpus", "models"])
        self.assertIn("dgx-h100", self.completed("trainsim topology dgx"))
        self.assertIn("some file.yaml", [each.replace("\\", "") for each in self.completed("trainsim run some")])


class Manual(WithScripts):
    def test_every_command_and_option(self):
        page = written("manual").replace("\\-", "-")
        for command in commands():
            section = re.search(rf"(?s)\n\.SS trainsim {command}\n(.*?)(\n\.SS|\n\.SH)", page)[1]
            self.assertEqual([o for o in options_of(command) if f"\\fB{o}\\fR" not in section], [], command)
        self.assertIn(f'"trainsim {written("--version").split()[1]}"', page)

    def test_man_and_mandoc_find_nothing_wrong(self):
        path = self.folder / "trainsim.1"
        path.write_text(written("manual"), encoding="utf-8")
        if shutil.which("man"):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", str(path)], capture_output=True,
                                  text=True, check=False, env={**self.environment, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("--require-fit", re.sub(r"\x1b\[[0-9;]*m|.\x08", "", done.stdout).replace("‐", "-"))
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-Tlint", "-Wwarning", str(path)], capture_output=True, text=True, check=False)
            # The page has no date, so that it does not depend on the day on which it was written.
            self.assertEqual([line for line in done.stdout.splitlines() if 'missing date, using ""' not in line], [])


class BadInput(unittest.TestCase):
    def test_an_unknown_shell(self):
        done = run("completion", "tcsh")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "trainsim: error: completion 'tcsh' is not known; use bash, zsh or fish\n")

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for arguments in (["completion", "bash"], ["manual"]):
                path = pathlib.Path(folder) / arguments[0]
                self.assertEqual(written(*arguments, "--output", path), "")
                self.assertEqual(path.read_text(encoding="utf-8"), written(*arguments))
                self.assertEqual(run(*arguments, "-o", "/nowhere/file").returncode, 2)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=1)
