// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/worker_pool.hpp"

#include <csignal>
#include <map>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace trainsim::cli {
namespace {

std::map<std::size_t, WorkResult> results_of(std::size_t tasks, std::size_t workers,
                                             const std::function<std::string(std::size_t)>& work) {
  std::map<std::size_t, WorkResult> results;
  run_forked(tasks, workers, work,
             [&](std::size_t task, const WorkResult& result) { results[task] = result; });
  return results;
}

TEST(WorkerPool, RunsEveryTaskOnceWhateverTheNumberOfWorkers) {
  for (const std::size_t workers : {1U, 3U, 20U}) {
    const auto results =
        results_of(10, workers, [](std::size_t task) { return std::to_string(task * task); });
    ASSERT_EQ(results.size(), 10U);
    for (const auto& [task, result] : results) {
      EXPECT_TRUE(result.done);
      EXPECT_EQ(result.text, std::to_string(task * task));
    }
  }
}

TEST(WorkerPool, CarriesLongResults) {
  const auto results = results_of(2, 2, [](std::size_t) { return std::string(300'000, 'x'); });
  EXPECT_EQ(results.at(1).text.size(), 300'000U);
}

TEST(WorkerPool, SurvivesTasksThatThrowOrCrash) {
  const auto results = results_of(3, 2, [](std::size_t task) -> std::string {
    if (task == 0) throw std::runtime_error("no luck");
    if (task == 1) std::raise(SIGKILL);
    return "fine";
  });
  EXPECT_FALSE(results.at(0).done);
  EXPECT_EQ(results.at(0).text, "no luck");
  EXPECT_FALSE(results.at(1).done);
  EXPECT_EQ(results.at(1).text, "the simulation was ended by signal 9");
  EXPECT_TRUE(results.at(2).done);
}

TEST(WorkerPool, WaitsForWhatRunsWhenNothingNewIsWanted) {
  std::size_t received = 0;
  run_forked(
      10, 2, [](std::size_t) { return std::string(); },
      [&](std::size_t, const WorkResult& result) { received += result.done ? 1 : 0; },
      [&] { return received == 0 ? Pace::kGoOn : Pace::kFinishRunning; });
  // Two were begun before anything ended.
  EXPECT_EQ(received, 2U);
}

TEST(WorkerPool, StopsAtOnce) {
  // Tasks would wait for a signal that never comes.
  std::size_t asked = 0;
  run_forked(
      4, 2,
      [](std::size_t) {
        pause();
        return std::string();
      },
      [](std::size_t, const WorkResult&) { FAIL(); },
      [&] { return ++asked < 3 ? Pace::kGoOn : Pace::kStop; });
  EXPECT_EQ(asked, 3U);
}

TEST(WorkerPool, HasNothingToDoWithoutTasks) {
  EXPECT_TRUE(results_of(0, 2, [](std::size_t) { return std::string(); }).empty());
  EXPECT_GE(available_processors(), 1U);
}

}  // namespace
}  // namespace trainsim::cli
