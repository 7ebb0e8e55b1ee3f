// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/experts.hpp"
#include "sim/lowering/layer.hpp"

namespace trainsim::lowering {

std::vector<LinearShape> LinearShape::apart() const {
  if (columns.empty()) return {*this};
  std::vector<LinearShape> modules;
  for (const std::int64_t width : columns) modules.push_back({in, width, adapted, fp8});
  return modules;
}

std::array<LinearShape, 4> layer_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                         model::LayerKind kind) {
  const Shapes shapes(model, plan);
  const bool attention = plan.lora.active() && plan.lora.attention;
  const bool mlp = plan.lora.active() && plan.lora.mlp;
  const bool latent = model.latent.active();
  LinearShape qkv = {shapes.hidden, latent ? 0 : shapes.query_width + 2 * shapes.key_value_width, attention,
                     plan.uses_fp8()};
  if (!latent && !plan.fused_linears.qkv)
    qkv.columns = {shapes.query_width, shapes.key_value_width, shapes.key_value_width};
  const LinearShape output = {shapes.output_width, shapes.hidden, attention, plan.uses_fp8()};
  if (kind == model::LayerKind::kExpert) {
    const auto [in, out] = shared_expert_linears(model, plan);
    return {{qkv, output, in, out}};
  }
  LinearShape in = {shapes.hidden, shapes.mlp_inputs * shapes.ffn, mlp, plan.uses_fp8()};
  if (model.gated() && !plan.fused_linears.mlp) in.columns = {shapes.ffn, shapes.ffn};
  return {{qkv, output, in, {shapes.ffn, shapes.hidden, mlp, plan.uses_fp8()}}};
}

std::vector<LinearShape> latent_linears(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  const model::LatentAttention& latent = model.latent;
  if (!latent.active()) return {};
  const Shapes shapes(model, plan);
  const std::int64_t unrotated = shapes.heads * (shapes.head_dim - latent.rope_head_dim);
  const std::int64_t queries = latent.query_rank > 0 ? latent.query_rank : shapes.hidden;
  const bool fp8 = plan.uses_fp8();
  return {{shapes.hidden, latent.query_rank, false, fp8},
          {queries, shapes.query_width, false, fp8},
          {shapes.hidden, latent.key_value_rank + latent.rope_head_dim, false, fp8},
          {latent.key_value_rank, unrotated + shapes.output_width, false, fp8}};
}

namespace {

/// r (in + out) for each adapter: a matrix into the rank and one out of it. Each module has one.
std::int64_t adapter_parameters(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  std::int64_t parameters = 0;
  for (const LinearShape& linear : layer_linears(model, plan))
    parameters += linear.adapted ? plan.lora.rank * (linear.modules() * linear.in + linear.out) : 0;
  return parameters;
}

}  // namespace

std::int64_t layer_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                       model::LayerKind kind) {
  const Shapes shapes(model, plan);
  const std::int64_t h = shapes.hidden;
  const std::int64_t norm = model.normalization == model::Normalization::kLayerNorm ? 2 * h : h;
  std::int64_t parameters = 2 * norm + adapter_parameters(model, plan);
  parameters += model.latent.query_rank + model.latent.key_value_rank;
  for (const LinearShape& linear : latent_linears(model, plan)) parameters += linear.in * linear.out;
  for (const LinearShape& linear : layer_linears(model, plan, kind)) {
    parameters += linear.in * linear.out;
    if (model.linear_bias && linear.in * linear.out > 0) parameters += linear.out;
  }
  if (kind == model::LayerKind::kDense) return parameters;
  return parameters + h * model.experts.count + expert_parameters_per_rank(model, plan);
}

std::int64_t trained_layer_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                               model::LayerKind kind) {
  return plan.lora.active() ? adapter_parameters(model, plan) : layer_parameters_per_rank(model, plan, kind);
}

std::int64_t trained_of(std::int64_t parameters, const plan::ParallelPlan& plan) {
  return plan.lora.active() ? 0 : parameters;
}

std::int64_t embedding_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  return static_cast<std::int64_t>(model::embedding_parameters(model, Shapes(model, plan).vocab));
}

std::int64_t head_parameters_per_rank(const model::ModelSpec& model, const plan::ParallelPlan& plan,
                                      bool head_holds_copy) {
  model::ModelSpec untied = model;
  untied.tie_word_embeddings = model.tie_word_embeddings && !head_holds_copy;
  return static_cast<std::int64_t>(model::head_parameters(untied, Shapes(model, plan).vocab));
}

}  // namespace trainsim::lowering
