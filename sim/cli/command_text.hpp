// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/cli/variant.hpp"

namespace trainsim::cli {

/// A command line as a shell takes it, "trainsim run gpt175b --set plan.x=1": what a page says how to make it
/// again.
class CommandText {
 public:
  explicit CommandText(const std::string& command) : text_("trainsim " + command) {}

  CommandText& argument(const std::string& argument);
  /// An option with each of the values; nothing without any.
  CommandText& option(const std::string& name, const std::vector<std::string>& values);
  /// An option with a value, unless that is empty.
  CommandText& option(const std::string& name, const std::string& value);
  CommandText& flag(const std::string& name, bool given);
  /// The configuration and its --set.
  CommandText& subject(const Subject& subject);

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace trainsim::cli
