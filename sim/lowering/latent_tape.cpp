// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/latent_tape.hpp"

#include <string>
#include <utility>
#include <vector>

#include "sim/lowering/fp8.hpp"

namespace trainsim::lowering {

namespace {

/// A linear layer, which keeps its input for the weight's gradient, or so many bytes of a copy in 8 bits.
TensorId add_linear(Tape& tape, const std::string& name, TensorId input, Bytes bytes, Bytes copy) {
  const TensorId output = tape.tensor(name + " output", bytes);
  Operation operation{name, {input}, {}, {output}, {}, {}, {}, {}};
  keep_input(tape, operation, copy);
  tape.add(std::move(operation));
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
  const auto copy = [&](const LinearShape& linear) {
    return kept_fp8_bytes(plan, shapes.tokens * linear.in);
  };
  TensorId queries_from = input;
  if (linears[0].out > 0) {
    const TensorId latent = add_linear(tape, "query latent", input, width(linears[0].out), copy(linears[0]));
    queries_from = normalised("query latent", latent, model.latent.query_rank);
  }
  const TensorId queries = add_linear(tape, "queries", queries_from, width(linears[1].out), copy(linears[1]));
  const TensorId latent =
      add_linear(tape, "key/value latent", input, width(linears[2].out), copy(linears[2]));
  const TensorId keys_from = normalised("key/value latent", latent, model.latent.key_value_rank);
  const TensorId keys_and_values =
      add_linear(tape, "keys and values", keys_from, width(linears[3].out), copy(linears[3]));
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
