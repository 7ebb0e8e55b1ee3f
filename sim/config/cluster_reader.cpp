// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>

#include "sim/config/network_readers.hpp"
#include "sim/config/resolve.hpp"
#include "sim/config/spec_readers.hpp"

namespace trainsim::config {

namespace {

using hardware::ClusterSpec;
using hardware::GpuSpec;
using hardware::LinkSpec;

const Words<std::optional<Algorithm>> kAlgorithms = {{"auto", std::nullopt},
                                                     {"ring", Algorithm::kRing},
                                                     {"tree", Algorithm::kTree},
                                                     {"in-switch", Algorithm::kInSwitch},
                                                     {"nvls-tree", Algorithm::kNvlsTree},
                                                     {"in-network", Algorithm::kInNetwork},
                                                     {"hierarchical", Algorithm::kHierarchical}};
const Words<std::optional<WireProtocol>> kProtocols = {{"auto", std::nullopt},
                                                       {"simple", WireProtocol::kSimple},
                                                       {"ll", WireProtocol::kLl},
                                                       {"ll128", WireProtocol::kLl128}};

constexpr CountRange kPerNode = {1, 1024};
constexpr CountRange kMaxGpus = {1, 1'000'000};
/// Sizes are counted in 64 bits; no GPU comes near a petabyte.
constexpr NumberRange kMemory = {0.0, 1e15, false};

/// A quantity or fraction of a GPU and the field that it goes to.
template <class T>
struct GpuField {
  const char* key;
  double GpuSpec::*member;
  T kind;
};

constexpr GpuField<Dimension> kPeaks[] = {{"peak_fp32", &GpuSpec::peak_fp32, Dimension::kCompute},
                                          {"peak_tf32", &GpuSpec::peak_tf32, Dimension::kCompute},
                                          {"peak_fp16", &GpuSpec::peak_fp16, Dimension::kCompute},
                                          {"peak_bf16", &GpuSpec::peak_bf16, Dimension::kCompute},
                                          {"peak_fp8", &GpuSpec::peak_fp8, Dimension::kCompute}};
constexpr GpuField<NumberRange> kFractions[] = {
    {"memory_efficiency", &GpuSpec::memory_efficiency, kEfficiency},
    {"matmul_efficiency", &GpuSpec::matmul_efficiency, kEfficiency},
    {"matmul_half_k", &GpuSpec::matmul_half_k, {0.0, 1e6, true}},
    {"attention_efficiency_forward", &GpuSpec::attention_efficiency_forward, kEfficiency},
    {"attention_efficiency_backward", &GpuSpec::attention_efficiency_backward, kEfficiency}};
constexpr GpuField<NumberRange> kTimes[] = {
    {"kernel_overhead", &GpuSpec::kernel_overhead, kTime},
    {"launch_interval_eager", &GpuSpec::launch_interval_eager, kTime},
    {"launch_interval_compiled", &GpuSpec::launch_interval_compiled, kTime},
    {"launch_interval_graph", &GpuSpec::launch_interval_graph, kTime}};

/// Peaks of precisions that the GPU lacks are left out, but there must be one.
void read_peaks(Section& section, GpuSpec& gpu) {
  bool any = false;
  for (const auto& peak : kPeaks) {
    gpu.*peak.member = section.optional(peak.key, as_quantity(peak.kind)).value_or(0.0);
    any = any || section.raw(peak.key) != nullptr;
  }
  if (!any) section.fail("peak_bf16", "missing, as are the peaks of all other precisions; give at least one");
}

/// Power is known of a GPU as a whole or not at all; a limit below the rated power is what users set.
void read_power(Section& section, GpuSpec& gpu) {
  const Reader<double> power = as_quantity(Dimension::kPower);
  gpu.rated_power = section.optional("rated_power", power).value_or(0);
  gpu.static_power = section.optional("static_power", power).value_or(0);
  gpu.power_limit = section.optional("power_limit", power).value_or(gpu.rated_power);
  if (section.raw("rated_power") == nullptr) {
    for (const char* key : {"static_power", "power_limit"}) {
      if (section.raw(key) != nullptr)
        section.fail(key, "needs rated_power, the GPU's power without a limit");
    }
    return;
  }
  if (gpu.power_limit > gpu.rated_power) {
    section.fail("power_limit", "is more than rated_power (" + format_number(gpu.rated_power) +
                                    " W), which the GPU never exceeds; lower it, or leave it out");
  }
  if (gpu.static_power >= std::min(gpu.power_limit, gpu.rated_power)) {
    section.fail(section.raw("power_limit") != nullptr ? "power_limit" : "static_power",
                 "leaves nothing for computing: " + format_number(gpu.static_power) +
                     " W are drawn whatever the clock (static_power)");
  }
}

/// What is forced must be possible somewhere in the cluster.
void check_algorithm(Section& section, const ClusterSpec& spec) {
  const auto needs = [&section](bool there, const std::string& what) {
    if (there) return;
    section.fail("algorithm", "needs " + what + ", which this cluster lacks; give it, or write auto");
  };
  const auto only_simple = [&section, &spec] {
    if (spec.forced_protocol.value_or(WireProtocol::kSimple) == WireProtocol::kSimple) return;
    section.fail("protocol", std::string("contradicts algorithm: ") + to_string(*spec.forced_algorithm) +
                                 ", which has the simple protocol only; write simple or auto");
  };
  switch (spec.forced_algorithm.value_or(Algorithm::kRing)) {
    case Algorithm::kInSwitch:
      needs(spec.intra_node.nvls_bandwidth > 0, "intra_node.nvls_bandwidth");
      return only_simple();
    case Algorithm::kNvlsTree:
      needs(spec.intra_node.nvls_bandwidth > 0, "intra_node.nvls_bandwidth");
      needs(spec.nics_per_node > 1, "nics_per_node of 2 at least");
      return only_simple();
    case Algorithm::kInNetwork:
      needs(spec.fabric.in_network_reduction, "fabric.in_network_reduction: true");
      return only_simple();
    case Algorithm::kHierarchical:
      needs(spec.gpus_per_node > 1, "gpus_per_node of 2 at least");
      needs(spec.nics_per_node > 0, "nics_per_node of 1 at least");
      return only_simple();
    case Algorithm::kRing:
    case Algorithm::kTree:
    case Algorithm::kPairs:
      return;
  }
}

void read_collectives(Section& cluster, ClusterSpec& spec) {
  std::optional<Section> section = cluster.mapping("collectives", false);
  if (!section) return;
  spec.forced_algorithm = section->defaulted("algorithm", as_choice(kAlgorithms), "auto");
  spec.forced_protocol = section->defaulted("protocol", as_choice(kProtocols), "auto");
  check_algorithm(*section, spec);
  const auto needs = [&section](bool there, const std::string& constant) {
    if (there) return;
    section->fail("protocol", "needs " + constant + ", which this cluster lacks; give it, or write auto");
  };
  const LinkSpec& link = spec.intra_node;
  if (spec.forced_protocol == WireProtocol::kLl) needs(link.ll_bandwidth > 0, "intra_node.ll_bandwidth");
  if (spec.forced_protocol == WireProtocol::kLl128) needs(link.ll128_latency > 0, "intra_node.ll128_latency");
  section->finish();
}

void read_slow_gpus(Section& cluster, ClusterSpec& spec) {
  std::set<std::int64_t> seen;
  for (Section& section : cluster.mappings("slow_gpus")) {
    hardware::SlowGpu slow;
    slow.gpu = section.required("gpu", as_count({0, kMaxGpus.most}));
    slow.slowdown = section.required("slowdown", as_number({1.0, 1e6, true}));
    if (section.raw("gpu") != nullptr && !seen.insert(slow.gpu).second) {
      section.fail("gpu", "GPU " + std::to_string(slow.gpu) + " is listed twice; remove one of the two");
    }
    section.finish();
    spec.slow_gpus.push_back(slow);
  }
}

void read_host(Section& cluster, ClusterSpec& spec) {
  std::optional<Section> section = cluster.mapping("host", false);
  if (!section) return;
  read_source_note(*section);
  const Reader<double> rate = as_quantity(Dimension::kRate, kRateRange);
  hardware::HostSpec host;
  host.memory = std::llround(section->required("memory", as_quantity(Dimension::kSize, kMemory)));
  host.memory_bandwidth = section->required("memory_bandwidth", rate);
  host.memory_efficiency = section->required("memory_efficiency", as_number(kEfficiency));
  host.pcie_bandwidth = section->required("pcie_bandwidth", rate);
  host.uplink_bandwidth = section->required("uplink_bandwidth", rate);
  host.pcie_efficiency = section->required("pcie_efficiency", as_number(kEfficiency));
  host.nvme_read_bandwidth = section->optional("nvme_read_bandwidth", rate).value_or(0);
  host.nvme_write_bandwidth = section->optional("nvme_write_bandwidth", rate).value_or(0);
  section->finish();
  spec.host = host;
}

}  // namespace

void read_source_note(Section& section) {
  const Value* source = section.raw("source");
  if (source == nullptr || source->kind != Kind::kMap) {
    section.optional("source", as_text());
    return;
  }
  std::optional<Section> notes = section.mapping("source", false);
  const Reader<std::string> text = as_text();
  for (const Entry& note : source->entries) {
    const Parsed<std::string> parsed = text.parse(note.value);
    if (!parsed.value) notes->fail(note, parsed.error);
  }
}

GpuSpec read_gpu(Section& section) {
  GpuSpec gpu;
  gpu.name = section.optional("name", as_text()).value_or("inline");
  read_source_note(section);
  gpu.memory = std::llround(section.required("memory", as_quantity(Dimension::kSize, kMemory)));
  gpu.memory_bandwidth = section.required("memory_bandwidth", as_quantity(Dimension::kRate, kRateRange));
  read_peaks(section, gpu);
  for (const auto& field : kFractions) gpu.*field.member = section.required(field.key, as_number(field.kind));
  gpu.tile_m = section.required("tile_m", as_count({1, 65536}));
  gpu.tile_n = section.required("tile_n", as_count({1, 65536}));
  gpu.multiprocessors = section.required("multiprocessors", as_count({1, 65536}));
  gpu.communication_multiprocessors =
      section.optional("communication_multiprocessors", as_count({0, 65536})).value_or(0);
  gpu.permute_efficiency = section.optional("permute_efficiency", as_number(kEfficiency)).value_or(0);
  gpu.group_launch_interval =
      section.optional("group_launch_interval", as_quantity(Dimension::kTime, kTime)).value_or(0);
  gpu.fp8_matmul_efficiency = section.optional("fp8_matmul_efficiency", as_number(kEfficiency)).value_or(0);
  gpu.flash_2_efficiency = section.optional("flash_2_efficiency", as_number(kEfficiency)).value_or(1.0);
  gpu.flash_1_efficiency = section.optional("flash_1_efficiency", as_number(kEfficiency)).value_or(1.0);
  gpu.attention_overhead =
      section.optional("attention_overhead", as_quantity(Dimension::kTime, kTime)).value_or(0);
  gpu.random_efficiency =
      section.optional("random_efficiency", as_number(kEfficiency)).value_or(gpu.memory_efficiency);
  for (const auto& field : kTimes) {
    gpu.*field.member = section.required(field.key, as_quantity(Dimension::kTime, field.kind));
  }
  read_power(section, gpu);
  section.finish();
  return gpu;
}

ClusterSpec read_cluster(Section& section) {
  ClusterSpec spec;
  spec.name = section.optional("name", as_text()).value_or("inline");
  read_source_note(section);
  if (std::optional<Section> gpu = section.mapping("gpu", true, expected_value(Component::kGpu)))
    spec.gpu = read_gpu(*gpu);
  spec.gpus_per_node = section.required("gpus_per_node", as_count(kPerNode));
  spec.nics_per_node = section.defaulted("nics_per_node", as_count({0, kPerNode.most}), "0");
  const bool networked = spec.nics_per_node > 0;
  read_intra_node(section, spec);
  spec.pcie = read_network_link(section.mapping("pcie", networked || !spec.mesh.empty()), false);
  spec.nic = read_network_link(section.mapping("nic", networked, expected_value(Component::kNic)), true);
  read_fabric(section, spec, networked);
  spec.collective_latency = section.required("collective_latency", as_quantity(Dimension::kTime, kTime));
  spec.point_to_point_latency =
      section.required("point_to_point_latency", as_quantity(Dimension::kTime, kTime));
  read_collectives(section, spec);
  read_host(section, spec);
  spec.max_gpus = section.optional("max_gpus", as_count(kMaxGpus)).value_or(0);
  read_slow_gpus(section, spec);
  read_faults(section, spec);
  // Rewritten before it gets here, yet a legal key that a misspelt one may stand for.
  section.optional("nic_bandwidth", as_quantity(Dimension::kRate, kRateRange));
  section.finish();
  return spec;
}

}  // namespace trainsim::config
