// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/engine/executor.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/memory/ledger.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/program/timeline.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/support/jobs.hpp"

namespace trainsim::tests {

/// Sizes of a GPT whose MLP is 4 h wide.
struct GptShape {
  std::int64_t layers = 1;
  std::int64_t hidden = 512;
  std::int64_t heads = 8;
  std::int64_t vocab = 8192;
  std::int64_t sequence = 256;
};

/// A GPT as Megatron-LM trained it in 2022: standard attention, dropout, learned positions, tied embedding.
inline model::ModelSpec gpt(const GptShape& shape) {
  model::ModelSpec model;
  model.num_layers = shape.layers;
  model.hidden_size = shape.hidden;
  model.num_attention_heads = model.num_key_value_heads = shape.heads;
  model.head_dim = shape.hidden / shape.heads;
  model.intermediate_size = 4 * shape.hidden;
  model.vocab_size = shape.vocab;
  model.sequence_length = model.max_position_embeddings = shape.sequence;
  model.dropout = 0.1;
  return model;
}

/// How a plan splits the model: t, p, v and d.
struct Split {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t chunks = 1;
  std::int64_t data = 1;
};

/// A plan without sequence parallelism and recomputation, 1F1B or interleaved, with `micro_batches`
/// micro-batches of `size` sequences.
inline plan::ParallelPlan split_plan(const Split& split, std::int64_t micro_batches = 1,
                                     std::int64_t size = 1) {
  plan::ParallelPlan plan;
  plan.tensor_parallel = split.tensor;
  plan.pipeline_parallel = split.pipeline;
  plan.virtual_pipeline = split.chunks;
  plan.data_parallel = split.data;
  plan.gpus = split.tensor * split.pipeline * split.data;
  plan.micro_batch_size = size;
  plan.global_batch_size = micro_batches * size * split.data;
  if (split.chunks > 1) plan.schedule = plan::ScheduleKind::kInterleaved;
  return plan;
}

/// The stages' programs on the GPUs of round_cluster().
inline std::vector<program::Program> programs_of(const model::ModelSpec& model,
                                                 const plan::ParallelPlan& plan) {
  return lowering::lower(model, plan, round_cluster(), schedule::build(plan));
}

/// Memory of a rank of each stage.
inline std::vector<memory::Profile> memory_of(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  std::vector<memory::Profile> profiles;
  for (const program::Program& program : programs_of(model, plan))
    profiles.push_back(memory::replay(program));
  return profiles;
}

/// What one rank of each stage does in a step with free communication.
inline program::Timeline run_free(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  return engine::make_ideal_executor()->run(make_job(model, round_cluster(), plan, {true, true}));
}

inline Bytes of(const program::MemoryByCategory& memory, program::MemoryCategory category) {
  return memory[static_cast<std::size_t>(category)];
}

inline Seconds of(const program::RankTimeline& rank, program::Cause cause) {
  return rank.by_cause[static_cast<std::size_t>(cause)];
}

/// Collectives of a stream over a group, in order.
inline std::vector<program::Instruction> collectives(const program::Program& program, program::Stream stream,
                                                     program::GroupKind group) {
  std::vector<program::Instruction> found;
  for (const program::Instruction& instruction : program.stream(stream)) {
    if (instruction.op == program::Opcode::kCollective && instruction.group == group)
      found.push_back(instruction);
  }
  return found;
}

}  // namespace trainsim::tests
