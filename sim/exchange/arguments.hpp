// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainsim::exchange {

/// An option of a command line with its values.
struct Argument {
  /// With its dashes, in Megatron-LM's spelling (no underscores): "--num-layers".
  std::string name;
  std::vector<std::string> values;
  /// Whether somebody asked for it.
  bool used = false;
  /// As it was written, open values as "$NAME".
  std::string text() const;
};

/// The options of a command, as argparse takes them apart: "--name value …" and "--name=value"; of two with
/// the same name the later counts.
class Arguments {
 public:
  /// Reads the words of a command from the first one with two dashes on.
  explicit Arguments(const std::vector<std::string>& words);

  /// Whether a flag is there.
  bool has(std::string_view name);
  /// The same without asking for it, so that unused() still has it.
  bool contains(std::string_view name) const;
  /// The first value of an option; nothing when the option is not there, or its value is open, which open()
  /// then says. Throws InputError when it has none.
  std::optional<std::string> value(std::string_view name);
  /// The same as a whole number.
  std::optional<std::int64_t> count(std::string_view name);
  /// All values of an option as whole numbers; none when the option is not there. Throws InputError when it
  /// has none.
  std::vector<std::int64_t> counts(std::string_view name);
  /// The first value as any number.
  std::optional<double> number(std::string_view name);
  /// All values of an option.
  std::vector<std::string> values(std::string_view name);
  /// Options that somebody asked for whose value only a running shell knows, in the order of asking, and
  /// these values.
  const std::vector<std::pair<std::string, std::string>>& open() const { return open_; }
  /// An option as it was written, for comments.
  std::string text(std::string_view name) const;
  /// Options that nobody asked for.
  std::vector<Argument> unused() const;
  /// Whether there is none at all.
  bool empty() const { return arguments_.empty(); }

 private:
  Argument* find(std::string_view name);
  /// A value, unless it is open.
  std::optional<std::string> known(const std::string& option, const std::string& value);

  std::vector<Argument> arguments_;
  std::vector<std::pair<std::string, std::string>> open_;
};

/// A whole number such as 1024, 1e6 or 5_000; nothing for other texts.
std::optional<std::int64_t> whole_number(const std::string& text);

}  // namespace trainsim::exchange
