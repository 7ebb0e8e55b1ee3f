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
      {"search", "find the best legal plans that fit for a configuration's model, cluster and batch",
       make_search},
      {"neighbours", "the plans one step away from a configuration's, and what it leaves on the table",
       make_neighbours},
      {"sweep",
       "simulate a configuration for every combination of values: a row each, in parallel, resumable",
       make_sweep},
      {"merge", "put the rows of a sweep's shards together", make_merge},
      {"compare", "configurations side by side: where time and memory moved from one to another",
       make_compare},
      {"completion", "write a script that completes the command line, for bash, zsh or fish",
       make_completion},
      {"manual", "write the manual page", make_manual},
      {"import", "write a configuration from files of Megatron-LM, DeepSpeed, torchtitan or Hugging Face",
       make_import},
      {"export", "write a script that runs a configuration with Megatron-LM", make_export},
      {"schema", "print a JSON Schema of the input, for completion in editors", make_schema},
  };
  return table;
}

}  // namespace trainsim::cli
