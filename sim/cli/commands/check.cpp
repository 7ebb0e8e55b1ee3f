// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "sim/cli/auto_recompute.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"
#include "sim/cli/exit_code.hpp"
#include "sim/cli/output_file.hpp"
#include "sim/cli/training.hpp"
#include "sim/config/experiment.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/report/check_report.hpp"
#include "sim/report/format.hpp"

namespace trainsim::cli {

namespace {

report::CheckReport check_report(const config::Experiment& experiment) {
  const plan::ParallelPlan& plan = experiment.plan;
  const auto stage_count = plan.pipeline_parallel;
  report::CheckReport report{experiment.name, {}, experiment.defaults, experiment.warnings};
  std::string layers;
  for (const std::int64_t held : plan::stage_layers(plan, experiment.model)) {
    layers += (layers.empty() ? "" : ", ") + std::to_string(held);
  }
  report.derived = {
      {"parameters", report::count(model::total_parameters(experiment.model))},
      {"parameters per rank, first stage",
       report::count(static_cast<double>(lowering::stage_parameters(experiment.model, plan, 0)))},
      {"parameters per rank, last stage", report::count(static_cast<double>(lowering::stage_parameters(
                                              experiment.model, plan, stage_count - 1)))},
      {"data_parallel", std::to_string(plan.data_parallel)},
      {"global_batch_size", std::to_string(plan.global_batch_size)},
      {"micro-batches per step", std::to_string(plan.micro_batches())},
      {"tokens per step",
       report::count(static_cast<double>(plan.global_batch_size * experiment.model.sequence_length))},
      {"layers per virtual stage", layers},
      {"padded vocabulary", std::to_string(model::padded_vocabulary(
                                experiment.model.vocab_size, plan.vocab_padding, plan.tensor_parallel))},
      {"nodes", std::to_string(experiment.cluster.nodes_of(plan.gpus))},
      {"GPU memory", report::gib(experiment.cluster.gpu.memory) + ", " + report::gib(plan.memory_reserve) +
                         " of it reserved"}};
  if (const std::vector<training::BatchStage> stages = stages_of(experiment); !stages.empty()) {
    const std::string sizes =
        stages.size() > 1 ? ", in " + std::to_string(stages.size()) + " batch sizes" : "";
    report.derived.emplace_back("steps of the run", std::to_string(training::total_steps(stages)) + sizes);
  }
  if (plan.context_parallel > 1) {
    report.derived.emplace_back("tokens of a sequence per rank",
                                std::to_string(experiment.model.sequence_length / plan.context_parallel));
  }
  if (experiment.model.experts.active()) {
    report.derived.insert(report.derived.begin() + 1,
                          {"active parameters", report::count(model::active_parameters(experiment.model))});
    report.derived.emplace_back("expert_tensor_parallel", std::to_string(plan.expert_tensor()));
    report.derived.emplace_back("expert data parallel", std::to_string(plan.expert_data_parallel()));
  }
  return report;
}

class CheckCommand : public Command {
 public:
  void declare(Options& options) override {
    add_config(options, subject_);
    common_.declare(options, {Format::kText, Format::kJson});
  }

  int execute() override {
    config::Experiment experiment = config::load(subject_.name, subject_.overrides);
    const std::string chosen = choose_recomputation(experiment);
    OutputFile output(common_.output);
    report::CheckReport report = check_report(experiment);
    if (!chosen.empty()) report.derived.emplace_back("recompute", chosen);
    output.write(common_.format == Format::kJson ? report::to_json(report) : report::to_text(report));
    return kDone;
  }

 private:
  Subject subject_;
};

}  // namespace

std::unique_ptr<Command> make_check() {
  return std::make_unique<CheckCommand>();
}

}  // namespace trainsim::cli
