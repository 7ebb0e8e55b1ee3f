// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/fold.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/folding/partition.hpp"
#include "sim/folding/protocols.hpp"
#include "sim/folding/sample.hpp"

namespace trainsim::folding {

namespace {

/// Whether a group has members in every block of replicas.
bool reaches_all_blocks(program::GroupKind kind) {
  return kind == program::GroupKind::kData || kind == program::GroupKind::kReplica ||
         kind == program::GroupKind::kExpertData;
}

/// Builds the quotient of a world by its partition: one rank, group, flow and link per class.
class Quotient {
 public:
  Quotient(const World& world, const Partition& classes, const hardware::ClusterSpec& cluster,
           const hardware::Topology& topology, const Sample& sample, const FoldOptions& options)
      : world_(world),
        classes_(classes),
        cluster_(cluster),
        topology_(topology),
        sample_(sample),
        options_(options) {}

  void add_ranks(const plan::ParallelPlan& plan, program::Job& job) const;
  void add_groups(program::Job& job) const;
  void add_peers(program::Job& job) const;
  void add_links(program::Job& job) const;

 private:
  program::Flow flow(std::uint32_t index) const;
  /// Node of a rank among those of the job.
  std::int64_t node_of(std::uint32_t rank) const { return rank / cluster_.gpus_per_node; }
  bool is_between_nodes(std::uint32_t flow) const {
    return node_of(world_.flows[flow].source) != node_of(world_.flows[flow].target);
  }
  /// Share of a member's data that crosses each real link in all flows of a group together: inside nodes, and
  /// between nodes.
  std::map<std::uint32_t, std::pair<double, double>> loads(const WorldGroup& group) const;

  const World& world_;
  const Partition& classes_;
  const hardware::ClusterSpec& cluster_;
  const hardware::Topology& topology_;
  const Sample& sample_;
  const FoldOptions& options_;
};

/// A flow of the quotient. Each link of class L on its path is crossed, in the real network, by |F| k / |L|
/// flows of the flow's class F, where k is how many links of class L the path holds: that is the weight of L.
program::Flow Quotient::flow(std::uint32_t index) const {
  const WorldFlow& real = world_.flows[index];
  program::Flow folded;
  if (options_.free_communication) return folded;
  folded.latency = real.latency;
  std::map<std::uint32_t, std::uint64_t> crossed;
  for (const std::uint32_t link : world_.path(real)) ++crossed[classes_.links.of[link]];
  const std::uint64_t flows = classes_.flows.size[classes_.flows.of[index]];
  for (const auto& [link, times] : crossed) {
    const std::uint64_t weight = flows * times / classes_.links.size[link];
    folded.route.push_back({link, static_cast<std::uint32_t>(weight), 1.0, 0});
  }
  return folded;
}

std::map<std::uint32_t, std::pair<double, double>> Quotient::loads(const WorldGroup& group) const {
  std::map<std::uint32_t, std::pair<double, double>> load;
  for (std::uint32_t f = group.flow_begin; f < group.flow_end; ++f) {
    for (const std::uint32_t link : world_.path(world_.flows[f])) {
      auto& [inside, between] = load[link];
      (is_between_nodes(f) ? between : inside) += world_.flows[f].share;
    }
  }
  return load;
}

void Quotient::add_ranks(const plan::ParallelPlan& plan, program::Job& job) const {
  for (std::size_t c = 0; c < classes_.ranks.count(); ++c) {
    const std::uint32_t real = classes_.ranks.representative[c];
    const plan::Coordinates at = plan::coordinates_of(plan, real);
    program::Rank rank;
    rank.id = real;
    rank.represents = classes_.ranks.size[c];
    rank.stage = at.stage;
    rank.tensor_rank = at.tensor;
    rank.data_rank = at.data;
    rank.context_rank = at.context;
    rank.program = static_cast<std::uint32_t>(at.stage);
    rank.slowdown = world_.slowdown[real];
    job.ranks.push_back(rank);
  }
}

void Quotient::add_groups(program::Job& job) const {
  for (std::size_t c = 0; c < classes_.groups.count(); ++c) {
    const WorldGroup& real = world_.groups[classes_.groups.representative[c]];
    program::Group group;
    group.kind = real.kind;
    group.pattern = real.pattern;
    group.size = real.member_end - real.member_begin;
    for (std::uint32_t m = real.member_begin; m < real.member_end; ++m) {
      group.members.push_back(classes_.ranks.of[world_.members[m]]);
    }
    std::set<std::int64_t> nodes;
    for (std::uint32_t m = real.member_begin; m < real.member_end; ++m) {
      nodes.insert(node_of(world_.members[m]));
    }
    group.nodes = static_cast<std::int64_t>(nodes.size());
    // Of the whole, not of the sample: protocols depend on it.
    if (reaches_all_blocks(group.kind)) {
      group.size = group.size / sample_.kept_blocks * sample_.blocks;
      group.nodes = group.nodes / sample_.kept_blocks * sample_.blocks;
    }
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
    Seconds inside_latency = 0;
    Seconds between_latency = 0;
    std::map<std::uint32_t, std::uint32_t> distinct;
    for (std::uint32_t f = real.flow_begin; f < real.flow_end; ++f) distinct.emplace(classes_.flows.of[f], f);
    const auto load = loads(real);
    for (const auto& [flow_class, f] : distinct) {
      const bool between = is_between_nodes(f);
      group.flows.push_back({flow(f), world_.flows[f].share, between});
      for (program::Hop& hop : group.flows.back().flow.route) {
        hop.inside_load = 0;
        for (const std::uint32_t link : world_.path(world_.flows[f])) {
          if (classes_.links.of[link] != hop.link) continue;
          const auto& [inside_load, between_load] = load.at(link);
          if (inside_load + between_load <= hop.inside_load + hop.between_load) continue;
          hop.inside_load = inside_load;
          hop.between_load = between_load;
        }
      }
      Seconds& latency = between ? between_latency : inside_latency;
      latency = std::max(latency, group.flows.back().flow.latency);
    }
    if (options_.free_communication) {
      group.flows.clear();
    } else {
      group.protocols =
          group.pattern != program::Pattern::kRings
              ? std::vector{message_protocol(cluster_, group.pattern, group.nodes, inside_latency,
                                             between_latency)}
              : protocols_of(cluster_, group.size, group.nodes, inside_latency, between_latency);
    }
    for (const std::uint32_t member : group.members) {
      job.ranks[member].groups[static_cast<std::size_t>(group.kind)] = static_cast<std::int32_t>(c);
    }
    job.groups.push_back(std::move(group));
  }
}

void Quotient::add_peers(program::Job& job) const {
  for (std::size_t c = 0; c < classes_.flows.count(); ++c) {
    const std::uint32_t index = classes_.flows.representative[c];
    const WorldFlow& real = world_.flows[index];
    if (real.group != kNoGroup) continue;
    program::Rank& source = job.ranks[classes_.ranks.of[real.source]];
    program::Peer& peer = source.peers[static_cast<std::size_t>(real.peer)];
    peer.rank = static_cast<std::int32_t>(classes_.ranks.of[real.target]);
    peer.flow = flow(index);
    peer.between_nodes = is_between_nodes(index);
    if (!options_.free_communication) peer.latency = cluster_.point_to_point_latency + real.latency;
  }
}

/// Visits every hop of a job.
template <class Visit>
void for_each_hop(program::Job& job, Visit visit) {
  for (program::Group& group : job.groups) {
    for (program::RingFlow& ring : group.flows)
      std::for_each(ring.flow.route.begin(), ring.flow.route.end(), visit);
  }
  for (program::Rank& rank : job.ranks) {
    for (program::Peer& peer : rank.peers) {
      std::for_each(peer.flow.route.begin(), peer.flow.route.end(), visit);
    }
  }
}

/// Links in use, renumbered. Dividing a link's bandwidth and its weights by their common divisor changes no
/// rate and keeps the weights small.
void Quotient::add_links(program::Job& job) const {
  std::map<std::uint32_t, std::uint32_t> divisor;
  for_each_hop(job, [&](program::Hop& hop) { divisor[hop.link] = std::gcd(divisor[hop.link], hop.weight); });
  std::map<std::uint32_t, std::uint32_t> number;
  for (const auto& [link, common] : divisor) {
    number[link] = static_cast<std::uint32_t>(job.links.size());
    const std::uint32_t real = classes_.links.representative[link];
    job.links.push_back({topology_.link_name(real), topology_.bandwidth(real), common});
  }
  for_each_hop(job, [&](program::Hop& hop) {
    hop.weight /= divisor[hop.link];
    hop.link = number[hop.link];
  });
}

/// Makes a sample's job stand for the whole plan.
void scale(const plan::ParallelPlan& plan, const Sample& sample, program::Job& job) {
  for (program::Rank& rank : job.ranks) {
    rank.represents = rank.represents / sample.kept_blocks * sample.blocks;
    rank.id = plan::rank_of(plan, {rank.tensor_rank, rank.data_rank, rank.stage, rank.context_rank});
  }
}

/// Without communication time the host has no work for transfers either.
void drop_transfer_work(std::vector<program::Program>& programs) {
  for (program::Program& program : programs) {
    for (program::Instruction& instruction : program.stream(program::Stream::kCompute)) {
      if (instruction.op == program::Opcode::kSynchronize) instruction.amount = 0;
    }
  }
}

}  // namespace

program::Job build_job(const plan::ParallelPlan& plan, const hardware::ClusterSpec& cluster, bool tied,
                       std::vector<program::Program> programs, const FoldOptions& options) {
  const Sample sample =
      options.fold && options.sample ? sample_replicas(cluster, plan) : Sample{cluster, plan};
  const hardware::Topology topology(sample.cluster,
                                    plan::gpus_in_reach(sample.plan, sample.cluster.gpus_per_node));
  const World world = build_world(sample.plan, sample.cluster, topology, tied, options.tensor_pattern);
  const Partition classes = partition(world, sample.plan, topology, options.fold, options.separate_flows);
  program::Job job;
  job.programs = std::move(programs);
  if (options.free_communication) drop_transfer_work(job.programs);
  job.world_size = plan.gpus;
  const Quotient quotient(world, classes, sample.cluster, topology, sample, options);
  quotient.add_ranks(sample.plan, job);
  quotient.add_groups(job);
  quotient.add_peers(job);
  quotient.add_links(job);
  scale(plan, sample, job);
  job.folded = static_cast<std::int64_t>(job.ranks.size()) < plan.gpus;
  return job;
}

}  // namespace trainsim::folding
