// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

/// Translates a DeepSpeed configuration into a `plan`. What the file leaves out has DeepSpeed's default
/// (deepspeed/runtime/config.py and zero/config.py). "auto" values are filled in by the trainer and stay
/// open. `gpus` are those of the job, if known. Throws InputError, without the file's name, for text that is
/// no JSON and values of the wrong kind.
Translation translate_deepspeed(const std::string& json, std::optional<std::int64_t> gpus);

/// Whether an object of JSON looks like a DeepSpeed configuration.
bool is_deepspeed(const std::string& json);

}  // namespace trainsim::exchange
