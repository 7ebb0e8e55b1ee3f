// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/world.hpp"

#include <algorithm>
#include <map>

#include "sim/hardware/rings.hpp"

namespace trainsim::folding {

namespace {

using plan::Coordinates;
using program::GroupKind;
using program::PeerKind;

/// 0, 1, -1, 2, -2, … modulo `count`: paths that begin at each member and go on like this use every cable of
/// a full mesh equally often (Walecki; Lucas 1892).
std::size_t zigzag(std::size_t place, std::size_t count) {
  return place % 2 == 1 ? (place + 1) / 2 : (count - place / 2) % count;
}

/// Adds groups and flows to a world.
class WorldBuilder {
 public:
  WorldBuilder(const plan::ParallelPlan& plan, const hardware::Topology& topology, std::int64_t gpus_per_node,
               World& world)
      : plan_(plan), topology_(topology), gpus_per_node_(gpus_per_node), world_(world) {}

  void add_tensor_groups(program::Pattern pattern);
  void add_data_groups();
  void add_context_groups();
  void add_hybrid_groups(const std::vector<std::uint32_t>& members);
  void add_expert_groups();
  void add_embedding_groups();
  void add_channels();

 private:
  std::uint32_t rank(const Coordinates& at) const {
    return static_cast<std::uint32_t>(plan::rank_of(plan_, at));
  }
  /// Calls `work` with the position of every rank of a stage whose tensor coordinate is 0: all data-parallel
  /// and, within each, all context-parallel ones.
  template <class Work>
  void for_each_replica(std::int64_t stage, Work work) const {
    Coordinates at{0, 0, stage};
    for (at.data = 0; at.data < plan_.data_parallel; ++at.data) {
      for (at.context = 0; at.context < plan_.context_parallel; ++at.context) work(at);
    }
  }
  void add_group(GroupKind kind, const std::vector<std::uint32_t>& members,
                 program::Pattern pattern = program::Pattern::kRings);
  void add_pairs(std::uint32_t group, const std::vector<std::uint32_t>& members);
  void add_rings(std::uint32_t group, const std::vector<std::uint32_t>& members);
  using Rings = std::vector<std::vector<std::int64_t>>;
  const Rings& cable_rings(const std::vector<std::uint32_t>& members);
  std::vector<std::uint32_t> along_cables(const std::vector<std::uint32_t>& members);
  bool add_cable_rings(std::uint32_t group, const std::vector<std::uint32_t>& members);
  void add_ring(std::uint32_t group, const std::vector<std::uint32_t>& order, double share);
  void add_flow(WorldFlow flow);

  const plan::ParallelPlan& plan_;
  const hardware::Topology& topology_;
  std::int64_t gpus_per_node_;
  World& world_;
  /// Found before, by the members' numbers in their node.
  std::map<std::vector<std::int64_t>, Rings> rings_;
};

void WorldBuilder::add_flow(WorldFlow flow) {
  const hardware::Route route = topology_.route(plan::gpu_of(plan_, flow.source, gpus_per_node_),
                                                plan::gpu_of(plan_, flow.target, gpus_per_node_));
  flow.latency = route.latency;
  flow.path_begin = static_cast<std::uint32_t>(world_.paths.size());
  world_.paths.insert(world_.paths.end(), route.links.begin(), route.links.end());
  flow.path_end = static_cast<std::uint32_t>(world_.paths.size());
  world_.flows.push_back(flow);
}

void WorldBuilder::add_ring(std::uint32_t group, const std::vector<std::uint32_t>& order, double share) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    WorldFlow flow;
    flow.source = order[i];
    flow.target = order[(i + 1) % order.size()];
    flow.group = group;
    flow.share = share;
    add_flow(flow);
  }
}

/// Rings over the cables between members of one node, as places among them.
const WorldBuilder::Rings& WorldBuilder::cable_rings(const std::vector<std::uint32_t>& members) {
  std::vector<std::int64_t> local(members.size());
  std::transform(members.begin(), members.end(), local.begin(),
                 [this](std::uint32_t member) { return member % gpus_per_node_; });
  const auto [entry, added] = rings_.try_emplace(local);
  if (!added) return entry->second;
  std::vector<std::vector<std::int64_t>> cables(members.size());
  for (std::size_t i = 0; i < local.size(); ++i) {
    for (const std::int64_t other : local) cables[i].push_back(topology_.node().cables(local[i], other));
  }
  return entry->second = hardware::disjoint_rings(cables);
}

/// Members that share a node and are cabled to each other use as many rings as their cables allow; false when
/// that is not so.
bool WorldBuilder::add_cable_rings(std::uint32_t group, const std::vector<std::uint32_t>& members) {
  if (members.front() / gpus_per_node_ != members.back() / gpus_per_node_) return false;
  const Rings& rings = cable_rings(members);
  for (const std::vector<std::int64_t>& ring : rings) {
    std::vector<std::uint32_t> order(ring.size());
    std::transform(ring.begin(), ring.end(), order.begin(),
                   [&members](std::int64_t place) { return members[static_cast<std::size_t>(place)]; });
    add_ring(group, order, 1.0 / static_cast<double>(rings.size()));
  }
  return !rings.empty();
}

/// Members of a node in an order whose neighbours have a cable, if there is one.
std::vector<std::uint32_t> WorldBuilder::along_cables(const std::vector<std::uint32_t>& members) {
  const Rings& rings = cable_rings(members);
  if (rings.empty()) return members;
  std::vector<std::uint32_t> order(members.size());
  std::transform(rings.front().begin(), rings.front().end(), order.begin(),
                 [&members](std::int64_t place) { return members[static_cast<std::size_t>(place)]; });
  return order;
}

/// One ring through all members, node by node. With g members in a node NCCL opens g rings that enter and
/// leave each node at different members, so that all their NICs work; each ring carries 1/g of the data.
/// Every other node is walked backwards, so that a hop between nodes leaves and arrives on the same rail.
void WorldBuilder::add_rings(std::uint32_t group, const std::vector<std::uint32_t>& members) {
  if (topology_.node().has_cables() && add_cable_rings(group, members)) return;
  std::map<std::int64_t, std::vector<std::uint32_t>> by_node;
  for (const std::uint32_t member : members) by_node[member / gpus_per_node_].push_back(member);
  const bool meshed = topology_.node().is_full_mesh();
  if (topology_.node().has_cables() && !meshed) {
    for (auto& [node, inside] : by_node) inside = along_cables(inside);
  }
  std::size_t rings = 1;
  if (by_node.size() > 1) {
    for (const auto& [node, inside] : by_node) rings = std::max(rings, inside.size());
  }
  for (std::size_t ring = 0; ring < rings; ++ring) {
    std::vector<std::uint32_t> order;
    bool backwards = false;
    for (const auto& [node, inside] : by_node) {
      const std::size_t g = inside.size();
      for (std::size_t i = 0; i < g; ++i) {
        const std::size_t place = backwards ? g - 1 - i : i;
        order.push_back(inside[(ring + (meshed ? zigzag(place, g) : place)) % g]);
      }
      backwards = !backwards;
    }
    add_ring(group, order, 1.0 / static_cast<double>(rings));
  }
}

/// A member's data goes to all others in equal parts.
void WorldBuilder::add_pairs(std::uint32_t group, const std::vector<std::uint32_t>& members) {
  for (const std::uint32_t source : members) {
    for (const std::uint32_t target : members) {
      if (source == target) continue;
      WorldFlow flow;
      flow.source = source;
      flow.target = target;
      flow.group = group;
      flow.share = 1.0 / static_cast<double>(members.size() - 1);
      add_flow(flow);
    }
  }
}

void WorldBuilder::add_group(GroupKind kind, const std::vector<std::uint32_t>& members,
                             program::Pattern pattern) {
  if (members.size() < 2) return;
  WorldGroup group;
  group.kind = kind;
  group.pattern = pattern;
  group.member_begin = static_cast<std::uint32_t>(world_.members.size());
  world_.members.insert(world_.members.end(), members.begin(), members.end());
  group.member_end = static_cast<std::uint32_t>(world_.members.size());
  group.flow_begin = static_cast<std::uint32_t>(world_.flows.size());
  const auto index = static_cast<std::uint32_t>(world_.groups.size());
  switch (pattern) {
    case program::Pattern::kRings:
      add_rings(index, members);
      break;
    case program::Pattern::kPairs:
      add_pairs(index, members);
      break;
    case program::Pattern::kNeighbours:
      add_ring(index, members, 1.0);
      break;
  }
  group.flow_end = static_cast<std::uint32_t>(world_.flows.size());
  world_.groups.push_back(group);
}

void WorldBuilder::add_tensor_groups(program::Pattern pattern) {
  for (std::int64_t stage = 0; stage < plan_.pipeline_parallel; ++stage) {
    for_each_replica(stage, [&](Coordinates at) {
      std::vector<std::uint32_t> members;
      for (at.tensor = 0; at.tensor < plan_.tensor_parallel; ++at.tensor) members.push_back(rank(at));
      add_group(GroupKind::kTensor, members, pattern);
    });
  }
}

void WorldBuilder::add_data_groups() {
  for (std::int64_t stage = 0; stage < plan_.pipeline_parallel; ++stage) {
    for (std::int64_t tensor = 0; tensor < plan_.tensor_parallel; ++tensor) {
      std::vector<std::uint32_t> members;
      for_each_replica(stage, [&](Coordinates at) {
        at.tensor = tensor;
        members.push_back(rank(at));
      });
      // As NCCL counts them, whatever the order of the axes.
      std::sort(members.begin(), members.end());
      if (plan_.is_hybrid()) add_hybrid_groups(members);
      if (!plan_.is_hybrid() || plan_.deals_out_weights()) add_group(GroupKind::kData, members);
    }
  }
}

/// Ring attention passes keys and values on to the next rank, and so has one ring, unlike collectives.
program::Pattern context_pattern(plan::ContextCommunication communication) {
  switch (communication) {
    case plan::ContextCommunication::kP2p:
      return program::Pattern::kNeighbours;
    case plan::ContextCommunication::kAllGather:
      return program::Pattern::kRings;
    case plan::ContextCommunication::kAllToAll:
      break;
  }
  return program::Pattern::kPairs;
}

void WorldBuilder::add_context_groups() {
  if (plan_.context_parallel < 2) return;
  Coordinates at;
  for (at.stage = 0; at.stage < plan_.pipeline_parallel; ++at.stage) {
    for (at.data = 0; at.data < plan_.data_parallel; ++at.data) {
      for (at.tensor = 0; at.tensor < plan_.tensor_parallel; ++at.tensor) {
        std::vector<std::uint32_t> members;
        for (at.context = 0; at.context < plan_.context_parallel; ++at.context) members.push_back(rank(at));
        add_group(GroupKind::kContext, members, context_pattern(plan_.context_communication));
      }
    }
  }
}

/// Shard groups are neighbours, replicas lie as far apart as a shard group is large.
void WorldBuilder::add_hybrid_groups(const std::vector<std::uint32_t>& members) {
  const auto size = static_cast<std::size_t>(plan_.shard_ranks());
  for (std::size_t first = 0; first < members.size(); first += size) {
    const auto begin = members.begin() + static_cast<std::ptrdiff_t>(first);
    add_group(GroupKind::kShard, {begin, begin + static_cast<std::ptrdiff_t>(size)});
  }
  // Where weights are dealt out gradients are added up by all at once.
  for (std::size_t place = 0; place < size && !plan_.deals_out_weights(); ++place) {
    std::vector<std::uint32_t> replicas;
    for (std::size_t i = place; i < members.size(); i += size) replicas.push_back(members[i]);
    add_group(GroupKind::kReplica, replicas);
  }
}

/// Ranks that hold different experts exchange tokens in pairs; those that hold the same reduce their
/// gradients.
void WorldBuilder::add_expert_groups() {
  if (!plan_.spreads_experts()) return;
  const auto rank_at = [this](const plan::ExpertCoordinates& at, std::int64_t stage) {
    return static_cast<std::uint32_t>(plan::rank_of(plan_, plan::coordinates_of(plan_, at, stage)));
  };
  for (std::int64_t stage = 0; stage < plan_.pipeline_parallel; ++stage) {
    for (std::int64_t tensor = 0; tensor < plan_.expert_tensor(); ++tensor) {
      for (std::int64_t data = 0; data < plan_.expert_data_parallel(); ++data) {
        std::vector<std::uint32_t> members;
        for (std::int64_t expert = 0; expert < plan_.expert_parallel; ++expert)
          members.push_back(rank_at({tensor, expert, data}, stage));
        add_group(GroupKind::kExpert, members, program::Pattern::kPairs);
      }
      for (std::int64_t expert = 0; expert < plan_.expert_parallel; ++expert) {
        std::vector<std::uint32_t> members;
        for (std::int64_t data = 0; data < plan_.expert_data_parallel(); ++data)
          members.push_back(rank_at({tensor, expert, data}, stage));
        add_group(GroupKind::kExpertData, members);
      }
    }
  }
}

void WorldBuilder::add_embedding_groups() {
  if (plan_.pipeline_parallel < 2) return;
  for_each_replica(0, [&](Coordinates first) {
    for (first.tensor = 0; first.tensor < plan_.tensor_parallel; ++first.tensor) {
      Coordinates last = first;
      last.stage = plan_.pipeline_parallel - 1;
      add_group(GroupKind::kEmbedding, {rank(first), rank(last)});
    }
  });
}

void WorldBuilder::add_channels() {
  const std::int64_t p = plan_.pipeline_parallel;
  if (p < 2) return;
  const bool wraps = plan_.virtual_pipeline > 1;
  for (std::int64_t r = 0; r < world_.size; ++r) {
    const Coordinates at = plan::coordinates_of(plan_, r);
    WorldFlow flow;
    flow.source = static_cast<std::uint32_t>(r);
    flow.group = kNoGroup;
    if (wraps || at.stage + 1 < p) {
      flow.peer = PeerKind::kNextStage;
      flow.target = rank({at.tensor, at.data, (at.stage + 1) % p, at.context});
      add_flow(flow);
    }
    if (wraps || at.stage > 0) {
      flow.peer = PeerKind::kPreviousStage;
      flow.target = rank({at.tensor, at.data, (at.stage + p - 1) % p, at.context});
      add_flow(flow);
    }
  }
}

}  // namespace

World build_world(const plan::ParallelPlan& plan, const hardware::ClusterSpec& cluster,
                  const hardware::Topology& topology, bool tied, program::Pattern tensor_pattern) {
  World world;
  world.size = plan.gpus;
  world.slowdown.assign(static_cast<std::size_t>(plan.gpus), 1.0);
  for (const hardware::SlowGpu& slow : cluster.slow_gpus) {
    if (slow.gpu >= plan.gpus) continue;
    world.slowdown[static_cast<std::size_t>(slow.gpu)] *= slow.slowdown;
  }
  WorldBuilder builder(plan, topology, cluster.gpus_per_node, world);
  builder.add_tensor_groups(tensor_pattern);
  builder.add_data_groups();
  builder.add_context_groups();
  builder.add_expert_groups();
  if (tied) builder.add_embedding_groups();
  builder.add_channels();
  return world;
}

}  // namespace trainsim::folding
