// SPDX-License-Identifier: Apache-2.0
#include "sim/config/nccl_topology.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <pugixml.hpp>

#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

using hardware::Vertex;
using hardware::VertexKind;

/// Bits that PCIe 3.0 and later put on the wire per bit of data (128b/130b), and those before (8b/10b).
constexpr double kCoding = 128.0 / 130.0;
constexpr double kOldCoding = 0.8;
constexpr double kOldSpeed = 5.0;
/// From PCIe 1.0 to well beyond 7.0, in GT/s, and lanes of the widest connector.
constexpr double kSlowestSpeed = 2.5;
constexpr double kFastestSpeed = 1000;
constexpr double kWidest = 32;

/// Class of the device at the other end of an NVLink: a GPU begins like this, anything else is a switch.
constexpr const char* kGpuClass = "0x03";

/// Bandwidth of one NVLink and direction by compute capability (data sheets: NVLink 1 to 5, and bridges of
/// GA10x).
BytesPerSecond nvlink_bandwidth(int capability) {
  if (capability >= 100) return 50e9;
  if (capability >= 90 || capability == 80) return 25e9;
  if (capability >= 86) return 14.0625e9;
  return capability >= 70 ? 25e9 : 20e9;
}
constexpr BytesPerSecond kXgmi = 64e9;

/// An attribute as it stands in the file, for messages.
std::string attribute(const pugi::xml_node& node, const char* name) {
  return node.attribute(name).value();
}

class TopologyReader {
 public:
  TopologyReader(std::shared_ptr<const Source> source, Report& report)
      : source_(std::move(source)), report_(report) {}

  NcclTopology read(const pugi::xml_node& system, BytesPerSecond socket_bandwidth) {
    for (const pugi::xml_node& cpu : system.children("cpu")) {
      const Vertex socket{VertexKind::kCpu, result_.cpus++};
      for (Vertex other{VertexKind::kCpu, 0}; other.index < socket.index; ++other.index)
        result_.links.push_back({socket, other, socket_bandwidth});
      for (const pugi::xml_node& device : cpu.children("pci")) add_pci(device, socket);
    }
    for (const auto& [gpu, node] : gpus_) add_nvlinks(gpu, node);
    result_.gpus = static_cast<std::int64_t>(gpus_.size());
    result_.nics = static_cast<std::int64_t>(nics_.size());
    if (gpus_.empty()) fail(system, "holds no GPU; dump it with NCCL_TOPO_DUMP_FILE while a job runs");
    check_numbers(system);
    return std::move(result_);
  }

 private:
  void fail(const pugi::xml_node& node, const std::string& message) { report_.add(at(node), "", message); }

  /// Line and column of a node's name.
  Position at(const pugi::xml_node& node) const {
    const auto offset = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, node.offset_debug()));
    const std::string& text = source_->text();
    const std::string_view before(text.data(), std::min(offset, text.size()));
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    const std::size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {source_, line, static_cast<int>(before.size() - start) + 1};
  }

  /// Speed x width of a device's link to what is above it.
  BytesPerSecond pci_bandwidth(const pugi::xml_node& device) {
    const double speed = std::atof(attribute(device, "link_speed").c_str());
    const double width = std::atof(attribute(device, "link_width").c_str());
    if (speed >= kSlowestSpeed && speed <= kFastestSpeed && width >= 1 && width <= kWidest)
      return speed * width / 8.0 * 1e9 * (speed > kOldSpeed ? kCoding : kOldCoding);
    fail(device, "link_speed '" + clip(attribute(device, "link_speed")) + "' and link_width '" +
                     clip(attribute(device, "link_width")) +
                     "' give no bandwidth; write for example 16 GT/s and 16");
    return 1;
  }

  void add_pci(const pugi::xml_node& device, const Vertex& above) {
    const BytesPerSecond bandwidth = pci_bandwidth(device);
    if (const pugi::xml_node gpu = device.child("gpu")) {
      const Vertex vertex{VertexKind::kGpu, gpu.attribute("dev").as_llong(-1)};
      if (!gpus_.emplace(vertex.index, gpu).second)
        fail(gpu, "dev " + std::to_string(vertex.index) + " is there twice");
      ids_[attribute(device, "busid")] = vertex.index;
      result_.links.push_back({vertex, above, bandwidth});
    } else if (const pugi::xml_node card = device.child("nic")) {
      for (const pugi::xml_node& net : card.children("net")) {
        const Vertex vertex{VertexKind::kNic, net.attribute("dev").as_llong(-1)};
        if (!nics_.insert(vertex.index).second)
          fail(net, "dev " + std::to_string(vertex.index) + " is there twice");
        result_.links.push_back({vertex, above, bandwidth});
      }
    } else if (device.child("pci")) {
      const Vertex vertex{VertexKind::kPcieSwitch, switches_++};
      result_.links.push_back({vertex, above, bandwidth});
      for (const pugi::xml_node& below : device.children("pci")) add_pci(below, vertex);
    }
  }

  /// Links to other GPUs are in the file from both ends, and count once.
  void add_nvlinks(std::int64_t gpu, const pugi::xml_node& node) {
    const Vertex own{VertexKind::kGpu, gpu};
    double to_switches = 0;
    for (const pugi::xml_node& link : node) {
      const std::string kind = link.name();
      if (kind != "nvlink" && kind != "xgmi") continue;
      const double count = link.attribute("count").as_double(0);
      if (count <= 0) fail(link, "count '" + clip(attribute(link, "count")) + "' is no number of links");
      const BytesPerSecond bandwidth =
          count * (kind == "xgmi" ? kXgmi : nvlink_bandwidth(node.attribute("sm").as_int(0)));
      if (!attribute(link, "tclass").starts_with(kGpuClass)) {
        to_switches += bandwidth;
        continue;
      }
      const auto target = ids_.find(attribute(link, "target"));
      if (target == ids_.end()) {
        fail(link, "target '" + clip(attribute(link, "target")) + "' is no GPU of this file");
      } else if (gpu < target->second) {
        result_.links.push_back(
            {own, {VertexKind::kGpu, target->second}, bandwidth, static_cast<std::int64_t>(count)});
      }
    }
    if (to_switches > 0) result_.links.push_back({own, {VertexKind::kNodeSwitch, 0}, to_switches});
  }

  /// GPUs and network devices are numbered from 0 on.
  void check_numbers(const pugi::xml_node& system) {
    const auto counted = [](std::int64_t count, std::int64_t least, std::int64_t most) {
      return count == 0 || (least == 0 && most == count - 1);
    };
    if (!gpus_.empty() && !counted(result_.gpus, gpus_.begin()->first, gpus_.rbegin()->first))
      fail(system, "numbers its GPUs (dev) not from 0 to " + std::to_string(result_.gpus - 1));
    if (!nics_.empty() && !counted(result_.nics, *nics_.begin(), *nics_.rbegin()))
      fail(system, "numbers its network devices (dev) not from 0 to " + std::to_string(result_.nics - 1));
  }

  std::shared_ptr<const Source> source_;
  Report& report_;
  NcclTopology result_;
  std::map<std::int64_t, pugi::xml_node> gpus_;
  std::map<std::string, std::int64_t> ids_;
  std::set<std::int64_t> nics_;
  std::int64_t switches_ = 0;
};

}  // namespace

NcclTopology read_nccl_topology(const std::filesystem::path& file, BytesPerSecond socket_bandwidth,
                                Report& report) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  const auto source = std::make_shared<Source>(file.string(), file.parent_path(), text, 0);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(text.data(), text.size());
  const pugi::xml_node root = document.document_element();
  if (!stream.good() && text.empty()) {
    report.add({source, 0, 0}, "", "cannot be read, or is empty");
    return {};
  }
  if (!parsed) {
    const std::string before =
        text.substr(0, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, parsed.offset)));
    const auto line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
    const auto column = static_cast<int>(before.size() - (before.rfind('\n') + 1)) + 1;
    report.add({source, line, column}, "", std::string("is not XML: ") + parsed.description());
    return {};
  }
  if (std::string(root.name()) != "system") {
    report.add({source, 1, 1}, "",
               "is no topology of NCCL: it begins with <" + clip(root.name()) + ">, not with <system>");
    return {};
  }
  return TopologyReader(source, report).read(root, socket_bandwidth);
}

}  // namespace trainsim::config
