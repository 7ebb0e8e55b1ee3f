// SPDX-License-Identifier: Apache-2.0
#include "sim/report/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sim/report/csv_cells.hpp"
#include "sim/report/format.hpp"

namespace trainsim::report {

namespace {

/// Share of the step below which a gain is not worth a sentence.
constexpr double kSmallGain = 0.002;
/// Things that a sentence names after the first.
constexpr std::size_t kNamed = 3;
constexpr std::size_t kMeaningWidth = 28;
constexpr std::size_t kNameWidth = 24;
constexpr std::size_t kColumnWidth = 12;

std::vector<SensitivityRow> rows_of(const Summary& summary, bool operations) {
  std::vector<SensitivityRow> rows;
  std::copy_if(summary.sensitivity->rows.begin(), summary.sensitivity->rows.end(), std::back_inserter(rows),
               [operations](const SensitivityRow& row) { return row.operation == operations; });
  return rows;
}

double gain_share(const Summary& summary, const SensitivityRow& row) {
  return row.gain(summary.step_time) / summary.step_time;
}

/// "; next HBM bandwidth 1.9 %, NVLink 0.8 %"
std::string next_ones(const Summary& summary, const std::vector<SensitivityRow>& rows) {
  std::string text;
  for (std::size_t i = 1; i < std::min(rows.size(), kNamed + 1); ++i) {
    const double share = gain_share(summary, rows[i]);
    if (share < kSmallGain) break;
    text += text.empty() ? "; next " : ", ";
    text += rows[i].meaning;
    text += " ";
    text += percent(share);
  }
  return text;
}

std::string hardware_sentence(const Summary& summary) {
  const std::vector<SensitivityRow> rows = rows_of(summary, false);
  if (rows.empty() || gain_share(summary, rows.front()) < kSmallGain) {
    return "Bound by no single part of the hardware: nothing that is 10 % better would take " +
           percent(kSmallGain) + " off the step.";
  }
  const SensitivityRow& first = rows.front();
  return "Bound by " + first.meaning + " (elasticity " + number(first.elasticity(summary.step_time), 2) +
         "): 10 % better would take " + percent(gain_share(summary, first)) + " off the step" +
         next_ones(summary, rows) + ".";
}

std::string operation_sentence(const Summary& summary) {
  const std::vector<SensitivityRow> rows = rows_of(summary, true);
  if (rows.empty() || gain_share(summary, rows.front()) < kSmallGain) return "";
  return "Of the operations " + rows.front().meaning + " weighs most: 10 % faster would take " +
         percent(gain_share(summary, rows.front())) + " off the step" + next_ones(summary, rows) + ".";
}

std::string table_row(const Summary& summary, const SensitivityRow& row) {
  const Seconds base = summary.step_time;
  const double share = gain_share(summary, row);
  // Rounded, so that nothing has no sign.
  const double elasticity = std::round(1e3 * row.elasticity(base)) / 1e3 + 0.0;
  return "  " + pad_right(row.meaning, kMeaningWidth) + pad_right(row.name, kNameWidth) +
         pad_left(duration_like(row.step_time, base), kColumnWidth) +
         pad_left(duration_like(row.gain(base), base), kColumnWidth) +
         pad_left(percent(std::abs(share) < 5e-6 ? 0.0 : share), kColumnWidth) +
         pad_left(fixed(elasticity, 3), kColumnWidth) +
         (row.verdict == summary.verdict ? "" : std::string("  ") + to_string(row.verdict)) + "\n";
}

}  // namespace

double SensitivityRow::elasticity(Seconds base) const {
  return std::log(base / step_time) / std::log(Sensitivity::kFactor);
}

void sort_by_gain(Sensitivity& sensitivity) {
  std::sort(sensitivity.rows.begin(), sensitivity.rows.end(),
            [](const SensitivityRow& a, const SensitivityRow& b) {
              return a.step_time != b.step_time ? a.step_time < b.step_time : a.name < b.name;
            });
}

std::vector<std::string> bound_by(const Summary& summary) {
  std::vector<std::string> result = {hardware_sentence(summary)};
  if (std::string operations = operation_sentence(summary); !operations.empty())
    result.push_back(std::move(operations));
  return result;
}

std::string sensitivity_text(const Summary& summary) {
  if (!summary.sensitivity) return "";
  std::string text = "\nWhat 10 % better would give (each simulated on its own)\n";
  text += "  " + pad_right("", kMeaningWidth) + pad_right("--what-if", kNameWidth) +
          pad_left("step time", kColumnWidth) + pad_left("gain", kColumnWidth) +
          pad_left("of step", kColumnWidth) + pad_left("elasticity", kColumnWidth) + "\n";
  for (const SensitivityRow& row : summary.sensitivity->rows) text += table_row(summary, row);
  for (const std::string& sentence : bound_by(summary)) text += paragraph(sentence);
  return text;
}

Json sensitivity_json(const Summary& summary) {
  if (!summary.sensitivity) return nullptr;
  Json rows = Json::array();
  for (const SensitivityRow& row : summary.sensitivity->rows) {
    rows.push_back({{"name", row.name},
                    {"meaning", row.meaning},
                    {"change", row.change},
                    {"step_time_s", row.step_time},
                    {"gain_s", row.gain(summary.step_time)},
                    {"gain", gain_share(summary, row)},
                    {"elasticity", row.elasticity(summary.step_time)},
                    {"verdict", to_string(row.verdict)}});
  }
  return {{"factor", Sensitivity::kFactor}, {"rows", std::move(rows)}, {"sentences", bound_by(summary)}};
}

std::string sensitivity_csv(const Summary& summary) {
  std::string text = "name,meaning,change,step_time_s,gain_s,gain,elasticity,verdict\n";
  for (const SensitivityRow& row : summary.sensitivity->rows) {
    for (const std::string& value :
         {cell(row.name), cell(row.meaning), cell(row.change), exact(row.step_time),
          exact(row.gain(summary.step_time)), exact(gain_share(summary, row)),
          exact(row.elasticity(summary.step_time))}) {
      text += value;
      text += ",";
    }
    text += to_string(row.verdict);
    text += "\n";
  }
  return text;
}

}  // namespace trainsim::report
