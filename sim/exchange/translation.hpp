// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::exchange {

/// Why an option of a foreign file has no line in the configuration.
enum class Reason {
  /// Neither step time nor memory depend on it.
  kNoEffect,
  /// It matters, but this version cannot simulate it, so that the result may differ.
  kUnsupported,
  /// The importer does not know it.
  kUnknown,
};

/// An option that was not translated.
struct Remark {
  Reason reason = Reason::kUnknown;
  /// The option with its value, as the source writes it.
  std::string option;
  /// What to think of it; may be empty with kNoEffect and kUnknown.
  std::string why;
};

/// A value of the configuration.
struct Setting {
  /// Two steps at most: "gpus", "plan.tensor_parallel".
  std::string path;
  /// The value in YAML's flow style.
  std::string value;
  /// The option that it comes from, for the comment behind it; may be empty.
  std::string origin;
  /// Whether the source leaves it open and this is its program's default, as `origin` then says with that
  /// word.
  bool is_default() const { return origin.find("default") != std::string::npos; }
};

/// What foreign files say in our language: values of the configuration, what they leave open and was assumed,
/// and what has no translation.
class Translation {
 public:
  /// Sets a value, in place of an earlier one of that path.
  void set(const std::string& path, std::string value, std::string origin = "");
  void set(const std::string& path, std::int64_t value, std::string origin = "");
  void set(const std::string& path, bool value, std::string origin = "");
  /// The value of a path, or null.
  const Setting* find(std::string_view path) const;
  /// Records an option that is not translated.
  void remark(Reason reason, std::string option, std::string why = "");
  /// Records, as a sentence without full stop, what the sources leave open and is taken for granted.
  void assume(std::string text);
  /// Withdraws what was recorded of options that begin with this.
  void forget_remarks(std::string_view option);
  /// Adds what another file says. Where two differ the later one is taken, which is recorded; but what one
  /// leaves open never counts against what another says.
  void add(const Translation& later, const std::string& name);

  const std::vector<Setting>& settings() const { return settings_; }
  const std::vector<Remark>& remarks() const { return remarks_; }
  const std::vector<std::string>& assumptions() const { return assumptions_; }
  /// Required keys that no source gave, in the order of the documentation.
  std::vector<std::string> missing() const;

 private:
  std::vector<Setting> settings_;
  std::vector<Remark> remarks_;
  std::vector<std::string> assumptions_;
};

/// The configuration as YAML: a line for each value with the option that it comes from as comment, required
/// keys that are missing as comments that say so, and what was assumed or left out as comments at the end.
/// `sources` are the names of the files.
std::string to_yaml(const Translation& translation, const std::vector<std::string>& sources);

/// The same report on what was assumed, is missing or was left out, as lines for standard error.
std::vector<std::string> report_lines(const Translation& translation);

/// A text as YAML's flow style writes it, in quotes where it needs them.
std::string quoted(const std::string& text);

/// A number as YAML takes it, with as many digits as it needs: 0.1, 12.5.
std::string number_text(double number);

}  // namespace trainsim::exchange
