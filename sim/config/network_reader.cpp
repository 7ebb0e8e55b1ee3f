// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/config/nccl_topology.hpp"
#include "sim/config/network_readers.hpp"
#include "sim/config/resolve.hpp"
#include "sim/config/spec_readers.hpp"
#include "sim/hardware/node_graph.hpp"

namespace trainsim::config {

namespace {

using hardware::ClusterSpec;
using hardware::FabricKind;
using hardware::FabricSpec;
using hardware::Fault;
using hardware::FaultPlace;
using hardware::IntraNodeKind;
using hardware::LinkSpec;
using hardware::MeshLink;
using hardware::NodeLink;
using hardware::PcieTree;
using hardware::Spreading;
using hardware::Vertex;
using hardware::VertexKind;

const Words<IntraNodeKind> kIntraNodeKinds = {{"nvswitch", IntraNodeKind::kSwitch},
                                              {"pcie", IntraNodeKind::kPcie},
                                              {"mesh", IntraNodeKind::kMesh},
                                              {"links", IntraNodeKind::kLinks}};
/// Devices inside a node, as links name them.
const std::pair<const char*, VertexKind> kDeviceKinds[] = {{"gpu", VertexKind::kGpu},
                                                           {"nic", VertexKind::kNic},
                                                           {"switch", VertexKind::kNodeSwitch},
                                                           {"pcie", VertexKind::kPcieSwitch},
                                                           {"cpu", VertexKind::kCpu}};
const Words<FabricKind> kFabricKinds = {{"fat-tree", FabricKind::kFatTree},
                                        {"rail-optimized", FabricKind::kRailOptimized},
                                        {"rail-only", FabricKind::kRailOnly},
                                        {"dragonfly", FabricKind::kDragonfly},
                                        {"torus", FabricKind::kTorus}};
const Words<Spreading> kSpreadings = {{"ideal", Spreading::kIdeal}, {"ecmp", Spreading::kEcmp}};

/// What a link or part of the network reaches of its bandwidth; one with less is better called gone.
constexpr NumberRange kLinkEfficiency = {1e-4, 1.0, true};
constexpr NumberRange kRatio = {1.0, 1000.0, true};
constexpr CountRange kDevices = {1, 1'000'000};
constexpr std::size_t kMostDimensions = 6;
constexpr double kMostCables = 4096;
constexpr std::int64_t kUsualRadix = 64;
constexpr std::int64_t kMostMeshGpus = 64;
constexpr std::int64_t kMostTorusNodes = 100'000;

LinkSpec read_link(Section& section) {
  LinkSpec link;
  link.bandwidth = section.required("bandwidth", as_quantity(Dimension::kRate, kRateRange));
  link.efficiency = section.required("efficiency", as_number(kLinkEfficiency));
  link.latency = section.required("latency", as_quantity(Dimension::kTime, kTime));
  return link;
}

/// What links that collectives run over may say of NCCL's LL protocol.
void read_ll(Section& section, LinkSpec& link) {
  link.ll_latency = section.optional("ll_latency", as_quantity(Dimension::kTime, kTime)).value_or(0);
  link.ll_bandwidth = section.optional("ll_bandwidth", as_quantity(Dimension::kRate, kRateRange)).value_or(0);
}

/// Keys that parts read from a file of their own may have.
void read_identity(Section& section) {
  section.optional("name", as_text());
  read_source_note(section);
}

/// A bandwidth between switches, as much of it as NICs get of theirs.
BytesPerSecond read_switch_link(Section& section, const char* key, const ClusterSpec& spec) {
  return section.required(key, as_quantity(Dimension::kRate, kRateRange)) * spec.nic.efficiency;
}

/// Reports a count that does not divide another evenly.
void must_divide(Section& section, const char* key, std::int64_t count, std::int64_t whole, const char* of) {
  if (count < 1 || whole % count == 0) return;
  section.fail(key, std::to_string(count) + " does not divide the " + std::to_string(whole) + " " + of +
                        " of a node; legal here: " + join_numbers(divisors(whole)));
}

void read_pcie_tree(Section& section, ClusterSpec& spec) {
  PcieTree& tree = spec.pcie_tree;
  const double efficiency = spec.intra_node.efficiency;
  tree.gpus_per_switch = section.optional("gpus_per_switch", as_count({1, 1024})).value_or(0);
  if (tree.gpus_per_switch == 0) {
    for (const char* key : {"sockets", "uplink_bandwidth", "socket_bandwidth", "peer_to_peer"}) {
      if (section.raw(key) != nullptr)
        section.fail(key, "needs gpus_per_switch, without which all GPUs are below one root");
    }
    return;
  }
  must_divide(section, "gpus_per_switch", tree.gpus_per_switch, spec.gpus_per_node, "GPUs");
  tree.sockets = section.defaulted("sockets", as_count({1, 64}), "1");
  must_divide(section, "sockets", tree.sockets,
              std::max<std::int64_t>(1, spec.gpus_per_node / tree.gpus_per_switch), "switches");
  tree.uplink_bandwidth =
      efficiency * section.optional("uplink_bandwidth", as_quantity(Dimension::kRate, kRateRange))
                       .value_or(spec.intra_node.bandwidth);
  if (tree.sockets > 1)
    tree.socket_bandwidth =
        efficiency * section.required("socket_bandwidth", as_quantity(Dimension::kRate, kRateRange));
  tree.peer_to_peer = section.defaulted("peer_to_peer", as_flag(), "true");
}

/// [GPU, GPU] or [GPU, GPU, cables].
Reader<MeshLink> as_cable(std::int64_t gpus) {
  const std::string expects = "a list of two different GPUs of the node, 0 to " + std::to_string(gpus - 1) +
                              ", and optionally of a number of cables, such as [0, 1] or [0, 1, 2]";
  const auto parse = [gpus, expects](const Value& value) {
    Parsed<MeshLink> wrong = Parsed<MeshLink>::failed("must be " + expects);
    if (value.kind != Kind::kList || value.items.size() < 2 || value.items.size() > 3) return wrong;
    std::vector<std::int64_t> numbers;
    for (const Value& item : value.items) {
      const Parsed<std::int64_t> number = as_count({0, 1024}).parse(item);
      if (!number.value) return wrong;
      numbers.push_back(*number.value);
    }
    const MeshLink link{numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1};
    const bool legal =
        link.first != link.second && std::max(link.first, link.second) < gpus && link.cables > 0;
    return legal ? Parsed<MeshLink>::of(link) : wrong;
  };
  return {expects, parse, {Form::Kind::kItems}};
}

void read_mesh(Section& section, ClusterSpec& spec) {
  if (spec.gpus_per_node > kMostMeshGpus)
    section.fail("kind", "a mesh has at most " + std::to_string(kMostMeshGpus) + " GPUs; gpus_per_node is " +
                             std::to_string(spec.gpus_per_node));
  const Value* cables = section.raw("cables");
  if (cables != nullptr && cables->kind == Kind::kList && cables->items.empty())
    section.fail("cables", "is empty; leave it out for one cable between each two GPUs");
  spec.mesh = section.list("cables", as_cable(spec.gpus_per_node));
}

/// "gpu 3", and so on.
std::optional<Vertex> device_named(const std::string& text, const ClusterSpec& spec) {
  const std::size_t space = text.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto number = as_count({0, 4096}).parse(make_scalar(text.substr(space + 1), {})).value;
  for (const auto& [word, kind] : kDeviceKinds) {
    if (text.substr(0, space) != word || !number) continue;
    const bool there = (kind != VertexKind::kGpu || *number < spec.gpus_per_node) &&
                       (kind != VertexKind::kNic || *number < spec.nics_per_node);
    return there ? std::optional(Vertex{kind, *number}) : std::nullopt;
  }
  return std::nullopt;
}

/// Two devices of a node.
Reader<std::pair<Vertex, Vertex>> as_devices(const ClusterSpec& spec) {
  const std::string expects =
      "a list of two devices of the node, such as [gpu 0, switch 0]: gpu 0 to " +
      std::to_string(spec.gpus_per_node - 1) +
      (spec.nics_per_node > 0 ? ", nic 0 to " + std::to_string(spec.nics_per_node - 1) : "") +
      ", or any switch, pcie or cpu";
  const auto parse = [&spec, expects](const Value& value) {
    using Devices = Parsed<std::pair<Vertex, Vertex>>;
    if (value.kind == Kind::kList && value.items.size() == 2) {
      const auto first = device_named(value.items[0].text, spec);
      const auto second = device_named(value.items[1].text, spec);
      if (first && second && !(*first == *second)) return Devices::of({*first, *second});
    }
    return Devices::failed("must be " + expects);
  };
  return {expects, parse, {Form::Kind::kItems}};
}

/// Links that are written out.
void read_written_links(Section& section, ClusterSpec& spec) {
  for (Section& entry : section.mappings("links")) {
    const auto ends = entry.optional("between", as_devices(spec));
    entry.require("between", "a list of two devices of the node, such as [gpu 0, switch 0]");
    const BytesPerSecond bandwidth = entry.required("bandwidth", as_quantity(Dimension::kRate, kRateRange));
    entry.finish();
    if (ends) spec.node_links.push_back({ends->first, ends->second, bandwidth});
  }
}

/// Links of an NCCL topology.
void read_nccl_links(Section& section, ClusterSpec& spec) {
  const Value* file = section.raw("nccl_topology");
  const std::string name = section.optional("nccl_topology", as_text()).value_or("");
  const auto sockets = section.optional("socket_bandwidth", as_quantity(Dimension::kRate, kRateRange));
  if (name.empty()) return;
  const std::filesystem::path path = (file->at.source->folder() / name).lexically_normal();
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return section.fail("nccl_topology", "no such file: " + clip(path.string()));
  Report found;
  const NcclTopology topology = read_nccl_topology(path, sockets.value_or(1.0), found);
  if (!found.empty()) return section.report().append(found);
  if (topology.cpus > 1 && !sockets)
    section.require("socket_bandwidth", "the rate between two of its CPUs, such as 60 GB/s");
  const auto must_match = [&](std::int64_t there, std::int64_t given, const char* what, const char* key) {
    if (there == given) return;
    section.fail("nccl_topology", "holds " + std::to_string(there) + " " + what + ", but " + key + " is " +
                                      std::to_string(given) + "; make the two agree");
  };
  must_match(topology.gpus, spec.gpus_per_node, "GPUs", "gpus_per_node");
  if (spec.nics_per_node > 0)
    must_match(topology.nics, spec.nics_per_node, "network devices", "nics_per_node");
  const bool usable = topology.gpus == spec.gpus_per_node;
  if (usable) spec.node_links = topology.links;
  std::erase_if(spec.node_links, [&spec](const NodeLink& link) {
    return spec.nics_per_node == 0 && link.first.kind == VertexKind::kNic;
  });
}

/// Every GPU must reach every other (through none that is between them) and every NIC must be reached.
void check_connected(Section& section, const ClusterSpec& spec) {
  const hardware::NodeGraph node(spec);
  const char* key = section.raw("links") != nullptr ? "links" : "nccl_topology";
  const auto reaches = [&node](std::int64_t gpu, VertexKind kind, std::int64_t index) {
    return !node.path({VertexKind::kGpu, gpu}, {kind, index}).empty();
  };
  for (std::int64_t gpu = 0; gpu < spec.gpus_per_node; ++gpu) {
    for (std::int64_t other = 0; other < spec.gpus_per_node; ++other) {
      if (other == gpu || reaches(gpu, VertexKind::kGpu, other)) continue;
      return section.fail(
          key, "gpu " + std::to_string(gpu) + " has no way to gpu " + std::to_string(other) +
                   " (none leads through another GPU); connect both to a switch, a pcie or a cpu, or "
                   "to each other");
    }
    if (spec.nics_per_node > 0 && node.nearest_nic(gpu) < 0)
      return section.fail(
          key, "gpu " + std::to_string(gpu) + " has no way to a NIC; connect both to a pcie or a cpu");
  }
  for (std::int64_t nic = 0; nic < spec.nics_per_node; ++nic) {
    bool reached = false;
    for (std::int64_t gpu = 0; gpu < spec.gpus_per_node && !reached; ++gpu)
      reached = reaches(gpu, VertexKind::kNic, nic);
    if (!reached)
      return section.fail(
          key, "nic " + std::to_string(nic) + " is reached by no GPU; connect it to a pcie or a cpu");
  }
}

/// The widest link of GPU 0 stands for all where only one number is asked for.
void read_links(Section& section, ClusterSpec& spec) {
  LinkSpec& link = spec.intra_node;
  link.efficiency = section.required("efficiency", as_number(kLinkEfficiency));
  link.latency = section.required("latency", as_quantity(Dimension::kTime, kTime));
  if ((section.raw("links") != nullptr) == (section.raw("nccl_topology") != nullptr))
    section.fail("links", "needs exactly one of links and nccl_topology");
  const std::size_t problems = section.report().size();
  read_written_links(section, spec);
  read_nccl_links(section, spec);
  link.bandwidth = 1;
  for (NodeLink& connection : spec.node_links) {
    const Vertex first{VertexKind::kGpu, 0};
    if (connection.first == first || connection.second == first)
      link.bandwidth = std::max(link.bandwidth, connection.bandwidth);
    connection.bandwidth *= link.efficiency;
  }
  if (section.report().size() == problems && spec.gpus_per_node > 0) check_connected(section, spec);
}

/// nodes_per_leaf and nodes_per_pod as given.
void read_given_size(Section& section, FabricSpec& fabric) {
  fabric.nodes_per_leaf = section.required("nodes_per_leaf", as_count());
  fabric.nodes_per_pod = section.optional("nodes_per_pod", as_count()).value_or(0);
  if (fabric.nodes_per_leaf < 1 || fabric.nodes_per_pod % fabric.nodes_per_leaf == 0) return;
  section.fail("nodes_per_pod", std::to_string(fabric.nodes_per_pod) +
                                    " is not a multiple of nodes_per_leaf (" +
                                    std::to_string(fabric.nodes_per_leaf) + ")");
}

/// Ports of a switch below which an oversubscription leaves the rest for uplinks.
std::int64_t ports_down(std::int64_t radix, double oversubscription) {
  const double down = static_cast<double>(radix) * oversubscription / (1.0 + oversubscription);
  constexpr double rounding = 1e-9;
  return static_cast<std::int64_t>(std::floor(down + rounding));
}

/// The same as switches with a number of ports allow, and how many nodes they connect.
void read_size_by_radix(Section& section, ClusterSpec& spec, std::int64_t radix) {
  FabricSpec& fabric = spec.fabric;
  for (const char* key : {"nodes_per_leaf", "nodes_per_pod"}) {
    if (section.raw(key) != nullptr) section.fail(key, "follows from radix; remove one of the two");
  }
  const std::int64_t levels = section.defaulted("levels", as_count({2, 3}), "2");
  const std::int64_t nics = std::max<std::int64_t>(1, spec.nics_per_node);
  const std::int64_t per_node = fabric.kind == FabricKind::kFatTree ? nics : 1;
  const double least = std::ceil(static_cast<double>(per_node) * (1.0 + 1.0 / fabric.oversubscription));
  if (static_cast<double>(radix) < least) {
    section.fail("radix", std::to_string(radix) + " ports are too few for the " + std::to_string(per_node) +
                              " NICs of a node and the uplinks; give at least " + format_number(least));
    radix = static_cast<std::int64_t>(least);
  }
  fabric.nodes_per_leaf = ports_down(radix, fabric.oversubscription) / per_node;
  // Leaves of a group of nodes that share spines: all rails, where spines connect rails.
  const std::int64_t leaves = fabric.kind == FabricKind::kRailOptimized ? nics : 1;
  const auto nodes_above = [&](std::int64_t ports) {
    return std::max<std::int64_t>(1, ports / leaves) * fabric.nodes_per_leaf;
  };
  fabric.max_nodes = nodes_above(radix);
  if (levels < 3) return;
  fabric.nodes_per_pod = nodes_above(ports_down(radix, fabric.pod_oversubscription));
  fabric.max_nodes = fabric.nodes_per_pod * radix;
}

void read_spreading(Section& section, ClusterSpec& spec) {
  FabricSpec& fabric = spec.fabric;
  fabric.spreading = section.defaulted("spreading", as_choice(kSpreadings), "ideal");
  const double cables = static_cast<double>(fabric.nodes_per_leaf) * static_cast<double>(spec.nics_per_node);
  if (fabric.spreading == Spreading::kEcmp && cables > kMostCables)
    section.fail("spreading", "ecmp follows at most " + format_number(kMostCables) +
                                  " NICs below a leaf one by one; make leaves smaller, or write ideal");
  const std::optional<std::int64_t> seed = section.optional("seed", as_count({0, 1'000'000'000'000}));
  if (seed && fabric.spreading == Spreading::kIdeal)
    section.fail("seed", "is that of the hash of spreading: ecmp; remove it, or write spreading: ecmp");
  fabric.seed = static_cast<std::uint64_t>(seed.value_or(0));
}

void read_tree(Section& section, ClusterSpec& spec) {
  FabricSpec& fabric = spec.fabric;
  fabric.oversubscription = section.defaulted("oversubscription", as_number(kRatio), "1");
  fabric.pod_oversubscription = section.defaulted("pod_oversubscription", as_number(kRatio), "1");
  const std::optional<std::int64_t> radix = section.optional("radix", as_count({2, 100'000}));
  if (section.raw("radix") == nullptr) {
    read_given_size(section, fabric);
    if (section.raw("levels") != nullptr) section.fail("levels", "needs radix, the ports of a switch");
  } else {
    // A radix that can't be read has been reported; any stands for it.
    read_size_by_radix(section, spec, radix.value_or(kUsualRadix));
  }
  if (section.raw("pod_oversubscription") != nullptr && fabric.nodes_per_pod == 0)
    section.fail("pod_oversubscription",
                 "needs nodes_per_pod, or radix and levels: 3; without, all nodes are one pod");
  read_spreading(section, spec);
}

void read_torus(Section& section, ClusterSpec& spec) {
  FabricSpec& fabric = spec.fabric;
  section.require("dimensions", "a list of nodes in each dimension, such as [4, 4, 4]");
  fabric.dimensions = section.list("dimensions", as_count(kDevices));
  const bool any = !fabric.dimensions.empty();
  if (section.raw("dimensions") != nullptr && (!any || fabric.dimensions.size() > kMostDimensions))
    section.fail("dimensions", "must be a list of 1 to 6 numbers of nodes, such as [4, 4, 4]");
  fabric.max_nodes = 1;
  for (const std::int64_t length : fabric.dimensions) {
    fabric.max_nodes *= std::max<std::int64_t>(1, length);
    if (fabric.max_nodes <= kMostTorusNodes) continue;
    section.fail("dimensions", "make more than " + std::to_string(kMostTorusNodes) +
                                   " nodes; give the part of the torus that the job uses");
    fabric.max_nodes = 1;
    break;
  }
  fabric.link_bandwidth = read_switch_link(section, "link_bandwidth", spec);
}

}  // namespace

void read_intra_node(Section& cluster, ClusterSpec& spec) {
  std::optional<Section> section = cluster.mapping("intra_node", true, expected_value(Component::kIntraNode));
  if (!section) return;
  read_identity(*section);
  spec.intra_node_kind = section->required("kind", as_choice(kIntraNodeKinds));
  LinkSpec& link = spec.intra_node;
  if (spec.intra_node_kind == IntraNodeKind::kLinks) {
    read_links(*section, spec);
  } else {
    link = read_link(*section);
  }
  read_ll(*section, link);
  link.ll128_latency = section->optional("ll128_latency", as_quantity(Dimension::kTime, kTime)).value_or(0);
  link.phase_copy = section->optional("phase_copy", as_number({0.0, 10.0, true})).value_or(0);
  if (spec.intra_node_kind == IntraNodeKind::kSwitch || spec.intra_node_kind == IntraNodeKind::kLinks)
    link.nvls_bandwidth =
        section->optional("nvls_bandwidth", as_quantity(Dimension::kRate, kRateRange)).value_or(0);
  if (spec.intra_node_kind == IntraNodeKind::kSwitch)
    link.all_to_all_efficiency =
        section->optional("all_to_all_efficiency", as_number(kEfficiency)).value_or(0);
  if (spec.intra_node_kind == IntraNodeKind::kPcie) read_pcie_tree(*section, spec);
  if (spec.intra_node_kind == IntraNodeKind::kMesh) read_mesh(*section, spec);
  section->finish();
}

LinkSpec read_network_link(std::optional<Section> section, bool rings) {
  if (!section) return {};
  read_identity(*section);
  LinkSpec link = read_link(*section);
  if (rings) read_ll(*section, link);
  section->finish();
  return link;
}

void read_fabric(Section& cluster, ClusterSpec& spec, bool required) {
  std::optional<Section> section = cluster.mapping("fabric", required, expected_value(Component::kFabric));
  if (!section) return;
  read_identity(*section);
  FabricSpec& fabric = spec.fabric;
  fabric.kind = section->required("kind", as_choice(kFabricKinds));
  if (fabric.is_tree()) read_tree(*section, spec);
  if (fabric.kind == FabricKind::kDragonfly) {
    fabric.nodes_per_leaf = section->required("nodes_per_router", as_count());
    fabric.routers_per_group = section->required("routers_per_group", as_count());
    fabric.local_bandwidth = read_switch_link(*section, "local_bandwidth", spec);
    fabric.global_bandwidth = read_switch_link(*section, "global_bandwidth", spec);
  }
  if (fabric.kind == FabricKind::kTorus) read_torus(*section, spec);
  fabric.background_load = section->defaulted("background_load", as_number({0.0, 0.99, true}), "0");
  fabric.switch_latency = section->required("switch_latency", as_quantity(Dimension::kTime, kTime));
  fabric.in_network_reduction = section->defaulted("in_network_reduction", as_flag(), "false");
  if (fabric.in_network_reduction && fabric.kind == FabricKind::kTorus)
    section->fail("in_network_reduction",
                  "a torus has no switches that could add up; write false, or another kind of fabric");
  section->finish();
}

void read_faults(Section& cluster, ClusterSpec& spec) {
  const std::pair<const char*, FaultPlace> places[] = {
      {"nic", FaultPlace::kNic}, {"gpu_port", FaultPlace::kGpuPort}, {"leaf", FaultPlace::kLeafUplinks}};
  for (Section& section : cluster.mappings("faults")) {
    Fault fault;
    const char* given = nullptr;
    for (const auto& [key, place] : places) {
      const std::optional<std::int64_t> index = section.optional(key, as_count({0, kDevices.most}));
      if (section.raw(key) == nullptr) continue;
      if (given != nullptr)
        section.fail(key, std::string("is a second place beside ") + given + "; one fault has one");
      given = key;
      fault.place = place;
      fault.index = index.value_or(0);
    }
    const bool failed = section.optional("failed", as_flag()).value_or(false);
    const std::optional<double> left = section.optional("bandwidth", as_number(kLinkEfficiency));
    fault.bandwidth = failed ? 0.0 : left.value_or(1.0);
    if (given == nullptr) section.fail("nic", "missing, as are gpu_port and leaf: say what has the fault");
    if (section.raw("failed") == nullptr)
      section.require("bandwidth", "the share of its bandwidth that is left, or failed: true for a NIC");
    if (failed && fault.place != FaultPlace::kNic)
      section.fail(
          "failed",
          "only a NIC can be gone, because nothing leads around others; give the bandwidth that is left");
    if (failed && section.raw("bandwidth") != nullptr)
      section.fail("bandwidth", "contradicts failed: true; remove one of the two");
    section.finish();
    spec.faults.push_back(fault);
  }
}

}  // namespace trainsim::config
