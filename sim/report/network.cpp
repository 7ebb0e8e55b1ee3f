// SPDX-License-Identifier: Apache-2.0
#include "sim/report/network.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "sim/report/format.hpp"
#include "sim/report/groups.hpp"

namespace trainsim::report {

namespace {

using program::Cause;
using program::LinkTraffic;
using program::TrafficKind;
using program::Transfers;

/// Links that are busy for less of the step are not worth a row, and contention not a sentence.
constexpr double kIdle = 0.01;
constexpr double kLittleContention = 0.002;

std::string transfer_row(const Summary& summary, const Transfers& transfers, bool first) {
  std::string what = std::string(program::to_string(transfers.kind)) + " " + transfers.op;
  if (transfers.kind != TrafficKind::kPipeline) {
    what += std::string(", ") + to_string(transfers.algorithm) + " " + to_string(transfers.protocol);
  }
  return "  " + pad_right(what, 40) + pad_left(number(transfers.calls, 4), 9) +
         pad_left(bytes_text(transfers.tensor_bytes), 12) + pad_left(duration(transfers.alone), 11) +
         (first ? pad_left(duration(exposed(summary, transfers.kind)), 12) : "") + "\n";
}

std::string link_row(const Summary& summary, const LinkTraffic& link) {
  return "  " + pad_right(link.name, 40) + pad_left(number(link.bandwidth / kGiga, 4) + " GB/s", 14) +
         pad_left(bytes_text(link.total()), 12) + pad_left(percent(utilization(summary, link)), 9) + "  " +
         users_of(link) + "\n";
}

/// "gpu|nodeswitch" from "gpu 3 -> node switch 0", and from the opposite direction.
std::string type_of(std::string name) {
  std::erase_if(name, [](char c) { return (c >= '0' && c <= '9') || c == ' '; });
  const std::size_t arrow = name.find("->");
  std::string from = name.substr(0, arrow);
  std::string to = name.substr(std::min(arrow + 2, name.size()));
  if (to < from) std::swap(from, to);
  return from + "|" + to;
}

/// The busiest link that transfers of several kinds cross.
const LinkTraffic* busiest_shared(const Summary& summary) {
  const auto is_shared = [](const LinkTraffic& link) {
    return std::count_if(link.bytes.begin(), link.bytes.end(), [](double part) { return part > 0; }) > 1;
  };
  const auto found = std::find_if(summary.traffic.links.begin(), summary.traffic.links.end(), is_shared);
  return found == summary.traffic.links.end() ? nullptr : &*found;
}

}  // namespace

std::vector<const LinkTraffic*> busiest_links(const Summary& summary) {
  std::vector<const LinkTraffic*> busiest;
  std::set<std::string> types;
  for (const LinkTraffic& link : summary.traffic.links) {
    if (utilization(summary, link) < kIdle) break;
    if (types.insert(type_of(link.name)).second) busiest.push_back(&link);
  }
  return busiest;
}

double utilization(const Summary& summary, const LinkTraffic& link) {
  return link.total() / link.bandwidth / summary.step_time;
}

std::string users_of(const LinkTraffic& link) {
  std::vector<std::pair<double, TrafficKind>> users;
  for (std::size_t kind = 0; kind < link.bytes.size(); ++kind) {
    if (link.bytes[kind] > 0)
      users.emplace_back(link.bytes[kind] / link.total(), static_cast<TrafficKind>(kind));
  }
  std::stable_sort(users.begin(), users.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (users.size() == 1) return program::to_string(users.front().second);
  std::string text;
  for (const auto& [share, kind] : users) {
    text += (text.empty() ? "" : ", ") + std::string(program::to_string(kind)) + " " + percent(share);
  }
  return text;
}

Seconds exposed(const Summary& summary, TrafficKind kind) {
  static constexpr std::array<Cause, program::kTrafficKinds> causes = {
      Cause::kTensorCommunication, Cause::kDataCommunication,     Cause::kEmbeddingCommunication,
      Cause::kExpertCommunication, Cause::kPipelineCommunication, Cause::kContextCommunication};
  return summary.breakdown[static_cast<std::size_t>(causes[static_cast<std::size_t>(kind)])];
}

std::string contention_note(const Summary& summary) {
  if (!summary.contention || *summary.contention < kLittleContention * summary.step_time) return "";
  std::string text = "Transfers that share links cost " + percent(*summary.contention / summary.step_time) +
                     " of the step: with each alone it would take " +
                     duration(summary.step_time - *summary.contention) + ".";
  if (summary.traffic.links.empty()) return text;
  std::string sharing = sharing_text(summary);
  if (!sharing.empty()) sharing.insert(0, " ");
  const LinkTraffic* shared = busiest_shared(summary);
  const LinkTraffic& link = shared == nullptr ? summary.traffic.links.front() : *shared;
  return text +
         (shared == nullptr ? " The busiest link is '" : " The busiest that several kinds share is '") +
         link.name + "', busy for " + percent(utilization(summary, link)) + " of the step (" +
         users_of(link) + ")." + sharing;
}

std::string network_tables(const Summary& summary) {
  if (summary.traffic.transfers.empty()) return "";
  std::string text = "\nCommunication (mean over ranks)\n  " + pad_right("", 40) + pad_left("calls", 9) +
                     pad_left("tensors", 12) + pad_left("alone", 11) + pad_left("waited for", 12) + "\n";
  const Transfers* before = nullptr;
  for (const Transfers& transfers : summary.traffic.transfers) {
    text += transfer_row(summary, transfers, before == nullptr || before->kind != transfers.kind);
    before = &transfers;
  }
  const std::vector<const LinkTraffic*> links = busiest_links(summary);
  if (links.empty()) return text;
  text += "\nBusiest links (of each type)\n  " + pad_right("", 40) + pad_left("rate", 14) +
          pad_left("carries", 12) + pad_left("busy", 9) + "  for\n";
  for (const LinkTraffic* link : links) text += link_row(summary, *link);
  return text;
}

}  // namespace trainsim::report
