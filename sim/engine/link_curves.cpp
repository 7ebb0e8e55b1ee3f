// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/link_curves.hpp"

#include <algorithm>
#include <map>

#include "sim/engine/collective_costs.hpp"
#include "sim/engine/traffic.hpp"

namespace trainsim::engine {

namespace {

using program::Instruction;
using program::LinkCurve;
using program::Span;
using program::SpanKind;
using program::TrafficKind;

/// Spreads what was sent over the parts of the step.
class Spreader {
 public:
  Spreader(const program::Job& job, const program::Timeline& timeline, const std::vector<std::string>& names,
           std::size_t parts)
      : job_(job),
        timeline_(timeline),
        costs_(job),
        parts_(parts),
        part_(timeline.step_time / static_cast<double>(parts)) {
    for (const std::string& name : names) curves_.push_back({name, {}});
    for (std::size_t link = 0; link < job.links.size(); ++link) {
      const auto found = std::find(names.begin(), names.end(), job.links[link].name);
      if (found != names.end()) places_[link] = static_cast<std::size_t>(found - names.begin());
    }
  }

  std::vector<LinkCurve> run() {
    for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      for (std::size_t stream = 0; stream < program::kStreams; ++stream) {
        for (const Span& span : timeline_.ranks[rank].spans[stream]) add(rank, stream, span);
      }
    }
    return std::move(curves_);
  }

 private:
  void add(std::size_t rank, std::size_t stream, const Span& span) {
    if (span.kind != SpanKind::kCollective && span.kind != SpanKind::kSend) return;
    const program::Rank& bound = job_.ranks[rank];
    const Instruction& call = job_.programs[bound.program].streams[stream][span.instruction];
    if (span.kind == SpanKind::kSend) {
      const program::Peer& peer = bound.peers[static_cast<std::size_t>(call.peer)];
      add_flow(peer.flow, TrafficKind::kPipeline, call.amount, span);
      return;
    }
    const auto index = static_cast<std::size_t>(bound.groups[static_cast<std::size_t>(call.group)]);
    const program::Group& group = job_.groups[index];
    // All members have the same span.
    if (group.members.front() != rank) return;
    const program::CollectiveCost cost = costs_.of(index, call.collective, call.amount).cost;
    for (const program::RingFlow& ring : group.flows)
      add_flow(ring.flow, traffic_kind(call.group), cost.bytes_of(ring), span);
  }

  /// A flow stands for `weight * divisor` flows over each link on its route.
  void add_flow(const program::Flow& flow, TrafficKind kind, double bytes, const Span& span) {
    for (const program::Hop& hop : flow.route) {
      const auto place = places_.find(hop.link);
      if (place == places_.end()) continue;
      const double crossing = bytes * static_cast<double>(hop.weight) / job_.links[hop.link].capacity();
      spread(curves_[place->second].busy[static_cast<std::size_t>(kind)], crossing, span);
    }
  }

  /// Adds `seconds` of a link at its full rate, in the time of a span.
  void spread(std::vector<double>& curve, Seconds seconds, const Span& span) const {
    curve.resize(parts_, 0.0);
    const auto last = static_cast<double>(parts_ - 1);
    const auto part_at = [&](Seconds time) {
      return static_cast<std::size_t>(std::clamp(time / part_, 0.0, last));
    };
    if (span.duration() <= 0) return;
    const double rate = seconds / span.duration();
    for (std::size_t part = part_at(span.begin); part <= part_at(span.end); ++part) {
      const Seconds begin = std::max(span.begin, part_ * static_cast<double>(part));
      const Seconds end = std::min(span.end, part_ * static_cast<double>(part + 1));
      if (end > begin) curve[part] += rate * (end - begin) / part_;
    }
  }

  const program::Job& job_;
  const program::Timeline& timeline_;
  CollectiveCosts costs_;
  std::size_t parts_;
  Seconds part_;
  /// By link of the job.
  std::map<std::size_t, std::size_t> places_;
  std::vector<LinkCurve> curves_;
};

}  // namespace

std::vector<LinkCurve> link_curves(const program::Job& job, const program::Timeline& timeline,
                                   const std::vector<std::string>& names, std::size_t parts) {
  return Spreader(job, timeline, names, parts).run();
}

}  // namespace trainsim::engine
