// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/output_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/interruption.hpp"

namespace trainsim::cli {

namespace {

/// Names of files that are not complete; of one that is not in use the first byte is 0. A signal may come at
/// any time, and its handler must not allocate.
std::array<std::array<char, 4096>, 8> partial_files{};
/// Whether a result is complete, a file or on standard output.
volatile std::sig_atomic_t something_complete = 0;

/// Ends the process as the signal would have, without leaving anything half-written.
void remove_and_end(int number) {
  for (const auto& name : partial_files) {
    if (name[0] != 0) unlink(name.data());
  }
  constexpr std::string_view none =
      "trainsim: error: interrupted before the result was complete; no file was written\n";
  constexpr std::string_view some = "trainsim: error: interrupted; what was complete by then is written\n";
  const std::string_view text = something_complete == 0 ? none : some;
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  std::signal(number, SIG_DFL);
  raise(number);
}

/// Lets the ending signals do `to` where they did `from`.
void redirect_signals(void (*from)(int), void (*to)(int)) {
  for (const int number : kEndingSignals) {
    struct sigaction old {};
    sigaction(number, nullptr, &old);
    if (old.sa_handler == from) std::signal(number, to);
  }
}

/// To be called before the file is there.
void note_partial(const std::string& name) {
  redirect_signals(SIG_DFL, remove_and_end);
  for (auto& place : partial_files) {
    if (place[0] != 0 || name.size() >= place.size()) continue;
    // The first byte last, which makes it one.
    std::copy_n(name.c_str() + 1, name.size(), place.begin() + 1);
    std::atomic_signal_fence(std::memory_order_release);
    place[0] = name[0];
    return;
  }
}

void forget_partial(const std::string& name) {
  for (auto& place : partial_files) {
    if (name == place.data()) place[0] = 0;
  }
  const bool any = std::any_of(partial_files.begin(), partial_files.end(),
                               [](const auto& place) { return place[0] != 0; });
  if (!any) redirect_signals(remove_and_end, SIG_DFL);
}

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

[[noreturn]] void fail_path(const std::string& path, const std::string& cause) {
  throw InputError("trainsim: error: can't write '" + path + "': " + cause +
                   "; name a file in a folder that exists and that you may write to");
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(target_of(path)) {
  if (path_.empty() || is_special(path_)) return;
  std::error_code error;
  if (std::filesystem::is_directory(path_, error)) fail_path(path_, std::strerror(EISDIR));
  temporary_ = path_ + ".partial-" + std::to_string(getpid());
  note_partial(temporary_);
  std::FILE* file = std::fopen(temporary_.c_str(), "w");
  if (file == nullptr) {
    const std::string cause = std::strerror(errno);
    forget_partial(temporary_);
    temporary_.clear();
    fail_path(path_, cause);
  }
  std::fclose(file);
  // A file that others must not read stays so.
  if (const auto status = std::filesystem::status(path_, error); std::filesystem::exists(status))
    std::filesystem::permissions(temporary_, status.permissions(), error);
}

OutputFile::~OutputFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (temporary_.empty()) return;
  std::remove(temporary_.c_str());
  forget_partial(temporary_);
}

void OutputFile::write(const std::string& text) {
  append(text);
  finish();
}

void OutputFile::append(std::string_view piece) {
  open();
  if (std::fwrite(piece.data(), 1, piece.size(), file_) != piece.size()) fail();
}

void OutputFile::finish() {
  open();
  std::FILE* file = std::exchange(file_, nullptr);
  if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0) fail();
  // A signal in between would say that nothing was written.
  const HeldInterruptions held;
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  something_complete = 1;
  if (temporary_.empty()) return;
  forget_partial(temporary_);
  temporary_.clear();
}

bool OutputFile::clash(const std::string& path, const std::string& other) {
  if (path.empty() || other.empty() || is_special(path)) return false;
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(path, other, error)) return true;
  // Of a path that begins with nothing that exists, weakly_canonical keeps the relative form.
  const fs::path resolved = fs::weakly_canonical(fs::absolute(path), error);
  return !error && resolved == fs::weakly_canonical(fs::absolute(other), error);
}

void OutputFile::open() {
  if (file_ != nullptr) return;
  file_ = path_.empty() ? stdout : std::fopen((temporary_.empty() ? path_ : temporary_).c_str(), "w");
  if (file_ == nullptr) fail();
}

void OutputFile::fail() const {
  const int cause = errno;
  throw std::runtime_error("can't write the result to " +
                           (path_.empty() ? "standard output" : "'" + path_ + "'") + ": " +
                           std::strerror(cause));
}

}  // namespace trainsim::cli
