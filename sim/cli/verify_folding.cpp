// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/verify_folding.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

constexpr double kTolerance = 1e-9;

/// Step time and peak of every rank, one per line.
std::string describe(const report::Summary& summary) {
  std::ostringstream text;
  text.precision(17);
  text << summary.step_time << "\n";
  for (const report::RankSummary& rank : summary.ranks) text << rank.rank << " " << rank.peak_memory << "\n";
  return text.str();
}

/// Body of the child: writes the description to the pipe; never returns.
[[noreturn]] void run_child(const config::Experiment& experiment, int pipe_end) {
  try {
    const std::string text = describe(simulate(experiment, false, {}));
    std::FILE* out = fdopen(pipe_end, "w");
    const bool written = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
    std::_Exit(written && std::fclose(out) == 0 ? 0 : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainsim: error: unfolded run: %s\n", error.what());
    std::_Exit(1);
  }
}

std::string read_all(int pipe_end) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got = read(pipe_end, buffer.data(), buffer.size()); got > 0;
       got = read(pipe_end, buffer.data(), buffer.size())) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

FoldingCheck::FoldingCheck(const config::Experiment& experiment) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("can't open a pipe to a child process");
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("can't start a child process");
  if (child_ == 0) {
    close(ends[0]);
    run_child(experiment, ends[1]);
  }
  close(ends[1]);
  result_ = ends[0];
}

FoldingCheck::~FoldingCheck() {
  if (result_ >= 0) close(result_);
  if (child_ > 0) waitpid(child_, nullptr, 0);
}

std::string FoldingCheck::compare(const report::Summary& folded) {
  std::istringstream unfolded(read_all(result_));
  int status = 0;
  waitpid(std::exchange(child_, -1), &status, 0);
  if (status != 0) throw std::runtime_error("the unfolded run failed, so folding could not be verified");
  Seconds step_time = 0;
  unfolded >> step_time;
  std::map<std::int64_t, Bytes> peaks;
  std::int64_t rank = 0;
  Bytes peak = 0;
  while (unfolded >> rank >> peak) peaks[rank] = peak;
  const double difference = std::abs(folded.step_time / step_time - 1.0);
  if (difference > kTolerance) {
    throw std::runtime_error("folding is not exact here: step time " + std::to_string(folded.step_time) +
                             " s folded, " + std::to_string(step_time) + " s unfolded; run with --fold off");
  }
  std::int64_t represented = 0;
  for (const report::RankSummary& row : folded.ranks) {
    represented += row.represents;
    if (peaks.at(row.rank) != row.peak_memory) {
      throw std::runtime_error("folding is not exact here: memory of rank " + std::to_string(row.rank) +
                               " differs");
    }
  }
  if (represented != static_cast<std::int64_t>(peaks.size())) {
    throw std::runtime_error("folding is not exact here: folded ranks stand for " +
                             std::to_string(represented) + " of " + std::to_string(peaks.size()));
  }
  std::ostringstream note;
  note << "Folding verified: " << peaks.size()
       << " ranks simulated one by one give the same step time (relative "
       << "difference " << difference << ") and the same memory.";
  return note.str();
}

}  // namespace trainsim::cli
