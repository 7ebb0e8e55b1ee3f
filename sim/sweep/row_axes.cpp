// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/row_axes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace trainsim::sweep {

namespace {

/// Distinct values of one or several keys, in the order in which rows have them.
struct Column {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;
  std::vector<std::size_t> positions;
};

Column column_of(const std::vector<Row>& rows, const std::vector<std::string>& keys) {
  Column column{keys, {}, {}};
  column.positions.reserve(rows.size());
  std::map<std::vector<std::string>, std::size_t> known;
  for (const Row& row : rows) {
    std::vector<std::string> values(keys.size());
    std::transform(keys.begin(), keys.end(), values.begin(), [&row](const std::string& key) {
      const Cell* cell = find(row, key);
      return cell == nullptr ? std::string() : cell->text;
    });
    const auto [place, is_new] = known.try_emplace(values, column.values.size());
    if (is_new) column.values.push_back(std::move(values));
    column.positions.push_back(place->second);
  }
  return column;
}

/// Whether rows have every combination of the values of both.
bool independent(const Column& a, const Column& b) {
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t r = 0; r < a.positions.size(); ++r) pairs.emplace(a.positions[r], b.positions[r]);
  return pairs.size() == a.values.size() * b.values.size();
}

/// "100 Gb/s" as 100 and " Gb/s".
std::optional<std::pair<double, std::string_view>> number_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return std::pair{value, text.substr(static_cast<std::size_t>(read.ptr - text.data()))};
}

/// Numbers of all values, or nothing.
std::vector<double> numbers_of(const Column& column) {
  std::vector<double> numbers;
  if (column.keys.size() != 1) return numbers;
  numbers.reserve(column.values.size());
  std::string_view unit;
  for (const std::vector<std::string>& value : column.values) {
    const auto number = number_of(value.front());
    if (!number || (!numbers.empty() && number->second != unit)) return {};
    unit = number->second;
    numbers.push_back(number->first);
  }
  return numbers;
}

/// The axis of a column: numbers ascend, other values keep their order.
RowAxis axis_of(Column column) {
  std::vector<double> numbers = numbers_of(column);
  RowAxis axis{std::move(column.keys), {}, std::move(numbers), std::move(column.positions)};
  std::vector<std::size_t> order(column.values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!axis.numbers.empty()) {
    std::stable_sort(order.begin(), order.end(),
                     [&axis](std::size_t a, std::size_t b) { return axis.numbers[a] < axis.numbers[b]; });
    std::sort(axis.numbers.begin(), axis.numbers.end());
  }
  std::vector<std::size_t> places(order.size());
  axis.values.reserve(order.size());
  for (std::size_t p = 0; p < order.size(); ++p) {
    places[order[p]] = p;
    axis.values.push_back(std::move(column.values[order[p]]));
  }
  for (std::size_t& position : axis.positions) position = places[position];
  return axis;
}

/// Puts each column into a group with those that it is not independent of.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<Column>& columns) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    std::vector<std::size_t> joined = {c};
    std::erase_if(groups, [&](const std::vector<std::size_t>& group) {
      const bool joins = std::any_of(group.begin(), group.end(), [&](std::size_t other) {
        return !independent(columns[other], columns[c]);
      });
      if (joins) joined.insert(joined.end(), group.begin(), group.end());
      return joins;
    });
    std::sort(joined.begin(), joined.end());
    groups.push_back(std::move(joined));
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace

std::vector<std::string> keys_of(const Row& row) {
  std::vector<std::string> keys;
  for (const Cell& cell : row) {
    if (cell.column == kFirstResult) break;
    keys.push_back(cell.column);
  }
  return keys;
}

std::vector<RowAxis> axes_of(const std::vector<Row>& rows) {
  if (rows.empty()) return {};
  std::vector<Column> columns;
  for (const std::string& key : keys_of(rows.front())) {
    Column column = column_of(rows, {key});
    if (column.values.size() > 1) columns.push_back(std::move(column));
  }
  std::vector<RowAxis> axes;
  for (const std::vector<std::size_t>& group : groups_of(columns)) {
    std::vector<std::string> keys(group.size());
    std::transform(group.begin(), group.end(), keys.begin(),
                   [&columns](std::size_t c) { return columns[c].keys.front(); });
    axes.push_back(axis_of(group.size() == 1 ? columns[group.front()] : column_of(rows, keys)));
  }
  return axes;
}

}  // namespace trainsim::sweep
