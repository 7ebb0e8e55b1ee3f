// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/fold.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "sim/engine/executor.hpp"
#include "sim/engine/flow_time.hpp"
#include "sim/folding/partition.hpp"
#include "sim/folding/sample.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::folding {
namespace {

using program::GroupKind;

TEST(Folding, SymmetricPlansKeepOneRankPerStage) {
  const program::Job job =
      tests::make_job(tests::small_gpt(), tests::round_cluster(), tests::small_plan(32, 4, 2, 1));
  ASSERT_EQ(job.ranks.size(), 2U);
  EXPECT_TRUE(job.folded);
  for (const program::Rank& rank : job.ranks) EXPECT_EQ(rank.represents, 16);
  EXPECT_EQ(job.ranks[1].id, 16);  // tensor 0, data 0 of the second stage
}

TEST(Folding, OffKeepsEveryRank) {
  const program::Job job = tests::make_job(tests::small_gpt(), tests::round_cluster(),
                                           tests::small_plan(32, 4, 2, 1), {false, false});
  EXPECT_EQ(job.ranks.size(), 32U);
  EXPECT_FALSE(job.folded);
  for (const program::Rank& rank : job.ranks) EXPECT_EQ(rank.represents, 1);
}

TEST(Folding, ASlowGpuIsSimulatedApart) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.slow_gpus = {{5, 1.5}};
  const program::Job job = tests::make_job(tests::small_gpt(), cluster, tests::small_plan(32, 1, 1, 1));
  const auto slow = std::count_if(job.ranks.begin(), job.ranks.end(),
                                  [](const program::Rank& rank) { return rank.slowdown > 1.0; });
  EXPECT_EQ(slow, 1);
  for (const program::Rank& rank : job.ranks) {
    if (rank.slowdown > 1.0) {
      EXPECT_EQ(rank.represents, 1);
      EXPECT_EQ(rank.id, 5);
    }
  }
}

/// Two data-parallel groups of a tensor-parallel pair share each NIC when there are two per node of eight
/// GPUs, so that the one flow kept must weigh as many as really cross it.
TEST(Folding, WeightsCountTheFlowsThatShareALink) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.nics_per_node = 1;
  // TP8: eight data-parallel rings, one per tensor rank, all through the single NIC of each of the two nodes.
  const program::Job job = tests::make_job(tests::small_gpt(), cluster, tests::small_plan(16, 8, 1, 1));
  ASSERT_EQ(job.ranks.size(), 1U);
  const auto group =
      static_cast<std::size_t>(job.ranks[0].groups[static_cast<std::size_t>(GroupKind::kData)]);
  const program::Flow& flow = job.groups[group].flows.front().flow;
  BytesPerSecond slowest = 1e18;
  for (const program::Hop& hop : flow.route) {
    slowest = std::min(slowest, job.links[hop.link].capacity() / static_cast<double>(hop.weight));
  }
  EXPECT_DOUBLE_EQ(slowest, 10e9 / 8);
}

/// Bytes are conserved: every rank of a ring sends 2(P-1)/P N, whatever the number of rings.
TEST(Folding, RingsCarryTheWholeMessageOnce) {
  for (const std::int64_t tensor : {1, 2, 4, 8}) {
    const plan::ParallelPlan plan = tests::small_plan(32, tensor, 1, 1);
    const hardware::Topology topology(tests::round_cluster(), plan.gpus);
    const World world = build_world(plan, tests::round_cluster(), topology, false);
    std::vector<double> sent(static_cast<std::size_t>(plan.gpus), 0.0);
    std::vector<double> received(static_cast<std::size_t>(plan.gpus), 0.0);
    for (const WorldFlow& flow : world.flows) {
      if (world.groups[flow.group].kind != GroupKind::kData) continue;
      sent[flow.source] += flow.share;
      received[flow.target] += flow.share;
    }
    for (std::size_t rank = 0; rank < sent.size(); ++rank) {
      EXPECT_NEAR(sent[rank], 1.0, 1e-12) << "TP" << tensor << " rank " << rank;
      EXPECT_NEAR(received[rank], 1.0, 1e-12);
    }
  }
}

/// TP2 CP4 on two nodes: rings of the four context-parallel ranks stay in a node, one to each tensor rank and
/// replica, and gradients are reduced over all eight ranks with the same parameters.
TEST(Folding, ContextRanksPassOnToTheNext) {
  plan::ParallelPlan plan = tests::small_plan(16, 2, 1, 1);
  plan.context_parallel = 4;
  plan.data_parallel = 2;
  const hardware::Topology topology(tests::round_cluster(), plan.gpus);
  const World world = build_world(plan, tests::round_cluster(), topology, false);
  int rings = 0;
  for (const WorldGroup& group : world.groups) {
    const auto size = group.member_end - group.member_begin;
    if (group.kind == GroupKind::kData) {
      EXPECT_EQ(size, 8U);
    }
    if (group.kind != GroupKind::kContext) continue;
    ++rings;
    EXPECT_EQ(size, 4U);
    EXPECT_EQ(group.pattern, program::Pattern::kNeighbours);
    ASSERT_EQ(group.flow_end - group.flow_begin, 4U);
    for (std::uint32_t f = group.flow_begin; f < group.flow_end; ++f) {
      const WorldFlow& flow = world.flows[f];
      EXPECT_EQ(flow.share, 1.0);
      EXPECT_EQ(flow.target % 8, (flow.source + 2) % 8);
      EXPECT_EQ(flow.target / 8, flow.source / 8);
    }
  }
  EXPECT_EQ(rings, 4);
}

/// Ring attention has one ring: over nodes its members send through one NIC in each direction, while an
/// all-gather has as many rings as a node has members.
TEST(Folding, ContextRanksHaveOneRingOverNodes) {
  plan::ParallelPlan plan = tests::small_plan(16, 1, 1, 1);
  plan.context_parallel = 16;
  plan.data_parallel = 1;
  const hardware::Topology topology(tests::round_cluster(), plan.gpus);
  const auto between = [&](plan::ContextCommunication way) {
    plan.context_communication = way;
    const World world = build_world(plan, tests::round_cluster(), topology, false);
    double share = 0;
    int flows = 0;
    for (const WorldFlow& flow : world.flows) {
      if (world.groups[flow.group].kind != GroupKind::kContext || flow.source / 8 == flow.target / 8)
        continue;
      share += flow.share;
      ++flows;
    }
    return std::pair(flows, share);
  };
  EXPECT_EQ(between(plan::ContextCommunication::kP2p), std::pair(2, 2.0));
  EXPECT_EQ(between(plan::ContextCommunication::kAllGather), std::pair(16, 2.0));
  // Every member sends 8 of its 15 parts to the other node.
  EXPECT_EQ(between(plan::ContextCommunication::kAllToAll).first, 2 * 8 * 8);
}

/// Two nodes' worth of replicas stand for all, whether a replica is less than a node or more.
TEST(Folding, ASampleHasWholeContexts) {
  for (const auto& [tensor, context] : {std::pair(1, 4), std::pair(2, 4), std::pair(2, 8)}) {
    plan::ParallelPlan plan = tests::small_plan(128, tensor, 1, 1);
    plan.context_parallel = context;
    plan.data_parallel /= context;
    plan.global_batch_size = plan.data_parallel * 2;
    model::ModelSpec model = tests::small_gpt();
    model.attention = model::Attention::kFlash;
    const auto time = [&](bool sample) {
      return tests::in_child([&] {
               const program::Job job =
                   build_job(plan, tests::round_cluster(), true,
                             lowering::lower(model, plan, tests::round_cluster(), schedule::build(plan)),
                             {true, false, sample});
               return std::vector<double>{engine::make_simgrid_executor()->run(job).step_time};
             })
          .at(0);
    };
    ASSERT_LT(sample_replicas(tests::round_cluster(), plan).plan.gpus, plan.gpus);
    EXPECT_NEAR(time(true) / time(false), 1.0, 1e-9) << "TP" << tensor << " CP" << context;
  }
}

/// Four nodes below one group of rail leaves: rings keep to their rails, so that what is above the leaves
/// can't matter, whatever share of a ring's members sits in a node.
TEST(Folding, RingsStayOnTheirRails) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.kind = hardware::FabricKind::kRailOptimized;
  cluster.fabric.nodes_per_leaf = 4;
  cluster.fabric.oversubscription = 8.0;
  for (const std::int64_t tensor : {1, 2, 4, 8}) {
    const plan::ParallelPlan plan = tests::small_plan(32, tensor, 1, 1);
    const hardware::Topology topology(cluster, plan.gpus);
    const World world = build_world(plan, cluster, topology, false);
    for (const WorldFlow& flow : world.flows) EXPECT_LE(world.path(flow).size(), 4U) << "TP" << tensor;
  }
}

/// 32 members on four nodes: of 2 (32 - 1) steps 2 (4 - 1) go between nodes.
TEST(Folding, NetworkLatencyCountsForStepsBetweenNodesOnly) {
  const program::Job job =
      tests::make_job(tests::small_gpt(), tests::round_cluster(), tests::small_plan(32, 1, 1, 1));
  const program::Group& group = job.groups.front();
  EXPECT_EQ(group.size, 32);
  EXPECT_EQ(group.nodes, 4);
  // NVLink 1 us; PCIe 1, NIC 2 and three switches of 1 us; 5 us to start.
  EXPECT_NEAR(
      program::collective_cost(group, program::CollectiveOp::kAllReduce, 1e6, tests::links_of(1e9, 1e9))
          .delay(),
      5e-6 + 56 * 1e-6 + 6 * 6e-6, 1e-12);
}

/// Every link of a class is crossed by equally many flows of each class: what makes the quotient exact.
TEST(Folding, PartitionIsEquitable) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.fabric.oversubscription = 4.0;
  cluster.slow_gpus = {{3, 2.0}};
  const plan::ParallelPlan plan = tests::small_plan(64, 2, 2, 1);
  const hardware::Topology topology(cluster, plan.gpus);
  const World world = build_world(plan, cluster, topology, true);
  const Partition classes = partition(world, plan, topology, true);
  std::vector<std::vector<std::uint32_t>> crossing(topology.link_count(),
                                                   std::vector<std::uint32_t>(classes.flows.count(), 0));
  for (std::size_t i = 0; i < world.flows.size(); ++i) {
    for (const std::uint32_t link : world.path(world.flows[i])) ++crossing[link][classes.flows.of[i]];
  }
  for (std::size_t link = 0; link < crossing.size(); ++link) {
    EXPECT_EQ(crossing[link], crossing[classes.links.representative[classes.links.of[link]]]) << link;
  }
}

/// A job from two nodes' worth of replicas is the job of all of them.
TEST(Folding, ASampleOfReplicasShowsAllThereIs) {
  for (const std::int64_t tensor : {1, 2, 8}) {
    const plan::ParallelPlan plan = tests::small_plan(128, tensor, 2, 1);
    const auto programs = [&] {
      return lowering::lower(tests::small_gpt(), plan, tests::round_cluster(), schedule::build(plan));
    };
    const program::Job whole =
        build_job(plan, tests::round_cluster(), true, programs(), {true, false, false});
    const program::Job sampled =
        build_job(plan, tests::round_cluster(), true, programs(), {true, false, true});
    ASSERT_LT(sample_replicas(tests::round_cluster(), plan).plan.gpus, plan.gpus);
    ASSERT_EQ(whole.ranks.size(), sampled.ranks.size());
    for (std::size_t i = 0; i < whole.ranks.size(); ++i) {
      EXPECT_EQ(whole.ranks[i].id, sampled.ranks[i].id);
      EXPECT_EQ(whole.ranks[i].represents, sampled.ranks[i].represents);
    }
    const auto time = [](const program::Job& job) {
      return tests::in_child(
                 [&] { return std::vector<double>{engine::make_simgrid_executor()->run(job).step_time}; })
          .at(0);
    };
    EXPECT_NEAR(time(whole) / time(sampled), 1.0, 1e-9);
  }
}

/// The same with experts in groups inside nodes, and in groups over two nodes.
TEST(Folding, ASampleKeepsGroupsOfExpertsWhole) {
  for (const std::int64_t experts : {4, 16}) {
    plan::ParallelPlan plan = tests::small_plan(128, 1, 2, 1);
    plan.expert_parallel = experts;
    const auto job = [&plan](bool sample) {
      auto programs =
          lowering::lower(tests::small_mixture(), plan, tests::round_cluster(), schedule::build(plan));
      return build_job(plan, tests::round_cluster(), true, std::move(programs), {true, false, sample});
    };
    const program::Job whole = job(false);
    const program::Job sampled = job(true);
    // Two blocks of a node, or of two nodes, for each of two stages.
    ASSERT_EQ(sample_replicas(tests::round_cluster(), plan).plan.gpus, experts == 4 ? 32 : 64);
    ASSERT_EQ(whole.ranks.size(), sampled.ranks.size());
    const auto time = [](const program::Job& each) {
      return tests::in_child(
                 [&] { return std::vector<double>{engine::make_simgrid_executor()->run(each).step_time}; })
          .at(0);
    };
    EXPECT_NEAR(time(whole) / time(sampled), 1.0, 1e-9);
  }
}

TEST(Folding, ExpertsExchangeInPairsAndReduceInRings) {
  plan::ParallelPlan plan = tests::small_plan(16, 2, 1, 1);
  plan.expert_parallel = 4;
  const program::Job job =
      build_job(plan, tests::round_cluster(), true, {program::Program{}}, {false, false});
  const auto group_of = [&job](std::size_t rank, program::GroupKind kind) {
    return job.groups[static_cast<std::size_t>(job.ranks[rank].groups[static_cast<std::size_t>(kind)])];
  };
  using Members = std::vector<std::uint32_t>;
  // Ranks of a node are tensor 0, 1 of data 0, then of data 1, …: experts go over four data ranks.
  const program::Group exchange = group_of(3, program::GroupKind::kExpert);
  EXPECT_EQ(exchange.members, (Members{1, 3, 5, 7}));
  EXPECT_EQ(exchange.pattern, program::Pattern::kPairs);
  EXPECT_EQ(group_of(3, program::GroupKind::kExpertData).members, (Members{3, 11}));
  // Experts that are not split are dealt out over all ranks.
  plan.expert_tensor_parallel = 1;
  const program::Job whole =
      build_job(plan, tests::round_cluster(), true, {program::Program{}}, {false, false});
  const auto& ranks = whole.ranks[3].groups;
  const auto members = [&](program::GroupKind kind) {
    return whole.groups[static_cast<std::size_t>(ranks[static_cast<std::size_t>(kind)])].members;
  };
  EXPECT_EQ(members(program::GroupKind::kExpert), (Members{0, 1, 2, 3}));
  EXPECT_EQ(members(program::GroupKind::kExpertData), (Members{3, 7, 11, 15}));
}

/// Ranks of a node are tensor 0, 1 of context 0, then of context 1, then of the next replica.
TEST(Folding, ExpertsGoOverRanksOfASequenceAndReplicas) {
  plan::ParallelPlan plan = tests::small_plan(16, 2, 1, 1);
  plan.context_parallel = 2;
  plan.data_parallel = 4;
  plan.expert_parallel = 4;
  const program::Job job =
      build_job(plan, tests::round_cluster(), true, {program::Program{}}, {false, false});
  const auto members = [&job](program::GroupKind kind) {
    return job.groups[static_cast<std::size_t>(job.ranks[3].groups[static_cast<std::size_t>(kind)])].members;
  };
  using Members = std::vector<std::uint32_t>;
  EXPECT_EQ(members(program::GroupKind::kContext), (Members{1, 3}));
  EXPECT_EQ(members(program::GroupKind::kExpert), (Members{1, 3, 5, 7}));
  EXPECT_EQ(members(program::GroupKind::kExpertData), (Members{3, 11}));
}

double step_time(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan, bool fold,
                 bool closed_form) {
  return tests::in_child([&] {
           engine::ExecutorOptions options;
           options.closed_form_collectives = closed_form;
           const program::Job job = tests::make_job(tests::small_gpt(), cluster, plan, {fold, false});
           return std::vector<double>{engine::make_simgrid_executor(options)->run(job).step_time};
         })
      .at(0);
}

/// With contention on every level: shared NICs, oversubscribed uplinks, several ring members per node.
TEST(Folding, FoldedEqualsUnfoldedUnderContention) {
  for (const std::int64_t tensor : {1, 2, 4}) {
    for (const std::int64_t pipeline : {1, 2}) {
      hardware::ClusterSpec cluster = tests::round_cluster();
      cluster.nics_per_node = 4;
      cluster.fabric.oversubscription = 3.0;
      const plan::ParallelPlan plan = tests::small_plan(32, tensor, pipeline, 1);
      const double unfolded = step_time(cluster, plan, false, true);
      EXPECT_NEAR(step_time(cluster, plan, true, true) / unfolded, 1.0, 1e-9) << tensor << " " << pipeline;
    }
  }
}

/// The same with each algorithm of all-reduces, in groups that have several members in each node.
TEST(Folding, FoldedEqualsUnfoldedWithEachAlgorithm) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.nics_per_node = 4;
  cluster.fabric.oversubscription = 3.0;
  cluster.fabric.in_network_reduction = true;
  cluster.intra_node.nvls_bandwidth = 80e9;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree, Algorithm::kNvlsTree,
                                    Algorithm::kInNetwork, Algorithm::kHierarchical}) {
    cluster.forced_algorithm = algorithm;
    for (const std::int64_t gpus : {16, 32}) {
      const plan::ParallelPlan plan = tests::small_plan(gpus, 2, 1, 1);
      const double unfolded = step_time(cluster, plan, false, true);
      EXPECT_NEAR(step_time(cluster, plan, true, true) / unfolded, 1.0, 1e-9)
          << to_string(algorithm) << " " << gpus;
    }
  }
}

/// Protocols depend on how many nodes a group really has, not on those of the sample.
TEST(Folding, ASampleUsesTheProtocolsOfTheWhole) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.forced_algorithm = Algorithm::kTree;
  const plan::ParallelPlan plan = tests::small_plan(64, 8, 1, 1);
  const auto group = [&](bool sample) {
    const program::Job job = build_job(plan, cluster, false, {program::Program{}}, {true, false, sample});
    for (const program::Group& found : job.groups) {
      if (found.kind == program::GroupKind::kData) return found;
    }
    return program::Group{};
  };
  const auto bytes = [&](bool sample) {
    return program::collective_cost(group(sample), program::CollectiveOp::kAllReduce, 1e6,
                                    tests::links_of(1e9, 1e9))
        .between();
  };
  EXPECT_GT(bytes(true), 0);
  EXPECT_DOUBLE_EQ(bytes(true), bytes(false));
}

/// Eight GPUs of a mesh, seven cables each, and two such nodes: every cable of a node carries an eighth of
/// what a member sends, and the NICs limit.
TEST(Folding, RingsThroughMeshesUseAllTheirCables) {
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.intra_node_kind = hardware::IntraNodeKind::kMesh;
  cluster.nic.bandwidth = 1e12;
  cluster.pcie.bandwidth = 1e12;
  const auto rate = [&](std::int64_t gpus) {
    plan::ParallelPlan plan;
    plan.gpus = plan.tensor_parallel = gpus;
    const program::Job job = build_job(plan, cluster, false, {program::Program{}}, {});
    return engine::member_links(job, job.groups.front()).rate();
  };
  EXPECT_NEAR(rate(8), 7 * 100e9, 1e3);
  EXPECT_NEAR(rate(16), 8 * 100e9, 1e3);
}

TEST(Folding, ClosedFormCollectivesEqualFlows) {
  for (const bool fold : {true, false}) {
    const plan::ParallelPlan plan = tests::small_plan(16, 4, 2, 2);
    const double flows = step_time(tests::round_cluster(), plan, fold, false);
    EXPECT_NEAR(step_time(tests::round_cluster(), plan, fold, true) / flows, 1.0, 1e-9);
  }
}

}  // namespace
}  // namespace trainsim::folding
