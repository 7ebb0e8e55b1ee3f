// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace trainsim::exchange {

/// A file that is read piece by piece; one that gzip compressed (RFC 1952) as what it unpacks to.
class SourceFile {
 public:
  /// Opens a file; "-" is standard input. Throws InputError, with `name` in front, when it cannot be opened.
  SourceFile(const std::string& path, std::string name);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  /// Appends at most as many bytes, fewer only at the end of the file; 1 GiB at most at a time. Throws
  /// InputError for a compressed file that is damaged or cut off.
  void read_on(std::size_t bytes, std::string& text);
  bool at_end() const { return at_end_; }

 private:
  struct Stream;
  std::string name_;
  std::unique_ptr<Stream> stream_;
  bool at_end_ = false;
};

}  // namespace trainsim::exchange
