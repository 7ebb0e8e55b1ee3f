// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/plan_search.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "sim/cli/plan_base.hpp"
#include "sim/cli/plan_trial.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/search/space.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::cli {
namespace {

constexpr const char* kModel =
    "model: {num_layers: 8, hidden_size: 1024, num_attention_heads: 8, vocab_size: 8192, sequence_length: "
    "512, "
    "attention: flash}\n";

/// A small space on some cluster, and what is left of it to try all plans one by one.
struct Case {
  const char* name;
  const char* cluster;
  const char* settings;
  std::vector<std::string> vary;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

/// Tensor parallelism inside a node and across nodes, fast networks and slow ones, one where ranks of a node
/// share a NIC, one without NVLink, and a model whose memory decides.
const std::vector<Case> kCases = {
    {"fast",
     "dgx-a100-80gb",
     "gpus: 16\nplan: {global_batch_size: 32}\n",
     {"recompute=none", "sharding=zero1,zero3", "micro_batch_size=1,4"}},
    {"one_slow_nic",
     "{extends: dgx-a100-80gb, gpus_per_node: 4, nics_per_node: 1, nic_bandwidth: 25 Gb/s}",
     "gpus: 16\nplan: {global_batch_size: 32}\n",
     {"recompute=none", "sharding=zero1", "micro_batch_size=1,4", "schedule=1f1b,interleaved"}},
    {"oversubscribed",
     "{extends: dgx-a100-80gb, gpus_per_node: 2, nics_per_node: 1, nic_bandwidth: 100 Gb/s, fabric: "
     "{nodes_per_leaf: "
     "2, oversubscription: 4}}",
     "gpus: 16\nplan: {global_batch_size: 32}\n",
     {"recompute=none", "sharding=zero1", "micro_batch_size=1,2", "schedule=1f1b,interleaved"}},
    {"pcie",
     "pcie-a100-8",
     "gpus: 8\nplan: {global_batch_size: 32}\n",
     {"recompute=none,full", "sharding=none,zero1", "micro_batch_size=2,4"}},
    {"little_memory",
     "{extends: dgx-a100-80gb, gpu: {extends: a100-80gb, memory: 5 GiB}}",
     "gpus: 8\nplan: {global_batch_size: 64}\n",
     {"sharding=zero1", "schedule=1f1b,interleaved", "tensor_parallel=1,2", "micro_batch_size=4,8"}}};

class SmallSpace : public testing::TestWithParam<Case> {
 protected:
  SmallSpace() {
    const Case& c = GetParam();
    const std::string text = std::string(kModel) + "cluster: " + c.cluster + "\n" + c.settings;
    request_.subject = {folder_.write("space.yaml", text).string(), {}};
    request_.vary = c.vary;
    request_.workers = 2;
    request_.borderline = true;
  }

  /// Every legal plan, with as few recomputed layers as fit where that was asked for.
  std::vector<config::Experiment> all_plans() const {
    const PlanBase own = read_plan_base(request_.subject, "search");
    search::Space space;
    for (const std::string& text : request_.vary) search::restrict_space(space, text);
    std::vector<config::Experiment> list;
    for (const search::Candidate& candidate : search::enumerate(space, own.base).legal) {
      if (candidate.recompute.fewest_layers) continue;
      list.push_back(config::load(own.subject.name, search::overrides_for(candidate, own.base)));
    }
    return list;
  }

  tests::TemporaryFolder folder_;
  SearchRequest request_;
};

/// The best that simulating every plan in full finds, the search finds too.
TEST_P(SmallSpace, IsSearchedAsWellAsByExhaustion) {
  const std::vector<config::Experiment> plans = all_plans();
  std::vector<report::PlanResult> results(plans.size());
  run_forked(
      plans.size(), 2, [&](std::size_t i) { return packed(try_in_full(plans[i])); },
      [&](std::size_t i, const WorkResult& result) {
        ASSERT_TRUE(result.done) << result.text;
        results[i] = unpacked(result.text);
      });
  std::vector<Seconds> times;
  for (const report::PlanResult& result : results) {
    if (result.verdict != report::Verdict::kDoesNotFit) times.push_back(result.step_time);
  }
  std::sort(times.begin(), times.end());
  request_.top = 5;
  const report::SearchReport found = search_plans(request_, [](double, const std::string&) {});
  ASSERT_EQ(found.plans.size(), 5U);
  ASSERT_GE(times.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    // Recomputation of some layers, which is not among `times`, may do better.
    EXPECT_LE(found.plans[i].step_time, times[i] * (1 + 1e-9)) << i;
    if (request_.vary.front().starts_with("recompute=")) {
      EXPECT_NEAR(found.plans[i].step_time, times[i], times[i] * 1e-9) << i;
    }
  }
  // Some work has been saved.
  EXPECT_LT(found.confirmed, static_cast<std::int64_t>(plans.size()));
}

/// What candidates are left out by is no more than what they take and need.
TEST_P(SmallSpace, HasBoundsBelowItsTimes) {
  const std::vector<config::Experiment> plans = all_plans();
  for (const config::Experiment& experiment : plans) {
    const ShortTrial tried = try_short_step(experiment);
    const std::string label = report::plan_label(experiment.plan);
    EXPECT_LE(tried.bound, ideal_step_time(experiment) * (1 + 1e-9)) << label;
    EXPECT_LE(tried.peak, estimate_memory(experiment).peak) << label;
  }
}

INSTANTIATE_TEST_SUITE_P(Search, SmallSpace, testing::ValuesIn(kCases),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace trainsim::cli
