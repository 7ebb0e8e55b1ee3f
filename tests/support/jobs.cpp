// SPDX-License-Identifier: Apache-2.0
#include "tests/support/jobs.hpp"

#include "sim/folding/fold.hpp"
#include "sim/lowering/lower.hpp"
#include "sim/schedule/schedule.hpp"

namespace trainsim::tests {

model::ModelSpec small_gpt() {
  model::ModelSpec model;
  model.name = "small";
  model.num_layers = 8;
  model.hidden_size = 512;
  model.num_attention_heads = 8;
  model.num_key_value_heads = 8;
  model.head_dim = 64;
  model.intermediate_size = 2048;
  model.vocab_size = 8192;
  model.sequence_length = 256;
  model.max_position_embeddings = 256;
  model.dropout = 0.1;
  return model;
}

model::ModelSpec small_mixture() {
  model::ModelSpec model = small_gpt();
  model.name = "small mixture";
  model.experts.count = 16;
  model.experts.per_token = 2;
  model.experts.intermediate_size = 512;
  model.experts.dense_layers = 1;
  return model;
}

hardware::ClusterSpec round_cluster() {
  hardware::ClusterSpec cluster;
  cluster.name = "round";
  hardware::GpuSpec& gpu = cluster.gpu;
  gpu.name = "toy";
  gpu.memory = Bytes{80} << 30;
  gpu.memory_bandwidth = 1e12;
  gpu.memory_efficiency = gpu.random_efficiency = 0.8;
  gpu.peak_fp16 = gpu.peak_bf16 = 100e12;
  gpu.peak_fp32 = 10e12;
  gpu.matmul_efficiency = 0.8;
  gpu.multiprocessors = 100;
  gpu.attention_efficiency_forward = gpu.attention_efficiency_backward = 0.5;
  gpu.kernel_overhead = 1e-6;
  gpu.launch_interval_eager = 2e-6;
  cluster.gpus_per_node = 8;
  cluster.nics_per_node = 8;
  cluster.intra_node = {100e9, 1.0, 1e-6};
  cluster.pcie = {50e9, 1.0, 1e-6};
  cluster.nic = {10e9, 1.0, 2e-6};
  cluster.host = hardware::HostSpec{Bytes{1} << 40, 400e9, 0.5, 20e9, 80e9, 1.0, 8e9, 4e9};
  cluster.fabric.nodes_per_leaf = 2;
  cluster.fabric.switch_latency = 1e-6;
  cluster.collective_latency = 5e-6;
  cluster.point_to_point_latency = 5e-6;
  return cluster;
}

plan::ParallelPlan small_plan(std::int64_t gpus, std::int64_t tensor, std::int64_t pipeline,
                              std::int64_t chunks) {
  plan::ParallelPlan plan;
  plan.gpus = gpus;
  plan.tensor_parallel = tensor;
  plan.pipeline_parallel = pipeline;
  plan.virtual_pipeline = chunks;
  plan.data_parallel = gpus / (tensor * pipeline);
  plan.sequence_parallel = tensor > 1;
  plan.global_batch_size = plan.data_parallel * pipeline * 2;
  plan.schedule = chunks > 1 ? plan::ScheduleKind::kInterleaved : plan::ScheduleKind::kOneFOneB;
  plan.overlap_point_to_point = chunks > 1;
  plan.bucket_parameters = 4'000'000;
  return plan;
}

program::MemberLinks links_of(BytesPerSecond inside, BytesPerSecond between) {
  return {{{1.0 / inside, 0.0}, {0.0, 1.0 / between}}};
}

program::Program lone_collective(program::CollectiveOp op, double bytes) {
  program::Instruction instruction;
  instruction.op = program::Opcode::kCollective;
  instruction.group = program::GroupKind::kTensor;
  instruction.collective = op;
  instruction.amount = bytes;
  program::Program program;
  program.stream(program::Stream::kCompute).push_back(instruction);
  return program;
}

plan::ParallelPlan one_group(std::int64_t gpus) {
  plan::ParallelPlan plan;
  plan.gpus = plan.tensor_parallel = gpus;
  return plan;
}

program::Job make_job(const model::ModelSpec& model, const hardware::ClusterSpec& cluster,
                      const plan::ParallelPlan& plan, const JobOptions& options) {
  const schedule::Schedule schedule = schedule::build(plan);
  return folding::build_job(plan, cluster, model.tie_word_embeddings,
                            lowering::lower(model, plan, cluster, schedule),
                            {options.fold, options.free_communication});
}

}  // namespace trainsim::tests
