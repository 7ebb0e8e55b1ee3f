// SPDX-License-Identifier: Apache-2.0
#include "sim/report/groups.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/base/ranges.hpp"
#include "sim/report/format.hpp"

namespace trainsim::report {

namespace {

using program::GroupTransfers;
using program::LinkTraffic;
using program::LinkUser;
using program::Parties;
using program::TrafficKind;

/// Relative differences that are rounding.
constexpr double kRounding = 1e-9;
/// Delays that are not worth a sentence, as a share of the time alone.
constexpr double kLittleDelay = 0.01;
/// Parties that a sentence names at most.
constexpr std::size_t kMostParties = 3;

bool is_close(double a, double b) {
  return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

bool are_alike(const GroupTransfers& a, const GroupTransfers& b) {
  return a.of.name == b.of.name && a.size == b.size && a.nodes == b.nodes && a.op == b.op &&
         a.algorithm == b.algorithm && a.protocol == b.protocol && is_close(a.calls, b.calls) &&
         is_close(a.tensor_bytes, b.tensor_bytes) && is_close(a.alone, b.alone);
}

void merge(GroupTransfers& into, const GroupTransfers& from) {
  const double share = static_cast<double>(from.ranks) / static_cast<double>(into.ranks + from.ranks);
  into.ranks += from.ranks;
  into.busy += share * (from.busy - into.busy);
  into.exposed += share * (from.exposed - into.exposed);
  into.longest_exposed = std::max(into.longest_exposed, from.longest_exposed);
  into.of.stages.insert(into.of.stages.end(), from.of.stages.begin(), from.of.stages.end());
  std::sort(into.of.stages.begin(), into.of.stages.end());
}

/// "stage 3", "stages 0-2", "all stages"; empty in a plan of one.
std::string stages_text(const std::vector<std::int64_t>& stages, const plan::ParallelPlan& plan) {
  if (plan.pipeline_parallel == 1) return "";
  if (static_cast<std::int64_t>(stages.size()) == plan.pipeline_parallel && stages.size() > 2)
    return "all stages";
  return (stages.size() == 1 ? "stage " : "stages ") + join_ranges(stages);
}

std::string of_stages(const std::vector<std::int64_t>& stages, const plan::ParallelPlan& plan) {
  const std::string text = stages_text(stages, plan);
  return text.empty() ? "" : " of " + text;
}

std::string operation_text(const GroupTransfers& group) {
  if (group.kind == TrafficKind::kPipeline) return group.op;
  return group.op + ", " + to_string(group.algorithm) + " " + to_string(group.protocol);
}

std::string group_row(const Summary& summary, const GroupTransfers& group) {
  return "  " + pad_right(parties_text(group.of, summary.plan), 25) +
         pad_right(std::to_string(group.size) + " on " + std::to_string(group.nodes), 11) +
         pad_right(operation_text(group), 29) + pad_left(number(group.calls, 4), 6) +
         pad_left(bytes_text(group.sent_bytes), 12) + pad_left(duration(group.busy), 11) +
         pad_left(duration(group.exposed), 11) + pad_left(duration(group.hidden()), 11) +
         pad_left(number(group.bus_bandwidth() / kGiga, 3), 7) + "\n";
}

/// Users of a link other than one, those of one kind together.
std::string others_on(const LinkTraffic& link, const Parties& one, const plan::ParallelPlan& plan) {
  std::map<std::string, std::set<std::int64_t>> others;
  for (const LinkUser& user : link.users) {
    if (user.by != one) others[user.by.name].insert(user.by.stages.begin(), user.by.stages.end());
  }
  std::string text;
  std::size_t count = 0;
  for (const auto& [name, stages] : others) {
    if (count == kMostParties) break;
    text +=
        (count == 0 ? "" : " and ") + transfers_words(name) + of_stages({stages.begin(), stages.end()}, plan);
    ++count;
  }
  return text;
}

bool uses(const LinkTraffic& link, const Parties& parties) {
  return std::any_of(link.users.begin(), link.users.end(),
                     [&parties](const LinkUser& user) { return user.by == parties; });
}

/// The busiest link that parties use, with others if there is one.
const LinkTraffic* meeting_place(const Summary& summary, const Parties& parties) {
  const LinkTraffic* busiest = nullptr;
  for (const LinkTraffic& link : summary.traffic.links) {
    if (!uses(link, parties)) continue;
    if (link.users.size() > 1) return &link;
    if (busiest == nullptr) busiest = &link;
  }
  return busiest;
}

}  // namespace

std::vector<GroupTransfers> alike_groups(const Summary& summary) {
  std::vector<GroupTransfers> merged;
  for (const GroupTransfers& group : summary.traffic.groups) {
    const auto found = std::find_if(merged.begin(), merged.end(), [&group](const GroupTransfers& other) {
      return are_alike(other, group);
    });
    if (found == merged.end()) {
      merged.push_back(group);
    } else {
      merge(*found, group);
    }
  }
  return merged;
}

std::string parties_text(const Parties& parties, const plan::ParallelPlan& plan) {
  const std::string stages = stages_text(parties.stages, plan);
  return words(parties.name) + (stages.empty() ? "" : ", " + stages);
}

std::string transfers_words(const std::string& name) {
  static const std::map<std::string, std::string> words = {
      {"tensor", "tensor-parallel collectives"}, {"data", "data-parallel rings"},
      {"embedding", "reductions of embeddings"}, {"shard", "rings of shards"},
      {"replica", "rings of replicas"},          {"context", "context-parallel exchange"},
      {"expert", "exchanges of tokens"},         {"expert_data", "rings of equal experts"},
      {"pipeline", "pipeline transfers"}};
  return words.at(name);
}

std::string limit_text(const Summary& summary, TrafficKind kind) {
  const GroupTransfers* most = nullptr;
  for (const GroupTransfers& group : summary.traffic.groups) {
    if (group.kind == kind && (most == nullptr || group.exposed > most->exposed)) most = &group;
  }
  if (most == nullptr || most->limit.empty()) return "";
  const auto link = std::find_if(summary.traffic.links.begin(), summary.traffic.links.end(),
                                 [most](const LinkTraffic& each) { return each.name == most->limit; });
  if (link == summary.traffic.links.end()) return "; most of it is latency";
  return "; the slowest link on its way is '" + link->name + "' (" + number(link->bandwidth / kGiga, 4) +
         " GB/s)";
}

std::string sharing_text(const Summary& summary) {
  const GroupTransfers* worst = nullptr;
  for (const GroupTransfers& group : summary.traffic.groups) {
    if (group.alone <= 0 || group.busy / group.alone - 1.0 < kLittleDelay) continue;
    if (worst == nullptr || group.busy - group.alone > worst->busy - worst->alone) worst = &group;
  }
  if (worst == nullptr) return "";
  const LinkTraffic* link = meeting_place(summary, worst->of);
  if (link == nullptr) return "";
  const std::string others = others_on(*link, worst->of, summary.plan);
  return "The " + transfers_words(worst->of.name) + of_stages(worst->of.stages, summary.plan) + " (" +
         words(worst->op) + ") share '" + link->name + "' with " + (others.empty() ? "each other" : others) +
         ": " + signed_percent(worst->busy / worst->alone - 1.0) + " against being alone.";
}

std::string group_table(const Summary& summary) {
  const std::vector<GroupTransfers> groups = alike_groups(summary);
  if (groups.empty()) return "";
  std::string text = "\nCommunication by group (per rank, mean over its ranks)\n  " + pad_right("", 25) +
                     pad_right("on nodes", 11) + pad_right("", 29) + pad_left("calls", 6) +
                     pad_left("sends", 12) + pad_left("takes", 11) + pad_left("waited", 11) +
                     pad_left("hidden", 11) + pad_left("GB/s", 7) + "\n";
  for (const GroupTransfers& group : groups) text += group_row(summary, group);
  return text;
}

}  // namespace trainsim::report
