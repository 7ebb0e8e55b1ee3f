// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/pass.hpp"

#include <utility>

namespace trainsim::lowering {

namespace {

using program::GroupKind;

Step communication(StepKind kind, program::CollectiveOp op, double bytes, GroupKind group) {
  Step step;
  step.kind = kind;
  step.cause = group == GroupKind::kContext ? program::Cause::kContextCommunication
                                            : program::Cause::kTensorCommunication;
  step.group = group;
  step.op = op;
  step.bytes = bytes;
  return step;
}

bool is_tensor_communication(const Step& step) {
  const bool communicates = step.kind != StepKind::kCompute && step.kind != StepKind::kSynchronize;
  return communicates && step.group == program::GroupKind::kTensor;
}

bool merges(const Pass& pass, const Step& step) {
  return !pass.empty() && step.kind == StepKind::kCompute && pass.back().kind == StepKind::kCompute &&
         pass.back().cause == step.cause;
}

}  // namespace

void add_compute(Pass& pass, std::string name, program::Cause cause, std::vector<program::Kernel> kernels) {
  Step step;
  step.cause = cause;
  step.name = std::move(name);
  step.kernels = std::move(kernels);
  pass.push_back(std::move(step));
}

void add_collective(Pass& pass, program::CollectiveOp op, double bytes, GroupKind group) {
  pass.push_back(communication(StepKind::kCollective, op, bytes, group));
}

void add_start(Pass& pass, program::CollectiveOp op, double bytes, GroupKind group) {
  pass.push_back(communication(StepKind::kStartCollective, op, bytes, group));
}

void add_join(Pass& pass, GroupKind group) {
  pass.push_back(communication(StepKind::kJoin, program::CollectiveOp::kAllReduce, 0, group));
}

void add_exchange(Pass& pass, double bytes) {
  Step step =
      communication(StepKind::kCollective, program::CollectiveOp::kAllToAll, bytes, GroupKind::kExpert);
  step.cause = program::Cause::kExpertCommunication;
  pass.push_back(std::move(step));
}

void add_synchronize(Pass& pass) {
  Step step;
  step.kind = StepKind::kSynchronize;
  pass.push_back(std::move(step));
}

Pass measured_pass(const char* name, const Pass& replaced, program::Cause cause, program::KernelKind kind,
                   Seconds seconds) {
  program::Kernel kernel;
  kernel.name = name;
  kernel.kind = kind;
  kernel.seconds = seconds;
  for (const Step& step : replaced) {
    for (const program::Kernel& modelled : step.kernels) kernel.flops += modelled.flops;
  }
  kernel.launches = 0;
  Pass pass;
  add_compute(pass, name, cause, {kernel});
  return pass;
}

Pass simplify(Pass pass, std::int64_t tensor_parallel, bool overlap) {
  Pass result;
  for (Step& step : pass) {
    const bool tensor = is_tensor_communication(step);
    if (tensor && tensor_parallel == 1) continue;
    if (tensor && !overlap && step.kind == StepKind::kJoin) continue;
    if (tensor && !overlap && step.kind == StepKind::kStartCollective) step.kind = StepKind::kCollective;
    if (merges(result, step)) {
      Step& last = result.back();
      last.name += " + " + step.name;
      last.kernels.insert(last.kernels.end(), step.kernels.begin(), step.kernels.end());
    } else {
      result.push_back(std::move(step));
    }
  }
  return result;
}

Pass with_cause(Pass pass, program::Cause cause) {
  for (Step& step : pass) {
    if (step.kind == StepKind::kCompute) step.cause = cause;
  }
  return pass;
}

}  // namespace trainsim::lowering
