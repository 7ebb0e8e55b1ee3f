// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/expert_tape.hpp"

#include <string>
#include <utility>

#include "sim/lowering/fp8.hpp"

namespace trainsim::lowering {

namespace {

using program::MemoryCategory;

/// Bytes of the number of a row, by which tokens are put in order and back.
constexpr Bytes kIndexBytes = 8;

class ExpertTape {
 public:
  ExpertTape(Tape& tape, const ExpertShapes& shapes, Bytes residual, const ExpertRepeat& repeat, bool widened,
             const plan::ParallelPlan& plan)
      : tape_(tape), shapes_(shapes), residual_(residual), repeat_(repeat), widened_(widened), plan_(plan) {}

  TensorId build(TensorId input) {
    const TensorId routed = route(input);
    const TensorId arrived =
        gathered(exchanged(permuted(input, routed), "dispatched tokens", shapes_.arriving_bytes()));
    const TensorId done = sorted(worked_on(sorted(arrived, "sorted tokens")), "sorted results");
    return unpermuted(exchanged(scattered(done), "combined results", shapes_.sent_bytes()));
  }

 private:
  TensorId tokens(const std::string& name, Bytes bytes) {
    return tape_.tensor(name, bytes, MemoryCategory::kDispatchBuffers);
  }
  void add(Operation operation) {
    operation.repeat = repeat_.all;
    tape_.add(std::move(operation));
  }

  /// Scores in fp32; their softmax, by which the load is balanced, and who visits whom are kept.
  TensorId route(TensorId input) {
    const Bytes scores = shapes_.tokens * shapes_.experts;
    const TensorId logits = tape_.tensor("router scores", 4 * scores);
    add({"router", {input}, {}, {logits}, {input}, {}, {}, {}});
    const TensorId probabilities = tape_.tensor("routing probabilities", 4 * scores);
    const TensorId softmax = tape_.tensor("router softmax", 4 * scores);
    const TensorId map = tape_.tensor("routing map", scores);
    add({"routing", {logits}, {}, {probabilities, softmax, map}, {softmax, map}, {}, {}, {}});
    return probabilities;
  }

  TensorId permuted(TensorId input, TensorId probabilities) {
    const TensorId output = tokens("permuted tokens", shapes_.sent_bytes());
    order_ = tape_.tensor("order of the tokens", kIndexBytes * shapes_.copies);
    weights_ = tape_.tensor("permuted probabilities", 4 * shapes_.received);
    add({"permute", {input}, {}, {output, order_}, {order_}, {}, {}, {}});
    add({"permute probabilities", {probabilities}, {}, {weights_}, {}, {}, {}, {}});
    return output;
  }

  TensorId exchanged(TensorId input, const std::string& name, Bytes bytes) {
    if (shapes_.expert_parallel == 1) return input;
    const TensorId output = tokens(name, bytes);
    add({name, {input}, {}, {output}, {}, {}, {}, {}});
    return output;
  }

  TensorId gathered(TensorId input) {
    if (shapes_.expert_tensor == 1) return input;
    const TensorId output = tokens("gathered tokens", shapes_.received_bytes());
    add({"gather tokens", {input}, {}, {output}, {}, {}, {}, {}});
    return output;
  }

  TensorId scattered(TensorId input) {
    if (shapes_.expert_tensor == 1) return input;
    const TensorId output = tokens("scattered results", shapes_.arriving_bytes());
    add({"scatter results", {input}, {}, {output}, {}, {}, {}, {}});
    return output;
  }

  TensorId sorted(TensorId input, const std::string& name) {
    if (shapes_.local == 1) return input;
    const TensorId output = tokens(name, shapes_.received_bytes());
    add({name, {input}, {}, {output}, {}, {}, {}, {}});
    return output;
  }

  /// A multiply keeps its input of so many columns; in 8 bits, if it is not made again anyhow.
  void keep(Operation& operation, std::int64_t columns, Repeat of_input) {
    const Bytes copy = of_input == Repeat::kOutput ? 0 : kept_fp8_bytes(plan_, shapes_.received * columns);
    keep_input(tape_, operation, copy);
  }

  /// The activation multiplies with the probabilities, so that nothing behind it need be kept.
  TensorId worked_on(TensorId input) {
    const TensorId inner =
        tape_.tensor("experts in output", shapes_.received * shapes_.ffn_inputs * shapes_.element);
    Operation in{"experts in", {input}, {}, {inner}, {}, {}, {}, {}};
    keep(in, shapes_.hidden, Repeat::kNever);
    add(std::move(in));
    const Bytes width = shapes_.received * shapes_.ffn * shapes_.element;
    const TensorId activated = tape_.tensor("expert activation output", width);
    Operation activation{"expert activation", {inner, weights_}, {}, {activated}, {inner, weights_}, {}, {},
                         repeat_.activation};
    if (widened_) {
      activation.writes.push_back(tape_.tensor("activated expert gate", width));
      activation.keeps.push_back(activation.writes.back());
    }
    tape_.add(std::move(activation));
    const TensorId output = tokens("expert results", shapes_.received_bytes());
    Operation out{"experts out", {activated}, {}, {output}, {}, {}, {}, {}};
    keep(out, shapes_.ffn, repeat_.activation);
    add(std::move(out));
    return output;
  }

  TensorId unpermuted(TensorId input) {
    const TensorId output = tape_.tensor("routed output", residual_);
    add({"unpermute", {input}, {}, {output}, {order_}, {}, {}, {}});
    return output;
  }

  Tape& tape_;
  const ExpertShapes& shapes_;
  Bytes residual_;
  ExpertRepeat repeat_;
  bool widened_;
  const plan::ParallelPlan& plan_;
  TensorId order_ = kNoTensor;
  TensorId weights_ = kNoTensor;
};

}  // namespace

TensorId add_routed_experts(Tape& tape, TensorId input, const ExpertShapes& shapes, Bytes residual,
                            const ExpertRepeat& repeat, bool widened, const plan::ParallelPlan& plan) {
  return ExpertTape(tape, shapes, residual, repeat, widened, plan).build(input);
}

}  // namespace trainsim::lowering
