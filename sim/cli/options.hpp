// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trainsim::cli {

/// An option, flag or positional argument that was added to a command; its functions say more about it.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  /// What stands for the value in texts, such as N.
  Option& value(const std::string& name);
  /// The value is the path of a file, and not empty (as that of a variable of the shell that is not set).
  Option& file();
  Option& required();
  /// May be given several times, with one value each.
  Option& repeatable();
  /// One word whose commas part the values.
  Option& comma_separated();
  /// What texts show as the value when the option is not given.
  Option& fallback(const std::string& text);
  /// The smallest and the largest legal value.
  Option& within(std::int64_t low, std::int64_t high);
  Option& within_reals(double low, double high);
  /// Not to be given together with `other`.
  Option& excludes(const Option& other);
  /// Only to be given together with `other`.
  Option& needs(const Option& other);

 private:
  CLI::Option* option_;
};

/// A command's part of the command line. It keeps the commands from including CLI11, which would take a third
/// of the time of a build.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(&app) {}

  /// Adds an option that writes into `target` when the command line is parsed. `names` as in "-o,--output";
  /// without dashes it is a positional argument. `Value` is a std::string, a number, a std::optional or a
  /// std::vector of one of them (the kinds that options.cpp instantiates).
  template <typename Value>
  Option add(const std::string& names, Value& target, const std::string& help);
  /// Adds an option whose value `read` understands; it may throw InputError.
  Option add_read(const std::string& names, const std::function<void(const std::string&)>& read,
                  const std::string& help);
  /// Adds an option without a value.
  Option add_flag(const std::string& names, bool& target, const std::string& help);

 private:
  CLI::App* app_;
};

}  // namespace trainsim::cli
