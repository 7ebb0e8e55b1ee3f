// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

namespace trainsim::cli {

/// A file, or standard output, to which whole lines are appended as they come, so that what was finished is
/// kept whatever happens. A file is locked against a second writer.
class RowAppender {
 public:
  /// `path` empty = standard output. Throws InputError when the file can't be opened or is being written by
  /// another process.
  explicit RowAppender(const std::string& path);
  ~RowAppender();
  RowAppender(const RowAppender&) = delete;
  RowAppender& operator=(const RowAppender&) = delete;

  /// What a regular file held when it was opened.
  const std::string& text() const { return text_; }
  /// Cuts a regular file to its first bytes, behind which lines will be appended.
  void keep(std::size_t bytes);
  /// Appends a line, whose end is added, in one go. Throws std::runtime_error when it can't (full disk,
  /// closed pipe); of a regular file's line nothing is left then.
  void append(const std::string& line);
  /// Whether people read along.
  bool is_terminal() const;

 private:
  void lock();
  void read_all();

  std::string path_;
  std::string text_;
  int file_ = -1;
  bool regular_ = false;
  std::size_t size_ = 0;
};

}  // namespace trainsim::cli
