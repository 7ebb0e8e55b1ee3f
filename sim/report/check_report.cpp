// SPDX-License-Identifier: Apache-2.0
#include "sim/report/check_report.hpp"

#include <algorithm>

#include "sim/report/format.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string table(const Pairs& rows) {
  std::size_t width = 0;
  for (const auto& [key, value] : rows) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : rows) text += "  " + pad_right(key, width + 2) + value + "\n";
  return text;
}

Json object(const Pairs& rows) {
  Json json = Json::object();
  for (const auto& [key, value] : rows) json[key] = value;
  return json;
}

}  // namespace

std::string to_text(const CheckReport& report) {
  std::string text = report.name + ": the configuration is legal\n\nDerived\n" + table(report.derived);
  if (!report.defaults.empty())
    text += "\nLeft open in the configuration, and taken as\n" + table(report.defaults);
  if (!report.warnings.empty()) {
    text += "\nWarnings\n";
    for (const std::string& warning : report.warnings) text += "  - " + warning + "\n";
  }
  return text;
}

std::string to_json(const CheckReport& report) {
  const Json json = {{"schema", 1},
                     {"name", report.name},
                     {"valid", true},
                     {"derived", object(report.derived)},
                     {"defaults", object(report.defaults)},
                     {"warnings", report.warnings}};
  return dump(json);
}

std::string presets_to_text(const PresetList& presets) {
  return table(presets);
}

std::string presets_to_json(const PresetList& presets) {
  Json list = Json::array();
  for (const auto& [name, note] : presets) list.push_back({{"name", name}, {"note", note}});
  return dump(list);
}

}  // namespace trainsim::report
