// SPDX-License-Identifier: Apache-2.0
// Lifetimes of tensors on a tape, worked out by hand.
#include "sim/lowering/tape.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace trainsim::lowering {
namespace {

using program::MemoryCategory;

/// The highest sum of a trace that begins with `there`.
Bytes peak(const MemoryTrace& trace, Bytes there = 0) {
  Bytes now = there;
  Bytes highest = there;
  for (const MemoryChange& change : trace) {
    now += change.allocates ? change.bytes : -change.bytes;
    highest = std::max(highest, now);
  }
  return highest;
}

Bytes left(const MemoryTrace& trace) {
  Bytes now = 0;
  for (const MemoryChange& change : trace) now += change.allocates ? change.bytes : -change.bytes;
  return now;
}

/// Operations one after the other, each of which reads what the one before wrote.
Tape chain(const std::vector<Bytes>& outputs) {
  Tape tape;
  TensorId before = kNoTensor;
  for (const Bytes bytes : outputs) {
    const TensorId output = tape.tensor("output " + std::to_string(bytes), bytes);
    Operation operation{"operation", {}, {}, {output}, {}, {}, {}, {}};
    if (before != kNoTensor) operation.reads.push_back(before);
    tape.add(std::move(operation));
    before = output;
  }
  return tape;
}

/// Outputs of 128, 128, 256, 256, 128 and 128 MB, each alive until the next operation has ended: the peak is
/// the two of 256. With matmul + relu and dropout + layer norm fused, 128, 256, 128 and 128: 384 MB.
TEST(Tape, FreesAnOutputWhenItsReaderIsDone) {
  EXPECT_EQ(peak(chain({128, 128, 256, 256, 128, 128}).forward()), 512);
  EXPECT_EQ(peak(chain({128, 256, 128, 128}).forward()), 384);
  EXPECT_EQ(chain({128, 256, 128}).kept(), 0);
}

/// x (10) -> a (20) -> y (5): the first keeps x, the second a.
Tape two_steps(Repeat first = Repeat::kNever, Repeat second = Repeat::kNever) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId a = tape.tensor("a", 20);
  const TensorId y = tape.tensor("y", 5);
  tape.set_input(x);
  tape.set_output(y);
  tape.add({"first", {x}, {}, {a}, {x}, {}, {}, first});
  tape.add({"second", {a}, {}, {y}, {a}, {}, {}, second});
  return tape;
}

TEST(Tape, KeepsWhatBackwardNeedsAndHandsTheOutputOver) {
  const Tape tape = two_steps();
  EXPECT_EQ(tape.kept(), 30);
  EXPECT_EQ(peak(tape.forward()), 35);
  // Gradients: y 5, a 20 beside it, then x 10 beside that; a is freed after the second's backward.
  EXPECT_EQ(peak(tape.backward(), 30), 30 + 5 + 20);
  EXPECT_EQ(left(tape.backward()), -30);
}

TEST(Tape, KeepsItsInputOrNothingWithFullRecomputation) {
  const Tape tape = two_steps();
  EXPECT_EQ(left(tape.forward(Keep::kInput)), 10);
  EXPECT_EQ(left(tape.forward(Keep::kNothing)), 0);
  EXPECT_EQ(left(tape.again(true)), 20);
  EXPECT_EQ(left(tape.again(false)), 30);
}

/// x (10) -> a (20) -> b (40) -> y (5), of which a and y are saved: b is made from a, which then goes.
Tape three_steps(Checkpoint checkpoint) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId a = tape.tensor("a", 20);
  const TensorId b = tape.tensor("b", 40);
  const TensorId y = tape.tensor("y", 5);
  const TensorId z = tape.tensor("z", 1);
  const TensorId buffer = tape.tensor("buffer of the third step", 100);
  tape.set_input(x);
  tape.set_output(z);
  tape.add({"first", {x}, {}, {a}, {x}, {}, {}, {}});
  tape.add({"second", {a}, {}, {b}, {}, {}, {}, {}});
  tape.add({"third", {b}, {}, {y}, {b}, {buffer}, {}, {}});
  tape.add({"sum", {}, {y}, {z}, {}, {}, {}, {}});
  tape.save(a);
  tape.save(y);
  tape.set_checkpoint(checkpoint);
  return tape;
}

TEST(Tape, RunsAgainWhatIsBehindSavedOutputs) {
  // The third step is needed for b alone, and y for nothing: it stays until backward has ended.
  const Tape eager = three_steps(Checkpoint::kSelective);
  EXPECT_EQ(left(eager.forward(Keep::kInput)), 10 + 20 + 5);
  EXPECT_EQ(left(eager.again(true)), 40 - 20);
  EXPECT_EQ(peak(eager.again(true)), 40);
  EXPECT_EQ(left(eager.backward()), -10 - 40 - 5);
  const Tape compiled = three_steps(Checkpoint::kCompiled);
  EXPECT_EQ(left(compiled.forward(Keep::kInput)), 10 + 20);
  EXPECT_EQ(left(compiled.again(true)), 40 - 20);
  EXPECT_EQ(left(compiled.backward()), -10 - 40);
}

TEST(Tape, MakesADroppedOutputAgain) {
  const Tape tape = two_steps(Repeat::kOutput);
  EXPECT_EQ(tape.kept(), 10);
  const MemoryTrace backward = tape.backward();
  const auto again = std::find_if(backward.begin(), backward.end(), [](const MemoryChange& change) {
    return change.category == MemoryCategory::kRecomputation;
  });
  ASSERT_NE(again, backward.end());
  EXPECT_EQ(again->bytes, 20);
  EXPECT_EQ(left(backward), -10);
}

TEST(Tape, RunsAChainAgainFromWhatEntersIt) {
  const Tape tape = two_steps(Repeat::kChain, Repeat::kChain);
  EXPECT_EQ(tape.kept(), 10);
  // y's gradient, then a again beside x, then a's gradient.
  EXPECT_EQ(peak(tape.backward(), 10), 10 + 5 + 20 + 20);
  EXPECT_EQ(left(tape.backward()), -10);
}

/// y = f(x) + x: the gradient of y serves both terms; f's own joins it as a second term.
TEST(Tape, SharesTheGradientOfASum) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId f = tape.tensor("f", 10);
  const TensorId y = tape.tensor("y", 10);
  tape.set_input(x);
  tape.set_output(y);
  tape.add({"f", {x}, {}, {f}, {x}, {}, {}, {}});
  tape.add({"sum", {}, {f, x}, {y}, {}, {}, {}, {}});
  EXPECT_EQ(peak(tape.backward(), 10), 10 + 10 + 10);
  EXPECT_EQ(left(tape.backward()), -10);
}

TEST(Tape, CountsBuffersWhileAnOperationRuns) {
  Tape tape;
  const TensorId x = tape.tensor("x", 1);
  const TensorId y = tape.tensor("y", 1);
  const TensorId forward = tape.tensor("forward buffer", 100);
  const TensorId backward = tape.tensor("backward buffer", 1000);
  tape.set_input(x);
  tape.set_output(y);
  tape.add({"operation", {x}, {}, {y}, {x}, {forward}, {backward}, {}});
  EXPECT_EQ(peak(tape.forward()), 102);
  EXPECT_EQ(peak(tape.backward(), 1), 1003);
}

/// x (10) -> a (20) -> y (5), the second step with a weight: for its gradient a and the gradient of y stay.
TEST(Tape, KeepsWhatWeightGradientsNeedUntilTheyAreMade) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId a = tape.tensor("a", 20);
  const TensorId y = tape.tensor("y", 5);
  tape.set_input(x);
  tape.set_output(y);
  tape.add({"first", {x}, {}, {a}, {x}, {}, {}, {}});
  Operation second{"second", {a}, {}, {y}, {a}, {}, {}, {}};
  second.has_weight = true;
  second.weight_buffers = {tape.tensor("buffer", 7)};
  tape.add(std::move(second));
  const auto [inputs, weights] = tape.split_backward();
  EXPECT_EQ(left(tape.forward()), 30);
  // Gradients of y, a and x; then all but a and the gradient of y go.
  EXPECT_EQ(peak(inputs, 30), 30 + 5 + 20 + 10);
  EXPECT_EQ(left(inputs), 25 - 30);
  EXPECT_EQ(peak(weights, 25), 25 + 7);
  EXPECT_EQ(left(weights), -25);
  // In one go the buffer is there beside the gradients of y and a.
  EXPECT_EQ(peak(tape.backward(), 30), 30 + 7 + 5 + 20);
}

/// What is gathered stays in place of the gradient that it is gathered from.
TEST(Tape, KeepsAGatheredGradientForWeights) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId y = tape.tensor("y", 4);
  tape.set_output(y);
  Operation step{"step", {}, {}, {y}, {x}, {}, {}, {}};
  tape.add({"first", {}, {}, {x}, {}, {}, {}, {}});
  step.reads = {x};
  step.has_weight = true;
  step.gathered_gradient = {tape.tensor("whole", 8)};
  tape.add(std::move(step));
  const auto [inputs, weights] = tape.split_backward();
  EXPECT_EQ(left(inputs), 8);
  EXPECT_EQ(left(weights), -8 - 10);
}

/// y = x + second(x): the sum of both terms of x's gradient would overwrite the gradient of y, which is that
/// of second's output, too.
TEST(Tape, DoesNotOverwriteAGradientThatWeightsNeed) {
  Tape tape;
  const TensorId x = tape.tensor("x", 10);
  const TensorId branch = tape.tensor("branch", 10);
  const TensorId y = tape.tensor("y", 10);
  tape.set_input(x);
  tape.set_output(y);
  Operation second{"second", {x}, {}, {branch}, {x}, {}, {}, {}};
  second.has_weight = true;
  tape.add(std::move(second));
  tape.add({"sum", {}, {branch, x}, {y}, {}, {}, {}, {}});
  // x, the gradient of y, the second term, and the sum.
  EXPECT_EQ(peak(tape.split_backward()[0], 10), 40);
  EXPECT_EQ(left(tape.split_backward()[0]), 10);
  EXPECT_EQ(peak(tape.backward(), 10), 30);
}

TEST(Tape, NamesTensorsAndTheirGradients) {
  const Tape tape = two_steps();
  std::vector<std::string> names;
  for (const MemoryChange& change : tape.backward()) {
    if (change.allocates) names.push_back(tape.text(change.name));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"gradient of y", "gradient of a", "gradient of x"}));
}

}  // namespace
}  // namespace trainsim::lowering
