// SPDX-License-Identifier: Apache-2.0
#include "sim/config/flatten.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace trainsim::config {

namespace {

constexpr std::array<std::string_view, 3> kForPeople = {"name", "description", "source"};

bool is_for_people(std::string_view key) {
  return std::find(kForPeople.begin(), kForPeople.end(), key) != kForPeople.end();
}

/// A value on one line, as YAML's flow style writes it.
std::string flow(const Value& value) {
  std::string text;
  const auto add = [&text](const std::string& item) {
    if (!text.empty()) text += ", ";
    text += item;
  };
  switch (value.kind) {
    case Kind::kNull:
      return "null";
    case Kind::kScalar:
      return value.text;
    case Kind::kList:
      for (const Value& item : value.items) add(flow(item));
      return text.insert(0, "[").append("]");
    case Kind::kMap:
      for (const Entry& entry : value.entries)
        add(std::string(entry.key).append(": ").append(flow(entry.value)));
      return text.insert(0, "{").append("}");
  }
  return text;
}

void add_values(const Value& map, const std::string& path,
                std::vector<std::pair<std::string, std::string>>& values) {
  for (const Entry& entry : map.entries) {
    if (is_for_people(entry.key)) continue;
    const std::string field = join_path(path, entry.key);
    if (entry.value.kind == Kind::kMap) {
      add_values(entry.value, field, values);
    } else {
      values.emplace_back(field, flow(entry.value));
    }
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> flatten(const Value& root) {
  std::vector<std::pair<std::string, std::string>> values;
  add_values(root, "", values);
  return values;
}

}  // namespace trainsim::config
