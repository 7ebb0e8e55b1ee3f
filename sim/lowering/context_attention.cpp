// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/context_attention.hpp"

#include <cstdint>

namespace trainsim::lowering {

namespace {

using plan::ContextCommunication;
using program::Cause;
using program::CollectiveOp;
using program::GroupKind;
using program::MemoryCategory;

void add_ring(Pass& pass, const KernelBook& book, Cause cause) {
  const std::int64_t ranks = book.shapes().context_parallel;
  const auto bytes = static_cast<double>(book.shapes().key_value_bytes());
  const Seconds shift = book.shift_time(bytes);
  for (std::int64_t step = 0; step < ranks; ++step) {
    const bool sends = step + 1 < ranks;
    if (sends) add_start(pass, CollectiveOp::kRingShift, bytes, GroupKind::kContext);
    add_compute(pass, step == 0 ? "attention, own part" : "attention, part of another rank", cause,
                book.ring_attention(step == 0, false, sends ? shift : 0));
    if (sends) add_join(pass, GroupKind::kContext);
  }
  add_compute(pass, "attention, parts put together", cause, book.ring_outputs());
}

/// The rank's own part comes last. Keys and values travel until the step before, their gradients from the
/// second step on.
void add_ring_backward(Pass& pass, const KernelBook& book) {
  const std::int64_t ranks = book.shapes().context_parallel;
  const auto half = static_cast<double>(book.shapes().key_value_bytes());
  for (std::int64_t step = 0; step < ranks; ++step) {
    const bool own = step + 1 == ranks;
    const double bytes = (own ? 0.0 : half) + (step > 0 ? half : 0.0);
    add_start(pass, CollectiveOp::kRingShift, bytes, GroupKind::kContext);
    add_compute(pass, own ? "attention backward, own part" : "attention backward, part of another rank",
                Cause::kBackward, book.ring_attention(own, true, book.shift_time(bytes)));
    add_join(pass, GroupKind::kContext);
    add_compute(pass, "attention gradients added", Cause::kBackward, book.ring_gradients(own));
  }
}

double gathered_bytes(const Shapes& shapes) {
  return static_cast<double>(shapes.key_value_bytes() * shapes.context_parallel);
}

void add_gathered(Pass& pass, const KernelBook& book, Cause cause) {
  add_collective(pass, CollectiveOp::kAllGather, gathered_bytes(book.shapes()), GroupKind::kContext);
  add_compute(pass, "attention", cause, book.gathered_attention());
}

void add_gathered_backward(Pass& pass, const KernelBook& book) {
  const double bytes = gathered_bytes(book.shapes());
  add_collective(pass, CollectiveOp::kAllGather, bytes, GroupKind::kContext);
  add_compute(pass, "attention backward", Cause::kBackward, book.gathered_attention_backward());
  add_collective(pass, CollectiveOp::kReduceScatter, bytes, GroupKind::kContext);
}

/// Exchanges tensors of `width` columns between tokens and heads.
void add_exchange(Pass& pass, const KernelBook& book, std::int64_t width, Cause cause) {
  const auto bytes = static_cast<double>(book.shapes().tokens * width * book.shapes().element);
  add_compute(pass, "layout for the exchange", cause, book.exchange_layout(width));
  add_collective(pass, CollectiveOp::kAllToAll, bytes, GroupKind::kContext);
  add_compute(pass, "layout after the exchange", cause, book.exchange_layout(width));
}

std::int64_t input_width(const Shapes& shapes) {
  return shapes.query_width + 2 * shapes.taken_key_width;
}

void add_exchanged(Pass& pass, const KernelBook& book, Cause cause) {
  add_exchange(pass, book, input_width(book.shapes()), cause);
  add_compute(pass, "attention", cause, book.exchanged_attention(false));
  add_exchange(pass, book, book.shapes().query_width, cause);
}

void add_exchanged_backward(Pass& pass, const KernelBook& book) {
  add_exchange(pass, book, book.shapes().query_width, Cause::kBackward);
  add_compute(pass, "attention backward", Cause::kBackward, book.exchanged_attention(true));
  add_exchange(pass, book, input_width(book.shapes()), Cause::kBackward);
}

}  // namespace

void add_context_attention(Pass& pass, const KernelBook& book, ContextCommunication communication,
                           Cause cause) {
  switch (communication) {
    case ContextCommunication::kP2p:
      return add_ring(pass, book, cause);
    case ContextCommunication::kAllGather:
      return add_gathered(pass, book, cause);
    case ContextCommunication::kAllToAll:
      return add_exchanged(pass, book, cause);
  }
}

void add_context_attention_backward(Pass& pass, const KernelBook& book, ContextCommunication communication) {
  switch (communication) {
    case ContextCommunication::kP2p:
      return add_ring_backward(pass, book);
    case ContextCommunication::kAllGather:
      return add_gathered_backward(pass, book);
    case ContextCommunication::kAllToAll:
      return add_exchanged_backward(pass, book);
  }
}

void add_context_buffers(Tape& tape, const Shapes& shapes, ContextCommunication communication,
                         std::vector<TensorId>& forward, std::vector<TensorId>& backward) {
  if (shapes.context_parallel < 2) return;
  const std::int64_t ranks = shapes.context_parallel;
  const Bytes pair = shapes.key_value_bytes();
  const Bytes queries = shapes.query_bytes();
  const auto buffer = [&tape](const char* name, Bytes bytes) {
    return tape.tensor(name, bytes, MemoryCategory::kCommunicationBuffers);
  };
  switch (communication) {
    case ContextCommunication::kP2p:
      // Every step receives into a tensor of its own, and its output waits for the last one.
      forward.push_back(buffer("keys and values on the ring", ranks * pair));
      forward.push_back(tape.tensor("attention outputs of the parts", ranks * queries));
      // Two buffers, each of keys and values and of their gradients; the last of these are handed on.
      backward.push_back(buffer("keys, values and their gradients on the ring", 3 * pair));
      backward.push_back(tape.tensor("gradients of a part", pair + queries));
      return;
    case ContextCommunication::kAllGather:
      // Keys are put in order while both are there as they came.
      forward.push_back(buffer("gathered keys and values", ranks * pair));
      forward.push_back(buffer("gathered keys in order", ranks * pair / 2));
      forward.push_back(tape.tensor("attention outputs of the chunks", queries));
      backward.push_back(buffer("gathered keys and values again", ranks * pair));
      backward.push_back(buffer("gradients of gathered keys and values", ranks * pair));
      backward.push_back(tape.tensor("gradients of a chunk", ranks * pair + queries / 2));
      return;
    case ContextCommunication::kAllToAll:
      forward.push_back(buffer("exchanged queries, keys and values", queries + pair));
      forward.push_back(buffer("exchanged attention output", queries));
      backward.push_back(buffer("exchanged gradient of the output", queries));
      backward.push_back(buffer("exchanged gradients", queries + pair));
      return;
  }
}

}  // namespace trainsim::lowering
