// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/row_appender.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::cli {

namespace {

/// Workers of a process that was killed may live a moment longer than it, and hold its lock.
constexpr int kLockAttempts = 20;
constexpr std::chrono::milliseconds kLockPause{100};

}  // namespace

RowAppender::RowAppender(const std::string& path) : path_(path) {
  if (path_.empty()) {
    file_ = STDOUT_FILENO;
    return;
  }
  struct stat status {};
  const bool special =
      stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
  file_ = open(path_.c_str(), special ? O_WRONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) {
    throw InputError("trainsim: error: can't write '" + path_ + "': " + std::strerror(errno) +
                     "; name a file in a folder that exists and that you may write to");
  }
  regular_ = !special;
  if (!regular_) return;
  lock();
  read_all();
}

RowAppender::~RowAppender() {
  if (file_ > STDERR_FILENO) close(file_);
}

void RowAppender::lock() {
  for (int attempt = 0; flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++attempt) {
    if (attempt == kLockAttempts) {
      close(file_);
      throw InputError("trainsim: error: another process is writing '" + path_ +
                       "'; give every shard a file of its own, as in -o rows-{shard}.jsonl");
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

void RowAppender::read_all() {
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t got = read(file_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::runtime_error("can't read '" + path_ + "': " + std::strerror(errno));
    if (got == 0) break;
    text_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void RowAppender::keep(std::size_t bytes) {
  if (!regular_) return;
  size_ = bytes;
  if (ftruncate(file_, static_cast<off_t>(bytes)) != 0 ||
      lseek(file_, static_cast<off_t>(bytes), SEEK_SET) < 0)
    throw std::runtime_error("can't cut '" + path_ + "' to its last whole row: " + std::strerror(errno));
}

void RowAppender::append(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t step = write(file_, text.data() + written, text.size() - written);
    if (step < 0 && errno == EINTR) continue;
    if (step < 0) {
      const std::string cause = std::strerror(errno);
      std::string kept;
      if (regular_ && ftruncate(file_, static_cast<off_t>(size_)) == 0)
        kept = "; the rows before it are kept, and --resume goes on behind them";
      std::string message = "can't write a row to ";
      message.append(path_.empty() ? "standard output" : "'" + path_ + "'").append(": ").append(cause);
      throw std::runtime_error(message.append(kept));
    }
    written += static_cast<std::size_t>(step);
  }
  size_ += text.size();
}

bool RowAppender::is_terminal() const {
  return isatty(file_) != 0;
}

}  // namespace trainsim::cli
