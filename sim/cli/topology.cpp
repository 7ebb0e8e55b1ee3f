// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/topology.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

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

/// A drawing in a file of its own, for as long as Graphviz reads it.
class DrawingFile {
 public:
  explicit DrawingFile(const std::string& dot)
      : path_(std::filesystem::temp_directory_path() / ("trainsim-" + std::to_string(getpid()) + ".dot")) {
    std::ofstream file(path_);
    if (!(file << dot << std::flush)) throw std::runtime_error("cannot write " + path_.string());
  }
  DrawingFile(const DrawingFile&) = delete;
  DrawingFile& operator=(const DrawingFile&) = delete;
  ~DrawingFile() {
    std::error_code error;
    std::filesystem::remove(path_, error);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// What Graphviz makes of a drawing.
std::string as_svg(const std::string& dot) {
  const DrawingFile drawing(dot);
  FILE* pipe = popen(("dot -Tsvg '" + drawing.path() + "' 2> /dev/null").c_str(), "r");
  std::string svg;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; pipe != nullptr && (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    svg.append(buffer.data(), got);
  if (pipe != nullptr && pclose(pipe) == 0) return svg;
  fail(
      "--picture: drawing SVG needs Graphviz, whose program 'dot' is missing or failed; install it (apt "
      "install "
      "graphviz), or write to a file named .dot");
}

}  // namespace

std::string describe_topology(const TopologyRequest& request) {
  const bool svg = request.picture.ends_with(".svg");
  if (!request.picture.empty() && !svg && !request.picture.ends_with(".dot"))
    fail("--picture: '" + request.picture + "' ends neither in .svg nor in .dot");
  std::int64_t gpus = request.gpus;
  const auto check = [&gpus](const hardware::ClusterSpec& spec) {
    if (gpus == 0) gpus = usual_gpus(spec);
    return plan::check_cluster(spec, gpus);
  };
  const hardware::ClusterSpec cluster = config::load_cluster(request.cluster, request.overrides, check);
  if (const Problems left = plan::check_cluster(cluster, gpus); !left.empty())
    fail("--" + left.front().field + ": " + left.front().message);
  const hardware::Topology topology(cluster, gpus);
  const report::TopologyReport report{cluster, gpus, topology, hardware::survey(topology, cluster, gpus)};
  if (!request.picture.empty()) {
    OutputFile picture(request.picture);
    picture.write(svg ? as_svg(report::to_dot(report)) : report::to_dot(report));
  }
  return request.json ? report::to_json(report) : report::to_text(report);
}

}  // namespace trainsim::cli
