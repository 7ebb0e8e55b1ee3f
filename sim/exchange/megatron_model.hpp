// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/exchange/arguments.hpp"
#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

/// Copies the count that an option gives to a path, and returns it; nothing if the option is not there.
std::optional<std::int64_t> copy_count(Arguments& arguments, Translation& out, std::string_view option,
                                       const std::string& path);

/// Whether layers have experts; --num-experts 1 is a dense model.
bool has_experts(Arguments& arguments);

/// Whether a run is one of Megatron-DeepSpeed, whose experts have other options and defaults.
bool is_megatron_deepspeed(const Arguments& arguments);

/// Translates those options of Megatron-LM that are about the model, and the padding of its vocabulary.
void translate_megatron_model(Arguments& arguments, Translation& out);

}  // namespace trainsim::exchange
