// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

/// Translates a torchtitan job configuration (TOML) into a model and a plan. Key names of all releases up to
/// 0.2 are understood; what the file leaves out has the default of release 0.2
/// (torchtitan/config/job_config.py). `gpus` are those of the job, if known. Throws InputError, without the
/// file's name, for text that is no TOML, values of the wrong kind, and models that are no dense decoder.
Translation translate_torchtitan(const std::string& text, std::optional<std::int64_t> gpus);

}  // namespace trainsim::exchange
