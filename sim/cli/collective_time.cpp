// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/collective_time.hpp"

#include "sim/engine/executor.hpp"
#include "sim/folding/fold.hpp"
#include "sim/plan/plan.hpp"

namespace trainsim::cli {

Seconds collective_time(const hardware::ClusterSpec& cluster, std::int64_t gpus, program::CollectiveOp op,
                        double bytes) {
  program::Instruction collective;
  collective.op = program::Opcode::kCollective;
  collective.cause = program::Cause::kTensorCommunication;
  collective.group = program::GroupKind::kTensor;
  collective.collective = op;
  collective.amount = bytes;
  program::Program program;
  program.stream(program::Stream::kCompute).push_back(collective);
  plan::ParallelPlan plan;
  plan.gpus = gpus;
  plan.tensor_parallel = gpus;
  const program::Job job = folding::build_job(plan, cluster, false, {program}, {});
  // Alone on the network, a collective takes what the ideal executor says.
  return engine::make_ideal_executor({})->run(job).step_time;
}

}  // namespace trainsim::cli
