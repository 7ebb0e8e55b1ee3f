// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/command.hpp"
#include "sim/cli/commands/factories.hpp"

namespace trainsim::cli {

const std::vector<CommandEntry>& command_table() {
  static const std::vector<CommandEntry> table = {
      {"run", "simulate a configuration and print a summary (the default)", make_run},
      {"check", "validate only: all problems at once, derived values, no simulation", make_check},
      {"list", "list the presets that ship: models, gpus, clusters or configs", make_list},
      {"validate", "simulate measured runs and print how far off the simulation is", make_validate},
      {"calibrate", "fit the constants of a GPU or a cluster's links to measurements, and write their YAML",
       make_calibrate},
      {"bench", "simulate collectives of many sizes, as nccl-tests measures them, or compare with its output",
       make_bench},
      {"topology", "what a cluster's network is made of: distances, bisection, oversubscription, a drawing",
       make_topology},
      {"memory", "where a configuration's memory goes: peak, tensors, curve, and what would make it fit",
       make_memory},
      {"import", "write a configuration from files of Megatron-LM, DeepSpeed, torchtitan or Hugging Face",
       make_import},
      {"export", "write a script that runs a configuration with Megatron-LM", make_export},
      {"schema", "print a JSON Schema of the input, for completion in editors", make_schema},
  };
  return table;
}

}  // namespace trainsim::cli
