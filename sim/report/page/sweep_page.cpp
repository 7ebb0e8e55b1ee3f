// SPDX-License-Identifier: Apache-2.0
#include "sim/report/page/sweep_page.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sim/report/page/frame.hpp"
#include "sim/report/page/sweep_view.hpp"
#include "sim/report/sweep_points.hpp"
#include "sim/report/sweep_rows.hpp"

namespace trainsim::report {

namespace {

using sweep::Cell;
using sweep::CellKind;
using sweep::Row;

/// Points that a page holds at most; fewer where their texts are long.
constexpr std::size_t kMostPoints = 4096;

/// Columns of rows that the page shows.
constexpr std::array<std::string_view, 23> kColumns = {"gpus",
                                                       "tensor_parallel",
                                                       "pipeline_parallel",
                                                       "virtual_pipeline",
                                                       "data_parallel",
                                                       "micro_batch_size",
                                                       "global_batch_size",
                                                       "step_time_s",
                                                       "tokens_per_s",
                                                       "tokens_per_s_per_gpu",
                                                       "mfu",
                                                       "bubble_ratio",
                                                       "scaling_efficiency",
                                                       "fits",
                                                       "verdict",
                                                       "peak_memory_bytes",
                                                       "memory_headroom_bytes",
                                                       "error",
                                                       "point",
                                                       "points",
                                                       "run_days",
                                                       "run_cost",
                                                       "run_currency"};

Json json_of(const Cell* cell) {
  if (cell == nullptr || cell->kind == CellKind::kNone) return nullptr;
  if (cell->kind == CellKind::kText) return cell->text;
  Json value = Json::parse(cell->text, nullptr, false);
  return value.is_discarded() ? Json(cell->text) : value;
}

/// Rows that are shown by their place among all, and where they stand on the page.
using Places = std::map<std::size_t, std::size_t>;

Places places_of(const std::vector<std::size_t>& shown) {
  Places places;
  for (std::size_t i = 0; i < shown.size(); ++i) places[shown[i]] = i;
  return places;
}

Json list_of(const std::vector<std::size_t>& rows, const Places& places) {
  Json list = Json::array();
  for (const std::size_t row : rows) {
    if (const auto place = places.find(row); place != places.end()) list.push_back(place->second);
  }
  return list;
}

Json place_of(const std::optional<std::size_t>& row, const Places& places) {
  return row ? Json(places.at(*row)) : Json(nullptr);
}

Json points_json(const std::vector<Row>& rows, const SweepView& view, const std::vector<std::size_t>& shown) {
  std::vector<std::string> columns = rows.empty() ? std::vector<std::string>{} : sweep::keys_of(rows.front());
  for (const std::string_view column : kColumns) {
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.emplace_back(column);
  }
  Json list = Json::array();
  for (const std::size_t r : shown) {
    Json values = Json::array();
    for (const std::string& column : columns) values.push_back(json_of(find(rows[r], column)));
    const bool valid = is_valid(rows[r]);
    values.push_back(valid ? Json(time_of(rows[r], view.per_token)) : Json(nullptr));
    values.push_back(valid ? Json(gpu_hours_of(rows[r], view.per_token)) : Json(nullptr));
    list.push_back(std::move(values));
  }
  columns.insert(columns.end(), {"time_s", "gpu_hours"});
  return {{"columns", columns}, {"rows", std::move(list)}};
}

Json axes_json(const SweepView& view, const std::vector<std::size_t>& shown, const Places& places) {
  Json list = Json::array();
  for (std::size_t a = 0; a < view.axes.size(); ++a) {
    const sweep::RowAxis& axis = view.axes[a];
    Json positions = Json::array();
    for (const std::size_t row : shown) positions.push_back(axis.positions[row]);
    Json json = {{"keys", axis.keys},
                 {"values", axis.values},
                 {"numbers", axis.numbers},
                 {"positions", std::move(positions)},
                 {"curve", nullptr}};
    if (a < view.curves.size()) {
      json["curve"] = {{"points", list_of(view.curves[a].rows, places)},
                       {"knee", place_of(view.curves[a].knee, places)},
                       {"sentences", view.curves[a].sentences}};
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json front_json(const SweepFront& front, const Places& places) {
  return {{"points", list_of(front.rows, places)}, {"sentence", front.sentence}};
}

/// At most `most` rows: what the page speaks of, and of the others every so many.
std::vector<std::size_t> shown_rows(const SweepView& view, std::size_t count, std::size_t most) {
  std::set<std::size_t> shown;
  const auto add = [&shown, most](const std::vector<std::size_t>& rows) {
    for (const std::size_t row : rows) {
      if (shown.size() < most) shown.insert(row);
    }
  };
  if (view.best) shown.insert(*view.best);
  for (const SweepCurve& curve : view.curves) {
    if (curve.knee) shown.insert(*curve.knee);
  }
  add(view.memory.rows);
  if (view.cost) add(view.cost->rows);
  for (const SweepCurve& curve : view.curves) add(curve.rows);
  const std::size_t stride = std::max<std::size_t>(1, (count + most - 1) / most);
  for (std::size_t row = 0; row < count && shown.size() < most; row += stride) shown.insert(row);
  return {shown.begin(), shown.end()};
}

Json page_json(const SweepPage& page, const SweepView& view, std::size_t most) {
  const std::vector<std::size_t> shown = shown_rows(view, page.rows.size(), most);
  const Places places = places_of(shown);
  const auto valid = std::count_if(page.rows.begin(), page.rows.end(), is_valid);
  const auto fitting = std::count_if(page.rows.begin(), page.rows.end(), fits);
  return {{"headline", view.headline},
          {"notes", view.notes},
          {"keys", page.rows.empty() ? std::vector<std::string>{} : sweep::keys_of(page.rows.front())},
          {"counts", {{"points", page.rows.size()}, {"legal", valid}, {"fit", fitting}}},
          {"points_of_sweep", page.rows.empty() ? Json(0) : json_of(find(page.rows.front(), "points"))},
          {"points", points_json(page.rows, view, shown)},
          {"axes", axes_json(view, shown, places)},
          {"best", place_of(view.best, places)},
          {"per", view.per_token ? "token" : "step"},
          {"memory_front", front_json(view.memory, places)},
          {"cost_front", view.cost ? front_json(*view.cost, places) : Json(nullptr)}};
}

/// The name of the first point that has one.
std::string name_of(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (std::string name = text_in(row, sweep::kFirstResult); !name.empty()) return name;
  }
  return "Sweep";
}

}  // namespace

std::string to_html(const SweepPage& page) {
  const SweepView view = view_of(page.rows);
  const PageFrame frame{"Sweep", name_of(page.rows), "", page.command, page.version};
  for (std::size_t most = kMostPoints;; most /= 2) {
    std::string html = framed(kSweepPage, frame, page_json(page, view, most));
    if (html.size() <= kLargestPage || most <= 1) return html;
  }
}

}  // namespace trainsim::report
