// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trainsim::config {

class Report;

/// Text that was read: a file, or one `--set` override.
class Source {
 public:
  /// `name` is printed in messages; names inside are relative to `folder`; problems are sorted by `order`
  /// first.
  Source(std::string name, std::filesystem::path folder, std::string text, int order);

  /// What stands before the line number in a message: the path as the user gave it.
  const std::string& name() const { return name_; }
  /// Folder that relative paths inside the text start from.
  const std::filesystem::path& folder() const { return folder_; }
  /// Place of this source among all sources of one load.
  int order() const { return order_; }
  /// The whole text, with "\n" at the end of lines whatever the file had.
  const std::string& text() const { return text_; }
  /// A line (1-based) without its end; empty when there is none.
  std::string_view line(int number) const;
  /// The text from a byte position (both 1-based) to the end.
  std::string_view rest(int line, int column) const;

 private:
  std::string name_;
  std::filesystem::path folder_;
  std::string text_;
  int order_;
  std::vector<std::size_t> starts_;
};

/// A place in a source. Line and column are 1-based, the column counts bytes; line 0 means the whole source.
struct Position {
  std::shared_ptr<const Source> source;
  int line = 0;
  int column = 0;
};

/// Whether `text` can be parsed: UTF-8 without control characters, and tabs in comments only. Faults go to
/// `report` as problems of the source `name` with this `order`.
bool check_text(const std::string& text, const std::string& name, int order, Report& report);

/// Reads a text file; nothing, with the reason in `report`, when it is missing, a directory, larger than 16
/// MiB or no text. `path` is printed in messages as it is.
std::shared_ptr<const Source> read_source(const std::filesystem::path& path, int order, Report& report);

}  // namespace trainsim::config
