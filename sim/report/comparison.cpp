// SPDX-License-Identifier: Apache-2.0
#include "sim/report/comparison.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string_view>

#include "sim/base/quantile.hpp"
#include "sim/report/format.hpp"

namespace trainsim::report {

namespace {

constexpr std::size_t kLabelWidth = 26;
constexpr std::size_t kColumnWidth = 13;
constexpr std::size_t kTextWidth = 110;
/// Differing values of a model or cluster from which only its name is shown.
constexpr std::size_t kManyValues = 6;
/// Columns of input values are at most this wide.
constexpr std::size_t kWidestValue = 24;

constexpr std::array<std::string_view, 8> kSectionOrder = {"gpus",   "plan",  "software", "op",
                                                           "memory", "model", "cluster",  "simulation"};

std::size_t section_rank(const std::string& key) {
  const std::string_view section = std::string_view(key).substr(0, key.find('.'));
  const auto* const found = std::find(kSectionOrder.begin(), kSectionOrder.end(), section);
  return static_cast<std::size_t>(found - kSectionOrder.begin());
}

std::string line(const std::string& label, const std::vector<std::string>& cells) {
  std::string text = "  " + pad_right(label, kLabelWidth);
  for (const std::string& cell : cells) {
    text += " ";
    text += pad_left(cell, kColumnWidth);
  }
  return text + "\n";
}

/// One line of results, a cell per run.
std::string result_line(const Comparison& comparison, const std::string& label,
                        const std::function<std::string(const Figures&)>& write) {
  std::vector<std::string> cells(comparison.runs.size());
  std::transform(comparison.runs.begin(), comparison.runs.end(), cells.begin(),
                 [&write](const ComparedRun& run) { return write(run.figures); });
  return line(label, cells);
}

std::string legend_line(const ComparedRun& run, const std::string& description) {
  const std::string words = description.empty() ? run.label : run.label + ": " + description;
  return "  " + pad_right(run.figures.name, 3) + wrap(words, kTextWidth - 5, 5) + "\n";
}

/// The runs with their descriptions; those of variants of the first are the same and said once.
std::string legend(const Comparison& comparison) {
  std::string text = "Comparison\n";
  const ComparedRun& first = comparison.runs.front();
  for (const ComparedRun& run : comparison.runs) {
    const bool again = &run != &first && run.description == first.description;
    text += legend_line(run, again ? "" : run.description);
  }
  return text;
}

std::string results(const Comparison& comparison) {
  std::string text = "\n" + result_line(comparison, "", [](const Figures& f) { return f.name; });
  text += result_line(comparison, "step time", [](const Figures& f) { return duration(f.step_time); });
  text +=
      result_line(comparison, "tokens per s", [](const Figures& f) { return number(f.tokens_per_second); });
  text += result_line(comparison, "tokens per s and GPU", [](const Figures& f) {
    return number(f.tokens_per_second / static_cast<double>(f.gpus));
  });
  text += result_line(comparison, "MFU", [](const Figures& f) { return percent(f.mfu); });
  text += result_line(comparison, "HFU", [](const Figures& f) { return percent(f.hfu); });
  text += result_line(comparison, "bubble", [](const Figures& f) { return percent(f.bubble_ratio); });
  text += result_line(comparison, "scaling efficiency",
                      [](const Figures& f) { return percent(f.scaling_efficiency); });
  text += result_line(comparison, "peak memory", [](const Figures& f) { return gib(f.peak_memory); });
  return text +
         result_line(comparison, "", [](const Figures& f) { return std::string(to_string(f.verdict)); });
}

/// A value of the input in its column; cut when it is too long.
std::string input_cell(const std::string& value, std::size_t width) {
  if (value.empty()) return " " + pad_left("-", width);
  return " " + pad_left(value.size() > width ? value.substr(0, width - 1) + "…" : value, width);
}

std::string input_line(const InputDifference& row, std::size_t label_width, std::size_t width) {
  std::string text = "  " + pad_right(row.key, label_width);
  for (const std::string& value : row.values) text += input_cell(value, width);
  return text + "\n";
}

std::vector<std::string> names_of(const Comparison& comparison, std::string ComparedRun::*name) {
  std::vector<std::string> names(comparison.runs.size());
  std::transform(comparison.runs.begin(), comparison.runs.end(), names.begin(),
                 [name](const ComparedRun& run) { return run.*name; });
  return names;
}

bool all_equal(const std::vector<std::string>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&values](const std::string& value) { return value == values.front(); });
}

/// Puts one row with the names in the place of a section's rows, if they are many.
void shorten(std::vector<InputDifference>& rows, const std::string& section,
             const std::vector<std::string>& names) {
  const auto inside = [prefix = section + "."](const InputDifference& row) {
    return row.key.starts_with(prefix);
  };
  const auto count = static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), inside));
  if (count <= kManyValues) return;
  const auto first = std::find_if(rows.begin(), rows.end(), inside);
  *first = {section + " (" + std::to_string(count) + " values)", names};
  rows.erase(std::remove_if(first + 1, rows.end(), inside), rows.end());
}

/// Rows of inputs that differ; of another model or cluster, whose many values differ, the name alone.
std::vector<InputDifference> shown_inputs(const Comparison& comparison) {
  std::vector<InputDifference> rows = input_differences(comparison.runs);
  const std::pair<const char*, std::string ComparedRun::*> parts[] = {{"model", &ComparedRun::model},
                                                                      {"cluster", &ComparedRun::cluster}};
  for (const auto& [section, name] : parts) {
    const std::vector<std::string> names = names_of(comparison, name);
    if (!all_equal(names)) shorten(rows, section, names);
  }
  return rows;
}

/// A line for each input that differs.
std::string input_lines(const Comparison& comparison) {
  const std::vector<InputDifference> rows = shown_inputs(comparison);
  std::size_t label_width = kLabelWidth;
  std::size_t width = kColumnWidth;
  for (const InputDifference& row : rows) {
    label_width = std::max(label_width, row.key.size());
    for (const std::string& value : row.values) width = std::max(width, value.size());
  }
  width = std::min(width, kWidestValue);
  std::string text;
  for (const InputDifference& row : rows) text += input_line(row, label_width, width);
  return text;
}

std::string inputs(const Comparison& comparison) {
  const std::string lines = input_lines(comparison);
  return lines.empty() ? "\nNothing in the input differs.\n" : "\nWhat differs in the input\n" + lines;
}

std::string time_table(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  const double before = difference.per_token ? from.tokens : 1.0;
  const double after = difference.per_token ? to.tokens : 1.0;
  const auto cells = [&, scale = change_scale(difference)](Seconds first, Seconds second, Seconds change) {
    return std::vector<std::string>{duration_like(first, difference.base),
                                    duration_like(second, difference.base), signed_duration(change, scale),
                                    signed_percent(change / difference.base)};
  };
  const std::string unit = difference.per_token ? "token" : "step";
  std::string text =
      line("time of a " + unit + ", by cause", {from.name, to.name, "change", "of " + from.name});
  for (std::size_t c = 0; c < difference.by_cause.size(); ++c) {
    const Seconds first = from.breakdown[c] / before;
    const Seconds second = to.breakdown[c] / after;
    if (std::max(first, second) < 1e-5 * difference.base) continue;
    text += line("  " + words(program::to_string(static_cast<program::Cause>(c))),
                 cells(first, second, difference.by_cause[c]));
  }
  return text +
         line("  together", cells(difference.base, difference.base + difference.time, difference.time));
}

std::string memory_table(const Difference& difference) {
  const Figures& from = difference.from;
  const Figures& to = difference.to;
  const auto whole = static_cast<double>(from.peak_memory);
  const auto cells = [&](Bytes first, Bytes second, Bytes change) {
    return std::vector<std::string>{gib(first), gib(second), signed_gib(change),
                                    signed_percent(static_cast<double>(change) / whole)};
  };
  std::string text = line("peak memory, by category", {from.name, to.name, "change", "of " + from.name});
  for (std::size_t c = 0; c < difference.by_category.size(); ++c) {
    if (from.memory_at_peak[c] == 0 && to.memory_at_peak[c] == 0) continue;
    text += line("  " + words(program::to_string(static_cast<program::MemoryCategory>(c))),
                 cells(from.memory_at_peak[c], to.memory_at_peak[c], difference.by_category[c]));
  }
  return text + line("  together", cells(from.peak_memory, to.peak_memory, difference.memory));
}

/// Sentences, and tables of where time and memory moved, both in full.
std::string waterfall_text(const ComparedRun& base, const ComparedRun& run) {
  const Difference moved = difference(base.figures, run.figures);
  std::string text;
  for (const std::string& sentence : difference_sentences(moved, run)) text += paragraph(sentence);
  return text + "\n" + time_table(moved) + "\n" + memory_table(moved);
}

}  // namespace

DifferenceInterval difference_interval(double share, const std::vector<double>& first,
                                       const std::vector<double>& second, std::uint64_t seed) {
  std::vector<double> shares(first.size());
  std::transform(first.begin(), first.end(), second.begin(), shares.begin(),
                 [share](double before, double after) { return (1 + share) * after / before - 1; });
  const auto same_way = std::count_if(shares.begin(), shares.end(),
                                      [share](double each) { return share < 0 ? each < 0 : each > 0; });
  return {shares.size(), seed, quantile(shares, kIntervalTail), quantile(shares, 1 - kIntervalTail),
          static_cast<std::size_t>(same_way)};
}

std::vector<std::string> difference_sentences(const Difference& difference, const ComparedRun& run) {
  std::vector<std::string> all = sentences(difference);
  if (!run.interval || difference.time == 0) return all;
  const DifferenceInterval& interval = *run.interval;
  std::string text = "With constants drawn from their ranges, alike for both, " + difference.to.name +
                     " changes the time by " + signed_percent(interval.low) + " to " +
                     signed_percent(interval.high) + " in 90 % of " + std::to_string(interval.samples) +
                     " draws";
  const char* way = difference.share() < 0 ? "less" : "more";
  text += ", and takes " + std::string(way) + " in " + std::to_string(interval.same_way) + " of them.";
  all.push_back(std::move(text));
  return all;
}

std::string run_letter(std::size_t index) {
  const std::string letter(1, static_cast<char>('A' + index % 26));
  return index < 26 ? letter : letter + std::to_string(index / 26 + 1);
}

std::vector<InputDifference> input_differences(const std::vector<ComparedRun>& runs) {
  std::vector<InputDifference> all;
  std::map<std::string, std::size_t> places;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const auto& [key, value] : runs[r].values) {
      const auto [place, is_new] = places.try_emplace(key, all.size());
      if (is_new) all.push_back({key, std::vector<std::string>(runs.size())});
      all[place->second].values[r] = value;
    }
  }
  std::erase_if(all, [](const InputDifference& row) { return all_equal(row.values); });
  std::stable_sort(all.begin(), all.end(), [](const InputDifference& a, const InputDifference& b) {
    return section_rank(a.key) < section_rank(b.key);
  });
  return all;
}

std::string what_if_text(const Comparison& comparison) {
  std::string text;
  for (std::size_t r = 1; r < comparison.runs.size(); ++r) {
    const ComparedRun& base = comparison.runs.front();
    const ComparedRun& run = comparison.runs[r];
    text.append("\nWhat if ").append(run.label).append(" (").append(run.figures.name).append("; ");
    text.append(base.figures.name).append(" is as above)\n");
    text += input_lines({{base, run}});
    text += waterfall_text(base, run);
  }
  return text;
}

std::string to_text(const Comparison& comparison) {
  std::string text = legend(comparison) + results(comparison) + inputs(comparison);
  const ComparedRun& base = comparison.runs.front();
  for (std::size_t r = 1; r < comparison.runs.size(); ++r) {
    const ComparedRun& other = comparison.runs[r];
    text.append("\nFrom ").append(base.figures.name).append(" to ").append(other.figures.name).append("\n");
    text += waterfall_text(base, other);
  }
  return text;
}

}  // namespace trainsim::report
