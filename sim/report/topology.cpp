// SPDX-License-Identifier: Apache-2.0
#include "sim/report/topology.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/json_dump.hpp"

namespace trainsim::report {

namespace {

using hardware::ClusterSpec;
using hardware::DirectedLink;
using hardware::Distance;
using hardware::FabricKind;
using hardware::FabricSpec;
using hardware::IntraNodeKind;
using hardware::LinkSpec;
using hardware::Vertex;
using hardware::VertexKind;

/// Blocks of nodes that a drawing shows; more are counted in one box.
constexpr std::size_t kMostBlocks = 24;
constexpr std::size_t kLabelWidth = 17;
constexpr std::size_t kLineWidth = 110;

/// Kinds of switches, one and several of them.
struct SwitchWords {
  VertexKind kind;
  const char* one;
  const char* several;
};
constexpr SwitchWords kSwitches[] = {{VertexKind::kLeaf, "leaf", "leaves"},
                                     {VertexKind::kSpine, "spine", "spines"},
                                     {VertexKind::kSpineLayer, "spine layer", "spine layers"},
                                     {VertexKind::kCore, "core", "cores"},
                                     {VertexKind::kCoreLayer, "core layer", "core layers"},
                                     {VertexKind::kRouter, "router", "routers"}};

std::string rate(BytesPerSecond bandwidth) {
  return bandwidth < kTera ? number(bandwidth / kGiga, 4) + " GB/s" : number(bandwidth / kTera, 4) + " TB/s";
}

std::string usable(const LinkSpec& link) {
  return rate(link.bandwidth) + ", " + rate(link.effective_bandwidth()) + " of it usable";
}

std::string plural(std::int64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string entry(const std::string& label, const std::string& text) {
  return pad_right(label, kLabelWidth) + wrap(text, kLineWidth - kLabelWidth, kLabelWidth) + "\n";
}

std::string inside(const ClusterSpec& cluster) {
  std::string text = plural(cluster.gpus_per_node, "GPU") + " " + cluster.gpu.name + ", ";
  switch (cluster.intra_node_kind) {
    case IntraNodeKind::kSwitch:
      return text + "each with " + usable(cluster.intra_node) + ", into a switch that blocks nothing";
    case IntraNodeKind::kMesh:
      return text + "cabled to each other; per cable " + usable(cluster.intra_node);
    case IntraNodeKind::kLinks:
      return text + "connected by " + plural(static_cast<std::int64_t>(cluster.node_links.size()), "link");
    case IntraNodeKind::kPcie:
      break;
  }
  const hardware::PcieTree& tree = cluster.pcie_tree;
  text += "each with " + usable(cluster.intra_node);
  if (tree.gpus_per_switch == 0) return text + ", below one PCIe root";
  text += ", " + std::to_string(tree.gpus_per_switch) + " below a PCIe switch with " +
          rate(tree.uplink_bandwidth) + " to its socket";
  if (tree.sockets > 1)
    text += "; " + plural(tree.sockets, "socket") + " with " + rate(tree.socket_bandwidth) + " between two";
  return text + (tree.peer_to_peer ? "" : "; no peer-to-peer, so that traffic goes through a CPU's memory");
}

std::string to_network(const ClusterSpec& cluster) {
  const std::int64_t share = cluster.gpus_per_node / cluster.nics_per_node;
  return plural(cluster.nics_per_node, "NIC") + " per node" +
         (share > 1 ? ", each for " + std::to_string(share) + " GPUs" : "") + ": " + usable(cluster.nic) +
         (cluster.intra_node_kind == IntraNodeKind::kLinks
              ? ""
              : "; from GPU to NIC " + rate(cluster.pcie.effective_bandwidth()));
}

std::string kind_of(const FabricSpec& fabric) {
  switch (fabric.kind) {
    case FabricKind::kFatTree:
      return "fat tree";
    case FabricKind::kRailOptimized:
      return "rail-optimised";
    case FabricKind::kRailOnly:
      return "rail-only (rails are connected inside nodes alone)";
    case FabricKind::kDragonfly:
      return "dragonfly";
    case FabricKind::kTorus:
      return "torus";
  }
  return "";
}

std::string ratio(double oversubscription) {
  return oversubscription <= 1.0 ? "full bandwidth" : percent(1.0 / oversubscription) + " of the bandwidth";
}

std::string fabric_text(const TopologyReport& report) {
  const FabricSpec& fabric = report.cluster.fabric;
  std::string text = kind_of(fabric);
  const char* separator = ": ";
  for (const SwitchWords& words : kSwitches) {
    const std::int64_t count = report.topology.fabric().count(words.kind);
    if (count == 0) continue;
    text += separator + std::to_string(count) + " " + (count == 1 ? words.one : words.several);
    separator = ", ";
  }
  if (fabric.is_tree()) {
    text += "; " + plural(fabric.nodes_per_leaf, "node") + " below a leaf" +
            (fabric.kind == FabricKind::kFatTree ? "" : " of each rail") + ", " +
            ratio(fabric.oversubscription) + " above";
    if (fabric.nodes_per_pod > 0)
      text += "; " + plural(fabric.nodes_per_pod, "node") + " in a pod, " +
              ratio(fabric.pod_oversubscription) + " above its spines";
    text += fabric.spreading == hardware::Spreading::kEcmp ? "; each flow on one path (ECMP)"
                                                           : "; traffic spread evenly";
  }
  if (fabric.in_network_reduction) text += "; switches add up (SHARP)";
  if (fabric.background_load > 0) text += "; other jobs take " + percent(fabric.background_load);
  return text;
}

std::string bisection(const hardware::Survey& survey) {
  return rate(survey.bisection) + " from one half of the nodes to the other, " +
         percent(survey.bisection / survey.injection) + " of what their NICs can send";
}

std::string way_text(const Distance& distance) {
  std::string text;
  for (std::size_t i = 0; i < distance.way.size(); ++i) {
    const std::string name = to_string(Vertex{distance.way[i].kind, 0});
    text += (i == 0 ? "" : ", ") + name.substr(0, name.size() - 2);
  }
  return text;
}

std::string distance_table(const hardware::Survey& survey) {
  std::string text = "How GPU 0 reaches the others\n  " + pad_left("GPUs", 7) + pad_left("nearest", 9) +
                     pad_left("bandwidth", 13) + pad_left("latency", 11) + "  way\n";
  for (const Distance& distance : survey.distances) {
    text += "  " + pad_left(std::to_string(distance.gpus), 7) +
            pad_left(std::to_string(distance.nearest), 9) + pad_left(rate(distance.bandwidth), 13) +
            pad_left(duration(distance.latency), 11) + "  " + way_text(distance) + "\n";
  }
  return text +
         "\nBandwidth is that of the slowest link on the way, for one flow alone; latency that of a ring "
         "step "
         "with NCCL's\nSimple protocol.\n";
}

std::string fault_text(const hardware::Fault& fault) {
  const char* what = fault.place == hardware::FaultPlace::kNic       ? "NIC "
                     : fault.place == hardware::FaultPlace::kGpuPort ? "port of GPU "
                                                                     : "uplinks of leaf ";
  return what + std::to_string(fault.index) +
         (fault.bandwidth > 0 ? " at " + percent(fault.bandwidth) : std::string(" is gone"));
}

std::string quoted(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return "\"" + escaped + "\"";
}

std::string block_name(const hardware::Block& block) {
  const std::string first = std::to_string(block.first_node);
  return block.nodes == 1 ? "node " + first
                          : "nodes " + first + "-" + std::to_string(block.first_node + block.nodes - 1);
}

/// An undirected connection, drawn once with its bandwidth.
std::string cable(const std::string& from, const std::string& to, const std::string& label) {
  return "  " + quoted(from) + " -- " + quoted(to) + " [label=" + quoted(label) + "];\n";
}

/// Switches that a drawing shows; those of a kind above the same groups of nodes are one.
class SwitchGroups {
 public:
  explicit SwitchGroups(const TopologyReport& report) : fabric_(report.topology.fabric()) {
    std::map<std::size_t, std::set<std::size_t>> blocks;
    const std::size_t shown = std::min(report.survey.blocks.size(), kMostBlocks);
    for (std::size_t i = 0; i < shown; ++i) {
      for (const std::size_t at : report.survey.blocks[i].switches) blocks[at].insert(i);
    }
    climb(blocks);
    std::map<std::tuple<VertexKind, std::set<std::size_t>, std::size_t>, std::size_t> known;
    for (const auto& [at, below] : blocks) {
      const VertexKind kind = fabric_.vertex(at).kind;
      const auto [entry, added] =
          known.try_emplace({kind, below, kind == VertexKind::kRouter ? at : 0}, members_.size());
      if (added) members_.emplace_back();
      members_[entry->second].push_back(at);
      group_[at] = entry->second;
    }
  }

  bool shows(std::size_t at) const { return group_.contains(at); }
  /// "leaf 3", or "leaf 0-7" for several.
  std::string name(std::size_t at) const {
    const std::vector<std::size_t>& members = members_[group_.at(at)];
    std::string name = to_string(fabric_.vertex(members.front()));
    if (members.size() > 1) name += "-" + std::to_string(fabric_.vertex(members.back()).index);
    return name;
  }

 private:
  /// Switches above one that is shown are shown as well. Links are numbered layer by layer.
  void climb(std::map<std::size_t, std::set<std::size_t>>& blocks) const {
    for (std::size_t link = 0; link < fabric_.links().size(); link += 2) {
      const auto [lower, upper] = fabric_.ends(link);
      const bool upwards = fabric_.vertex(lower).kind != fabric_.vertex(upper).kind;
      if (upwards && blocks.contains(lower)) blocks[upper].insert(blocks[lower].begin(), blocks[lower].end());
    }
  }

  const hardware::FabricGraph& fabric_;
  std::vector<std::vector<std::size_t>> members_;
  std::map<std::size_t, std::size_t> group_;
};

/// Cables between two boxes of a drawing.
using Bundles = std::map<std::pair<std::string, std::string>, std::pair<std::int64_t, BytesPerSecond>>;

std::string draw_bundles(const Bundles& bundles) {
  std::string text;
  for (const auto& [ends, cables] : bundles) {
    const auto& [count, bandwidth] = cables;
    text +=
        cable(ends.first, ends.second, (count > 1 ? std::to_string(count) + " x " : "") + rate(bandwidth));
  }
  return text;
}

std::string draw_network(const TopologyReport& report) {
  const SwitchGroups groups(report);
  const hardware::FabricGraph& fabric = report.topology.fabric();
  const auto& blocks = report.survey.blocks;
  std::string text;
  Bundles bundles;
  for (std::size_t i = 0; i < std::min(blocks.size(), kMostBlocks); ++i) {
    const std::string name = block_name(blocks[i]);
    text += "  " + quoted(name) + " [shape=box, style=filled, fillcolor=\"#dbe9f6\"];\n";
    const std::int64_t nics = blocks[i].nodes * report.cluster.nics_per_node;
    for (const std::size_t at : blocks[i].switches) {
      auto& [count, bandwidth] = bundles[{name, groups.name(at)}];
      count += nics / static_cast<std::int64_t>(blocks[i].switches.size());
      bandwidth = report.cluster.nic.effective_bandwidth();
    }
  }
  for (std::size_t link = 0; link < fabric.links().size(); link += 2) {
    const auto [lower, upper] = fabric.ends(link);
    if (!groups.shows(lower) || !groups.shows(upper)) continue;
    auto& [count, bandwidth] = bundles[{groups.name(lower), groups.name(upper)}];
    ++count;
    bandwidth = report.topology.fabric_bandwidth(link);
  }
  if (blocks.size() > kMostBlocks) {
    text += "  " + quoted("and " + std::to_string(blocks.size() - kMostBlocks) + " more groups of nodes") +
            " [shape=plaintext];\n";
  }
  return text + draw_bundles(bundles);
}

std::string draw_node(const TopologyReport& report) {
  std::string text = "  subgraph cluster_node {\n  label=\"inside a node\"; style=rounded;\n";
  std::map<std::pair<std::string, std::string>, BytesPerSecond> cables;
  for (const DirectedLink& link : report.topology.node().links()) {
    std::pair<std::string, std::string> ends{"own " + to_string(link.from), "own " + to_string(link.to)};
    if (ends.first > ends.second) std::swap(ends.first, ends.second);
    cables[ends] = link.bandwidth;
    for (const Vertex& end : {link.from, link.to})
      text += "  " + quoted("own " + to_string(end)) + " [label=" + quoted(to_string(end)) + "];\n";
  }
  for (const auto& [ends, bandwidth] : cables) text += cable(ends.first, ends.second, rate(bandwidth));
  return text + "  }\n";
}

}  // namespace

std::string to_text(const TopologyReport& report) {
  const ClusterSpec& cluster = report.cluster;
  std::string text = cluster.name + ": " + plural(report.gpus, "GPU") + " in " +
                     plural(report.survey.nodes, "node") + "; bandwidths are of one direction\n\n";
  text += entry("Inside a node", inside(cluster));
  if (report.survey.nodes > 1) {
    text += entry("To the network", to_network(cluster));
    text += entry("Fabric", fabric_text(report));
    text += entry("Bisection", bisection(report.survey));
  }
  for (const hardware::Fault& fault : cluster.faults) text += entry("Fault", fault_text(fault));
  return text + "\n" + distance_table(report.survey);
}

std::string to_json(const TopologyReport& report) {
  const ClusterSpec& cluster = report.cluster;
  Json json;
  json["schema"] = 1;
  json["cluster"] = cluster.name;
  json["gpus"] = report.gpus;
  json["nodes"] = report.survey.nodes;
  json["gpus_per_node"] = cluster.gpus_per_node;
  json["nics_per_node"] = cluster.nics_per_node;
  json["switches"] = Json::object();
  for (const SwitchWords& words : kSwitches) {
    const std::int64_t count = report.topology.fabric().count(words.kind);
    std::string key = words.several;
    std::replace(key.begin(), key.end(), ' ', '_');
    if (count > 0) json["switches"][key] = count;
  }
  const bool tree = report.survey.nodes > 1 && cluster.fabric.is_tree();
  json["oversubscription"] = tree ? Json(cluster.fabric.oversubscription) : Json(nullptr);
  json["pod_oversubscription"] =
      tree && cluster.fabric.nodes_per_pod > 0 ? Json(cluster.fabric.pod_oversubscription) : Json(nullptr);
  if (report.survey.nodes > 1) {
    json["bisection_Bps"] = report.survey.bisection;
    json["injection_Bps"] = report.survey.injection;
  } else {
    json["bisection_Bps"] = nullptr;
    json["injection_Bps"] = nullptr;
  }
  json["distances"] = Json::array();
  for (const Distance& distance : report.survey.distances) {
    Json way = Json::array();
    for (const Vertex& vertex : distance.way) way.push_back(to_string(vertex));
    json["distances"].push_back({{"gpus", distance.gpus},
                                 {"nearest", distance.nearest},
                                 {"bandwidth_Bps", distance.bandwidth},
                                 {"latency_s", distance.latency},
                                 {"slowest", distance.slowest},
                                 {"way", std::move(way)}});
  }
  return dump(json);
}

std::string to_dot(const TopologyReport& report) {
  std::string text = "graph " + quoted(report.cluster.name) +
                     " {\n  rankdir=BT; fontname=\"sans-serif\"; label=" +
                     quoted(report.cluster.name + ", " + plural(report.gpus, "GPU")) +
                     ";\n  node [fontname=\"sans-serif\", fontsize=11, shape=ellipse];\n"
                     "  edge [fontname=\"sans-serif\", fontsize=8];\n";
  if (report.survey.nodes > 1) text += draw_network(report);
  return text + draw_node(report) + "}\n";
}

}  // namespace trainsim::report
