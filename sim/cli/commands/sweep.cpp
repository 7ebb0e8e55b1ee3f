// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/sweep.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "sim/base/diagnostics.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/command_text.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/report_file.hpp"
#include "sim/cli/sweep_file.hpp"
#include "sim/report/page/sweep_page.hpp"
#include "sim/report/sweep_rows.hpp"
#include "sim/sweep/axis.hpp"
#include "sim/sweep/plan_list.hpp"
#include "sim/sweep/rank.hpp"

namespace trainsim::cli {

namespace {

/// Shells report a process that a signal ended by this and the signal's number.
constexpr int kSignalBase = 128;
constexpr const char* kShardMark = "{shard}";

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

/// The format that a file's name asks for.
Format format_of(const std::string& file) {
  const std::map<std::string, Format> formats = {{".jsonl", Format::kJsonLines},
                                                 {".ndjson", Format::kJsonLines},
                                                 {".json", Format::kJson},
                                                 {".csv", Format::kCsv}};
  const auto found = formats.find(std::filesystem::path(file).extension().string());
  return found == formats.end() ? Format::kText : found->second;
}

/// Puts the shard in the place of its mark in a file's name.
void name_shard(std::string& file, const sweep::Shard& shard) {
  const std::size_t mark = file.find(kShardMark);
  const std::string name = std::to_string(shard.index) + "-of-" + std::to_string(shard.count);
  if (mark != std::string::npos) file.replace(mark, std::string(kShardMark).size(), name);
}

std::string json_list(const std::vector<sweep::Row>& rows) {
  std::string text = "[";
  for (const sweep::Row& row : rows) {
    text += text.size() == 1 ? "\n" : ",\n";
    text += report::json_line(row);
  }
  return text + "\n]\n";
}

class SweepCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, base_.subject);
    add_list(options, "--vary", vary_, "KEY=VALUES",
             "values of a key, as in plan.micro_batch_size=1,2,4 or 1..64*2 (doubling), 1..8, 1..9+2; "
             "repeatable: every combination is a point");
    add_list(
        options, "--zip", zip_, "KEY=VALUES",
        "as --vary, but the first values of all --zip together are one point, the second ones another, and "
        "so on");
    options.add("--plans", plans_, "a YAML list of plans, or a .csv table whose columns are keys").file();
    add_jobs(options, workers_, "points to simulate");
    options.add_flag("--resume", resume_, "go on behind the rows that the file of -o already has");
    options
        .add("--shard", shard_,
             "only points K, K+N, …; else Slurm's or MPI's rank is used (--shard 1/1: all points; "
             "auto/N: number of GNU parallel's job)")
        .value("K/N");
    report_.declare(options, "shows curves, a map, what is worth a look, and all points");
    options.add("--fold", fold_, "as for run: auto or off").value("MODE").fallback("auto");
    common_.declare(options, {Format::kText, Format::kJsonLines, Format::kCsv, Format::kJson});
  }

  int execute() override {
    if (fold_ != "auto" && fold_ != "off") fail_choice("--fold", fold_, {"auto", "off"});
    base_.fold = fold_ == "auto";
    const sweep::Shard shard = choose_shard();
    place_output(shard);
    report_.check_differs(common_.output, "--output");
    report_.check_differs(plans_, "--plans");
    const sweep::Sweep sweep(axes());
    check_sweep(base_, sweep);
    SweepTask task{base_,
                   sweep,
                   fingerprint_of(base_, sweep),
                   sweep::points_of(shard, sweep.size()),
                   processes(workers_),
                   !common_.quiet};
    const bool by_rows = common_.format == Format::kJsonLines || common_.format == Format::kCsv;
    return by_rows ? write_rows(task) : write_at_end(task);
  }

 private:
  static void add_list(Options& options, const std::string& name, std::vector<std::string>& values,
                       const std::string& type, const std::string& help) {
    options.add(name, values, help).value(type).repeatable();
  }

  sweep::Shard choose_shard() const {
    const bool given = !shard_.empty();
    const std::optional<sweep::DetectedShard> found =
        given ? sweep::parse_shard(shard_, environment) : sweep::detect_shard(environment);
    if (!found) return {};
    if (found->source != "--shard") {
      spdlog::info("{}: this is shard {}/{} of the sweep (--shard 1/1 runs all points)", found->source,
                   found->shard.index, found->shard.count);
    }
    return found->shard;
  }

  /// Puts the shard into the files' names, and lets that of the rows choose the format.
  void place_output(const sweep::Shard& shard) {
    std::string& file = common_.output;
    name_shard(file, shard);
    name_shard(report_.path(), shard);
    if (!common_.format_given) common_.format = format_of(file);
    const bool by_rows = common_.format == Format::kJsonLines || common_.format == Format::kCsv;
    if (resume_ && (file.empty() || !by_rows)) {
      throw InputError(
          "trainsim: error: --resume needs a file of rows to go on with; give -o FILE with --format jsonl or "
          "csv");
    }
  }

  std::vector<sweep::Axis> axes() const {
    std::vector<sweep::Axis> axes;
    if (!plans_.empty()) axes.push_back(sweep::read_plans(plans_));
    if (!zip_.empty()) axes.push_back(sweep::zip_axis(zip_));
    for (const std::string& text : vary_) axes.push_back(sweep::vary_axis(text));
    return axes;
  }

  /// Rows as they come.
  int write_rows(SweepTask& task) {
    const sweep::RowFormat format =
        common_.format == Format::kCsv ? sweep::RowFormat::kCsv : sweep::RowFormat::kJsonLines;
    report_.open();
    SweepFile file(common_.output, format, task, resume_);
    std::vector<sweep::Row> rows = file.rows();
    const std::size_t total = task.points.size();
    if (!rows.empty()) spdlog::info("{} of {} rows are there already", rows.size(), total);
    task.points.erase(task.points.begin(), task.points.begin() + static_cast<std::ptrdiff_t>(rows.size()));
    const SweepOutcome outcome =
        run_sweep(task, [&](sweep::Row row, const std::function<void()>& clear_progress) {
          if (file.is_terminal()) clear_progress();
          file.append(row);
          rows.push_back(std::move(row));
        });
    const std::string cure = common_.output.empty()
                                 ? "give -o FILE, and --resume can go on with it"
                                 : "the same command with --resume goes on with '" + common_.output + "'";
    if (outcome.signal != 0) return interrupted(outcome, rows.size(), total, cure);
    for (const std::string& note : report::sweep_notes(rows)) spdlog::info("{}", note);
    write_page(rows);
    return finished(outcome);
  }

  /// A table or a list, for which all rows are needed.
  int write_at_end(const SweepTask& task) {
    OutputFile output(common_.output);
    report_.open();
    std::vector<sweep::Row> rows;
    const SweepOutcome outcome = run_sweep(
        task, [&rows](sweep::Row row, const std::function<void()>&) { rows.push_back(std::move(row)); });
    // A file appears only when it is complete.
    const bool partial_file = outcome.signal != 0 && !common_.output.empty();
    if (!partial_file)
      output.write(common_.format == Format::kJson ? json_list(rows) : report::sweep_text(rows));
    if (outcome.signal == 0) {
      write_page(rows);
      return finished(outcome);
    }
    return interrupted(outcome, rows.size(), task.points.size(),
                       "with -o FILE and --format jsonl or csv, --resume could go on");
  }

  void write_page(const std::vector<sweep::Row>& rows) {
    if (!report_.wanted()) return;
    CommandText command("sweep");
    command.subject(base_.subject).option("--plans", plans_).option("--zip", zip_).option("--vary", vary_);
    command.option("--shard", shard_).option("--fold", base_.fold ? "" : "off");
    report_.write(report::to_html(report::SweepPage{rows, command.text(), TRAINSIM_VERSION}));
  }

  static int interrupted(const SweepOutcome& outcome, std::size_t rows, std::size_t total,
                         const std::string& cure) {
    spdlog::error("interrupted after {} of {} points; {}", rows, total, cure);
    return kSignalBase + outcome.signal;
  }

  static int finished(const SweepOutcome& outcome) {
    if (outcome.failed == 0) return kDone;
    spdlog::error("the simulation of {} points failed; the error column of their rows says how",
                  outcome.failed);
    return kFailure;
  }

  SweepBase base_;
  std::vector<std::string> vary_;
  std::vector<std::string> zip_;
  std::string plans_;
  std::string shard_;
  ReportFile report_;
  std::string fold_ = "auto";
  std::size_t workers_ = 0;
  bool resume_ = false;
};

}  // namespace

std::unique_ptr<Command> make_sweep() {
  return std::make_unique<SweepCommand>();
}

}  // namespace trainsim::cli
