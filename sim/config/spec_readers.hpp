// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "sim/config/experiment.hpp"
#include "sim/config/field_index.hpp"
#include "sim/config/section.hpp"

namespace trainsim::config {

/// Sets those flags of `into` that the list below a key names; words that are none are reported.
template <class T>
void set_flags(Section& section, std::string_view key, const Words<bool T::*>& names, T& into) {
  for (bool T::*flag : section.list(key, as_choice(names))) {
    // An item that could not be read is no flag.
    if (flag != nullptr) into.*flag = true;
  }
}

/// Reads a model mapping (docs/config.md, "Model"), without names or `extends` in it.
model::ModelSpec read_model(Section& section);

/// Reads `source`, a note for people: a text, or one text per key. Nothing depends on it.
void read_source_note(Section& section);

/// Reads a GPU mapping, likewise.
hardware::GpuSpec read_gpu(Section& section);

/// Reads a cluster mapping, likewise.
hardware::ClusterSpec read_cluster(Section& section);

/// Reads the `plan` mapping into a plan whose `gpus` is known already, and works out what it leaves open.
void read_plan(Section& section, plan::ParallelPlan& plan);

/// Reads the `run` mapping, if there is one; what a node draws beside its GPUs follows from the cluster.
std::optional<training::TrainingSpec> read_run(Section& top, const hardware::ClusterSpec& cluster);

/// Why a cluster can't say what energy a run with a section `run.power` takes.
Problems check_power(const hardware::ClusterSpec& cluster, const FieldIndex& index);

/// Whether the NICs of a cluster can carry the checkpoints of a run, and training beside them.
Problems check_writing(const training::TrainingSpec& spec, const plan::ParallelPlan& plan,
                       const hardware::ClusterSpec& cluster);

/// In what a run that was read contradicts a legal plan.
Problems check_run(const training::TrainingSpec& spec, const plan::ParallelPlan& plan,
                   const model::ModelSpec& model);

/// Reads a whole configuration, without names in it, only for what `recorder` learns of it.
void record_keys(Value root, Recorder& recorder);

/// A shard group that the cluster will say the size of.
inline constexpr std::int64_t kShardGroupOfNode = -1;

/// The words for attention kernels, which a model and `software` may both name.
const Words<model::Attention>& attention_words();

/// Bounds of a sequence length; far above any use, and small enough that sizes made of it can be counted.
inline constexpr CountRange kSequenceRange = {1, 100'000'000};

}  // namespace trainsim::config
