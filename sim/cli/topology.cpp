// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/topology.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <numeric>

#include <sys/wait.h>
#include <unistd.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/config/experiment.hpp"
#include "sim/plan/plan.hpp"
#include "sim/report/topology.hpp"

namespace trainsim::cli {

namespace {

using hardware::FabricKind;

constexpr std::int64_t kMostGpus = 131'072;

[[noreturn]] void fail(const std::string& message) {
  throw InputError("trainsim: error: " + message);
}

/// Enough nodes to see two of whatever the fabric is made of.
std::int64_t usual_gpus(const hardware::ClusterSpec& cluster) {
  if (cluster.nics_per_node == 0) return cluster.gpus_per_node;
  const hardware::FabricSpec& fabric = cluster.fabric;
  std::int64_t nodes = 2 * std::max(fabric.nodes_per_leaf, fabric.nodes_per_pod);
  if (fabric.kind == FabricKind::kDragonfly) nodes *= fabric.routers_per_group;
  if (fabric.kind == FabricKind::kTorus) nodes = fabric.max_nodes;
  if (fabric.max_nodes > 0) nodes = std::min(nodes, fabric.max_nodes);
  const std::int64_t most = cluster.max_gpus > 0 ? cluster.max_gpus : kMostGpus;
  return std::max(cluster.gpus_per_node, std::min(nodes * cluster.gpus_per_node,
                                                  most / cluster.gpus_per_node * cluster.gpus_per_node));
}

/// What Graphviz makes of a drawing.
std::string as_svg(const std::string& dot) {
  if (std::system("command -v dot > /dev/null 2>&1") != 0)
    fail(
        "--picture: drawing SVG needs Graphviz; install it (apt install graphviz), or write to a file named "
        ".dot");
  std::array<char, 32> name = {"/tmp/trainsim-XXXXXX"};
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) fail("--picture: no temporary file can be made in /tmp");
  const bool written = write(descriptor, dot.data(), dot.size()) == static_cast<ssize_t>(dot.size());
  close(descriptor);
  std::string svg;
  FILE* pipe = written ? popen((std::string("dot -Tsvg ") + name.data()).c_str(), "r") : nullptr;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; pipe != nullptr && (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    svg.append(buffer.data(), got);
  const bool drawn = pipe != nullptr && pclose(pipe) == 0;
  unlink(name.data());
  if (!drawn)
    fail("--picture: Graphviz (dot) could not draw the topology; write to a file named .dot and look there");
  return svg;
}

}  // namespace

std::string describe_topology(const TopologyRequest& request) {
  const bool svg = request.picture.ends_with(".svg");
  if (!request.picture.empty() && !svg && !request.picture.ends_with(".dot"))
    fail("--picture: '" + request.picture + "' ends neither in .svg nor in .dot");
  const hardware::ClusterSpec cluster = config::load_cluster(request.cluster, request.overrides);
  const std::int64_t gpus = request.gpus > 0 ? request.gpus : usual_gpus(cluster);
  if (gpus > kMostGpus) fail("--gpus: at most " + std::to_string(kMostGpus) + " are looked at");
  std::string faults;
  for (const Problem& problem : plan::check_cluster(cluster, gpus))
    faults += (faults.empty() ? "" : "\n") + ("trainsim: error: " + problem.field + ": " + problem.message);
  if (!faults.empty()) throw InputError(faults);
  const hardware::Topology topology(cluster, gpus);
  const report::TopologyReport report{cluster, gpus, topology, hardware::survey(topology, cluster, gpus)};
  if (!request.picture.empty()) {
    OutputFile picture(request.picture);
    picture.write(svg ? as_svg(report::to_dot(report)) : report::to_dot(report));
  }
  return request.json ? report::to_json(report) : report::to_text(report);
}

}  // namespace trainsim::cli
