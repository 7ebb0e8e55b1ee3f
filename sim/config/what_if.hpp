// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/experiment.hpp"

namespace trainsim::config {

/// A short name for what people ask about ("network.nic") and the keys of the configuration that it stands
/// for.
struct WhatIfName {
  std::string name;
  /// The first one must be there; the others follow it by the same factor where they are. '*' stands for the
  /// precision of the plan, or for the way that it launches kernels.
  std::vector<std::string> keys;
  /// Whether a larger value means smaller ones of the keys (a rate, and keys that are times).
  bool inverse = false;
  /// Whether it takes relative values only, because it stands for several values or for none that is written.
  bool relative_only = false;
};

/// All short names but `op.NAME.speedup`.
const std::vector<WhatIfName>& what_if_names();

/// Splits "plan.recompute=full,plan.pipeline_layout=[4, 4]" at its commas outside of brackets and quotes.
std::vector<std::string> split_changes(const std::string& text);

/// The `--set` overrides that make changes to `base`. A change is "NAME=VALUE": NAME is one of the short
/// names, `op.NAME.speedup`, or a key of the configuration; VALUE is a value as in a file, or relative to
/// that of `base`: +20%, -10%, x2. Throws InputError with `where`, the change, the cause and the cure; what
/// is wrong with values is left to `load`.
std::vector<std::string> overrides_for(const std::vector<std::string>& changes, const Experiment& base,
                                       const std::string& where);

/// Whether the configuration has what a short name stands for.
bool has(const Experiment& base, const WhatIfName& name);

}  // namespace trainsim::config
