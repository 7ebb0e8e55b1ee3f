// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/hardware/spec.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/job.hpp"

namespace trainsim::tests {

/// A small GPT: 8 layers, hidden 512, 8 heads, sequence 256, standard attention.
model::ModelSpec small_gpt();
/// The same whose layers but the first have 16 experts of width 512, of which a token visits two.
model::ModelSpec small_mixture();
/// Nodes of 8 GPUs with round numbers: NVLink 100 GB/s, one NIC of 10 GB/s per GPU, full bisection, 2 nodes a
/// leaf; hosts that a GPU copies to with 20 GB/s alone and 10 GB/s when eight do.
hardware::ClusterSpec round_cluster();
/// A plan on `gpus` GPUs with the given sizes; data_parallel follows. Two micro-batches per stage and
/// replica.
plan::ParallelPlan small_plan(std::int64_t gpus, std::int64_t tensor, std::int64_t pipeline,
                              std::int64_t chunks);

/// Links of a rate inside nodes, and others of a rate between them.
program::MemberLinks links_of(BytesPerSecond inside, BytesPerSecond between);

/// One collective over a tensor of `bytes` in the tensor-parallel group, and nothing else.
program::Program lone_collective(program::CollectiveOp op, double bytes);
/// Tensor parallelism over all of `gpus` GPUs.
plan::ParallelPlan one_group(std::int64_t gpus);

/// What becomes of an input on its way to an executor.
struct JobOptions {
  bool fold = true;
  bool free_communication = false;
};
/// Schedules, lowers and binds. REQUIRES: a legal plan.
program::Job make_job(const model::ModelSpec& model, const hardware::ClusterSpec& cluster,
                      const plan::ParallelPlan& plan, const JobOptions& options = {});

}  // namespace trainsim::tests
