// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace trainsim::cli {

/// What plans have to keep, as --limit gives it: "NAME OP NUMBER" on a number of the result, like --assert.
/// The functions return the first limit that is broken, or an empty text.
class SearchLimits {
 public:
  /// Throws InputError if one can't be read.
  explicit SearchLimits(std::vector<std::string> limits);

  const std::vector<std::string>& texts() const { return limits_; }

  /// By a plan that takes at least `step_time` and whose fullest rank needs at least `peak`.
  std::string broken_by_bounds(Seconds step_time, Bytes peak) const;
  /// By a plan's memory: peak of the fullest rank, what its allocator holds, and what is left of the GPU.
  std::string broken_by_memory(Bytes peak, Bytes reserved, Bytes headroom) const;

 private:
  std::vector<std::string> limits_;
};

}  // namespace trainsim::cli
