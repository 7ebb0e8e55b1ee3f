// SPDX-License-Identifier: Apache-2.0
#include "sim/report/training.hpp"

#include "sim/report/csv_cells.hpp"
#include "sim/report/format.hpp"
#include "sim/report/rows.hpp"
#include "sim/training/duration_text.hpp"

namespace trainsim::report {

namespace {

using training::duration_text;
using training::TrainingRun;

/// Kilowatt-hours from which megawatt-hours read better, and the same of kilograms.
constexpr double kLarge = 10'000;

std::string length_row(const TrainingRun& run) {
  return text_row("length", count(run.tokens) + " tokens: " + std::to_string(run.steps) + " steps");
}

std::string time_row(const TrainingRun& run) {
  std::string text = duration_text(run.wall.total());
  if (!run.checkpoint) text += ", without checkpoints and failures";
  if (run.wall.total() > run.wall.work) text += ", of which steps " + duration_text(run.wall.work);
  if (run.failures) {
    text += "; with luck " + duration_text(run.failures->wall_p10) + ", without " +
            duration_text(run.failures->wall_p90) + " (P10 and P90)";
  }
  return text_row("time", text);
}

/// Steps below the full batch.
struct Ramp {
  std::int64_t samples = 0;
  Seconds time = 0;
};

Ramp ramp_of(const TrainingRun& run) {
  Ramp ramp;
  for (std::size_t i = 0; i + 1 < run.stages.size(); ++i) {
    const training::RunStage& each = run.stages[i];
    ramp.samples += each.stage.steps * each.stage.batch;
    ramp.time += static_cast<double>(each.stage.steps) * each.step.step_time;
  }
  return ramp;
}

std::string ramp_row(const TrainingRun& run) {
  if (run.stages.size() < 2) return "";
  const Ramp ramp = ramp_of(run);
  const training::RunStage& full = run.stages.back();
  const Seconds at_full =
      static_cast<double>(ramp.samples) / static_cast<double>(full.stage.batch) * full.step.step_time;
  return text_row("batch ramp", "from " + std::to_string(run.stages.front().stage.batch) + " to " +
                                    std::to_string(full.stage.batch) + " sequences in " +
                                    std::to_string(run.stages.size()) +
                                    " sizes, each simulated: " + duration_text(ramp.time) + ", against " +
                                    duration_text(at_full) + " with the full batch");
}

std::string cost_rows(const TrainingRun& run) {
  std::string text = text_row("GPU-hours", gpu_hours_text(run.gpu_hours));
  if (run.cost) {
    text += text_row("cost", count(run.cost->amount) + " " + run.cost->price.currency + " at " +
                                 number(run.cost->price.per_gpu_hour, 3) + " " + run.cost->price.currency +
                                 " per GPU-hour");
  }
  return text;
}

std::string energy_rows(const TrainingRun& run) {
  if (!run.energy) return text_row("energy", "not known: the GPU has no rated_power");
  const training::Energy& energy = *run.energy;
  std::string text =
      text_row("energy", energy_text(energy.kilowatt_hours) + ": a GPU draws " + number(energy.gpu_power, 3) +
                             " W in a step (computing " + percent(energy.utilization) +
                             " of it; estimated), a node " + number(energy.node_overhead / kKilo, 2) +
                             " kW beside its GPUs, PUE " + number(energy.pue, 3));
  if (energy.co2) {
    text += text_row("CO2", co2_text(*energy.co2) + " at " + number(*energy.grid_intensity, 3) + " g/kWh");
  } else {
    text += text_row("CO2", "not known: give run.power.grid_intensity");
  }
  return text;
}

std::string choice_text(const training::CheckpointResult& checkpoint) {
  if (checkpoint.bound_by_writing) return ", chosen: as short as writing allows";
  return checkpoint.chosen ? ", chosen" : "";
}

/// What the best interval is, or why that is not known.
std::string best_interval_text(const training::FailureResult& failures) {
  if (!failures.closed_form)
    return "; Daly's and Young's best intervals are not those of writing beside training";
  return "; best are " + duration_text(failures.closed_form->daly_interval) + " (Daly) or " +
         duration_text(failures.closed_form->young_interval) + " (Young)";
}

std::string checkpoint_row(const TrainingRun& run) {
  if (!run.checkpoint) return "";
  const training::CheckpointResult& checkpoint = *run.checkpoint;
  std::string text = "every " + std::to_string(checkpoint.timing.interval) + " steps (" +
                     duration_text(checkpoint.interval) + choice_text(checkpoint) + "), " +
                     bytes_text(static_cast<double>(checkpoint.size)) + ", stopping training for " +
                     duration_text(checkpoint.timing.stall - checkpoint.slowed);
  if (checkpoint.timing.write > checkpoint.timing.stall)
    text += " and written after " + duration_text(checkpoint.timing.write);
  if (checkpoint.slow_step > 0)
    text += "; steps beside it take " + duration(checkpoint.slow_step) + " and lose " +
            duration(checkpoint.slowed) + " in all";
  if (run.failures) text += best_interval_text(*run.failures);
  return text_row("checkpoints", text);
}

std::string share(Seconds part, const TrainingRun& run) {
  return percent(part / run.wall.total());
}

std::string goodput_rows(const TrainingRun& run) {
  std::string text;
  if (run.failures) {
    const training::FailureResult& failures = *run.failures;
    text += text_row("failures", number(failures.count, 3) + ", one every " +
                                     duration_text(failures.hazard.mtbf) + ", each with a restart of " +
                                     duration_text(failures.hazard.restart));
  }
  if (run.goodput() >= 1) return text;
  std::string goodput = percent(run.goodput());
  if (run.failures) {
    const training::FailureResult& failures = *run.failures;
    goodput += " (P10 " + percent(run.goodput_in(failures.wall_p90)) + ", P90 " +
               percent(run.goodput_in(failures.wall_p10)) + "; " + std::to_string(failures.runs) +
               " runs, seed " + std::to_string(failures.seed) + ")";
    if (failures.closed_form) {
      goodput += "; closed form " + percent(failures.closed_form->goodput) + ", with Daly's interval " +
                 percent(failures.closed_form->goodput_at_daly);
    }
  }
  std::string lost = "lost to checkpoints " + share(run.wall.checkpoints, run);
  if (run.failures) {
    lost += ", to steps done again " + share(run.wall.lost, run) + ", to restarts " +
            share(run.wall.restarts, run);
  }
  return text + text_row("goodput", goodput) + text_row("", lost);
}

Json stages_json(const TrainingRun& run) {
  Json list = Json::array();
  for (const training::RunStage& each : run.stages) {
    list.push_back({{"global_batch_size", each.stage.batch},
                    {"steps", each.stage.steps},
                    {"step_time_s", each.step.step_time}});
  }
  return list;
}

Json cost_json(const TrainingRun& run) {
  if (!run.cost) return nullptr;
  return {{"amount", run.cost->amount},
          {"currency", run.cost->price.currency},
          {"price_per_gpu_hour", run.cost->price.per_gpu_hour}};
}

Json optional_number(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json energy_json(const TrainingRun& run) {
  if (!run.energy) return nullptr;
  const training::Energy& energy = *run.energy;
  return {{"energy_kwh", energy.kilowatt_hours},
          {"co2_kg", optional_number(energy.co2)},
          {"gpu_utilization", energy.utilization},
          {"gpu_power_w", energy.gpu_power},
          {"node_overhead_w", energy.node_overhead},
          {"pue", energy.pue},
          {"grid_intensity_g_per_kwh", optional_number(energy.grid_intensity)}};
}

Json checkpoint_json(const TrainingRun& run) {
  if (!run.checkpoint) return nullptr;
  const training::CheckpointResult& checkpoint = *run.checkpoint;
  return {{"interval_steps", checkpoint.timing.interval},
          {"interval_s", checkpoint.interval},
          {"chosen", checkpoint.chosen},
          {"size_bytes", checkpoint.size},
          {"stall_s", checkpoint.timing.stall - checkpoint.slowed},
          {"slowed_s", checkpoint.slowed},
          {"slow_step_time_s", checkpoint.slow_step > 0 ? Json(checkpoint.slow_step) : Json(nullptr)},
          {"write_s", checkpoint.timing.write}};
}

Json failures_json(const TrainingRun& run) {
  if (!run.failures) return nullptr;
  const training::FailureResult& failures = *run.failures;
  const auto closed_form = [&failures](double training::ClosedForm::*value) {
    return failures.closed_form ? Json((*failures.closed_form).*value) : Json(nullptr);
  };
  return {{"mtbf_s", failures.hazard.mtbf},
          {"restart_s", failures.hazard.restart},
          {"runs", failures.runs},
          {"seed", failures.seed},
          {"expected", failures.count},
          {"wall_p10_s", failures.wall_p10},
          {"wall_p90_s", failures.wall_p90},
          {"goodput_p10", run.goodput_in(failures.wall_p90)},
          {"goodput_p90", run.goodput_in(failures.wall_p10)},
          {"young_interval_s", closed_form(&training::ClosedForm::young_interval)},
          {"daly_interval_s", closed_form(&training::ClosedForm::daly_interval)},
          {"goodput_closed_form", closed_form(&training::ClosedForm::goodput)},
          {"goodput_at_daly", closed_form(&training::ClosedForm::goodput_at_daly)}};
}

}  // namespace

std::string gpu_hours_text(double gpu_hours) {
  return gpu_hours < kLarge ? number(gpu_hours) : count(gpu_hours);
}

std::string energy_text(double kilowatt_hours) {
  return kilowatt_hours < kLarge ? number(kilowatt_hours) + " kWh" : number(kilowatt_hours / kKilo) + " MWh";
}

std::string co2_text(double kilograms) {
  return kilograms < kLarge ? number(kilograms) + " kg" : number(kilograms / kKilo) + " t";
}

std::string training_block(const Summary& summary) {
  if (!summary.run) return "";
  const TrainingRun& run = *summary.run;
  return "\nThe whole run\n" + length_row(run) + time_row(run) + ramp_row(run) + cost_rows(run) +
         energy_rows(run) + checkpoint_row(run) + goodput_rows(run);
}

Json training_json(const TrainingRun& run) {
  return {{"steps", run.steps},
          {"samples", run.samples},
          {"tokens", run.tokens},
          {"days", run.days()},
          {"wall_s", run.wall.total()},
          {"breakdown",
           {{"steps_s", run.wall.work},
            {"checkpoints_s", run.wall.checkpoints},
            {"lost_s", run.wall.lost},
            {"restarts_s", run.wall.restarts}}},
          {"goodput", run.goodput()},
          {"gpu_hours", run.gpu_hours},
          {"cost", cost_json(run)},
          {"energy", energy_json(run)},
          {"checkpoint", checkpoint_json(run)},
          {"failures", failures_json(run)},
          {"stages", stages_json(run)}};
}

std::vector<sweep::Cell> training_cells(const Summary& summary) {
  std::optional<double> days;
  std::optional<double> goodput;
  std::optional<double> gpu_hours;
  std::optional<double> cost;
  std::optional<double> energy;
  std::optional<double> co2;
  std::string steps;
  std::string currency;
  if (summary.run) {
    const TrainingRun& run = *summary.run;
    steps = std::to_string(run.steps);
    days = run.days();
    goodput = run.goodput();
    gpu_hours = run.gpu_hours;
    if (run.cost) cost = run.cost->amount;
    if (run.cost) currency = run.cost->price.currency;
    if (run.energy) energy = run.energy->kilowatt_hours;
    if (run.energy) co2 = run.energy->co2;
  }
  const auto cell = [](const char* name, const std::string& text, sweep::CellKind kind) {
    return sweep::Cell{name, text, text.empty() ? sweep::CellKind::kNone : kind};
  };
  const auto real = [&cell](const char* name, const std::optional<double>& value) {
    return cell(name, value ? exact(*value) : "", sweep::CellKind::kBare);
  };
  return {cell("run_steps", steps, sweep::CellKind::kBare),
          real("run_days", days),
          real("run_goodput", goodput),
          real("run_gpu_hours", gpu_hours),
          real("run_cost", cost),
          cell("run_currency", currency, sweep::CellKind::kText),
          real("run_energy_kwh", energy),
          real("run_co2_kg", co2)};
}

TrainingRun complete_run() {
  TrainingRun run;
  run.stages.resize(1);
  run.wall.work = 1;
  run.cost.emplace();
  run.energy.emplace();
  run.energy->co2 = run.energy->grid_intensity = 0;
  run.checkpoint.emplace();
  run.failures.emplace();
  run.failures->closed_form.emplace();
  return run;
}

}  // namespace trainsim::report
