// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/hardware/topology.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"

namespace trainsim::folding {

/// A flow between two ranks of the unfolded world.
struct WorldFlow {
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  /// Index into World::groups; kNoGroup for a point-to-point channel.
  std::uint32_t group = 0;
  /// Which peer the channel leads to; meaningful for point-to-point channels only.
  program::PeerKind peer = program::PeerKind::kNextStage;
  double share = 1.0;
  Seconds latency = 0;
  /// Range of World::paths.
  std::uint32_t path_begin = 0;
  std::uint32_t path_end = 0;
};
inline constexpr std::uint32_t kNoGroup = 0xffffffffU;

/// A communicator of the unfolded world: ranges of World::members and World::flows.
struct WorldGroup {
  program::GroupKind kind = program::GroupKind::kTensor;
  program::Pattern pattern = program::Pattern::kRings;
  std::uint32_t member_begin = 0;
  std::uint32_t member_end = 0;
  std::uint32_t flow_begin = 0;
  std::uint32_t flow_end = 0;
};

/// Who talks to whom over which links, for every rank of the cluster.
struct World {
  std::int64_t size = 1;
  std::vector<double> slowdown;
  std::vector<WorldGroup> groups;
  std::vector<std::uint32_t> members;
  std::vector<WorldFlow> flows;
  /// Links of all flows, one after the other.
  std::vector<std::uint32_t> paths;

  /// Links that a flow crosses, in order.
  std::span<const std::uint32_t> path(const WorldFlow& flow) const {
    return std::span(paths).subspan(flow.path_begin, flow.path_end - flow.path_begin);
  }
};

/// Builds communicators, rings and pipeline channels of a plan on a cluster. `tied` says whether first and
/// last stage share an embedding. `tensor_pattern` says how tensor-parallel
/// ranks talk. Groups of a single member are left out.
World build_world(const plan::ParallelPlan& plan, const hardware::ClusterSpec& cluster,
                  const hardware::Topology& topology, bool tied,
                  program::Pattern tensor_pattern = program::Pattern::kRings);

}  // namespace trainsim::folding
