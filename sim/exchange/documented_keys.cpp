// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cctype>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/exchange/json_schema.hpp"

namespace trainsim::exchange {

/// docs/config.md, compiled in (cmake/embed_text.cmake).
extern const char* const kConfigPage;

namespace {

/// Sections of the page and the mappings that their tables are about. Others are named by a heading in
/// backquotes, or have keys with dots.
const std::map<std::string, std::vector<std::string>>& prefixes() {
  static const std::map<std::string, std::vector<std::string>> table = {
      {"Top level", {""}},
      {"Model", {"model."}},
      {"Cluster", {"cluster."}},
      {"Host", {"cluster.host."}},
      {"Inside a node", {"cluster.intra_node."}},
      {"Fabric", {"cluster.fabric."}},
      {"Faults", {"cluster.faults[]."}},
      {"Links", {"cluster.intra_node.", "cluster.nic.", "cluster.pcie."}},
      {"GPU", {"cluster.gpu."}}};
  return table;
}

/// Text without Markdown: no backquotes, and of links only what is shown.
std::string plain(std::string_view markdown) {
  std::string text;
  std::size_t at = 0;
  while (at < markdown.size()) {
    const std::size_t close = markdown.find("](", at);
    if (markdown[at] == '[' && close != std::string_view::npos && markdown.find('[', at + 1) > close) {
      text += plain(markdown.substr(at + 1, close - at - 1));
      const std::size_t end = markdown.find(')', close);
      at = end == std::string_view::npos ? markdown.size() : end + 1;
      continue;
    }
    if (markdown[at] != '`') text += markdown[at];
    ++at;
  }
  const std::size_t start = text.find_first_not_of(' ');
  if (start == std::string::npos) return "";
  return text.substr(start, text.find_last_not_of(' ') - start + 1);
}

/// Cells of a table's row.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t start = 1;
  while (start < line.size()) {
    const std::size_t end = line.find('|', start);
    if (end == std::string::npos) break;
    cells.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return cells;
}

/// Words in backquotes.
std::vector<std::string> keys_of(const std::string& cell) {
  std::vector<std::string> keys;
  std::size_t start = cell.find('`');
  while (start != std::string::npos) {
    const std::size_t end = cell.find('`', start + 1);
    if (end == std::string::npos) break;
    keys.push_back(cell.substr(start + 1, end - start - 1));
    start = cell.find('`', end + 1);
  }
  return keys;
}

/// The mappings that a section is about.
std::vector<std::string> prefixes_of(const std::string& heading) {
  const auto known = prefixes().find(heading);
  if (known != prefixes().end()) return known->second;
  const std::vector<std::string> named = keys_of(heading);
  // Keys of several mappings are written with their mapping.
  if (named.size() != 1) return {""};
  return {named.front() + "."};
}

std::map<std::string, std::string> read_page() {
  std::map<std::string, std::string> descriptions;
  std::istringstream page{kConfigPage};
  std::string line;
  std::string next;
  std::vector<std::string> mappings;
  std::getline(page, next);
  while (page) {
    line = std::exchange(next, "");
    std::getline(page, next);
    if (line.starts_with("#")) {
      const std::size_t start = line.find_first_not_of("# ");
      mappings = prefixes_of(start == std::string::npos ? "" : line.substr(start));
    }
    // A line of dashes follows the head of a table.
    if (!line.starts_with("| `") || next.starts_with("|--")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < 2) continue;
    std::string text = plain(cells[1]);
    const std::string otherwise = cells.size() > 2 ? plain(cells[2]) : "";
    if (!otherwise.empty()) text += (otherwise.starts_with("required") ? "; " : "; default: ") + otherwise;
    for (const std::string& key : keys_of(cells[0])) {
      for (const std::string& mapping : mappings) descriptions.emplace(mapping + key, text);
    }
  }
  return descriptions;
}

}  // namespace

std::string documented(const std::string& path) {
  static const std::map<std::string, std::string> descriptions = read_page();
  auto found = descriptions.find(path);
  // Operations share one line of the page, in which NAME stands for theirs.
  const std::size_t name = path.find('.') + 1;
  const std::size_t end = path.find('.', name);
  if (found == descriptions.end() && end != std::string::npos)
    found = descriptions.find(path.substr(0, name) + "NAME" + path.substr(end));
  return found == descriptions.end() ? "" : found->second;
}

}  // namespace trainsim::exchange
