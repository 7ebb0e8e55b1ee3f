// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainsim::cli {

/// Commands of the program.
enum class Command { kRun, kCheck, kList, kValidate, kCalibrate, kBench, kTopology, kMemory };
/// Output formats.
enum class Format { kText, kJson, kCsv, kMarkdown };

/// The command line, taken apart.
struct Options {
  Command command = Command::kRun;
  /// Configuration for run and check; kind of presets for list; folder or file of measured runs for validate.
  std::string subject;
  /// Measurements for calibrate.
  std::vector<std::string> files;
  /// The preset that calibrate starts from; for bench and topology the cluster.
  std::string gpu;
  std::string cluster;
  /// For bench; empty or 0 where left open.
  std::string op;
  std::string sizes;
  std::int64_t gpus = 0;
  std::string compare;
  std::vector<std::string> overrides;
  std::vector<std::string> assertions;
  Format format = Format::kText;
  /// Where the result goes; empty = standard output.
  std::string output;
  /// Where validate or topology draw their picture; empty = nowhere.
  std::string picture;
  /// Worker processes; 0 = one per processor.
  std::size_t workers = 0;
  /// Whether the constants are varied, how often, and from which seed.
  bool uncertainty = false;
  std::size_t samples = 100;
  std::uint64_t seed = 1;
  /// For memory.
  std::optional<std::int64_t> rank;
  std::string largest;
  bool fewest_gpus = false;
  bool require_fit = false;
  bool fold = true;
  bool verify_folding = false;
  bool quiet = false;
  bool verbose = false;
};

/// Parses the command line. Returns nothing when there is nothing left to do (--help, --version): the text
/// has been printed. Throws InputError when it can't be understood.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace trainsim::cli
