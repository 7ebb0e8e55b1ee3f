// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/base/diagnostics.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// How much a text says.
enum class Detail {
  kUsual,
  /// Communication by group, too.
  kFull,
};

/// The summary for people, in GiB and readable times.
std::string to_text(const Summary& summary, Detail detail = Detail::kUsual);
/// The summary as JSON, schema 1 (docs/output.md), ending in a newline.
std::string to_json(const Summary& summary);
/// A header and one row of the scalar results, for spreadsheets and scripts.
std::string to_csv(const Summary& summary);

/// Outcome of one `--assert`.
struct AssertionResult {
  bool holds = true;
  /// "bubble_ratio is 0.123, asserted <= 0.1".
  std::string text;
};
/// Evaluates "path OP number" (OP one of <= >= == != < >) on a JSON result; the path may use dots, as in
/// "breakdown.bubble" or "ranks.0.busy_s", and booleans count as 0 and 1. Throws InputError when the
/// assertion can't be read or names no number of the result.
AssertionResult check_assertion(const Summary& summary, const std::string& assertion);

/// Throws InputError when an assertion is malformed or names nothing that a result has; to be called before a
/// long run. Numbers inside `ranks`, `kernels` and `sensitivity` are known only after it.
void check_assertion_early(const std::string& assertion);

/// The name that an assertion is about: "run.days" of "run.days <= 40". Throws InputError when it is
/// malformed.
std::string asserted_name(const std::string& assertion);

}  // namespace trainsim::report
