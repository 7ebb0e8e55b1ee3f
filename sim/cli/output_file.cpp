// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <unistd.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  temporary_ = path_ + ".partial-" + std::to_string(getpid());
  std::FILE* file = std::fopen(temporary_.c_str(), "w");
  if (file == nullptr) {
    const std::string cause = std::strerror(errno);
    temporary_.clear();
    throw InputError("trainsim: error: can't write '" + path_ + "': " + cause +
                     "; name a file in a folder that exists and that you may write to");
  }
  std::fclose(file);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::write(const std::string& text) {
  std::FILE* file = path_.empty() ? stdout : std::fopen(temporary_.c_str(), "w");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = (path_.empty() ? std::fflush(file) : std::fclose(file)) == 0 && good;
  if (good && !path_.empty()) {
    good = std::rename(temporary_.c_str(), path_.c_str()) == 0;
    if (good) temporary_.clear();
  }
  if (!good) {
    throw std::runtime_error("can't write the result to " +
                             (path_.empty() ? "standard output" : "'" + path_ + "'") + ": " +
                             std::strerror(errno));
  }
}

}  // namespace trainsim::cli
