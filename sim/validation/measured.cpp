// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/config/readers.hpp"
#include "sim/validation/translate.hpp"
#include "sim/validation/tree.hpp"

namespace trainsim::validation {

using config::Value;

namespace {

/// What of a row a step's time can be worked out from.
struct Batch {
  double sequences = 0;
  double tokens = 0;
  double gpus = 0;
};

Batch batch_of(const Value& fields) {
  const double sequences = number_at(fields, "plan.gbs").value_or(0);
  return {sequences, sequences * number_at(fields, "model.seq").value_or(0),
          number_at(fields, "hardware.count").value_or(0)};
}

/// A measured figure and the step time that follows from it.
struct Figure {
  std::string_view path;
  Seconds (*step_time)(double value, const Batch& batch);
};

/// In the order of preference: printed times first, then rates, then arithmetic on what was printed.
constexpr std::array<Figure, 7> kFigures = {
    {{"measured.iteration_time_s", [](double value, const Batch&) { return value; }},
     {"measured.iteration_time_ms", [](double value, const Batch&) { return value / kKilo; }},
     {"measured.tokens_per_s_per_gpu",
      [](double value, const Batch& batch) { return batch.tokens / (value * batch.gpus); }},
     {"measured.tokens_per_s", [](double value, const Batch& batch) { return batch.tokens / value; }},
     {"measured.samples_per_s", [](double value, const Batch& batch) { return batch.sequences / value; }},
     {"measured.samples_per_gpu_s",
      [](double value, const Batch& batch) { return batch.sequences / (value * batch.gpus); }},
     {"derived.iteration_time_s", [](double value, const Batch&) { return value; }}}};

/// A measured number; reports one that is there and is no positive number.
std::optional<double> positive(const Value& fields, std::string_view path, config::Report& report) {
  const Value* value = find_path(fields, path);
  if (value == nullptr) return std::nullopt;
  const config::Parsed<double> parsed = config::as_number(config::kPositive).parse(*value);
  if (!parsed.value) report.add(value->at, std::string(path), parsed.error);
  return parsed.value;
}

std::optional<Seconds> step_time(const Value& fields, config::Report& report) {
  for (const Figure& figure : kFigures) {
    const std::optional<double> value = positive(fields, figure.path, report);
    const Seconds time = value ? figure.step_time(*value, batch_of(fields)) : 0;
    if (time > 0) return time;
  }
  return std::nullopt;
}

std::optional<LayerTime> layer_time(const Value& fields, config::Report& report) {
  const std::optional<double> forward = positive(fields, "measured.forward_ms", report);
  const std::optional<double> backward = positive(fields, "measured.backward_ms", report);
  if (!forward || !backward) return std::nullopt;
  return LayerTime{*forward / kKilo, *backward / kKilo};
}

/// A measured figure of memory, its unit, and what it counts; nothing where the row says so itself.
struct MemoryFigure {
  std::string_view path;
  double unit;
  std::optional<MemoryKind> kind;
};

constexpr std::array<MemoryFigure, 4> kMemoryFigures = {
    {{"measured.peak_alloc_GiB", kGibi, MemoryKind::kAllocated},
     {"measured.peak_reserved_GiB", kGibi, MemoryKind::kReserved},
     {"measured.peak_memory_GiB", kGibi, std::nullopt},
     {"measured.peak_memory_GB", kGiga, std::nullopt}}};

/// What `measured.memory_counts` says; a device's memory where it is silent.
MemoryKind stated_kind(const Value& fields, config::Report& report) {
  const Value* value = find_path(fields, "measured.memory_counts");
  if (value == nullptr) return MemoryKind::kDevice;
  const auto parsed = config::as_choice(config::Words<MemoryKind>{{"allocated", MemoryKind::kAllocated},
                                                                  {"reserved", MemoryKind::kReserved},
                                                                  {"device", MemoryKind::kDevice}})
                          .parse(*value);
  if (!parsed.value) report.add(value->at, "measured.memory_counts", parsed.error);
  return parsed.value.value_or(MemoryKind::kDevice);
}

/// Whether `measured.memory_of` says that it was the first rank's.
bool is_of_first(const Value& fields, config::Report& report) {
  const Value* value = find_path(fields, "measured.memory_of");
  if (value == nullptr) return false;
  const auto parsed =
      config::as_choice(config::Words<bool>{{"fullest", false}, {"first", true}}).parse(*value);
  if (!parsed.value) report.add(value->at, "measured.memory_of", parsed.error);
  return parsed.value.value_or(false);
}

std::vector<MeasuredMemory> memory_of(const Value& fields, config::Report& report) {
  std::vector<MeasuredMemory> memory;
  const MemoryKind stated = stated_kind(fields, report);
  for (const MemoryFigure& figure : kMemoryFigures) {
    const std::optional<double> value = positive(fields, figure.path, report);
    if (value) memory.push_back({figure.kind.value_or(stated), std::llround(*value * figure.unit)});
  }
  return memory;
}

/// A number rounded to two significant digits: "2000" for 2046.
std::string two_digits(double value) {
  if (value < 1) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1.0);
  return std::to_string(std::llround(std::round(value / unit) * unit));
}

/// What rows of one group have in common: all but the plan. Batches count as equal when their first two
/// digits agree, because a plan may not divide the intended one.
std::string group_of(const Value& fields) {
  std::string own = text_at(fields, "group");
  if (!own.empty()) return own;
  const std::string sizes = text_at(fields, "model.layers") + " x " + text_at(fields, "model.hidden");
  return sizes + ", " + text_at(fields, "model.heads") + " heads, batch about " +
         two_digits(number_at(fields, "plan.gbs").value_or(0)) + " x " + text_at(fields, "model.seq") + ", " +
         text_at(fields, "hardware.count") + " " + text_at(fields, "hardware.gpu") + ", " +
         text_at(fields, "plan.precision");
}

}  // namespace

bool is_simulated(const std::string& kind) {
  return kind == "train_step" || kind == "schedule" || kind == "layer_time" || kind == "memory";
}

const char* to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kAllocated:
      return "allocated memory";
    case MemoryKind::kReserved:
      return "reserved memory";
    case MemoryKind::kDevice:
      return "device memory";
  }
  return "";
}

void read_measured(const Value& fields, Row& row, config::Report& report) {
  const std::string kind = text_at(fields, "kind");
  if (kind == "layer_time") {
    row.layer_time = layer_time(fields, report);
    const bool one_stage = number_at(fields, "plan.pp").value_or(1) == 1;
    if (!one_stage && row.skipped.empty()) row.skipped = "layer times are compared without pipeline only";
  } else if (is_simulated(kind)) {
    row.step_time = step_time(fields, report);
    row.memory = memory_of(fields, report);
    row.memory_of_first = is_of_first(fields, report);
    if (text_at(fields, "measured.oom") == "true") row.out_of_memory = true;
    if (row.step_time || !row.memory.empty()) row.out_of_memory = false;
    row.group = group_of(fields);
    row.sequences = number_at(fields, "plan.gbs").value_or(1);
  }
  if (kind == "schedule" && !find_path(fields, "measured.T_F_ms") && row.skipped.empty()) {
    row.skipped = "the profile of a stage (T_F, T_B, T_W) is not given";
  }
  if (row.tier == "C" && row.skipped.empty()) row.skipped = "tier C: a secondary source";
  const bool measured = row.step_time || row.layer_time || !row.memory.empty() || row.out_of_memory;
  if (!measured && row.skipped.empty()) row.skipped = "neither time nor memory was measured";
}

}  // namespace trainsim::validation
