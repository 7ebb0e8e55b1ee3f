// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/plan_list.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::sweep {
namespace {

using Texts = std::vector<std::string>;
using Values = std::vector<std::optional<std::string>>;

Axis read(const std::string& name, const std::string& text) {
  const tests::TemporaryFolder folder;
  return read_plans(folder.write(name, text));
}

/// The message without the temporary folder's name.
std::string error_of(const std::string& name, const std::string& text) {
  try {
    read(name, text);
  } catch (const InputError& error) {
    const std::string all = error.what();
    return all.substr(all.find(name));
  }
  return "";
}

TEST(PlanList, YamlKeysMayBeShortDottedOrNested) {
  const Axis axis = read("plans.yaml",
                         "- tensor_parallel: 8\n"
                         "  gpus: 64\n"
                         "- plan.tensor_parallel: 4\n"
                         "- plan: {tensor_parallel: 2, recompute: {granularity: full, layers: 1}}\n"
                         "  software: {launch: compiled}\n");
  EXPECT_EQ(axis.keys, (Texts{"plan.tensor_parallel", "gpus", "plan.recompute", "software.launch"}));
  ASSERT_EQ(axis.rows.size(), 3U);
  EXPECT_EQ(axis.rows[0], (Values{"8", "64", std::nullopt, std::nullopt}));
  EXPECT_EQ(axis.rows[1], (Values{"4", std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(axis.rows[2], (Values{"2", std::nullopt, "{granularity: full, layers: 1}", "compiled"}));
}

TEST(PlanList, JsonIsYaml) {
  const Axis axis = read("plans.json", R"([{"tensor_parallel": 8, "pipeline_layout": [3, 5]}])");
  EXPECT_EQ(axis.rows, (std::vector<Values>{{"8", "[3, 5]"}}));
}

TEST(PlanList, CsvHasAHeaderOfKeysAndEmptyCells) {
  const Axis axis = read("plans.csv",
                         "tensor_parallel,plan.pipeline_layout,gpus\n"
                         "8,\"[3,5]\",64\n"
                         "\n"
                         "4,,32\n");
  EXPECT_EQ(axis.keys, (Texts{"plan.tensor_parallel", "plan.pipeline_layout", "gpus"}));
  EXPECT_EQ(axis.rows, (std::vector<Values>{{"8", "[3,5]", "64"}, {"4", std::nullopt, "32"}}));
}

TEST(PlanList, FaultsHavePlaces) {
  EXPECT_EQ(
      error_of("plans.csv", "tensor_parallel,gpus\n8\n"),
      "plans.csv:2:1: error: the line has 1 cells, but the header names 2 columns\n    2 | 8\n      | ^");
  EXPECT_EQ(error_of("plans.csv", "tensor_parallel\n"),
            "plans.csv: error: the list has no plans; a sweep needs at least one");
  EXPECT_NE(error_of("plans.yaml", "tensor_parallel: 8\n").find("a list of plans is needed here"),
            std::string::npos);
  EXPECT_NE(error_of("plans.yaml", "- 8\n").find("a plan is a mapping such as {tensor_parallel: 8}, not 8"),
            std::string::npos);
  EXPECT_NE(error_of("plans.yaml", "- {gpus: 8}\n- {}\n").find("not an empty one"), std::string::npos);
  EXPECT_NE(error_of("plans.yaml", "- tensor_parallel: 8\n  plan.tensor_parallel: 4\n")
                .find("plan.tensor_parallel: is given twice in this plan"),
            std::string::npos);
  EXPECT_NE(error_of("plans.csv", "gpus,,\n8,1,2\n").find("a column has no name"), std::string::npos);
  EXPECT_NE(error_of("plans.csv", "gpus,gpus\n8,8\n").find("gpus: is a column twice"), std::string::npos);
}

TEST(PlanList, AMissingFileIsNamed) {
  EXPECT_THROW(read_plans("/nonexistent/plans.yaml"), InputError);
}

}  // namespace
}  // namespace trainsim::sweep
