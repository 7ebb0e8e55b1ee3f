// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/op_class.hpp"
#include "sim/base/units.hpp"
#include "sim/hardware/spec.hpp"
#include "sim/program/segment.hpp"

namespace trainsim::cost {

/// `batch` products of an m x k and a k x n matrix; all >= 1.
struct MatmulShape {
  std::int64_t batch = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  /// Whether both operands are in 8 bits.
  bool fp8 = false;
};

/// How a multiply treats its output.
struct MatmulOutput {
  /// Bytes of an output element.
  std::int64_t element_bytes = 2;
  /// Whether the product is added to what is there (gradient accumulation fused into the multiply).
  bool accumulate = false;
};

/// Fused attention of `batch` sequences, or of parts of them; `heads` and `key_value_heads` are those on this
/// rank.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t sequence = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;
  /// Width of a query or key head, and of a value head (they differ in latent attention).
  std::int64_t head_dim = 1;
  std::int64_t value_dim = 1;
  /// Generation of FlashAttention, 1 or 2; 0 = the best kernels that the GPU has.
  int generation = 0;
  /// Keys of each sequence; 0 = as many as queries.
  std::int64_t keys = 0;
  /// Whether a mask leaves the mean query half of the keys, and the last ones all; else every query sees all.
  bool causal = true;
  std::int64_t key_count() const { return keys > 0 ? keys : sequence; }
};

/// Operations of fused attention without the mask: forward two multiplies (scores, values), backward four;
/// the recomputation of the scores in backward is not counted.
Flops attention_flops(const AttentionShape& shape, bool backward);

/// Turns shapes into kernels with times on one GPU type. The constants are the GPU's own (topologies/gpus);
/// docs/modelling.md derives each formula.
class KernelModel {
 public:
  /// `peak` is the dense matrix peak of what is not in 8 bits, `element_bytes` the size of its elements, and
  /// `launch_interval` the host's time per kernel launch; with `blocking_launches` it waits for each to end.
  /// The time of every kernel is divided by the factor of its operation in `speedups`.
  KernelModel(const hardware::GpuSpec& gpu, FlopsPerSecond peak, std::int64_t element_bytes,
              Seconds launch_interval, bool blocking_launches = false, const OpSpeedups& speedups = {});

  /// Matrix multiply: output tiles in waves over the SMs with a prologue per tile, or memory traffic if
  /// longer.
  program::Kernel matmul(std::string name, const MatmulShape& shape, const MatmulOutput& output = {}) const;
  /// As many products as the shape's batch says, each by a kernel of its own, one after the other, as
  /// Transformer Engine multiplies with the weights of experts.
  program::Kernel matmul_group(std::string name, MatmulShape shape, const MatmulOutput& output = {}) const;
  /// Fused attention; the causal mask halves the executed operations. FLOPs are counted in full
  /// (docs/output.md).
  program::Kernel attention_forward(std::string name, const AttentionShape& shape) const;
  /// Its backward: five multiplies for two, the scores recomputed inside the kernel.
  program::Kernel attention_backward(std::string name, const AttentionShape& shape) const;
  /// A memory-bound kernel (or `launches` of them) that moves `bytes`.
  program::Kernel stream(std::string name, double bytes, int launches = 1,
                         program::KernelKind kind = program::KernelKind::kMemory) const;
  /// The same for a kernel that draws a random number per element.
  program::Kernel random_stream(std::string name, double bytes) const;
  /// The same for one that puts rows in another order.
  program::Kernel permutation(std::string name, double bytes) const;
  /// The same for one that writes what it reads in rows by columns.
  program::Kernel transposition(std::string name, double bytes) const;
  /// The same GPU while a collective runs beside: fewer multiprocessors for compute.
  KernelModel beside_communication() const;
  /// How much longer work of `seconds` takes when collectives run beside it for `communication` seconds: as
  /// long as they do, it has only the multiprocessors that they leave.
  double slowdown_beside(Seconds seconds, Seconds communication) const;
  /// A multiply of which the first `communication` seconds run beside a collective.
  program::Kernel matmul_beside(std::string name, const MatmulShape& shape, const MatmulOutput& output,
                                Seconds communication) const;
  /// Kernels run back to back, with the time that the host needs to launch them.
  program::Segment segment(std::string name, std::vector<program::Kernel> kernels) const;
  /// The host's time per kernel launch.
  Seconds launch_interval() const { return launch_interval_; }
  /// Whether the host waits for each kernel to end.
  bool blocking_launches() const { return blocking_launches_; }
  /// Bytes of an element of activations and parameters.
  double element_bytes() const { return static_cast<double>(element_bytes_); }

 private:
  Seconds compute_seconds(const MatmulShape& shape) const;
  /// Rate of large multiplies on the whole GPU, in 8 bits or not.
  FlopsPerSecond matmul_rate(bool fp8) const;
  double operand_bytes(const MatmulShape& shape) const { return shape.fp8 ? 1.0 : element_bytes(); }
  /// Whether rows of a batched multiply are not aligned for tensor cores.
  bool misaligned(const MatmulShape& shape) const;
  Seconds attention_seconds(const AttentionShape& shape, bool backward) const;
  program::Kernel attention(std::string name, const AttentionShape& shape, bool backward) const;
  /// The kernel at the speed that is assumed of its operation.
  program::Kernel sped_up(program::Kernel kernel) const;

  hardware::GpuSpec gpu_;
  FlopsPerSecond peak_;
  std::int64_t element_bytes_;
  Seconds launch_interval_;
  bool blocking_launches_;
  OpSpeedups speedups_;
  /// Of the GPU itself, by which its peak is divided; gpu_.multiprocessors are those free for compute.
  double total_multiprocessors_;
};

}  // namespace trainsim::cost
