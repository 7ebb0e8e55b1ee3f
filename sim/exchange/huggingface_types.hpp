// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace trainsim::exchange {

/// What a model type of transformers is like where its configuration says nothing.
struct ModelType {
  std::string_view name;
  /// Whether gated ("swiglu", "geglu") or plain ("gelu", "relu").
  std::string_view activation;
  std::string_view normalization;
  std::string_view position;
  /// Defaults of the configuration class.
  bool tied = false;
  bool bias = false;
  std::int64_t key_value_heads = 0;  // 0 = as many as query heads
  std::int64_t head_dim = 0;         // 0 = hidden size / heads
  double dropout = 0;
  /// What the type has and this version leaves out; may be empty.
  std::string_view left_out = {};
  /// Keys of the number of experts and of their width, where a type has experts; else empty.
  std::string_view experts = {};
  std::string_view expert_width = {};
};

/// What blocks with attention and MLP side by side are simulated as.
inline constexpr std::string_view kParallel =
    "attention and MLP run side by side from one norm; simulated one after the other, with two norms";
/// The model type of a name, or null.
const ModelType* find_model_type(const std::string& name);
/// All their names, "llama, mistral, …".
std::string model_type_names();
/// Why a model type can't be simulated ("has an encoder"); "" for others.
std::string foreign_model_type(const std::string& name);
/// Keys of a configuration that have been dealt with elsewhere, or that change neither time nor memory.
const std::set<std::string>& harmless_model_keys();

}  // namespace trainsim::exchange
