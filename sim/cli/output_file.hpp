// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace trainsim::cli {

/// Where a result goes. A file appears under its name only when it is complete; the folder is tried before
/// the work begins, so that a bad path fails at once.
class OutputFile {
 public:
  /// `path` empty = standard output. What is no regular file (a device, a pipe) is written to as it is.
  /// Throws InputError when the file can't be created.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes everything. Throws std::runtime_error when it can't (full disk, closed pipe).
  void write(const std::string& text);
  /// The same in pieces: the file appears under its name with finish().
  void append(std::string_view piece);
  void finish();

  /// Whether writing to both paths would spoil a file: both name the same one, which is neither standard
  /// output (an empty path) nor a device.
  static bool clash(const std::string& path, const std::string& other);

 private:
  void open();
  [[noreturn]] void fail() const;

  std::string path_;
  std::string temporary_;
  std::FILE* file_ = nullptr;
};

}  // namespace trainsim::cli
