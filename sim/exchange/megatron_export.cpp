// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/exchange/megatron.hpp"
#include "sim/exchange/pipeline_split.hpp"
#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

namespace {

using model::Activation;
using model::Attention;
using model::ModelSpec;
using model::Normalization;
using model::PositionEmbedding;
using plan::ParallelPlan;
using plan::Sharding;

/// Does the work of to_megatron().
class Exporter {
 public:
  Exporter(const ModelSpec& model, const ParallelPlan& plan) : model_(model), plan_(plan) {}

  MegatronCommand run() {
    shape();
    experts();
    latent_attention();
    kinds();
    degrees();
    batch();
    recompute();
    numbers();
    sharding();
    overlap();
    software();
    limits();
    return std::move(out_);
  }

 private:
  void add(const std::string& option) { out_.options.push_back(option); }
  void add(const std::string& option, const std::string& value) {
    out_.options.push_back(option);
    out_.options.push_back(value);
  }
  void add(const std::string& option, std::int64_t value) { add(option, std::to_string(value)); }
  void untold(const std::string& key, const std::string& why) { out_.untold.push_back(key + ": " + why); }

  void shape() {
    add("--num-layers", model_.num_layers);
    add("--hidden-size", model_.hidden_size);
    add("--num-attention-heads", model_.num_attention_heads);
    if (model_.num_key_value_heads != model_.num_attention_heads) {
      add("--group-query-attention");
      add("--num-query-groups", model_.num_key_value_heads);
    }
    if (!model_.latent.active() && model_.head_dim * model_.num_attention_heads != model_.hidden_size)
      add("--kv-channels", model_.head_dim);
    add("--ffn-hidden-size", model_.intermediate_size);
    add("--vocab-size", model_.vocab_size);
    add("--make-vocab-size-divisible-by", plan_.vocab_padding);
    add("--seq-length", model_.sequence_length);
    add("--max-position-embeddings", std::max(model_.max_position_embeddings, model_.sequence_length));
  }

  void experts() {
    const model::Experts& experts = model_.experts;
    if (!experts.active()) return;
    add("--num-experts", experts.count);
    add("--moe-router-topk", experts.per_token);
    add("--moe-ffn-hidden-size", experts.intermediate_size);
    if (experts.shared_intermediate_size > 0)
      add("--moe-shared-expert-intermediate-size", experts.shared_intermediate_size);
    if (experts.layer_interval > 1 || experts.dense_layers > 0)
      add("--moe-layer-freq", layers_with_experts());
    if (experts.capacity_factor > 0)
      add("--moe-expert-capacity-factor", number_text(experts.capacity_factor));
    add("--moe-grouped-gemm");
    add("--moe-token-dispatcher-type", "alltoall");
    add("--expert-model-parallel-size", plan_.expert_parallel);
    add("--expert-tensor-parallel-size", plan_.expert_tensor());
    if (experts.imbalance > 1)
      untold("model.experts.imbalance", "how tokens are spread follows from the data, and has no option");
  }

  /// "2" for every second layer, "([0]*3+[1]*58)", or a list of all.
  std::string layers_with_experts() const {
    const model::Experts& experts = model_.experts;
    if (experts.dense_layers == 0) return std::to_string(experts.layer_interval);
    const std::int64_t rest = model_.num_layers - experts.dense_layers;
    return experts.layer_interval == 1
               ? "([0]*" + std::to_string(experts.dense_layers) + "+[1]*" + std::to_string(rest) + ")"
               : list_of_layers();
  }

  std::string list_of_layers() const {
    std::string list;
    for (std::int64_t layer = 0; layer < model_.num_layers; ++layer) {
      list += list.empty() ? "[" : ",";
      list += model_.kind_of(layer) == model::LayerKind::kExpert ? "1" : "0";
    }
    list += "]";
    return list;
  }

  void latent_attention() {
    const model::LatentAttention& latent = model_.latent;
    if (!latent.active()) return;
    add("--multi-latent-attention");
    if (latent.query_rank > 0) add("--q-lora-rank", latent.query_rank);
    add("--kv-lora-rank", latent.key_value_rank);
    add("--qk-head-dim", model_.head_dim - latent.rope_head_dim);
    add("--qk-pos-emb-head-dim", latent.rope_head_dim);
    add("--v-head-dim", model_.value_dim());
  }

  void kinds() {
    switch (model_.activation) {
      case Activation::kSwiglu:
        add("--swiglu");
        break;
      case Activation::kGeglu:
        add("--quick-geglu");
        break;
      case Activation::kRelu:
        add("--squared-relu");
        untold("model.activation", "relu has no option; --squared-relu is the nearest");
        break;
      case Activation::kGelu:
        break;
    }
    const char* position = "learned_absolute";
    if (model_.position_embedding == PositionEmbedding::kRotary) position = "rope";
    if (model_.position_embedding == PositionEmbedding::kNone) position = "none";
    if (model_.position_embedding == PositionEmbedding::kAlibi) {
      position = "alibi";
      untold("model.position_embedding", "alibi is an option of Megatron-DeepSpeed, not of Megatron-LM");
    }
    add("--position-embedding-type", position);
    add("--normalization", model_.normalization == Normalization::kRmsNorm ? "RMSNorm" : "LayerNorm");
    if (!model_.tie_word_embeddings) add("--untie-embeddings-and-output-weights");
    if (!model_.linear_bias) add("--disable-bias-linear");
    if (model_.embedding_norm) {
      add("--embed-layernorm");
      untold("model.embedding_norm",
             "--embed-layernorm is an option of Megatron-DeepSpeed, not of Megatron-LM");
    }
    add("--attention-dropout", number_text(model_.dropout));
    add("--hidden-dropout", number_text(model_.dropout));
  }

  void degrees() {
    add("--tensor-model-parallel-size", plan_.tensor_parallel);
    add("--pipeline-model-parallel-size", plan_.pipeline_parallel);
    if (plan_.context_parallel > 1) {
      add("--context-parallel-size", plan_.context_parallel);
      add("--cp-comm-type", to_string(plan_.context_communication));
    }
    if (plan_.sequence_parallel && plan_.tensor_parallel > 1) add("--sequence-parallel");
    const std::vector<std::int64_t> layers = plan::stage_layers(plan_, model_);
    const bool even = std::adjacent_find(layers.begin(), layers.end(), std::not_equal_to<>()) == layers.end();
    if (!even) {
      add("--pipeline-model-parallel-layout", layout_text(layers));
    } else if (plan_.virtual_pipeline > 1) {
      add("--num-virtual-stages-per-pipeline-rank", plan_.virtual_pipeline);
    }
    if (plan_.order == plan::kTensorPipelineData) {
      add("--use-tp-pp-dp-mapping");
    } else if (plan_.order != plan::kTensorDataPipeline) {
      untold("plan.order", to_string(plan_.order) + " has no option");
    }
  }

  /// "Ett|tt|ttL": layers of each part of the pipeline in Megatron-LM's letters.
  static std::string layout_text(const std::vector<std::int64_t>& layers) {
    std::string text = "E";
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (i > 0) text += '|';
      if (layers[i] == 1) text += 't';
      if (layers[i] > 1) {
        text += "t*";
        text += std::to_string(layers[i]);
      }
    }
    return text + "L";
  }

  void batch() {
    add("--micro-batch-size", plan_.micro_batch_size);
    add("--global-batch-size", plan_.global_batch_size);
    if (plan_.splits_backward()) untold("plan.schedule", "Megatron-LM itself has no zero-bubble schedules");
    if (plan_.schedule == plan::ScheduleKind::kGpipe)
      untold("plan.schedule", "gpipe has no option; Megatron-LM runs 1f1b");
    const bool chunks = plan_.virtual_pipeline > 1;
    if (chunks && plan_.schedule != plan::ScheduleKind::kInterleaved)
      untold("plan.schedule", "Megatron-LM runs interleaved 1f1b with chunks");
  }

  void recompute() {
    const plan::Recompute& recompute = plan_.recompute;
    if (plan_.offloaded_layers > 0) add("--cpu-offloading-num-layers", plan_.offloaded_layers);
    if (recompute.granularity == plan::RecomputeGranularity::kNone) return;
    if (recompute.by_operators())
      return untold("plan.recompute", "Megatron-LM recomputes layers or modules, and not operators");
    if (plan_.offloaded_layers > 0)
      untold("plan.activation_offload", "Megatron-LM refuses it beside recomputation");
    if (recompute.partial_micro_batches > 0)
      untold("plan.recompute.partial_micro_batches",
             "num_microbatches_with_partial_activation_checkpoints has no option, only a field in the "
             "configuration "
             "of Megatron Core");
    add("--recompute-granularity", to_string(recompute.granularity));
    if (recompute.granularity == plan::RecomputeGranularity::kFull) {
      add("--recompute-method", to_string(recompute.method));
      add("--recompute-num-layers", recompute.layers);
      return;
    }
    const plan::RecomputeModules& modules = recompute.modules;
    if (modules.core_attention && !modules.mlp && !modules.norm && !modules.activation) return;
    add("--recompute-modules");
    for (const std::string& module : module_names(modules)) add(module);
    if (modules.activation)
      untold("plan.recompute.modules", "activation has no counterpart in Megatron-LM's list of modules");
  }

  /// Megatron-LM's defaults are the hybrid format (gradients with more range) for the tensors, and delayed
  /// scales.
  void eight_bits() {
    add("--bf16");
    add("--fp8-format", "hybrid");
    if (plan_.fp8.recipe == plan::Fp8Recipe::kRowwise) {
      untold("plan.fp8.recipe", "rowwise has no counterpart in Megatron-LM");
    } else {
      add("--fp8-recipe", to_string(plan_.fp8.recipe));
    }
    if (plan_.fp8.parameters) add("--fp8-param-gather");
  }

  void numbers() {
    if (plan_.precision == plan::Precision::kBf16) add("--bf16");
    if (plan_.precision == plan::Precision::kFp16) add("--fp16");
    if (plan_.uses_fp8()) eight_bits();
    if (plan_.precision == plan::Precision::kTf32)
      untold("plan.precision", "TF32 is a setting of PyTorch (torch.backends.cuda.matmul.allow_tf32)");
    constexpr std::int64_t whole = 4;
    if (plan_.gradient_bytes == whole && !plan_.stores_fp32()) add("--accumulate-allreduce-grads-in-fp32");
    if (plan_.gradient_bytes < whole && (plan_.precision == plan::Precision::kBf16 || plan_.uses_fp8()))
      add("--grad-reduce-in-bf16");
    if (plan_.gradient_bytes < whole && plan_.stores_fp32())
      untold("plan.gradient_dtype", "fp32 parameters have fp32 gradients");
    switch (plan_.optimizer) {
      case plan::Optimizer::kAdam:
        break;
      case plan::Optimizer::kSgd:
        add("--optimizer", "sgd");
        add("--sgd-momentum", "0");
        break;
      case plan::Optimizer::kSgdMomentum:
        add("--optimizer", "sgd");
        break;
      case plan::Optimizer::kAdam8Bit:
      case plan::Optimizer::kLion:
      case plan::Optimizer::kAdafactor:
        untold("plan.optimizer", to_string(plan_.optimizer) + " has no option; Megatron-LM runs adam");
        break;
    }
    if (plan_.lora.active()) untold("plan.lora", "Megatron-LM trains all weights");
  }

  void sharding() {
    if (plan_.sharding == Sharding::kZero1) add("--use-distributed-optimizer");
    const bool fsdp2 = plan_.sharding == Sharding::kZero3 || plan_.keeps_gathered;
    if (fsdp2 && (plan_.pipeline_parallel > 1 || plan_.expert_parallel > 1)) {
      untold("plan.sharding",
             "Megatron-LM's --use-torch-fsdp2 goes neither with a pipeline nor with expert parallelism");
    } else if (fsdp2) {
      add("--use-torch-fsdp2");
      if (plan_.keeps_gathered) add("--torch-fsdp2-no-reshard-after-forward");
    } else if (plan_.sharding == Sharding::kZero2) {
      add("--use-megatron-fsdp");
      add("--data-parallel-sharding-strategy", "optim_grads");
    }
    if (plan_.shard_group > 0 && plan_.is_hybrid())
      untold("plan.sharding.group",
             "copies of " + std::to_string(plan_.shard_group) + " ranks have no option here");
    offload();
    const bool gathers = plan_.sharding == Sharding::kZero2 || plan_.sharding == Sharding::kZero3;
    const plan::Framework usual = gathers ? plan::Framework::kFsdp : plan::Framework::kMegatron;
    if (plan_.framework != usual)
      untold("software.framework", to_string(plan_.framework) + "; this is a command for Megatron-LM");
    if (!(plan_.fused_linears == plan::FusedLinears{}))
      untold("software.fused_linears", "Megatron-LM has none that multiply apart");
    if (plan_.checkpoint_early_stop && plan_.recompute.granularity == plan::RecomputeGranularity::kFull)
      untold("software.checkpoint_early_stop", "Megatron-LM's checkpoints run layers to their end");
    if (gathers) units();
  }

  void offload() {
    if (plan_.sharding == Sharding::kZero1 && plan_.offload.optimizer == plan::OffloadTarget::kCpu) {
      add("--optimizer-cpu-offload");
      // Megatron-LM refuses the one without the other.
      add("--use-precision-aware-optimizer");
    } else if (plan_.offload.active()) {
      untold("plan.sharding.offload", "only the optimizer of stage 1 has an option, to the CPU");
    }
  }

  void units() {
    const plan::ShardUnits usual;
    if (plan_.units.layers != usual.layers || plan_.units.parameters > 0)
      untold("plan.sharding", "every layer is a unit; unit_layers and unit_parameters have no option");
    if (plan_.units.gathered != usual.gathered || plan_.units.backward_prefetch != usual.backward_prefetch)
      untold("plan.sharding", "gathered_units and backward_prefetch have no option");
  }

  void overlap() {
    if (plan_.overlap_gradient_reduction) add("--overlap-grad-reduce");
    if (plan_.overlap_parameter_gather) add("--overlap-param-gather");
    const bool interleaved = plan_.virtual_pipeline > 1;
    if (interleaved && !plan_.overlap_point_to_point) add("--no-overlap-p2p-communication");
    if (!interleaved && plan_.overlap_point_to_point)
      untold("plan.overlap_point_to_point", "Megatron-LM overlaps transfers with chunks only");
    if (!plan_.overlap_tensor_communication) add("--no-async-tensor-model-parallel-allreduce");
    if (!plan_.scatter_gather_transfers) add("--no-scatter-gather-tensors-in-pipeline");
    add("--ddp-bucket-size", plan_.bucket_parameters);
  }

  void software() {
    const bool flash = model_.attention != Attention::kStandard;
    add("--attention-backend", flash ? "flash" : "unfused");
    if (model_.attention != Attention::kFlash && flash)
      untold("software.attention", to_string(model_.attention) + " is a matter of the installed package");
    const bool gathers = plan_.sharding == Sharding::kZero2 || plan_.sharding == Sharding::kZero3;
    if (!gathers && !plan_.transformer_engine) add("--transformer-impl", "local");
    if (gathers && plan_.transformer_engine)
      untold("software.transformer_engine", "true has no option with sharded parameters");
    if (!plan_.persistent_norm) add("--no-persist-layer-norm");
    if (!plan_.gradient_accumulation_fusion) add("--no-gradient-accumulation-fusion");
    if (plan_.loss == plan::Loss::kFused) {
      add("--cross-entropy-loss-fusion");
      add("--cross-entropy-fusion-impl", "te");
    }
    if (plan_.loss == plan::Loss::kCompiled)
      untold("software.loss", "compiled is PyTorch's loss, and Megatron-LM has its own");
    if (plan_.loss_metrics > 0) untold("software.loss_metrics", "is a matter of the training loop");
    if (plan_.launch == plan::Launch::kCudaGraph) add("--enable-cuda-graph");
    if (plan_.launch == plan::Launch::kCompiled || plan_.launch == plan::Launch::kBlocking)
      untold("software.launch", to_string(plan_.launch) + " has no option");
    if (plan_.fusion != plan::Fusion::kStandard)
      untold("software.fusion", to_string(plan_.fusion) + " has no option");
  }

  void limits() {
    if (!plan_.nodes.empty()) untold("plan.placement", "is a matter of the launcher");
    if (!plan_.profile.empty()) untold("plan.profile", "measured times are no options");
    if (plan_.expandable_segments)
      untold("memory.expandable_segments", "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  }

  const ModelSpec& model_;
  const ParallelPlan& plan_;
  MegatronCommand out_;
};

}  // namespace

MegatronCommand to_megatron(const model::ModelSpec& model, const plan::ParallelPlan& plan) {
  return Exporter(model, plan).run();
}

std::string megatron_script(const MegatronCommand& command, const plan::ParallelPlan& plan,
                            std::int64_t gpus_per_node, const std::string& name) {
  const std::int64_t per_node = std::max<std::int64_t>(1, std::min(plan.gpus, gpus_per_node));
  std::string text = "#!/bin/bash\n# " + name +
                     ", made by `trainsim export`. Options of data, learning rate and "
                     "checkpoints are yours to add.\n";
  for (const std::string& untold : command.untold) text += "# Not said: " + untold + "\n";
  text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  text += "torchrun --nproc-per-node " + std::to_string(per_node) + " --nnodes " +
          std::to_string(std::max<std::int64_t>(1, plan.gpus / per_node)) + " pretrain_gpt.py";
  for (const std::string& option : command.options) {
    const bool starts_line = option.starts_with("--");
    const bool plain = option.find_first_of("|*() ") == std::string::npos;
    text += starts_line ? " \\\n  " : " ";
    text += plain ? option : "'" + option + "'";
  }
  return text + "\n";
}

}  // namespace trainsim::exchange
