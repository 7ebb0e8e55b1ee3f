// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/axis.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/sweep/values.hpp"

namespace trainsim::sweep {

namespace {

/// A key and its values.
struct KeyValues {
  std::string key;
  std::vector<std::string> values;
};

[[noreturn]] void fail_twice(const std::string& key, const std::string& value) {
  throw InputError("trainsim: error: --vary " + key + ": the value " + value +
                   " is there twice; name it once");
}

KeyValues read_key_values(const std::string& option, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (equals == std::string::npos || key.empty()) {
    throw InputError("trainsim: error: " + option + " '" + text + "' needs a key, '=' and values, as in " +
                     option + " plan.micro_batch_size=1,2,4");
  }
  std::string what = option;
  what += " " + key;
  return {key, expand_values(text.substr(equals + 1), what)};
}

}  // namespace

Axis vary_axis(const std::string& text) {
  const KeyValues list = read_key_values("--vary", text);
  Axis axis{{list.key}, {}};
  std::set<std::string> seen;
  for (const std::string& value : list.values) {
    if (!seen.insert(value).second) {
      fail_twice(list.key, value);
    }
    axis.rows.push_back({value});
  }
  return axis;
}

Axis zip_axis(const std::vector<std::string>& texts) {
  Axis axis;
  axis.origin = "--zip ";
  for (const std::string& text : texts) {
    KeyValues list = read_key_values("--zip", text);
    if (axis.keys.empty()) axis.rows.resize(list.values.size());
    if (list.values.size() != axis.rows.size()) {
      throw InputError("trainsim: error: --zip " + list.key + " has " + std::to_string(list.values.size()) +
                       " values, but " + axis.keys.front() + " has " + std::to_string(axis.rows.size()) +
                       "; zipped lists need the same length (for every combination use --vary)");
    }
    for (std::size_t r = 0; r < axis.rows.size(); ++r) axis.rows[r].emplace_back(std::move(list.values[r]));
    axis.keys.push_back(std::move(list.key));
  }
  return axis;
}

}  // namespace trainsim::sweep
