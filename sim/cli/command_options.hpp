// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/cli/options.hpp"
#include "sim/cli/variant.hpp"

namespace trainsim::cli {

class CommandText;

/// Output formats.
enum class Format { kText, kJson, kCsv, kMarkdown, kJsonLines };

/// What most commands understand.
struct CommonOptions {
  Format format = Format::kText;
  /// Whether --format was given.
  bool format_given = false;
  /// Where the result goes; empty = standard output.
  std::string output;
  bool quiet = false;
  bool verbose = false;

  /// Adds --format with these choices, --output, --quiet and --verbose.
  void declare(Options& options, const std::vector<Format>& formats);
};

/// Adds --output alone, for commands whose result has one form.
void add_output(Options& options, std::string& output);

/// Adds --set, repeatable, with this help.
void add_overrides(Options& options, std::vector<std::string>& overrides, const std::string& help);

/// Adds the configuration that a command is about, CONFIG, and --set.
void add_config(Options& options, Subject& subject);

/// Adds --require-fit.
void add_require_fit(Options& options, bool& require_fit);

/// Adds -j, how many processes work at the same time (`what`: "runs to simulate"); 0 = one per processor.
void add_jobs(Options& options, std::size_t& workers, const std::string& what);

/// The number of processes that --jobs means.
std::size_t processes(std::size_t workers);

/// Throws InputError that names a value which is none of the legal ones, and the one probably meant.
[[noreturn]] void fail_choice(const std::string& what, const std::string& value,
                              const std::vector<std::string>& legal);

/// Whether constants are drawn from their ranges, how often, and from which seed.
struct UncertaintyChoice {
  bool wanted = false;
  std::size_t samples = 100;
  std::uint64_t seed = 1;
};

/// --uncertainty, which does what `help` says, with --samples and --seed.
void add_uncertainty(Options& options, UncertaintyChoice& choice, const std::string& help);
/// The same as they were given.
void add_to(CommandText& text, const UncertaintyChoice& choice);

}  // namespace trainsim::cli
