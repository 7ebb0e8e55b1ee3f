// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/latent_tape.hpp"

#include <string>
#include <vector>

namespace trainsim::lowering {

namespace {

/// A linear layer, which keeps its input for the weight's gradient.
TensorId add_linear(Tape& tape, const std::string& name, TensorId input, Bytes bytes) {
  const TensorId output = tape.tensor(name + " output", bytes);
  tape.add({name, {input}, {}, {output}, {input}, {}, {}, {}});
  return output;
}

}  // namespace

LatentHeads add_latent_heads(Tape& tape, TensorId input, const model::ModelSpec& model,
                             const plan::ParallelPlan& plan) {
  const Shapes shapes(model, plan);
  const std::vector<LinearShape> linears = latent_linears(model, plan);
  const auto width = [&shapes](std::int64_t columns) { return shapes.tokens * columns * shapes.element; };
  const auto normalised = [&](const std::string& name, TensorId latent, std::int64_t rank) {
    const TensorId output = tape.tensor(name + " normalised", width(rank));
    tape.add({"norm of the " + name, {latent}, {}, {output}, {latent}, {}, {}, {}});
    return output;
  };
  TensorId queries_from = input;
  if (linears[0].out > 0) {
    const TensorId latent = add_linear(tape, "query latent", input, width(linears[0].out));
    queries_from = normalised("query latent", latent, model.latent.query_rank);
  }
  const TensorId queries = add_linear(tape, "queries", queries_from, width(linears[1].out));
  const TensorId latent = add_linear(tape, "key/value latent", input, width(linears[2].out));
  const TensorId keys_from = normalised("key/value latent", latent, model.latent.key_value_rank);
  const TensorId keys_and_values = add_linear(tape, "keys and values", keys_from, width(linears[3].out));
  LatentHeads heads;
  heads.queries_and_keys = tape.tensor("queries and keys", width(2 * shapes.query_width));
  heads.values = tape.tensor("values", width(shapes.output_width));
  tape.add({"rotary and heads",
            {queries, keys_and_values},
            {},
            {heads.queries_and_keys, heads.values},
            {},
            {},
            {},
            {}});
  return heads;
}

}  // namespace trainsim::lowering
