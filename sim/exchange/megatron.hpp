// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/exchange/shell.hpp"
#include "sim/exchange/translation.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::exchange {

/// Translates the options of Megatron-LM that a script or command line runs it with, and the GPUs that
/// torchrun, srun or deepspeed start it on. What is not given has Megatron-LM's default
/// (megatron/training/arguments.py, core 0.14). `gpus` overrides the script's number. Throws InputError,
/// without the file's name, when there is no such command, and for models that no configuration can express.
Translation translate_megatron(const ShellScript& script, std::optional<std::int64_t> gpus);

/// Whether the script runs Megatron-LM at all.
bool runs_megatron(const ShellScript& script);

/// Whether an option means nothing to a model without experts.
bool is_expert_option(const std::string& name);

/// What Megatron-LM does with an option that the importer has no line for.
Remark judge_megatron_option(const std::string& name, const std::string& text);

/// A command line for Megatron-LM.
struct MegatronCommand {
  /// Options with their values, without launcher: "--num-layers", "96", …
  std::vector<std::string> options;
  /// Sentences about what no option can say, each "key: why".
  std::vector<std::string> untold;
};

/// The options that make Megatron-LM train this model by this plan.
MegatronCommand to_megatron(const model::ModelSpec& model, const plan::ParallelPlan& plan);

/// The command as a shell script that torchrun starts on the plan's GPUs; what it cannot say as comments.
std::string megatron_script(const MegatronCommand& command, const plan::ParallelPlan& plan,
                            std::int64_t gpus_per_node, const std::string& name);

}  // namespace trainsim::exchange
