// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/verify_folding.hpp"

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/simulate.hpp"

namespace trainsim::cli {

namespace {

constexpr double kTolerance = 1e-9;

/// Runs `work` in a child process, because SimGrid can run only once in each, and returns what it says.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("can't open a pipe to a child process");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("can't start a child process");
  if (child == 0) {
    close(ends[0]);
    const std::string text = work();
    std::FILE* out = fdopen(ends[1], "w");
    const bool good = out != nullptr && std::fwrite(text.data(), 1, text.size(), out) == text.size();
    std::_Exit(out != nullptr && std::fclose(out) == 0 && good ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got = read(ends[0], buffer, sizeof buffer); got > 0; got = read(ends[0], buffer, sizeof buffer)) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the unfolded run failed");
  return text;
}

/// Step time and peak of every rank, one per line.
std::string describe(const report::Summary& summary) {
  std::ostringstream text;
  text.precision(17);
  text << summary.step_time << "\n";
  for (const report::RankSummary& rank : summary.ranks) text << rank.rank << " " << rank.peak_memory << "\n";
  return text.str();
}

}  // namespace

std::string verify_folding(const config::Experiment& experiment, const report::Summary& folded) {
  std::istringstream unfolded(in_child([&] { return describe(simulate(experiment, false, {})); }));
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
      throw std::runtime_error("folding is not exact here: memory of rank " + std::to_string(row.rank) + " differs");
    }
  }
  if (represented != static_cast<std::int64_t>(peaks.size())) {
    throw std::runtime_error("folding is not exact here: folded ranks stand for " + std::to_string(represented) +
                             " of " + std::to_string(peaks.size()));
  }
  std::ostringstream note;
  note << "Folding verified: " << peaks.size() << " ranks simulated one by one give the same step time (relative "
       << "difference " << difference << ") and the same memory.";
  return note.str();
}

}  // namespace trainsim::cli
