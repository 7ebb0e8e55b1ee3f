// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cost/kernel_model.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/lowering/layer.hpp"
#include "sim/model/model_spec.hpp"
#include "sim/plan/plan.hpp"
#include "sim/program/program.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::lowering {

/// The kernel model of a GPU at a plan's precision and launch mode.
cost::KernelModel kernel_model(const hardware::GpuSpec& gpu, const plan::ParallelPlan& plan);
/// Dense matrix peak of the plan's precision.
FlopsPerSecond peak_flops(const hardware::GpuSpec& gpu, const plan::ParallelPlan& plan);

/// Parameters that one rank of a stage holds.
std::int64_t stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                              std::int64_t stage);

/// Those of them that are trained.
std::int64_t trained_stage_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                      std::int64_t stage);

/// One program per stage, in stage order. REQUIRES: a plan that plan::check accepts and its schedule.
std::vector<program::Program> lower(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                    const hardware::ClusterSpec& cluster, const schedule::Schedule& schedule);

/// The ring of a tensor-parallel group: limited by the links inside a node, or by a node's NICs together when
/// it spans nodes.
RingEstimate tensor_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan);
/// The same for a data-parallel group, whose members in a node have their share of its NICs.
RingEstimate data_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan);

/// The ring of a context-parallel group, one member of which sends to the next.
RingEstimate context_ring(const hardware::ClusterSpec& cluster, const plan::ParallelPlan& plan);

/// Time of the same global batch on one imaginary GPU with enough memory: unsplit kernels, no communication,
/// no bubble, no recomputation. The reference of scaling efficiency (docs/output.md).
Seconds single_gpu_time(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                        const hardware::GpuSpec& gpu);

}  // namespace trainsim::lowering
