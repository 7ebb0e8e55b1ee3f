// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <unistd.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {

namespace {

/// Whether there is something at the path that is no file to be replaced, such as a device or a pipe.
bool is_special(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

/// What a path stands for when it is a symbolic link to a file.
std::string target_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(target_of(path)) {
  if (path_.empty() || is_special(path_)) return;
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
  std::FILE* file =
      path_.empty() ? stdout : std::fopen((temporary_.empty() ? path_ : temporary_).c_str(), "w");
  bool good = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) good = (path_.empty() ? std::fflush(file) : std::fclose(file)) == 0 && good;
  if (good && !temporary_.empty()) {
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
