// SPDX-License-Identifier: Apache-2.0
#include "sim/folding/partition.hpp"

#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "sim/base/hash.hpp"

namespace trainsim::folding {

namespace {

using Colour = std::uint64_t;

/// Sums of scrambled words behave like multiset hashes.
constexpr Colour mix(Colour x) {
  return scramble(x);
}

/// Appends a word to an ordered hash.
constexpr Colour chain(Colour hash, Colour word) {
  return mix(hash * 3 + word);
}

constexpr Colour kOutgoing = 0x6f757467ULL;
constexpr Colour kIncoming = 0x696e636fULL;

/// Colours of everything in a world, refined until nothing splits any more.
class Refinement {
 public:
  Refinement(const World& world, const plan::ParallelPlan& plan, const hardware::Topology& topology,
             bool fold, bool separate_flows);
  /// One round; returns the number of colours in use.
  std::size_t refine();
  Partition classes() const;

 private:
  void refine_flows();
  void refine_links();
  void refine_groups();
  void refine_ranks();

  const World& world_;
  std::vector<Colour> ranks_;
  std::vector<Colour> groups_;
  std::vector<Colour> flows_;
  std::vector<Colour> links_;
};

Refinement::Refinement(const World& world, const plan::ParallelPlan& plan, const hardware::Topology& topology,
                       bool fold, bool separate_flows)
    : world_(world) {
  for (std::int64_t r = 0; r < world.size; ++r) {
    const auto stage = static_cast<Colour>(plan::coordinates_of(plan, r).stage);
    const auto speed = std::bit_cast<Colour>(world.slowdown[static_cast<std::size_t>(r)]);
    ranks_.push_back(chain(chain(stage, speed), fold ? 0 : static_cast<Colour>(r) + 1));
  }
  for (const WorldGroup& group : world.groups) {
    groups_.push_back(chain(static_cast<Colour>(group.kind), group.member_end - group.member_begin));
  }
  for (const WorldFlow& flow : world.flows) {
    const Colour kind = flow.group == kNoGroup ? static_cast<Colour>(flow.peer) + 100 : 0;
    const Colour numbers = chain(std::bit_cast<Colour>(flow.share), std::bit_cast<Colour>(flow.latency));
    flows_.push_back(chain(chain(kind, numbers), separate_flows ? flows_.size() + 1 : 0));
  }
  for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
    links_.push_back(std::bit_cast<Colour>(topology.bandwidth(link)));
  }
}

void Refinement::refine_flows() {
  for (std::size_t i = 0; i < world_.flows.size(); ++i) {
    const WorldFlow& flow = world_.flows[i];
    // Members of a group enter and leave a collective together, whatever their place in its ring; so ring
    // flows depend on their group alone, and only channels on their ends.
    Colour colour = flow.group != kNoGroup
                        ? chain(flows_[i], groups_[flow.group])
                        : chain(chain(flows_[i], ranks_[flow.source]), ranks_[flow.target]);
    for (const std::uint32_t link : world_.path(flow)) colour = chain(colour, links_[link]);
    flows_[i] = colour;
  }
}

void Refinement::refine_links() {
  std::vector<Colour> crossing(links_.size(), 0);
  for (std::size_t i = 0; i < world_.flows.size(); ++i) {
    for (const std::uint32_t link : world_.path(world_.flows[i])) crossing[link] += mix(flows_[i]);
  }
  for (std::size_t link = 0; link < links_.size(); ++link) {
    // Unused links are alike whatever their bandwidth, and never matter.
    links_[link] = crossing[link] == 0 ? 0 : chain(links_[link], crossing[link]);
  }
}

void Refinement::refine_groups() {
  for (std::size_t i = 0; i < world_.groups.size(); ++i) {
    const WorldGroup& group = world_.groups[i];
    Colour inside = 0;
    for (std::uint32_t m = group.member_begin; m < group.member_end; ++m)
      inside += mix(ranks_[world_.members[m]]);
    for (std::uint32_t f = group.flow_begin; f < group.flow_end; ++f) inside += mix(flows_[f] + 1);
    groups_[i] = chain(groups_[i], inside);
  }
}

void Refinement::refine_ranks() {
  std::vector<Colour> around(ranks_.size(), 0);
  for (std::size_t i = 0; i < world_.groups.size(); ++i) {
    const WorldGroup& group = world_.groups[i];
    for (std::uint32_t m = group.member_begin; m < group.member_end; ++m) {
      around[world_.members[m]] += mix(groups_[i]);
    }
  }
  for (std::size_t i = 0; i < world_.flows.size(); ++i) {
    if (world_.flows[i].group != kNoGroup) continue;
    around[world_.flows[i].source] += mix(flows_[i] ^ kOutgoing);
    around[world_.flows[i].target] += mix(flows_[i] ^ kIncoming);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) ranks_[r] = chain(ranks_[r], around[r]);
}

std::size_t count_distinct(const std::vector<Colour>& colours) {
  return std::unordered_set<Colour>(colours.begin(), colours.end()).size();
}

std::size_t Refinement::refine() {
  refine_flows();
  refine_links();
  refine_groups();
  refine_ranks();
  return count_distinct(ranks_) + count_distinct(groups_) + count_distinct(flows_) + count_distinct(links_);
}

Classes number(const std::vector<Colour>& colours) {
  Classes classes;
  std::unordered_map<Colour, std::uint32_t> numbers;
  classes.of.reserve(colours.size());
  for (std::uint32_t i = 0; i < colours.size(); ++i) {
    const auto [entry, added] = numbers.emplace(colours[i], static_cast<std::uint32_t>(classes.count()));
    if (added) {
      classes.representative.push_back(i);
      classes.size.push_back(0);
    }
    classes.of.push_back(entry->second);
    ++classes.size[entry->second];
  }
  return classes;
}

Partition Refinement::classes() const {
  return {number(ranks_), number(groups_), number(flows_), number(links_)};
}

}  // namespace

Partition partition(const World& world, const plan::ParallelPlan& plan, const hardware::Topology& topology,
                    bool fold, bool separate_flows) {
  Refinement refinement(world, plan, topology, fold, separate_flows);
  std::size_t colours = refinement.refine();
  for (;;) {
    const std::size_t refined = refinement.refine();
    if (refined == colours) return refinement.classes();
    colours = refined;
  }
}

}  // namespace trainsim::folding
