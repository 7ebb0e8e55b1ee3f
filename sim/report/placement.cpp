// SPDX-License-Identifier: Apache-2.0
#include "sim/report/placement.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/report/csv_cells.hpp"
#include "sim/report/format.hpp"
#include "sim/report/groups.hpp"
#include "sim/report/search.hpp"

namespace trainsim::report {

namespace {

using Names = std::set<std::string>;

/// Relative differences of step times that are not worth a word.
constexpr double kSmallChange = 0.001;
constexpr std::size_t kMeaningWidth = 48;
constexpr std::size_t kIndent = 6;
constexpr std::size_t kTextWidth = 110;

Names users_of_link(const Summary& summary, const std::string& name) {
  Names users;
  for (const program::LinkTraffic& link : summary.traffic.links) {
    if (link.name != name) continue;
    for (const program::LinkUser& user : link.users) users.insert(user.by.name);
  }
  return users;
}

/// "data groups on 16 nodes instead of 8".
std::string moved_groups(const PlacementResult& from, const PlacementResult& to) {
  std::string text;
  for (const auto& [name, nodes] : to.nodes) {
    const auto before = from.nodes.find(name);
    if (before == from.nodes.end() || before->second == nodes) continue;
    text.append(text.empty() ? "" : ", ").append(words(name));
    text.append(name == "pipeline" ? " neighbours on " : " groups on ").append(std::to_string(nodes));
    text.append(nodes == 1 ? " node" : " nodes").append(" instead of ");
    text.append(std::to_string(before->second));
  }
  return text;
}

/// Those of `names` that `others` lacks, in words.
std::string missing_in(const Names& names, const Names& others) {
  Names missing;
  std::set_difference(names.begin(), names.end(), others.begin(), others.end(),
                      std::inserter(missing, missing.end()));
  std::string text;
  for (const std::string& name : missing)
    text.append(text.empty() ? "" : " and ").append(transfers_words(name));
  return text;
}

/// "pipeline transfers leave the slowest link of data-parallel rings alone".
std::string moved_company(const PlacementResult& from, const PlacementResult& to) {
  std::string text;
  for (const auto& [name, company] : to.company) {
    const auto before = from.company.find(name);
    if (name == "pipeline" || before == from.company.end()) continue;
    const std::string link = " the slowest link of " + transfers_words(name);
    const std::string gone = missing_in(before->second, company);
    const std::string come = missing_in(company, before->second);
    if (!gone.empty())
      text.append(text.empty() ? "" : "; ").append(gone).append(" leave").append(link).append(" alone");
    if (!come.empty()) text.append(text.empty() ? "" : "; ").append(come).append(" share").append(link);
  }
  return text;
}

std::string change_of(double relative) {
  return std::abs(relative - 1.0) < 1e-6 ? "+0 %" : signed_percent(relative - 1.0);
}

std::string row_text(const std::string& meaning, Seconds step_time, const std::string& change) {
  return "  " + pad_right(meaning, kMeaningWidth) + pad_left(duration(step_time), 12) + pad_left(change, 10) +
         "\n";
}

}  // namespace

PlacementResult placement_result(const Summary& summary) {
  PlacementResult result{summary.step_time, summary.breakdown, {}, {}};
  std::map<std::string, Seconds> most;
  for (const program::GroupTransfers& group : summary.traffic.groups) {
    const std::string& name = group.of.name;
    std::int64_t& nodes = result.nodes[name];
    nodes = std::max(nodes, group.nodes);
    if (group.busy <= most[name]) continue;
    most[name] = group.busy;
    Names users = users_of_link(summary, group.limit);
    users.erase(name);
    result.company[name] = std::move(users);
  }
  return result;
}

std::string packed(const PlacementResult& result) {
  return Json{{"step_time", result.step_time},
              {"breakdown", result.breakdown},
              {"nodes", result.nodes},
              {"company", result.company}}
      .dump();
}

PlacementResult unpacked_placement(const std::string& text) {
  const Json json = Json::parse(text);
  PlacementResult result;
  json.at("step_time").get_to(result.step_time);
  json.at("breakdown").get_to(result.breakdown);
  for (const auto& [name, nodes] : json.at("nodes").items()) result.nodes[name] = nodes.get<std::int64_t>();
  for (const auto& [name, users] : json.at("company").items()) result.company[name] = users.get<Names>();
  return result;
}

void sort_by_step_time(Placement& placement) {
  std::stable_sort(
      placement.rows.begin(), placement.rows.end(),
      [](const PlacementRow& a, const PlacementRow& b) { return a.result.step_time < b.result.step_time; });
}

std::string why_placement(const PlacementResult& from, const PlacementResult& to) {
  std::string text;
  const bool as_fast = std::abs(to.step_time - from.step_time) < kSmallChange * from.step_time;
  const std::string causes = as_fast ? "as fast within " + percent(kSmallChange)
                                     : moved_causes(from.breakdown, to.breakdown, from.step_time);
  for (const std::string& part : {causes, moved_groups(from, to), moved_company(from, to)}) {
    if (!part.empty()) text.append(text.empty() ? "" : "; ").append(part);
  }
  return text;
}

std::string placement_sentence(const Summary& summary) {
  const Placement& placement = *summary.placement;
  if (placement.rows.empty()) return "There is no other placement to try.";
  const PlacementRow& best = placement.rows.front();
  const double relative = best.result.step_time / summary.step_time;
  if (relative > 1.0 - kSmallChange)
    return "No other placement takes less than yours by more than " + percent(kSmallChange) + ".";
  return "The best, " + best.meaning + ", would take " + percent(1.0 - relative) +
         " less: " + why_placement(placement_result(summary), best.result) + ".";
}

std::string placement_text(const Summary& summary) {
  if (!summary.placement) return "";
  std::string text = "\nWhat other placements would give (each simulated)\n";
  text += row_text("yours: order " + plan::to_string(summary.plan.order), summary.step_time, "");
  const PlacementResult own = placement_result(summary);
  for (const PlacementRow& row : summary.placement->rows) {
    text += row_text(row.meaning, row.result.step_time, change_of(row.result.step_time / summary.step_time));
    text += std::string(kIndent, ' ') + wrap(why_placement(own, row.result), kTextWidth - kIndent, kIndent) +
            "\n";
  }
  text += paragraph(placement_sentence(summary));
  if (!summary.placement->note.empty()) text += paragraph(summary.placement->note);
  return text;
}

Json placement_json(const Summary& summary) {
  if (!summary.placement) return nullptr;
  const PlacementResult own = placement_result(summary);
  Json rows = Json::array();
  for (const PlacementRow& row : summary.placement->rows) {
    rows.push_back({{"meaning", row.meaning},
                    {"set", row.overrides},
                    {"step_time_s", row.result.step_time},
                    {"relative", row.result.step_time / summary.step_time},
                    {"why", why_placement(own, row.result)},
                    {"group_nodes", row.result.nodes}});
  }
  std::vector<std::string> sentences = {placement_sentence(summary)};
  if (!summary.placement->note.empty()) sentences.push_back(summary.placement->note);
  return {{"rows", std::move(rows)}, {"sentences", std::move(sentences)}};
}

std::string placement_csv(const Summary& summary) {
  std::string text = "meaning,set,step_time_s,relative\n";
  text += "own,," + exact(summary.step_time) + ",1\n";
  for (const PlacementRow& row : summary.placement->rows) {
    text.append(cell(row.meaning)).append(",").append(cell(row.overrides.front())).append(",");
    text.append(exact(row.result.step_time)).append(",");
    text.append(exact(row.result.step_time / summary.step_time)).append("\n");
  }
  return text;
}

}  // namespace trainsim::report
