// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/command_options.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/variations.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::cli {

/// What a run is asked beside its result: --what-if, --sensitivity and --placement.
class Questions {
 public:
  void declare(Options& options);
  /// Reads the questions about `base`. Throws InputError for those that can't be understood, and for a format
  /// that can't hold the answers.
  void load(const Subject& subject, const config::Experiment& base, Format format);
  /// Finds the answers. Not to be called after SimGrid has run in this process.
  void answer(const Subject& subject, const config::Experiment& base, const VariationOptions& options);
  /// What was found for --sensitivity; nothing when it was not asked for.
  const std::optional<report::Sensitivity>& sensitivity() const { return found_; }
  /// The same for --placement.
  const std::optional<report::Placement>& placement() const { return found_placement_; }
  /// The run itself, then each --what-if; empty when there is none.
  report::Comparison what_ifs(const report::Summary& summary, const Subject& subject,
                              const config::Experiment& base) const;
  /// Adds the questions to a command line that asks them again.
  void add_to(CommandText& command) const;
  /// The result with the answers, as --format and --verbose ask for.
  std::string formatted(const report::Summary& summary, const Subject& subject,
                        const config::Experiment& base, const CommonOptions& how) const;

 private:
  std::vector<std::string> what_ifs_;
  bool sensitivity_ = false;
  bool placement_ = false;
  std::vector<Variation> variations_;
  std::vector<report::ComparedRun> runs_;
  std::optional<report::Sensitivity> found_;
  std::optional<report::Placement> found_placement_;
};

}  // namespace trainsim::cli
