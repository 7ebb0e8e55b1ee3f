// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/validate.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/collective_time.hpp"
#include "sim/cli/progress_bar.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"
#include "sim/report/format.hpp"
#include "sim/validation/gpu_names.hpp"
#include "sim/validation/kernel_table.hpp"
#include "sim/validation/row_reader.hpp"

namespace trainsim::cli {

namespace {

using validation::Evaluation;
using validation::Role;
using validation::Row;

/// First words of a worker's text.
constexpr const char* kSimulated = "simulated";
constexpr const char* kUnsupported = "unsupported";
constexpr const char* kMalformed = "malformed";

constexpr std::string_view kUnsupportedWords = "not supported by this version";

/// The part of a problem's text that says what is not supported: "plan.sharding: zero3".
std::string unsupported_part(const std::string& text) {
  const std::size_t line = text.rfind('\n', text.find(kUnsupportedWords));
  const std::string rest = text.substr(line == std::string::npos ? 0 : line + 1);
  const std::size_t mark = rest.find("error: ");
  const std::size_t begin = mark == std::string::npos ? 0 : mark + 7;
  return rest.substr(begin, rest.find(kUnsupportedWords) + kUnsupportedWords.size() - begin);
}

/// Forward and backward slot of a rank that does one micro-batch.
validation::LayerTime slot_times(const config::Experiment& experiment) {
  config::Experiment ideal = experiment;
  ideal.network = config::NetworkMode::kIdeal;
  const program::Timeline timeline = run_job(ideal, build_job(ideal, true), {});
  const std::vector<program::SlotSpan>& slots = timeline.ranks.at(0).slots;
  return {slots.front().end - slots.front().begin, slots.back().end - slots.back().begin};
}

/// One layer's times: the difference that the last layer makes.
validation::LayerTime layer_times(config::Experiment experiment) {
  const validation::LayerTime all = slot_times(experiment);
  --experiment.model.num_layers;
  const validation::LayerTime others = slot_times(experiment);
  return {all.forward - others.forward, all.backward - others.backward};
}

/// Simulates a row; what a worker sends.
std::string simulate_row(const Row& row, const std::vector<std::string>& overrides) {
  try {
    config::Experiment experiment = config::resolve(row.config, overrides, row.id);
    choose_recomputation(experiment);
    std::ostringstream text;
    text.precision(17);
    text << kSimulated;
    if (row.step_time || !row.memory.empty() || row.out_of_memory) {
      const report::Summary summary =
          simulate(experiment, true, {},
                   row.memory_of_first ? ReplayAllocator::kForAll : ReplayAllocator::kForFullestRank);
      const report::RankSummary& rank =
          row.memory_of_first ? summary.ranks.front() : report::fullest_rank(summary);
      text << " " << summary.step_time << " " << rank.peak_memory << " " << report::reserved_by(rank) << " "
           << summary.memory_reserve << " " << static_cast<int>(summary.verdict);
    }
    if (row.layer_time) {
      const validation::LayerTime times = layer_times(experiment);
      text << " " << times.forward << " " << times.backward;
    }
    return text.str();
  } catch (const InputError& error) {
    const std::string text = error.what();
    const bool unsupported = text.find(kUnsupportedWords) != std::string::npos;
    return unsupported ? kUnsupported + (" " + unsupported_part(text)) : kMalformed + (" " + text);
  }
}

Role role_of(const Row& row) {
  if (!row.fitted.empty()) return Role::kFitted;
  return row.incomplete ? Role::kAssumed : Role::kTested;
}

/// Collects what workers send.
class Collector {
 public:
  Collector(const std::vector<Row>& rows, Evaluation& evaluation) : rows_(rows), evaluation_(evaluation) {}

  void receive(std::size_t index, const WorkResult& result) {
    const Row& row = rows_[index];
    std::istringstream text(result.text);
    std::string word;
    text >> word;
    const std::string rest = result.text.substr(std::min(word.size() + 1, result.text.size()));
    if (!result.done) {
      evaluation_.skipped.push_back({row.id, row.family, result.text});
    } else if (word == kUnsupported) {
      evaluation_.skipped.push_back({row.id, row.family, rest});
    } else if (word == kMalformed) {
      evaluation_.problems.push_back(rest);
      ++evaluation_.malformed[row.family];
    } else {
      compare(row, text);
    }
  }

 private:
  void compare(const Row& row, std::istringstream& text) {
    if (row.step_time || !row.memory.empty() || row.out_of_memory) compare_step(row, text);
    if (!row.layer_time) return;
    validation::LayerTime layer;
    text >> layer.forward >> layer.backward;
    add(row, "layer forward", {row.layer_time->forward, layer.forward});
    add(row, "layer backward", {row.layer_time->backward, layer.backward});
  }

  void compare_step(const Row& row, std::istringstream& text) {
    Seconds time = 0;
    double allocated = 0;
    double reserved = 0;
    double overhead = 0;
    int verdict = 0;
    text >> time >> allocated >> reserved >> overhead >> verdict;
    if (row.step_time) add(row, "step", {*row.step_time, time});
    for (const validation::MeasuredMemory& memory : row.memory) {
      using validation::MemoryKind;
      const double simulated = memory.kind == MemoryKind::kAllocated  ? allocated
                               : memory.kind == MemoryKind::kReserved ? reserved
                                                                      : reserved + overhead;
      add(row, to_string(memory.kind), {static_cast<double>(memory.bytes), simulated},
          validation::Unit::kBytes);
    }
    if (!row.out_of_memory) return;
    // Borderline is right either way.
    const auto what = static_cast<report::Verdict>(verdict);
    const bool fits =
        what == report::Verdict::kBorderline ? !*row.out_of_memory : what == report::Verdict::kFits;
    evaluation_.fits.push_back({row.id, row.family, !*row.out_of_memory, fits});
  }

  void add(const Row& row, const std::string& quantity, const validation::Pair& values,
           validation::Unit unit = validation::Unit::kSeconds) {
    // Only times have constants that were fitted.
    const bool memory = unit == validation::Unit::kBytes;
    const Role role = memory && role_of(row) == Role::kFitted ? Role::kTested : role_of(row);
    evaluation_.comparisons.push_back(
        {row.id, row.family, quantity, role, unit, values, row.group, row.sequences, row.assumptions});
  }

  const std::vector<Row>& rows_;
  Evaluation& evaluation_;
};

/// Size from which the bandwidth of collectives matters more than their latency; tables are split there.
constexpr double kLargeMessage = 4 * kMebi;

/// Presets by name, read once each.
template <class Spec>
class PresetCache {
 public:
  explicit PresetCache(Spec (*load)(const std::string&)) : load_(load) {}
  const Spec& get(const std::string& name) {
    auto found = specs_.find(name);
    if (found == specs_.end()) found = specs_.emplace(name, load_(name)).first;
    return found->second;
  }

 private:
  Spec (*load_)(const std::string&);
  std::map<std::string, Spec> specs_;
};

std::string shape_text(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

/// Compares the rows of one table with the models of kernels and collectives.
class TableComparer {
 public:
  TableComparer(std::string family, Evaluation& evaluation)
      : family_(std::move(family)), evaluation_(evaluation) {}

  void compare(const validation::MeasuredMatmul& row) {
    const std::string id = shape_text({row.shape.batch, row.shape.m, row.shape.n, row.shape.k});
    compare_kernel(row, "multiply", id);
  }
  void compare(const validation::MeasuredAttention& row) {
    const std::string id = shape_text({row.shape.batch, row.shape.sequence, row.shape.heads,
                                       row.shape.key_value_heads, row.shape.head_dim, row.shape.value_dim});
    compare_kernel(row, row.backward ? "attention backward" : "attention forward", id);
  }
  void compare(const validation::MeasuredStream& row) {
    compare_kernel(row, "copy", report::bytes_text(row.bytes));
  }
  void compare(const validation::MeasuredCollective& row) {
    const std::string id =
        row.cluster + " x" + std::to_string(row.gpus) + " " + report::bytes_text(row.bytes);
    if (const std::string fault = fault_of(row); !fault.empty()) {
      evaluation_.skipped.push_back({id, family_, fault});
      return;
    }
    const Seconds time =
        CollectiveBench(clusters_.get(row.cluster), row.gpus, pattern_of(row.op)).time(row.op, row.bytes);
    const bool large = row.bytes > kLargeMessage;
    add(id, std::string(large ? "above" : "up to") + " 4 MiB, " + row.cluster, row.seconds, time);
  }

 private:
  /// Why a collective can't be simulated; empty when it can.
  std::string fault_of(const validation::MeasuredCollective& row) {
    const auto presets = config::list_presets("clusters");
    const bool known = std::any_of(presets.begin(), presets.end(), [&row](const config::Preset& preset) {
      return preset.name == row.cluster;
    });
    if (!known) return "there is no cluster preset called '" + row.cluster + "'";
    return collective_fault(clusters_.get(row.cluster), row.gpus, pattern_of(row.op));
  }
  template <class Measured>
  void compare_kernel(const Measured& row, const std::string& what, const std::string& shape) {
    const std::string id = row.gpu + " " + what + " " + shape;
    const std::optional<validation::GpuPresets> presets = validation::presets_for_gpu(row.gpu);
    if (!presets) {
      evaluation_.skipped.push_back({id, family_, "there is no preset for the GPU '" + row.gpu + "'"});
      return;
    }
    add(id, what + ", " + presets->gpu, row.seconds, simulated(row, gpus_.get(presets->gpu)));
  }
  void add(const std::string& id, const std::string& quantity, Seconds measured, Seconds predicted) {
    evaluation_.comparisons.push_back(
        {id, family_, quantity, Role::kFitted, validation::Unit::kSeconds, {measured, predicted}, "", 1, {}});
  }

  std::string family_;
  Evaluation& evaluation_;
  PresetCache<hardware::GpuSpec> gpus_{config::load_gpu};
  PresetCache<hardware::ClusterSpec> clusters_{
      [](const std::string& name) { return config::load_cluster(name); }};
};

void compare_table(const std::filesystem::path& file, Evaluation& evaluation) {
  const std::string family = file.stem().string();
  config::Report problems;
  const validation::MeasuredTable table = validation::read_table(file, problems);
  if (!problems.empty()) {
    evaluation.problems.push_back(problems.text());
    evaluation.malformed[family] += static_cast<int>(problems.size());
  }
  TableComparer comparer(family, evaluation);
  for (const auto& row : table.matmuls) comparer.compare(row);
  for (const auto& row : table.attentions) comparer.compare(row);
  for (const auto& row : table.collectives) comparer.compare(row);
  for (const auto& row : table.streams) comparer.compare(row);
}

validation::RowSet read_folder(const std::string& folder, Evaluation& evaluation) {
  const auto files = validation::files_of(folder, "yaml");
  const auto tables = validation::files_of(folder, "csv");
  if (files.empty() && tables.empty()) {
    throw InputError("trainsim: error: '" + folder +
                     "' has no measured runs; name a folder with .yaml or .csv files, such as "
                     "experiments/validation");
  }
  validation::RowSet set;
  for (const auto& file : files) validation::read_rows(file, set);
  for (const auto& table : tables) compare_table(table, evaluation);
  return set;
}

/// Sorts messages, and says once what several rows have in common, such as a wrong --set.
void merge_same(std::vector<std::string>& problems) {
  std::map<std::string, int> counts;
  for (const std::string& problem : problems) ++counts[problem];
  problems.clear();
  for (const auto& [problem, count] : counts) {
    const std::string more = "\n(the same for " + std::to_string(count) + " rows)";
    problems.push_back(problem + (count > 1 ? more : ""));
  }
}

/// Takes over the rows that need no simulation; returns the others.
std::vector<Row> sort_out(validation::RowSet set, Evaluation& evaluation) {
  std::vector<Row> rows;
  evaluation.problems.insert(evaluation.problems.end(), set.problems.begin(), set.problems.end());
  for (const std::string& family : set.malformed_families) ++evaluation.malformed[family];
  for (Row& row : set.rows) {
    if (row.skipped.empty()) {
      rows.push_back(std::move(row));
    } else {
      evaluation.skipped.push_back({row.id, row.family, row.skipped});
    }
  }
  return rows;
}

}  // namespace

Evaluation evaluate(const std::string& folder, const EvaluationOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Evaluation evaluation;
  const std::vector<Row> rows = sort_out(read_folder(folder, evaluation), evaluation);
  ProgressBar bar(options.show_progress);
  Collector collector(rows, evaluation);
  std::size_t done = 0;
  run_forked(
      rows.size(), options.workers,
      [&](std::size_t index) { return simulate_row(rows[index], options.overrides); },
      [&](std::size_t index, const WorkResult& result) {
        collector.receive(index, result);
        bar.update(static_cast<double>(++done) / static_cast<double>(rows.size()));
      });
  bar.clear();
  // Results come in the order in which workers have ended.
  const auto by_row = [](const auto& a, const auto& b) {
    return std::tie(a.family, a.id) < std::tie(b.family, b.id);
  };
  std::stable_sort(evaluation.comparisons.begin(), evaluation.comparisons.end(), by_row);
  std::stable_sort(evaluation.fits.begin(), evaluation.fits.end(), by_row);
  std::stable_sort(evaluation.skipped.begin(), evaluation.skipped.end(), by_row);
  merge_same(evaluation.problems);
  evaluation.wall_time = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return evaluation;
}

}  // namespace trainsim::cli
