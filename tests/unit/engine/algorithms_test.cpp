// SPDX-License-Identifier: Apache-2.0
// What each algorithm of an all-reduce sends over which link, and how long that takes, by hand.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/engine/traffic.hpp"
#include "sim/folding/fold.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::engine {
namespace {

/// From here on trees lose nothing to filling and draining.
constexpr double kTensor = kGibi;
constexpr double kMembers = 8;
constexpr Algorithm kAcrossNodes[] = {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree,
                                      Algorithm::kInNetwork, Algorithm::kHierarchical};

/// Nodes of 8 GPUs, 100 GB/s inside, 10 GB/s from each GPU's NIC; switches add up as fast as links send.
hardware::ClusterSpec cluster(Algorithm algorithm) {
  hardware::ClusterSpec spec = tests::round_cluster();
  spec.intra_node.nvls_bandwidth = 1e12;
  spec.fabric.in_network_reduction = true;
  spec.fabric.switch_latency = 0;
  spec.forced_algorithm = algorithm;
  return spec;
}

program::Job job_of(const hardware::ClusterSpec& spec, std::int64_t nodes, bool fold) {
  return folding::build_job(tests::one_group(nodes * spec.gpus_per_node), spec, false,
                            {tests::lone_collective(program::CollectiveOp::kAllReduce, kTensor)}, {fold});
}

Seconds on_simgrid(const hardware::ClusterSpec& spec, std::int64_t nodes, bool fold) {
  return tests::in_child([&] {
           ExecutorOptions options;
           options.closed_form_collectives = false;
           return std::vector<double>{
               make_simgrid_executor(options)->run(job_of(spec, nodes, fold)).step_time};
         })
      .at(0);
}

/// What crosses a link as a share of the tensor.
double share(const program::Job& job, const std::string& name) {
  for (const program::LinkTraffic& link : count_traffic(job).links) {
    if (link.name == name) return link.total() / kTensor;
  }
  ADD_FAILURE() << "nothing crosses " << name;
  return 0;
}

/// A GPU's port into its node, and its NIC, for groups of 8 members in each of `nodes` nodes.
struct Shares {
  double port = 0;
  double nic = 0;
};

Shares expected(Algorithm algorithm, double nodes) {
  const double ring = 2 * (nodes * kMembers - 1) / (nodes * kMembers);
  // A tree's NICs carry N up and N down the one of two nodes, twice as much beyond; it has 0.68 or 0.78 of
  // their rate.
  const double tree = nodes == 2 ? 1.0 : 2.0;
  switch (algorithm) {
    case Algorithm::kRing:
      return {ring * 7 / 8, ring / 8};
    case Algorithm::kTree:
      return {2 * (7.0 / 8) / (nodes == 2 ? 0.68 : 0.78), tree / 8 / (nodes == 2 ? 0.68 : 0.78)};
    case Algorithm::kNvlsTree:
      return {1 + 1.0 / 8, tree / 8};
    case Algorithm::kInNetwork:
      return {1 + 1.0 / 8, 1.0 / 8};
    case Algorithm::kHierarchical:
      return {2 * 7.0 / 8, 2 * (nodes - 1) / nodes / 8};
    case Algorithm::kInSwitch:
    case Algorithm::kPairs:
      break;
  }
  return {};
}

TEST(Algorithms, SendWhatTheirFormulasSay) {
  for (const Algorithm algorithm : kAcrossNodes) {
    for (const std::int64_t nodes : {2, 4}) {
      const program::Job job = job_of(cluster(algorithm), nodes, false);
      const Shares shares = expected(algorithm, static_cast<double>(nodes));
      EXPECT_NEAR(share(job, "gpu 0 -> node switch 0"), shares.port, 1e-9) << to_string(algorithm) << nodes;
      EXPECT_NEAR(share(job, "nic 0 -> leaf 0"), shares.nic, 1e-9) << to_string(algorithm) << nodes;
    }
  }
}

TEST(Algorithms, TakeNoLessThanAloneAndFoldExactly) {
  for (const Algorithm algorithm : kAcrossNodes) {
    for (const std::int64_t nodes : {2, 4}) {
      const hardware::ClusterSpec spec = cluster(algorithm);
      const Seconds alone = make_ideal_executor()->run(job_of(spec, nodes, true)).step_time;
      const Seconds folded = on_simgrid(spec, nodes, true);
      EXPECT_GE(folded, alone * (1 - 1e-9)) << to_string(algorithm) << nodes;
      EXPECT_NEAR(on_simgrid(spec, nodes, false) / folded, 1.0, 1e-9) << to_string(algorithm) << nodes;
    }
  }
}

/// g members in each of k nodes, one after the other: reduce-scatter, (g-1)/g N at 100 GB/s after 5 + (g-1)
/// us; all-reduce of N/g, 2 (k-1)/k N/g at 10 GB/s after 5 + 2 (k-1) 3 us; all-gather, as the reduce-scatter.
TEST(Algorithms, HierarchicalMeetsItsClosedForm) {
  const hardware::ClusterSpec spec = cluster(Algorithm::kHierarchical);
  for (const std::int64_t nodes : {2, 3, 4}) {
    const auto k = static_cast<double>(nodes);
    const double inside = (kMembers - 1) / kMembers * kTensor / 100e9 + 5e-6 + (kMembers - 1) * 1e-6;
    const double between = 2 * (k - 1) / k * (kTensor / kMembers) / 10e9 + 5e-6 + 2 * (k - 1) * 3e-6;
    const double time = inside + between + inside;
    EXPECT_NEAR(make_ideal_executor()->run(job_of(spec, nodes, true)).step_time / time, 1.0, 1e-6) << nodes;
    EXPECT_NEAR(on_simgrid(spec, nodes, true) / time, 1.0, 1e-6) << nodes;
  }
}

/// The NICs limit, so that of a ring's latencies only the last between nodes is not hidden. Until switches of
/// 0.9 TB/s are up to speed they lose what goes through in 41 us. A step between nodes takes 3 us, 1 on PCIe
/// and 2 in the NIC.
TEST(Algorithms, ReductionInTheNetworkTakesHalfOfWhatARingDoes) {
  const Seconds ring = on_simgrid(cluster(Algorithm::kRing), 4, true);
  const Seconds reduced = on_simgrid(cluster(Algorithm::kInNetwork), 4, true);
  const double bytes_of_ring = 2.0 * 31 / 32 * kTensor / 8;
  EXPECT_NEAR(ring, bytes_of_ring / 10e9 + 5e-6 + 3e-6, 1e-6 * ring);
  const double filling = 1.125 * kTensor * 36.9e6 / (kTensor + 36.9e6) / 0.9e12;
  EXPECT_NEAR(reduced, kTensor / 8 / 10e9 + 21.6e-6 + 7e-6 + filling, 1e-6 * reduced);
}

}  // namespace
}  // namespace trainsim::engine
