// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/rank.hpp"

#include <map>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {
namespace {

using Variables = std::map<std::string, std::string>;

Environment of(const Variables& variables) {
  return [variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

/// "3/8 Slurm array task 2", or "none".
std::string detected(const Variables& variables) {
  const auto found = detect_shard(of(variables));
  if (!found) return "none";
  return std::to_string(found->shard.index) + "/" + std::to_string(found->shard.count) + " " + found->source;
}

std::string parsed(const std::string& text, const Variables& variables = {}) {
  try {
    const DetectedShard shard = parse_shard(text, of(variables));
    return std::to_string(shard.shard.index) + "/" + std::to_string(shard.shard.count) + " " + shard.source;
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Rank, WithoutVariablesThereIsOneProcess) {
  EXPECT_EQ(detected({}), "none");
}

TEST(Rank, OfASlurmArray) {
  // Tasks 0-7: the third is number 2.
  EXPECT_EQ(detected({{"SLURM_ARRAY_TASK_ID", "2"},
                      {"SLURM_ARRAY_TASK_COUNT", "8"},
                      {"SLURM_ARRAY_TASK_MIN", "0"},
                      {"SLURM_ARRAY_TASK_MAX", "7"}}),
            "3/8 Slurm array task 2");
  // Tasks 1-7:2 are 1, 3, 5 and 7.
  EXPECT_EQ(detected({{"SLURM_ARRAY_TASK_ID", "5"},
                      {"SLURM_ARRAY_TASK_COUNT", "4"},
                      {"SLURM_ARRAY_TASK_MIN", "1"},
                      {"SLURM_ARRAY_TASK_MAX", "7"},
                      {"SLURM_ARRAY_TASK_STEP", "2"}}),
            "3/4 Slurm array task 5");
}

TEST(Rank, OfASlurmArrayWithGapsIsRefused) {
  // Tasks 1, 2 and 9.
  const Variables gaps = {{"SLURM_ARRAY_TASK_ID", "9"},
                          {"SLURM_ARRAY_TASK_COUNT", "3"},
                          {"SLURM_ARRAY_TASK_MIN", "1"},
                          {"SLURM_ARRAY_TASK_MAX", "9"}};
  try {
    detect_shard(of(gaps));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "trainsim: error: the Slurm array's 3 tasks are not numbered in equal steps from 1 to 9, so "
                 "that task 9 does not know which shard it is; give --shard K/N");
  }
}

TEST(Rank, OfMpi) {
  EXPECT_EQ(detected({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), "1/4 MPI rank 0");
  EXPECT_EQ(detected({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), "4/4 MPI rank 3");
  EXPECT_EQ(detected({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), "none");
}

TEST(Rank, OfSrun) {
  EXPECT_EQ(detected({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}), "2/2 Slurm rank 1");
  EXPECT_EQ(detected({{"SLURM_JOB_ID", "7"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_NTASKS", "8"},
                      {"SLURM_STEP_NUM_TASKS", "4"}}),
            "2/4 Slurm rank 1");
}

TEST(Rank, TheScriptOfABatchJobIsNone) {
  EXPECT_EQ(detected({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}), "none");
}

TEST(Rank, RanksInTasksOfAnArrayAreNumberedThrough) {
  // Task 1 of 2 with 4 ranks each: rank 2 is number 1 * 4 + 2 = 6, counted from 0.
  EXPECT_EQ(detected({{"SLURM_ARRAY_TASK_ID", "1"},
                      {"SLURM_ARRAY_TASK_COUNT", "2"},
                      {"SLURM_ARRAY_TASK_MIN", "0"},
                      {"OMPI_COMM_WORLD_RANK", "2"},
                      {"OMPI_COMM_WORLD_SIZE", "4"}}),
            "7/8 Slurm array task 1, MPI rank 2");
}

TEST(Rank, VariablesThatMakeNoSenseAreRefused) {
  EXPECT_THROW(detected({{"PMI_RANK", "4"}, {"PMI_SIZE", "4"}}), InputError);
  EXPECT_THROW(detected({{"PMI_RANK", "x"}, {"PMI_SIZE", "4"}}), InputError);
  EXPECT_THROW(detected({{"PMI_RANK", "-1"}, {"PMI_SIZE", "4"}}), InputError);
}

TEST(Rank, ShardsAreGivenAsKOfN) {
  EXPECT_EQ(parsed("2/8"), "2/8 --shard");
  for (const char* text : {"0/8", "9/8", "2", "2/", "/8", "x/8", "1/0", "-1/8", "1/8x", "auto/x"}) {
    EXPECT_EQ(parsed(text), std::string("trainsim: error: --shard '") + text +
                                "' is no shard; write K/N with K from 1 to N, as in --shard 2/8");
  }
}

TEST(Rank, AutomaticShardsComeFromGnuParallel) {
  EXPECT_EQ(parsed("auto/8", {{"PARALLEL_SEQ", "3"}}), "3/8 GNU parallel's job 3");
  EXPECT_EQ(
      parsed("auto/8", {{"PARALLEL_SEQ", "9"}}),
      "trainsim: error: --shard auto/8: GNU parallel's job 9 is none of 1 to 8; start one job per shard");
  EXPECT_EQ(parsed("auto/4", {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), "4/4 MPI rank 3");
  EXPECT_EQ(parsed("auto/4", {}),
            "trainsim: error: --shard auto/4: the environment names no rank among 4 (PARALLEL_SEQ, "
            "SLURM_ARRAY_TASK_ID, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK); give --shard K/N");
}

}  // namespace
}  // namespace trainsim::sweep
