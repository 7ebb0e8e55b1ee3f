// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/config/quantity.hpp"

namespace trainsim::config {

/// What a value may look like, for programs that describe the input instead of reading it.
struct Form {
  enum class Kind {
    /// Any text.
    kText,
    /// A whole number with an optional suffix.
    kCount,
    /// A number without unit.
    kNumber,
    /// A number with a unit of `dimension`.
    kQuantity,
    /// true or false.
    kFlag,
    /// One of `words` and nothing else.
    kChoice,
    /// A list whose items have a form of their own that is not described.
    kItems,
    /// A text or a count, in a form of its own.
    kOther,
  };
  Kind kind = Kind::kOther;
  /// Bounds of counts and numbers; whether the lower one is legal itself.
  double least = 0;
  double most = 0;
  bool least_is_legal = true;
  /// Of a quantity.
  Dimension dimension = Dimension::kSize;
  /// Words that may stand here, in place of anything else that may.
  std::vector<std::string> words = {};
};

}  // namespace trainsim::config
