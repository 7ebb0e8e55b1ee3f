#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong inputs that cannot be kept as a text file: no file at all, odd bytes, hostile sizes, and `--set`.

usage: special.py PATH_TO_TRAINSIM [FACTOR]

Each case must end with exit code 2, nothing on standard output, and the expected message on standard error, within
two seconds (five for a large but honest file); FACTOR allows a slow build so many times that.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

PARTS = pathlib.Path(__file__).resolve().parent / "parts"

GOOD = f"""model: {PARTS}/model.yaml
cluster: {PARTS}/cluster.yaml
gpus: 16
plan:
  tensor_parallel: 2
"""

CASES = []


def case(name, expected, *, text=None, content=None, arguments=(), exact=True, seconds=2.0, files=None, path=None,
         home=None):
    """Adds a case: a configuration (text or bytes) and what is expected on standard error.

    Without `exact` the expected text need only occur. `files` are further files; `path` replaces the configuration,
    `home` the place of the presets.
    """
    if text is not None:
        content = text.encode()
    CASES.append((name, expected, content, arguments, exact, seconds, files or {}, path, home))


def set_case(name, override, column, message, **options):
    """Adds a case of one override that must be reported at a column of its own text."""
    expected = f"--set {override}:1:{column}: error: {message}\n    1 | {override}\n      | {' ' * (column - 1)}^\n"
    case("--set " + name, expected, text=GOOD, arguments=("--set", override), **options)


# ---- no file, no text ----
case("H15: no such file", "missing.yaml: error: cannot be read: no such file\n", path="missing.yaml")
case("H15: a name that is no preset", "error: no such file, and no preset configuration is called so", path="missing",
     exact=False)
case("a name that is nearly a preset", "did you mean gpt175b?", path="gpt175", exact=False)
case("H15: a directory", "folder: error: this is a directory, not a file\n", path="folder")
case("H15: an empty file", "case.yaml: error: the file is empty; it needs a mapping (lines of 'key: value')\n", text="")
case("not UTF-8, after characters of two bytes", "case.yaml:1:6: error: byte 0xfc is not UTF-8; save the file as UTF-8\n",
     content=b"# \xc3\xa4\xc3\xb6 \xfc\n")
case("UTF-16", "case.yaml:1:1: error: the file is UTF-16; save it as UTF-8\n", content=GOOD.encode("utf-16"))
case("an overlong form of '/'", "case.yaml:1:8: error: byte 0xc0 is not UTF-8; save the file as UTF-8\n",
     content=b"model: \xc0\xaf\n")
case("a NUL byte", "case.yaml:1:7: error: control character 0x00; a configuration is plain text\n",
     content=b"gpus: \x00\n")
case("an escape sequence", "case.yaml:1:7: error: control character 0x1b; a configuration is plain text\n",
     content=b"gpus: \x1b[31m8\n")
case("an escape sequence in disguise", "plan.schedule: unknown word  [31mgpipe; legal here",
     text=GOOD + '  schedule: "\\e[31mgpipe"\n', exact=False)
case("only a byte order mark", "case.yaml: error: the file is empty; it needs a mapping (lines of 'key: value')\n",
     content=b"\xef\xbb\xbf")
case("a byte order mark and Windows line ends",
     "case.yaml:2:7: error: gpus: must be a positive integer, not 0\n    2 | gpus: 0\n      |       ^\n",
     content=b"\xef\xbb\xbf# comment\r\n" + GOOD.replace("gpus: 16\n", "").replace("model", "gpus: 0\nmodel", 1)
     .replace("\n", "\r\n").encode())

# ---- hostile sizes ----
case("H11: billion laughs", "aliases expand to more than 100000 values",
     text="a: &a [" + "x," * 9 + "]\n" + "".join(f"{b}: &{b} [" + f"*{a}," * 9 + "]\n" for a, b in zip("abcdefgh", "bcdefghi")),
     exact=False, seconds=1.0)
case("more aliases than anybody needs", "more than 100 aliases; write the values out",
     text="a: &a 1\nb: [" + "*a, " * 101 + "]\n", exact=False)
for bomb_name, bomb in {
    "braces": "{" * 100_000,
    "brackets": "[" * 100_000,
    "mappings in braces": "a: " + "{a: " * 100_000,
    "dashes": "- " * 100_000,
    "question marks": "? " * 100_000,
    "indented keys": "".join(" " * i + "a:\n" for i in range(3000)),
    "brackets on lines of their own": "[\n" * 100_000,
}.items():
    case(f"H11: 100000 nested {bomb_name}", "nested deeper than 32 levels", text=bomb, exact=False, seconds=1.0)
case("nesting through aliases", "nested deeper than 32 levels", exact=False,
     text="a: &a " + "[" * 20 + "]" * 20 + "\nb: &b " + "[" * 20 + "*a" + "]" * 20 + "\n")
case("too large", "case.yaml: error: larger than 16 MiB, too large for a configuration\n", text="# padding\n" * 1_700_000)
case("too many values", "more than a million values, too many for a configuration", text="a: [" + "1," * 1_100_000 + "]",
     exact=False)
case("100000 unknown keys", "(99904 more problems are not shown)", text="".join(f"key{i}: 1\n" for i in range(100_000)),
     exact=False)
case("H12: 100000 honest lines and a wrong one", "slow_gpus[99990].slowdown: must be at least 1, not 0.5", exact=False,
     seconds=5.0,
     text=GOOD.replace(f"{PARTS}/cluster.yaml", f"\n  extends: {PARTS}/cluster.yaml\n  slow_gpus:\n" +
                       "".join(f"  - {{gpu: {i}, slowdown: 1.5}}\n" for i in range(99_990)) +
                       "  - {gpu: 99990, slowdown: 0.5}").replace("gpus: 16", "gpus: 100_000"))
case("H12: 100000 lines of comments", "plan: missing", exact=False, seconds=5.0,
     text=f"model: {PARTS}/model.yaml\n" + "# a comment line of usual length, to pass the time\n" * 100_000 +
     f"cluster: {PARTS}/cluster.yaml\ngpus: 16\n")
case("H12: 100000 notes", "plan: missing", exact=False, seconds=5.0,
     text=f"model:\n  extends: {PARTS}/model.yaml\n  source:\n" + "".join(f"    note{i}: text\n" for i in range(100_000)) +
     f"cluster: {PARTS}/cluster.yaml\ngpus: 16\n")
case("a chain of nine files", "extends goes through more than 8 files; flatten the chain", exact=False,
     text=GOOD.replace(f"{PARTS}/model.yaml", "{extends: ./1.yaml}"),
     files={f"{i}.yaml": f"extends: ./{i + 1}.yaml\n" for i in range(1, 10)})
case("a preset that is nowhere", "there are no presets in nowhere/models; TRAINSIM_HOME can name another place",
     text="model: gpt3-175b\n", exact=False, home="nowhere")

# ---- --set ----
set_case("of a wrong value", "plan.tensor_parallel=3", 22,
         "plan.tensor_parallel: 3 does not divide the 16 attention heads; legal here: 1, 2, 4, 8, 16", exact=False)
set_case("of a wrong type", "gpus=many", 6,
         "gpus: many is not a count; write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12")
set_case("of an unknown key", "plan.micro_batchsize=2", 6,
         "plan.micro_batchsize: unknown key; did you mean micro_batch_size?")
set_case("of nothing", "gpus=", 1, "gpus: has no value; it needs a count such as 8")
set_case("without value", "gpus", 1, "an override needs a '=', as in --set plan.micro_batch_size=2")
set_case("without key", "=8", 1, "a key is missing here; write for example --set plan.micro_batch_size=2")
set_case("with a gap in the path", "plan..tensor_parallel=2", 6,
         "a key is missing here; write for example --set plan.micro_batch_size=2")
set_case("below a number", "gpus.x=2", 1, "gpus: is 16 and has no keys; set it as a whole (--set gpus=...)")
set_case("with an open bracket", "plan.pipeline_layout=[1, 2", 22, "a list in brackets is not closed; a ',' or ']' is missing")
case("--set with a tab", "--set gpus=8 # x:1:7: error: tab character; use spaces, YAML does not allow tabs here\n"
     "    1 | gpus=8 # x\n      |       ^\n", text=GOOD, arguments=("--set", "gpus=8\t# x"))
set_case("of the shorthand without unit", "cluster.nic_bandwidth=100", 23,
         "cluster.nic.bandwidth: 100 has no unit; write for example 100 GB/s; units of a rate: GB/s, MB/s, kB/s, TB/s, "
         "GiB/s, MiB/s (bytes), Gb/s, Mb/s, Tb/s (bits; 8 Gb/s = 1 GB/s)")
set_case("inside of a named model", "model.num_layers=0", 18, "model.num_layers: must be a positive integer, not 0")
set_case("inside of a named part", "cluster.gpu.memory=80", 20,
         "cluster.gpu.memory: 80 has no unit; write for example 80 GiB; units of a size: GB, MB, kB, B, TB (powers of "
         "1000), GiB, MiB, KiB, TiB (powers of 1024)")
case("--set inside of a short form", "--set plan.recompute.layers=30:1:23: error: plan.recompute.layers: 30 is more than",
     text=GOOD + "  recompute: full\n", arguments=("--set", "plan.recompute.layers=30"), exact=False)
case("--set twice, in the order of the command line",
     "--set gpus=x:1:6: error: gpus: x is not a count; write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12\n"
     "    1 | gpus=x\n      |      ^\n"
     "--set plan.schedule=y:1:15: error: plan.schedule: unknown word y; legal here: gpipe, 1f1b, interleaved, zb-h1 or zb-h2\n"
     "    1 | plan.schedule=y\n      |               ^\n",
     text=GOOD, arguments=("--set", "gpus=x", "--set", "plan.schedule=y"))
case("--set with a byte that is no text", "--set gpus=?:1:6: error: byte 0xff is not UTF-8", text=GOOD,
     arguments=("--set", b"gpus=\xff"), exact=False)
case("--set with a colon", "--set plan=a: b:1:6: error: plan.a: unknown key", text=GOOD,
     arguments=("--set", "plan=a: b"), exact=False)


def run(trainsim, content, arguments, files, path, home):
    """Runs one case in a folder of its own: exit code, both outputs, and the time it took."""
    with tempfile.TemporaryDirectory() as folder:
        base = pathlib.Path(folder)
        (base / "folder").mkdir()
        for name, text in files.items():
            (base / name).write_text(text, encoding="utf-8")
        if content is not None:
            (base / "case.yaml").write_bytes(content)
        environment = dict(os.environ) | ({"TRAINSIM_HOME": home} if home else {})
        command = [trainsim, "check", path or "case.yaml", *arguments]
        start = time.monotonic()
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr, time.monotonic() - start


def faults(trainsim, factor, expected, content, arguments, exact, seconds, files, path, home):
    """What is not as it should be with one case."""
    code, stdout, stderr, took = run(trainsim, content, arguments, files, path, home)
    text = stderr.decode("utf-8", errors="replace")
    found = []
    if code != 2:
        found.append(f"exit code {code}, not 2")
    if stdout:
        found.append(f"standard output is not empty: {stdout[:200]!r}")
    if (text != expected) if exact else (expected not in text):
        found.append(f"expected {expected!r}\n       got {text[:1000]!r}")
    if took > seconds * factor:
        found.append(f"took {took:.1f} s, more than {seconds * factor:.1f} s")
    return found


def main():
    trainsim = str(pathlib.Path(sys.argv[1]).resolve())
    factor = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
    failed = 0
    for each in CASES:
        found = faults(trainsim, factor, *each[1:])
        if found:
            failed += 1
            print(f"{each[0]}:", *found, sep="\n  ")
    print(f"{len(CASES) - failed} of {len(CASES)} special inputs are reported as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
