// SPDX-License-Identifier: Apache-2.0
#include "sim/config/report.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

/// Columns of a source line that are shown at most.
constexpr std::size_t kWindow = 80;
/// Problems that are printed at most.
constexpr std::size_t kMostProblems = 100;
/// Width of the line number before the source line.
constexpr std::size_t kGutter = 5;

/// Part of a long line around a column (0-based code point), and where the column is in that part.
std::pair<std::string, std::size_t> window(std::string_view line, std::size_t column) {
  const std::size_t length = count_code_points(line);
  if (length <= kWindow) return {std::string(line), column};
  const std::size_t wanted = column > kWindow / 2 ? column - kWindow / 2 : 0;
  const std::size_t first = std::min(wanted, length - kWindow);
  const bool cut_left = first > 0;
  const bool cut_right = first + kWindow < length;
  const std::size_t inner = kWindow - (cut_left ? 1 : 0) - (cut_right ? 1 : 0);
  std::string shown(code_points(line, first + (cut_left ? 1 : 0), inner));
  if (cut_left) shown.insert(0, "…");
  if (cut_right) shown += "…";
  return {shown, column - first};
}

/// The source line with its number, and a caret below the column (0-based code point).
std::string snippet(const Position& at, std::size_t column) {
  const std::string_view line = at.source->line(at.line);
  if (line.empty()) return "";
  auto [shown, caret] = window(line, column);
  std::replace(shown.begin(), shown.end(), '\t', ' ');
  std::string number = std::to_string(at.line);
  number.insert(0, kGutter - std::min(kGutter, number.size()), ' ');
  const std::string gutter(number.size(), ' ');
  return "\n" + number + " | " + shown + "\n" + gutter + " | " + std::string(caret, ' ') + "^";
}

auto sort_key(const Position& at) {
  return std::tuple(at.source->order(), at.line, at.column);
}

}  // namespace

void Report::add(Position at, std::string field, std::string message) {
  findings_.push_back({std::move(at), std::move(field), std::move(message)});
}

void Report::add_unknown_key(Position at, std::string field, std::string message) {
  add(std::move(at), std::move(field), std::move(message));
  has_unknown_key_ = true;
}

void Report::append(const Report& other) {
  has_unknown_key_ = has_unknown_key_ || other.has_unknown_key_;
  findings_.insert(findings_.end(), other.findings_.begin(), other.findings_.end());
}

std::string Report::format(const Finding& finding) {
  const Position& at = finding.at;
  const std::string what =
      "error: " + (finding.field.empty() ? "" : clip(finding.field) + ": ") + finding.message;
  if (at.line == 0) return at.source->name() + ": " + what;
  const std::string_view line = at.source->line(at.line);
  const std::size_t bytes = static_cast<std::size_t>(at.column) - 1;
  // A source without text (it was no UTF-8) has its columns counted already.
  const std::size_t column =
      line.empty() ? bytes : count_code_points(line.substr(0, std::min(bytes, line.size())));
  return at.source->name() + ":" + std::to_string(at.line) + ":" + std::to_string(column + 1) + ": " + what +
         snippet(at, column);
}

std::string Report::text() const {
  std::vector<const Finding*> sorted;
  for (const Finding& finding : findings_) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Finding* a, const Finding* b) { return sort_key(a->at) < sort_key(b->at); });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostProblems); ++i) {
    if (i > 0) text += "\n";
    text += format(*sorted[i]);
  }
  if (sorted.size() > kMostProblems) {
    text += "\n(" + std::to_string(sorted.size() - kMostProblems) + " more problems are not shown)";
  }
  return text;
}

void Report::throw_if_any() const {
  if (has_unknown_key_) throw UnknownKeyError(text());
  if (!empty()) throw InputError(text());
}

}  // namespace trainsim::config
