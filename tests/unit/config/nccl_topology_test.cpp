// SPDX-License-Identifier: Apache-2.0
#include "sim/config/nccl_topology.hpp"

#include <string>

#include <gtest/gtest.h>

#include "sim/hardware/topology.hpp"
#include "tests/support/jobs.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::config {
namespace {

using hardware::Vertex;
using hardware::VertexKind;

constexpr const char* kGpu =
    R"(<pci busid="%ID" class="0x030200" link_speed="16 GT/s" link_width="16"><gpu dev="%DEV" sm="80" gdr="1">%LINKS</gpu></pci>)";
constexpr const char* kNet =
    R"(<pci busid="%ID" class="0x020700" link_speed="16 GT/s" link_width="8"><nic><net name="mlx5" dev="%DEV" speed="100000"/></nic></pci>)";

std::string filled(std::string text, const std::string& id, int device, const std::string& links = "") {
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"%ID", id},
                                   {"%DEV", std::to_string(device)},
                                   {"%LINKS", links}}) {
    if (const std::size_t at = text.find(key); at != std::string::npos) text.replace(at, key.size(), value);
  }
  return text;
}

/// Two sockets, a switch below each, with two GPUs and a network device below the switch.
std::string machine(const std::string& first_links = "", const std::string& second_links = "") {
  std::string text = "<system version=\"1\">\n";
  for (int socket = 0; socket < 2; ++socket) {
    const std::string tens = std::to_string(socket);
    text += "<cpu numaid=\"" + tens + "\">\n<pci busid=\"s" + tens +
            "\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">\n";
    for (int gpu = 2 * socket; gpu < 2 * socket + 2; ++gpu)
      text += filled(kGpu, "g" + std::to_string(gpu), gpu,
                     gpu == 0   ? first_links
                     : gpu == 1 ? second_links
                                : "") +
              "\n";
    text += filled(kNet, "n" + tens, socket) + "\n</pci>\n</cpu>\n";
  }
  return text + "</system>\n";
}

NcclTopology read(const std::string& text, std::string* problems = nullptr) {
  const tests::TemporaryFolder folder;
  Report report;
  NcclTopology topology = read_nccl_topology(folder.write("nccl.xml", text), 40e9, report);
  if (problems == nullptr) {
    EXPECT_EQ(report.text(), "");
  } else {
    *problems = report.text();
  }
  return topology;
}

TEST(NcclTopology, GivesTheLinksOfAMachine) {
  const NcclTopology topology = read(machine());
  EXPECT_EQ(topology.gpus, 4);
  EXPECT_EQ(topology.nics, 2);
  EXPECT_EQ(topology.cpus, 2);
  // Per socket: switch, two GPUs, a network device; and the two sockets.
  ASSERT_EQ(topology.links.size(), 9U);
  hardware::ClusterSpec cluster = tests::round_cluster();
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.intra_node_kind = hardware::IntraNodeKind::kLinks;
  cluster.node_links = topology.links;
  const hardware::Topology built(cluster, 8);
  // 16 GT/s x 16 lanes x 128/130 / 8 bits.
  const hardware::Route route = built.route(0, 3);
  EXPECT_EQ(route.links.size(), 5U);
  EXPECT_NEAR(built.bandwidth(route.links[0]), 31.508e9, 1e6);
  EXPECT_DOUBLE_EQ(built.bandwidth(route.links[2]), 40e9);
  EXPECT_EQ(built.route(0, 1).links.size(), 2U);
  EXPECT_EQ(built.nic_of(0), 0);
  EXPECT_EQ(built.nic_of(2), 1);
  EXPECT_EQ(built.nic_of(7), 3);
}

TEST(NcclTopology, CountsNvlinksByGeneration) {
  const std::string to_one = R"(<nvlink target="g1" count="4" tclass="0x030200"/>)";
  const std::string to_zero = R"(<nvlink target="g0" count="4" tclass="0x030200"/>)";
  const NcclTopology pair = read(machine(to_one, to_zero));
  ASSERT_EQ(pair.links.size(), 10U);
  EXPECT_EQ(pair.links.back().first, (Vertex{VertexKind::kGpu, 0}));
  EXPECT_EQ(pair.links.back().second, (Vertex{VertexKind::kGpu, 1}));
  EXPECT_DOUBLE_EQ(pair.links.back().bandwidth, 4 * 25e9);
  // Twelve NVLinks of an A100 into NVSwitches.
  const NcclTopology switched = read(machine(R"(<nvlink target="x" count="12" tclass="0x068000"/>)"));
  EXPECT_EQ(switched.links.back().second, (Vertex{VertexKind::kNodeSwitch, 0}));
  EXPECT_DOUBLE_EQ(switched.links.back().bandwidth, 300e9);
}

TEST(NcclTopology, NamesTheLineOfWhatIsWrong) {
  std::string problems;
  read(machine(R"(<nvlink target="nobody" count="4" tclass="0x030200"/>)"), &problems);
  EXPECT_NE(problems.find("nccl.xml:4:"), std::string::npos) << problems;
  EXPECT_NE(problems.find("target 'nobody' is no GPU of this file"), std::string::npos);
  read("<system><cpu>", &problems);
  EXPECT_NE(problems.find("is not XML"), std::string::npos);
  read("<graphs/>", &problems);
  EXPECT_NE(problems.find("it begins with <graphs>, not with <system>"), std::string::npos);
  read("<system><cpu/></system>", &problems);
  EXPECT_NE(problems.find("holds no GPU"), std::string::npos);
}

}  // namespace
}  // namespace trainsim::config
