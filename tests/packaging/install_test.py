#!/usr/bin/env python3
"""Installs into a folder, makes the Debian package, and runs what was installed from elsewhere.

usage: install_test.py BUILD_FOLDER [--package]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path()
FILES = [
    "bin/trainsim", "share/trainsim/models/gpt3-175b.yaml", "share/trainsim/topologies/gpus/h100-sxm.yaml",
    "share/trainsim/topologies/clusters/dgx-h100.yaml", "share/trainsim/configs/gpt175b.yaml", "share/man/man1/trainsim.1.gz",
    "share/bash-completion/completions/trainsim", "share/zsh/vendor-completions/_trainsim",
    "share/fish/vendor_completions.d/trainsim.fish", "share/doc/trainsim/README.md", "share/doc/trainsim/LICENSE",
    "share/doc/trainsim/copyright", "share/doc/trainsim/docs/install.md",
]


def output(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    """What holds for every tree that was installed."""

    def check_tree(self, prefix):
        self.assertEqual([name for name in FILES if not (prefix / name).is_file()], [])
        # A preset that only this tree has shows that it is not the source tree that is read.
        shutil.copy(prefix / "share/trainsim/configs/bubble-4x8.yaml", prefix / "share/trainsim/configs/only-here.yaml")
        environment = {key: value for key, value in os.environ.items() if key != "TRAINSIM_HOME"}
        program = prefix / "bin/trainsim"
        with tempfile.TemporaryDirectory() as elsewhere:
            text = output(program, "only-here", cwd=elsewhere, env=environment)
            self.assertIn("bubble ratio          27.3 %", text)
            self.assertIn("only-here", output(program, "list", "configs", cwd=elsewhere, env=environment))
            link = pathlib.Path(elsewhere) / "linked"
            link.symlink_to(program)
            self.assertIn("only-here", output(link, "list", "configs", cwd=elsewhere, env=environment))
        self.assertEqual(output("gzip", "-dc", prefix / "share/man/man1/trainsim.1.gz"), output(program, "manual"))
        for shell, name in [("bash", "bash-completion/completions/trainsim"), ("zsh", "zsh/vendor-completions/_trainsim"),
                            ("fish", "fish/vendor_completions.d/trainsim.fish")]:
            self.assertEqual((prefix / "share" / name).read_text(encoding="utf-8"), output(program, "completion", shell))


class Install(Installed):
    def test_a_prefix_that_is_moved_afterwards(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = pathlib.Path(folder) / "first", pathlib.Path(folder) / "second"
            output("cmake", "--install", BUILD, "--prefix", first)
            presets = {path.relative_to(ROOT) for kind in ("models", "topologies", "configs")
                       for path in (ROOT / kind).rglob("*.yaml")}
            installed = {path.relative_to(first / "share/trainsim") for path in (first / "share/trainsim").rglob("*.yaml")}
            self.assertEqual(installed, presets)
            first.rename(second)
            self.check_tree(second)

    def test_home_wins_over_what_is_installed(self):
        with tempfile.TemporaryDirectory() as folder:
            output("cmake", "--install", BUILD, "--prefix", folder)
            home = pathlib.Path(folder) / "home"
            shutil.copytree(ROOT / "configs", home / "configs")
            (home / "configs/mine.yaml").write_text("{}", encoding="utf-8")
            listed = output(pathlib.Path(folder) / "bin/trainsim", "list", "configs",
                            env={**os.environ, "TRAINSIM_HOME": str(home)})
            self.assertIn("mine", listed)


class Package(Installed):
    @classmethod
    def setUpClass(cls):
        if "--package" not in FLAGS:
            raise unittest.SkipTest("only with --package")
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        output("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.folder, cwd=cls.folder)
        (cls.package,) = cls.folder.glob("*.deb")

    def test_what_it_says_of_itself(self):
        fields = {name: output("dpkg-deb", "--field", self.package, name).strip()
                  for name in ("Package", "Version", "Architecture", "Depends", "Description", "Section")}
        version = output(BUILD / "trainsim", "--version").split()[1]
        self.assertEqual((fields["Package"], fields["Version"], fields["Section"]), ("trainsim", version, "science"))
        self.assertEqual(self.package.name, f"trainsim_{version}_{fields['Architecture']}.deb")
        # The shared libraries that the program is linked to.
        for library in ("libc6", "libstdc++6", "libsimgrid3.32", "libyaml-cpp0.7", "libpugixml1v5", "libspdlog1.10"):
            self.assertIn(library, fields["Depends"])
        self.assertNotIn("-dev", fields["Depends"])
        self.assertTrue(fields["Description"].startswith("simulator of distributed training of large models\n trainsim"))

    def test_what_is_in_it(self):
        listed = output("dpkg-deb", "--contents", self.package).splitlines()
        paths = [line.split()[5] for line in listed]
        for name in [*FILES, "lib/python3/dist-packages/trainsim/__init__.py"]:
            self.assertIn("./usr/" + name, paths)
        self.assertEqual([path for path in paths if not path.startswith("./usr/") and path not in ("./", "./usr/")], [])
        self.assertEqual([path for path in paths if "__pycache__" in path or "/include/" in path], [])
        owners = {line.split()[1] for line in listed}
        self.assertEqual(owners, {"root/root"})
        self.assertEqual([line for line in listed if line[8] == "w" or line[5] == "w"], [])

    def test_the_extracted_tree_runs(self):
        tree = self.folder / "tree"
        output("dpkg-deb", "--extract", self.package, tree)
        self.check_tree(tree / "usr")
        script = "import trainsim; print(trainsim.run('only-here').bubble_ratio, trainsim.find_program())"
        text = output(sys.executable, "-c", script, cwd=self.folder,
                      env={"PATH": f"{tree / 'usr/bin'}:/usr/bin:/bin",
                           "PYTHONPATH": str(tree / "usr/lib/python3/dist-packages"), "PYTHONDONTWRITEBYTECODE": "1"})
        ratio, program = text.split()
        # (p - 1) / (m + p - 1) with 4 stages and 8 micro-batches.
        self.assertAlmostEqual(float(ratio), 3 / 11)
        self.assertEqual(program, str(tree / "usr/bin/trainsim"))


if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    FLAGS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1], verbosity=1)
