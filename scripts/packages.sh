# Debian packages that trainsim needs; sourced by the other scripts.
build_packages="g++ cmake ninja-build pkg-config libsimgrid-dev libyaml-cpp-dev libpugixml-dev libboost-graph-dev libspdlog-dev
  libcli11-dev nlohmann-json3-dev zlib1g-dev libtomlplusplus-dev node-d3"
test_packages="$build_packages libgtest-dev librapidcheck-dev clang-format clang-tidy graphviz python3 python3-yaml
  python3-jsonschema openmpi-bin parallel dpkg-dev man-db mandoc zsh fish chromium fonts-dejavu-core"
# Node.js from elsewhere brings npm along, and does not go with Debian's.
command -v npm >/dev/null 2>&1 || test_packages="$test_packages nodejs npm"

# install_missing PACKAGE…: installs those that are not there, as root or through sudo; else prints the command.
install_missing() {
  missing=""
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null 2>&1; then
    echo "trainsim: error: these packages are missing, and this is not a Debian system:$missing" >&2
    return 1
  fi
  as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      echo "trainsim: error: packages are missing; install them with" >&2
      echo "  sudo apt-get install --no-install-recommends$missing" >&2
      return 1
    fi
    as_root="sudo"
  fi
  echo "trainsim: installing$missing" >&2
  $as_root apt-get update >&2 &&
    DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends $missing >&2
}

# build_preset PRESET [CMAKE_OPTION…]: configures and builds quietly; the whole log is shown when it fails.
build_preset() {
  preset="$1"
  shift
  mkdir -p "build/$preset"
  log="build/$preset/build.log"
  if ! { cmake --preset "$preset" "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "trainsim: error: the build failed; the log above is in $log" >&2
    return 1
  fi
}
