// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "sim/exchange/translation.hpp"

namespace trainsim::exchange {

/// Translates a model's config.json of Hugging Face transformers into a `model`. What the file leaves out has
/// the default of its model type's configuration class. Throws InputError, without the file's name, for text
/// that is no JSON and for architectures that are no dense decoder.
Translation translate_huggingface(const std::string& json);

}  // namespace trainsim::exchange
