// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/source_file.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <unistd.h>
#include <zlib.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::exchange {

namespace {

constexpr unsigned kBuffer = 1U << 17U;

}  // namespace

struct SourceFile::Stream {
  gzFile file = nullptr;
};

SourceFile::SourceFile(const std::string& path, std::string name)
    : name_(std::move(name)), stream_(std::make_unique<Stream>()) {
  std::error_code error;
  if (path != "-" && std::filesystem::is_directory(path, error))
    throw InputError(name_ + ": error: is a folder; give the files in it");
  // zlib closes what it opened, but standard input is not ours.
  stream_->file = path == "-" ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(path.c_str(), "rb");
  if (stream_->file == nullptr) {
    const bool there = path == "-" || std::filesystem::exists(path, error);
    throw InputError(name_ + ": error: " + (there ? "cannot be read" : "no such file"));
  }
  gzbuffer(stream_->file, kBuffer);
}

SourceFile::~SourceFile() {
  gzclose(stream_->file);
}

void SourceFile::read_on(std::size_t bytes, std::string& text) {
  const std::size_t start = text.size();
  text.resize(start + bytes);
  const int read = gzread(stream_->file, text.data() + start, static_cast<unsigned>(bytes));
  int status = Z_OK;
  gzerror(stream_->file, &status);
  if (status == Z_ERRNO) throw InputError(name_ + ": error: cannot be read");
  // At the end of a file that is cut off there is still what could be unpacked.
  if (read < 0 || status != Z_OK) {
    throw InputError(name_ +
                     ": error: is a gzip file that is damaged or cut off; write or copy it once more");
  }
  text.resize(start + static_cast<std::size_t>(read));
  at_end_ = static_cast<std::size_t>(read) < bytes;
}

}  // namespace trainsim::exchange
