// SPDX-License-Identifier: Apache-2.0
#include "sim/search/placements.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/ranges.hpp"

namespace trainsim::search {

namespace {

using hardware::ClusterSpec;
using hardware::FabricKind;
using hardware::FabricSpec;
using plan::Axis;
using plan::ParallelPlan;
using Nodes = std::vector<std::int64_t>;

/// Ranks along an axis.
std::int64_t degree(const ParallelPlan& plan, Axis axis) {
  switch (axis) {
    case Axis::kTensor:
      return plan.tensor_parallel * plan.context_parallel;
    case Axis::kData:
      return plan.data_parallel;
    case Axis::kPipeline:
      break;
  }
  return plan.pipeline_parallel;
}

/// The axes of an order that have several ranks.
std::vector<Axis> places_of(const plan::RankOrder& order, const ParallelPlan& plan) {
  std::vector<Axis> axes;
  std::copy_if(order.begin(), order.end(), std::back_inserter(axes),
               [&plan](Axis axis) { return degree(plan, axis) > 1; });
  return axes;
}

/// Nodes that are near to each other.
struct Block {
  const char* one;
  const char* several;
  std::int64_t nodes = 0;
};

/// The blocks between which traffic can be held up, from the smallest.
std::vector<Block> blocks_of(const FabricSpec& fabric) {
  std::vector<Block> blocks;
  if (fabric.kind == FabricKind::kDragonfly)
    blocks.push_back({"group", "groups", fabric.nodes_per_leaf * fabric.routers_per_group});
  if (!fabric.is_tree() || fabric.is_non_blocking()) return blocks;
  blocks.push_back({"leaf", "leaves", fabric.nodes_per_leaf});
  if (fabric.nodes_per_pod > 0) blocks.push_back({"pod", "pods", fabric.nodes_per_pod});
  return blocks;
}

/// So many of each block, one block after the other.
Nodes some_of_each(std::int64_t count, std::int64_t some, std::int64_t block) {
  Nodes nodes;
  for (std::int64_t i = 0; i < count; ++i) nodes.push_back(i / some * block + i % some);
  return nodes;
}

/// The first nodes, each in another block than the one before while there are several.
Nodes alternating(std::int64_t count, std::int64_t block) {
  Nodes nodes;
  for (std::int64_t place = 0; place < block; ++place) {
    for (std::int64_t node = place; node < count; node += block) nodes.push_back(node);
  }
  return nodes;
}

/// "plan.placement=[0-3, 8-11]".
std::string override_for(const Nodes& nodes) {
  return "plan.placement=[" + join_ranges(nodes) + "]";
}

/// Collects choices of nodes, each once.
class Choices {
 public:
  explicit Choices(Nodes own) : seen_{std::move(own)} {}
  void add(const std::string& meaning, const Nodes& nodes) {
    if (seen_.insert(nodes).second) list_.push_back({meaning, {override_for(nodes)}});
  }
  std::vector<PlacementChoice> take() { return std::move(list_); }

 private:
  std::set<Nodes> seen_;
  std::vector<PlacementChoice> list_;
};

}  // namespace

std::vector<PlacementChoice> other_orders(const ParallelPlan& plan) {
  std::vector<PlacementChoice> choices;
  std::set<std::vector<Axis>> seen = {places_of(plan.order, plan)};
  plan::RankOrder order = {Axis::kTensor, Axis::kData, Axis::kPipeline};
  do {
    if (!seen.insert(places_of(order, plan)).second) continue;
    const std::string name = plan::to_string(order);
    choices.push_back({"order " + name, {"plan.order=" + name}});
  } while (std::next_permutation(order.begin(), order.end()));
  return choices;
}

std::vector<PlacementChoice> other_nodes(const ParallelPlan& plan, const ClusterSpec& cluster) {
  const std::int64_t count = cluster.nodes_of(plan.gpus);
  if (!why_no_other_nodes(plan, cluster).empty()) return {};
  Nodes first(static_cast<std::size_t>(count));
  std::iota(first.begin(), first.end(), std::int64_t{0});
  Choices choices(plan.nodes.empty() ? first : plan.nodes);
  choices.add("the first nodes", first);
  for (const Block& block : blocks_of(cluster.fabric)) {
    if (block.nodes > 2) {
      choices.add(std::string("half of each ") + block.one,
                  some_of_each(count, block.nodes / 2, block.nodes));
    }
    choices.add(std::string("one node of each ") + block.one, some_of_each(count, 1, block.nodes));
    choices.add(std::string("the first nodes, alternating between ") + block.several,
                alternating(count, block.nodes));
  }
  return choices.take();
}

std::string why_no_other_nodes(const ParallelPlan& plan, const ClusterSpec& cluster) {
  if (cluster.nodes_of(plan.gpus) == 1) return "The job takes one node, and all nodes are alike.";
  if (!blocks_of(cluster.fabric).empty()) return "";
  if (cluster.fabric.is_tree())
    return "Nothing between leaves can hold this job up, so that it makes no difference which nodes it "
           "takes.";
  return "Other nodes were not tried: a torus has no blocks of them.";
}

}  // namespace trainsim::search
