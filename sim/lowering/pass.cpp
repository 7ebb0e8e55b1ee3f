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

Pass simplify(Pass pass, std::int64_t tensor_parallel, bool overlap) {
  Pass result;
  for (Step& step : pass) {
    const bool tensor = step.kind != StepKind::kCompute && step.group == GroupKind::kTensor;
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
