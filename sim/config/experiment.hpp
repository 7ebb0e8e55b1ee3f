// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/constants.hpp"
#include "sim/config/value.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/training/spec.hpp"

namespace trainsim::config {

/// How communication is timed.
enum class NetworkMode {
  /// Flows share links in SimGrid.
  kFlow,
  /// Every transfer as if it were alone on its path; no contention.
  kIdeal,
  /// Communication takes no time.
  kFree,
  /// As kFlow, with every step of a ring a message of its own and every rank simulated; for checking.
  kStep,
};

/// How much steps differ from each other.
struct Jitter {
  /// Steps to simulate beside the one without jitter; 0 = none.
  std::int64_t steps = 0;
  /// Standard deviation of the logarithm of a GPU's slowdown, and of what a NIC loses of its bandwidth.
  double compute = 0;
  double network = 0;
  std::uint64_t seed = 1;
};

/// A complete, checked and resolved input.
struct Experiment {
  /// The configuration's file name without folder and extension.
  std::string name;
  std::string description;
  model::ModelSpec model;
  hardware::ClusterSpec cluster;
  plan::ParallelPlan plan;
  NetworkMode network = NetworkMode::kFlow;
  Jitter jitter;
  /// The whole training run that steps are part of, if one is asked for.
  std::optional<training::TrainingSpec> run;
  /// Constants of the cluster that are not known exactly.
  std::vector<Constant> constants;
  /// Complete sentences about what is legal but probably not meant.
  std::vector<std::string> warnings;
  /// Every value that the input left open, as "plan.micro_batch_size" -> "1", in schema order; derived values
  /// too.
  std::vector<std::pair<std::string, std::string>> defaults;
  /// Every value of the resolved input with its dotted path, defaults and derived values too; texts for
  /// people left out.
  std::vector<std::pair<std::string, std::string>> values;
};

/// What a configuration is read for.
enum class Scope {
  /// The whole run: its section must agree with plan and cluster.
  kRun,
  /// One step. The section `run` is read and must make sense in itself, but nothing of it is kept, so that a
  /// ramp of one plan's batch does not stand in the way of other plans.
  kStep,
};

/// Reads a configuration, applies `--set` overrides ("key.path=value") and checks everything.
/// `config` is a path or the name of a file in configs/. Throws InputError with every problem found, each as
/// "file:line:col: error: …" with the source line and a caret.
Experiment load(const std::string& config, const std::vector<std::string>& overrides,
                Scope scope = Scope::kRun);

/// What a configuration consists of once overrides are applied and the names of model and cluster are
/// replaced by what they stand for, as one text: it changes when any of that does. Nothing is checked, and
/// names that stand for nothing stay. Throws InputError when the configuration can't be read.
std::string resolved_text(const std::string& config, const std::vector<std::string>& overrides);

/// The same for a configuration that is at hand as a mapping (docs/config.md), such as one made from a
/// measured run; `name` becomes the experiment's name. Problems are reported where the values were read.
Experiment resolve(Value root, const std::vector<std::string>& overrides, const std::string& name);

/// The folder that holds models/, topologies/ and configs/: $TRAINSIM_HOME, else the one that was installed
/// with the program, else where the program was built from.
std::filesystem::path presets_root();

/// A preset file for `trainsim list`.
struct Preset {
  std::string name;
  /// First words of its `source` or `description`; may be empty.
  std::string note;
};

/// Presets of a kind ("models", "gpus", "clusters", "configs"), sorted by name.
std::vector<Preset> list_presets(const std::string& kind);

/// Reads one model, cluster or GPU preset on its own, as `model: NAME`, `cluster: NAME` or `gpu: NAME` would.
/// A cluster may be changed by `--set` overrides below `cluster`; what `check` finds wrong with fields of it
/// is reported where they stand, and problems of other fields are left to the caller. Throws InputError.
using ClusterCheck = std::function<Problems(const hardware::ClusterSpec&)>;
model::ModelSpec load_model(const std::string& name);
hardware::ClusterSpec load_cluster(const std::string& name, const std::vector<std::string>& overrides = {},
                                   const ClusterCheck& check = {});
hardware::GpuSpec load_gpu(const std::string& name);

}  // namespace trainsim::config
