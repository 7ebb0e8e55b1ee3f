// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/row.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Whether JSON would read the text as a number.
bool is_json_number(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t first = at;
  at = skip_digits(text, at);
  if (at == first || (text[first] == '0' && at > first + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = ++at;
    at = skip_digits(text, at);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = at;
    at = skip_digits(text, at);
    if (at == exponent) return false;
  }
  return at == text.size();
}

/// Removes `word` from the end; false if it is not there.
bool cut_end(std::string_view& text, std::string_view word) {
  if (!text.ends_with(word)) return false;
  text.remove_suffix(word.size());
  return true;
}

std::optional<std::size_t> cut_number(std::string_view& text) {
  std::size_t begin = text.size();
  while (begin > 0 && is_digit(text[begin - 1])) --begin;
  std::size_t number = 0;
  const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (begin == text.size() || result.ec != std::errc()) return std::nullopt;
  text.remove_suffix(text.size() - begin);
  return number;
}

std::string cut_fingerprint(std::string_view& text) {
  std::size_t begin = text.size();
  while (begin > 0 && (is_digit(text[begin - 1]) || (text[begin - 1] >= 'a' && text[begin - 1] <= 'f')))
    --begin;
  std::string found(text.substr(begin));
  text.remove_suffix(text.size() - begin);
  return found;
}

[[noreturn]] void fail_line(const std::string& name, std::size_t number) {
  throw InputError(
      name + ":" + std::to_string(number) +
      ": error: this line is no row of a sweep; name a file that trainsim sweep wrote, as it wrote it");
}

}  // namespace

const Cell* find(const Row& row, std::string_view column) {
  const auto found =
      std::find_if(row.begin(), row.end(), [column](const Cell& cell) { return cell.column == column; });
  return found == row.end() ? nullptr : &*found;
}

Cell value_cell(std::string column, const std::string& value) {
  const bool bare = is_json_number(value) || value == "true" || value == "false";
  return {std::move(column), value, bare ? CellKind::kBare : CellKind::kText};
}

Row identity_cells(const Identity& identity) {
  return {{"point", std::to_string(identity.point), CellKind::kBare},
          {"points", std::to_string(identity.points), CellKind::kBare},
          {"sweep", identity.sweep, CellKind::kText}};
}

std::optional<Identity> identity_of(std::string_view line, RowFormat format) {
  const bool json = format == RowFormat::kJsonLines;
  if (json && (!line.starts_with('{') || !cut_end(line, "\"}"))) return std::nullopt;
  Identity identity;
  identity.sweep = cut_fingerprint(line);
  if (identity.sweep.size() != 16 || !cut_end(line, json ? ",\"sweep\":\"" : ",")) return std::nullopt;
  const std::optional<std::size_t> points = cut_number(line);
  if (!points || !cut_end(line, json ? ",\"points\":" : ",")) return std::nullopt;
  const std::optional<std::size_t> point = cut_number(line);
  if (!point || !cut_end(line, json ? ",\"point\":" : ",")) return std::nullopt;
  identity.points = *points;
  identity.point = *point;
  if (identity.point < 1 || identity.point > identity.points) return std::nullopt;
  return identity;
}

RowLines read_lines(const std::string& text, const std::string& name) {
  RowLines rows;
  rows.format = text.starts_with('{') ? RowFormat::kJsonLines : RowFormat::kCsv;
  std::size_t number = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', end + 1)) {
    std::string line = text.substr(rows.complete_bytes, end - rows.complete_bytes);
    ++number;
    if (rows.format == RowFormat::kCsv && number == 1) {
      if (!line.ends_with(",point,points,sweep"))
        throw InputError(
            name + ":1: error: this is no file of a sweep: its last columns are not point, points and sweep");
      rows.header = std::move(line);
    } else {
      std::optional<Identity> identity = identity_of(line, rows.format);
      if (!identity) fail_line(name, number);
      rows.lines.push_back(std::move(line));
      rows.identities.push_back(std::move(*identity));
    }
    rows.complete_bytes = end + 1;
  }
  rows.torn = rows.complete_bytes < text.size();
  return rows;
}

}  // namespace trainsim::sweep
