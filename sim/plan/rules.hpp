// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"

namespace trainsim::plan {

/// What a rule looks at.
struct Facts {
  const ParallelPlan& plan;
  const model::ModelSpec& model;
  const hardware::ClusterSpec& cluster;

  /// GPUs of one model replica.
  std::int64_t grid() const { return plan.replica_gpus(); }
  /// The same as a product of fields.
  std::string grid_text() const {
    std::string text = "tensor_parallel " + std::to_string(plan.tensor_parallel) + " x ";
    if (plan.context_parallel > 1)
      text.append("context_parallel ").append(std::to_string(plan.context_parallel)).append(" x ");
    return text.append("pipeline_parallel ").append(std::to_string(plan.pipeline_parallel));
  }
  /// Whether the degrees use all GPUs, so that rules about data parallelism make sense.
  bool grid_fits() const { return plan.gpus == grid() * plan.data_parallel; }
};

/// One way in which a plan can be illegal.
struct Rule {
  /// Fields without which the rule means nothing.
  std::vector<std::string_view> fields;
  /// Adds what is wrong. Fields that are not listed above may hold 0 here, which counts as no limit.
  void (*apply)(const Facts&, Problems&);
};

/// Rules about what tensor parallelism divides.
std::vector<Rule> tensor_rules();
/// Rules about sequences that ranks share.
std::vector<Rule> context_rules();
/// Rules about the number of GPUs and how they are connected.
std::vector<Rule> world_rules();
/// Rules about batch sizes.
std::vector<Rule> batch_rules();
/// Rules about stages, chunks and recomputed layers.
std::vector<Rule> pipeline_rules();
/// Rules about checkpoints that save the outputs of some operators.
std::vector<Rule> operator_rules();
/// Rules about state that lives on the host.
std::vector<Rule> offload_rules();
/// Rules about what a framework does not have.
std::vector<Rule> framework_rules();
/// Rules about experts and the ranks that they are spread over.
std::vector<Rule> expert_rules();

/// A number in a message.
inline std::string text(std::int64_t number) {
  return std::to_string(number);
}

}  // namespace trainsim::plan
