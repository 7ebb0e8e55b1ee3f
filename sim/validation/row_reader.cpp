// SPDX-License-Identifier: Apache-2.0
#include "sim/validation/row_reader.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/readers.hpp"
#include "sim/config/resolve.hpp"
#include "sim/validation/translate.hpp"
#include "sim/validation/tree.hpp"

namespace trainsim::validation {

using config::Kind;
using config::Report;
using config::Value;

namespace {

/// The rows of a file with what the file says of all of them.
struct FileContent {
  std::vector<Value> rows;
  Value defaults;
  std::string source;
};

std::optional<FileContent> read_content(const std::filesystem::path& file, Report& report) {
  const std::shared_ptr<const config::Source> source = config::read_source(file, 0, report);
  std::optional<Value> root = source ? config::parse(source, source->text(), report) : std::nullopt;
  if (!root) return std::nullopt;
  FileContent content{{}, config::make_map(root->at), ""};
  if (root->kind == Kind::kList) {
    content.rows = std::move(root->items);
    return content;
  }
  const Value* rows = find_path(*root, "rows");
  if (rows == nullptr || rows->kind != Kind::kList) {
    report.add(
        root->at, "rows",
        "a file of measured runs is a list, or a mapping with a list below 'rows' (docs/validation.md)");
    return std::nullopt;
  }
  for (const config::Entry& entry : root->entries) {
    if (entry.key == "rows" || entry.key == "defaults" || entry.key == "source") continue;
    report.add(entry.at, entry.key, "is not a key of this file; it may have source, defaults and rows");
  }
  content.rows = rows->items;
  if (const Value* defaults = find_path(*root, "defaults")) content.defaults = *defaults;
  content.source = text_at(*root, "source");
  return content;
}

void read_texts(const Value& fields, Row& row, Report& report) {
  row.id = text_at(fields, "id");
  row.tier = text_at(fields, "tier");
  row.fitted = text_at(fields, "fitted");
  if (row.id.empty()) report.add(row.at, "id", "is missing; every row needs a name of its own");
  if (text_at(fields, "kind").empty()) {
    report.add(row.at, "kind",
               "is missing; it needs train_step, layer_time or another word for what was measured");
  }
  for (const char* key : {"assumed", "missing"}) {
    const Value* list = find_path(fields, key);
    if (list == nullptr || list->kind == Kind::kList) continue;
    report.add(list->at, key,
               "needs a list, such as [" + (list->text.empty() ? "model.heads" : list->text) + "]");
  }
  const Value* assumed = find_path(fields, "assumed");
  if (assumed == nullptr) return;
  for (const Value& sentence : assumed->items) row.assumptions.push_back(sentence.text);
}

/// Reads one row; reports what is wrong with it.
Row read_row(const Value& value, const FileContent& content, Report& report) {
  Row row;
  row.at = value.at;
  if (value.kind != Kind::kMap) {
    report.add(value.at, "", "a measured run is a mapping (lines of 'key: value'), not " + describe(value));
    return row;
  }
  Value fields = config::merge(content.defaults, value);
  drop_nulls(fields);
  const std::string own = text_at(fields, "source");
  row.source = content.source.empty() || own.empty() ? content.source + own : content.source + "; " + own;
  read_texts(fields, row, report);
  const std::string kind = text_at(fields, "kind");
  if (!kind.empty() && !is_simulated(kind)) row.skipped = "rows of kind '" + kind + "' are not simulated";
  translate(fields, row, report);
  read_measured(fields, row, report);
  return row;
}

}  // namespace

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path, const std::string& extension) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == "." + extension) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
  } else if (!std::filesystem::exists(path, error)) {
    throw InputError("trainsim: error: no such file or folder: '" + path.string() +
                     "'; name a folder of measured runs, such as experiments/validation");
  } else if (path.extension() == "." + extension) {
    files.push_back(path);
  }
  return files;
}

void read_rows(const std::filesystem::path& file, RowSet& set) {
  const std::string family = file.stem().string();
  const auto note_problem = [&](const Report& report) {
    set.problems.push_back(report.text());
    set.malformed_families.push_back(family);
  };
  Report file_report;
  const std::optional<FileContent> content = read_content(file, file_report);
  if (!file_report.empty()) note_problem(file_report);
  if (!content) return;
  std::map<std::string, int> lines;
  for (const Value& value : content->rows) {
    Report report;
    Row row = read_row(value, *content, report);
    row.family = family;
    const auto [first, is_new] = lines.emplace(row.id, row.at.line);
    if (!is_new && !row.id.empty()) {
      report.add(row.at, "id",
                 "'" + row.id + "' is also the id of the row in line " + std::to_string(first->second) +
                     "; every row needs a name of its own");
    }
    if (report.empty()) {
      set.rows.push_back(std::move(row));
    } else {
      note_problem(report);
    }
  }
}

}  // namespace trainsim::validation
