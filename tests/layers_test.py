#!/usr/bin/env python3
"""Checks the structure that docs/architecture.md declares.

Includes inside sim/ follow only the arrows of the trainsim_module calls in CMakeLists.txt; each third-party library is
included in one folder only; the folders of the contract exist; sim/README.md names every module.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIM = ROOT / "sim"
CONTRACT = ["CMakeLists.txt", "sim", "models", "topologies", "configs", "experiments", "tests", "docs"]
PRIVATE_LIBRARIES = {
    "yaml-cpp/": ["config"],
    "pugixml": ["config"],
    "simgrid/": ["engine"],
    "CLI/": ["cli"],
    "spdlog/": ["cli"],
    "zlib.h": ["cli", "exchange"],
    "nlohmann/": ["report", "exchange"],
    "toml++/": ["exchange"],
    "boost/": ["hardware"],
}


def declared_arrows():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    arrows = {}
    for call in re.findall(r"trainsim_module\(([^)]*)\)", text):
        words = call.split()
        name, arrows[words[0]] = words[0], set()
        keyword = None
        for word in words[1:]:
            if word in ("MAY_INCLUDE", "LIBRARIES"):
                keyword = word
            elif keyword == "MAY_INCLUDE":
                arrows[name].add(word)
    return arrows


def problems():
    arrows = declared_arrows()
    for name in CONTRACT:
        if not (ROOT / name).exists():
            yield f"{name} is missing"
    modules = {path.name for path in SIM.iterdir() if path.is_dir()}
    for module in sorted(modules ^ set(arrows)):
        yield f"sim/{module} and the trainsim_module calls of CMakeLists.txt disagree"
    order = list(arrows)
    for module, allowed in arrows.items():
        for target in allowed:
            if order.index(target) >= order.index(module):
                yield f"{module} may include {target}, which is declared after it: arrows must point down"
    readme = (SIM / "README.md").read_text(encoding="utf-8")
    for module in sorted(modules):
        if f"{module}/" not in readme:
            yield f"sim/README.md does not name {module}/"
    for path in sorted(SIM.rglob("*.[ch]pp")):
        module = path.relative_to(SIM).parts[0]
        for include in re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"), re.MULTILINE):
            if include.startswith("sim/"):
                target = include.split("/")[1]
                if target != module and target not in arrows.get(module, set()):
                    yield f"{path.relative_to(ROOT)} includes {include}: {module} may not include {target}"
            for prefix, owners in PRIVATE_LIBRARIES.items():
                if include.startswith(prefix) and module not in owners:
                    yield f"{path.relative_to(ROOT)} includes {include}, which only sim/{' and sim/'.join(owners)} may"


def main():
    found = list(problems())
    print("\n".join(found) if found else "all includes follow the declared arrows")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
