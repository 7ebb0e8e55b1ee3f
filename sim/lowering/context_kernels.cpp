// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "sim/lowering/kernels.hpp"

namespace trainsim::lowering {

Seconds KernelBook::shift_time(double bytes) const {
  return context_ring_.time(program::CollectiveOp::kRingShift, shapes_.context_parallel, bytes);
}

/// Of another rank's keys a rank's queries see the half that the mask leaves: all queries one of its two
/// chunks, or, on ranks before it, half of the queries both.
Kernels KernelBook::ring_attention(bool own, bool backward, Seconds communication) const {
  cost::AttentionShape shape = attention_shape();
  // Operations are counted without the mask, of which every part has its share.
  const Flops counted = cost::attention_flops(shape, backward);
  Kernels kernels;
  if (!own) {
    shape.keys = std::max<std::int64_t>(1, shapes_.sequence / 2);
    shape.causal = false;
    // The chunk is made contiguous: half of the keys and of the values.
    kernels.push_back(pass("attention chunk of keys and values",
                           static_cast<double>(shapes_.tokens * shapes_.taken_key_width), 4.0));
  }
  kernels.push_back(backward ? kernels_.attention_backward("attention backward", shape)
                             : kernels_.attention_forward("attention", shape));
  program::Kernel& attention = kernels.back();
  attention.flops = counted;
  attention.seconds *= kernels_.slowdown_beside(attention.seconds, communication);
  return kernels;
}

/// The first part is scaled (2+2), the others are scaled and added (2+2+2).
Kernels KernelBook::ring_outputs() const {
  const auto parts = static_cast<double>(shapes_.context_parallel);
  return {pass("attention output correction", static_cast<double>(shapes_.tokens * shapes_.query_width),
               6.0 * parts - 2.0, static_cast<int>(shapes_.context_parallel))};
}

Kernels KernelBook::ring_gradients(bool own) const {
  const auto queries = static_cast<double>(shapes_.tokens * shapes_.query_width);
  const auto keys = static_cast<double>(shapes_.tokens * shapes_.taken_key_width);
  return {pass("attention query gradient add", queries, 6.0),
          pass("attention key and value gradient add", own ? 2.0 * keys : keys, 6.0)};
}

Kernels KernelBook::gathered_attention() const {
  cost::AttentionShape shape = attention_shape();
  shape.keys = model_.sequence_length;
  const auto queries = static_cast<double>(shapes_.tokens * shapes_.query_width);
  const auto keys = static_cast<double>(shapes_.tokens * shapes_.context_parallel * shapes_.taken_key_width);
  return {pass("attention keys and values in order", 2.0 * keys, 4.0, 2),
          kernels_.attention_forward("attention", shape),
          pass("attention output of chunks", queries, 4.0, 2)};
}

Kernels KernelBook::gathered_attention_backward() const {
  cost::AttentionShape shape = attention_shape();
  shape.keys = model_.sequence_length;
  const auto keys = static_cast<double>(shapes_.tokens * shapes_.context_parallel * shapes_.taken_key_width);
  // The gradients of both chunks' keys are added up (2+2+2) and put in order (2+2).
  return {pass("attention keys and values in order", 2.0 * keys, 4.0, 2),
          kernels_.attention_backward("attention backward", shape),
          pass("attention key and value gradient add", 2.0 * keys, 10.0, 4)};
}

Kernels KernelBook::exchanged_attention(bool backward) const {
  cost::AttentionShape shape = attention_shape();
  shape.sequence = model_.sequence_length;
  shape.heads = std::max<std::int64_t>(1, shapes_.heads / shapes_.context_parallel);
  const std::int64_t taken = shapes_.taken_key_width / shapes_.head_dim;
  shape.key_value_heads = std::max<std::int64_t>(1, taken / shapes_.context_parallel);
  return {backward ? kernels_.attention_backward("attention backward", shape)
                   : kernels_.attention_forward("attention", shape)};
}

Kernels KernelBook::exchange_layout(std::int64_t width) const {
  return {pass("attention layout of the exchange", static_cast<double>(shapes_.tokens * width), 4.0)};
}

}  // namespace trainsim::lowering
