// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "sim/program/traffic.hpp"
#include "sim/report/summary.hpp"

namespace trainsim::report {

/// Share of the step in which a link is busy at its full rate.
double utilization(const Summary& summary, const program::LinkTraffic& link);
/// The busiest link of each type, as far as they are busy for 1 % of the step or more.
std::vector<const program::LinkTraffic*> busiest_links(const Summary& summary);
/// "data 81 %, pipeline 19 %": what a link is busy with, largest first.
std::string users_of(const program::LinkTraffic& link);
/// What compute waited for transfers of a kind, mean over ranks.
Seconds exposed(const Summary& summary, program::TrafficKind kind);
/// A sentence about links that transfers share; empty when nothing comes of it.
std::string contention_note(const Summary& summary);
/// The tables "Communication" and "Busiest links"; empty when nothing is sent.
std::string network_tables(const Summary& summary);

}  // namespace trainsim::report
