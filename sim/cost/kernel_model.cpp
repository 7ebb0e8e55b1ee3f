// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernel_model.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace trainsim::cost {

namespace {

/// Output tiles that matrix-multiply libraries choose from, as fractions of the GPU's largest tile, and the
/// rate of each relative to it. Fitted on the 183 A100-PCIe shapes of
/// experiments/validation/gemm_efficiency.csv.
struct Tile {
  double rows;
  double columns;
  double efficiency;
};
constexpr std::array<Tile, 3> kTiles = {{{1.0, 1.0, 1.0}, {1.0, 0.5, 0.95}, {0.5, 0.25, 0.75}}};

/// Extra time of a multiply that adds to an fp32 output; same fit.
constexpr double kAccumulateFactor = 1.05;

/// Bytes to which the rows of a matrix must be aligned for tensor cores (cuBLAS).
constexpr std::int64_t kAlignment = 16;
/// Share of the fp32 peak at which batched multiplies run without tensor cores. From what changing the width
/// of a head from 216 or 144 to 108 cost BLOOM's trials (docs/modelling.md, "Matrix multiplies").
constexpr double kMisalignedEfficiency = 0.53;

/// Queries of a tile of fused attention. A causal tile computes whole diagonal blocks of this size.
constexpr double kQueryTile = 128.0;

/// What differs between the forward and the backward kernel of fused attention. Fitted on the measured
/// kernels of experiments/validation/attention_efficiency.csv.
struct AttentionPass {
  /// Multiplies executed: backward computes the scores again.
  double multiplies;
  /// Efficiency with heads wider than 128, relative to narrower ones.
  double wide_heads;
  /// A kernel takes at least this many times its longest tile, and the second this many times beyond its
  /// work.
  double shortest;
  double tail;
};
constexpr AttentionPass kAttentionForward = {2.0, 1.0, 1.5, 0.6};
constexpr AttentionPass kAttentionBackward = {5.0, 0.78, 0.8, 0.2};

/// How efficiency falls with heads narrower than 128: the same loads for fewer operations. Ours.
double narrow_heads(double width) {
  return std::min(1.0, width / (width + 32.0) * 160.0 / 128.0);
}

double ceil_div(std::int64_t value, double tile) {
  const std::int64_t step = std::max<std::int64_t>(1, static_cast<std::int64_t>(tile));
  const std::int64_t whole = (value + step - 1) / step;
  return static_cast<double>(whole);
}

}  // namespace

KernelModel::KernelModel(const hardware::GpuSpec& gpu, FlopsPerSecond peak, std::int64_t element_bytes,
                         Seconds launch_interval, bool blocking_launches, const OpSpeedups& speedups)
    : gpu_(gpu),
      peak_(peak * gpu.clock_share()),
      element_bytes_(element_bytes),
      launch_interval_(launch_interval),
      blocking_launches_(blocking_launches),
      speedups_(speedups),
      total_multiprocessors_(static_cast<double>(gpu.multiprocessors)) {}

FlopsPerSecond KernelModel::matmul_rate(bool fp8) const {
  if (!fp8) return peak_ * gpu_.matmul_efficiency;
  const double efficiency =
      gpu_.fp8_matmul_efficiency > 0 ? gpu_.fp8_matmul_efficiency : gpu_.matmul_efficiency;
  return gpu_.peak_fp8 * gpu_.clock_share() * efficiency;
}

Seconds KernelModel::compute_seconds(const MatmulShape& shape) const {
  const double rate_per_sm = matmul_rate(shape.fp8) / total_multiprocessors_;
  // Prologue and epilogue take as long in 8 bits, in which more is done meanwhile.
  const double half_k = gpu_.matmul_half_k * matmul_rate(shape.fp8) / matmul_rate(false);
  Seconds best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double rows = tile.rows * static_cast<double>(gpu_.tile_m);
    const double columns = tile.columns * static_cast<double>(gpu_.tile_n);
    const double flops = 2.0 * rows * columns * (static_cast<double>(shape.k) + half_k);
    // A tile may lie either way round, whichever wastes less of the matrix.
    const double tiles = std::min(ceil_div(shape.m, rows) * ceil_div(shape.n, columns),
                                  ceil_div(shape.m, columns) * ceil_div(shape.n, rows));
    const double waves =
        ceil_div(static_cast<std::int64_t>(tiles) * shape.batch, static_cast<double>(gpu_.multiprocessors));
    best = std::min(best, waves * flops / (rate_per_sm * tile.efficiency));
  }
  return best;
}

bool KernelModel::misaligned(const MatmulShape& shape) const {
  if (shape.batch == 1 || shape.fp8 || element_bytes_ != 2 || gpu_.peak_fp32 <= 0) return false;
  return shape.n * element_bytes_ % kAlignment != 0 || shape.k * element_bytes_ % kAlignment != 0;
}

program::Kernel KernelModel::matmul(std::string name, const MatmulShape& shape,
                                    const MatmulOutput& output) const {
  const double batch = static_cast<double>(shape.batch);
  const double m = static_cast<double>(shape.m);
  const double n = static_cast<double>(shape.n);
  const double k = static_cast<double>(shape.k);
  const double out_bytes = static_cast<double>(output.element_bytes) * (output.accumulate ? 2.0 : 1.0);
  program::Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = program::KernelKind::kMatmul;
  kernel.flops = 2.0 * batch * m * n * k;
  kernel.bytes = batch * ((m * k + k * n) * operand_bytes(shape) + m * n * out_bytes);
  const bool adds_fp32 = output.accumulate && output.element_bytes == 4;
  const Seconds compute = misaligned(shape)
                              ? kernel.flops / (kMisalignedEfficiency * gpu_.peak_fp32 * gpu_.clock_share())
                              : compute_seconds(shape) * (adds_fp32 ? kAccumulateFactor : 1.0);
  const Seconds memory = kernel.bytes / (gpu_.memory_bandwidth * gpu_.memory_efficiency);
  kernel.seconds = std::max(compute, memory) + gpu_.kernel_overhead;
  return sped_up(std::move(kernel));
}

program::Kernel KernelModel::matmul_group(std::string name, MatmulShape shape,
                                          const MatmulOutput& output) const {
  const auto count = static_cast<double>(shape.batch);
  shape.batch = 1;
  program::Kernel kernel = matmul(std::move(name), shape, output);
  // They don't wait for each other, which is what the overhead stands for.
  const Seconds each = std::max(kernel.seconds - gpu_.kernel_overhead, gpu_.group_launch_interval);
  kernel.seconds = count * each + gpu_.kernel_overhead;
  kernel.flops *= count;
  kernel.bytes *= count;
  return kernel;
}

Flops attention_flops(const AttentionShape& shape, bool backward) {
  const double scores = static_cast<double>(shape.batch * shape.heads * shape.sequence) *
                        static_cast<double>(shape.key_count());
  return (backward ? 4.0 : 2.0) * scores * static_cast<double>(shape.head_dim + shape.value_dim);
}

program::Kernel KernelModel::attention(std::string name, const AttentionShape& shape, bool backward) const {
  const double vectors = static_cast<double>(
      shape.batch * (shape.sequence * shape.heads + shape.key_count() * shape.key_value_heads));
  const double width = static_cast<double>(shape.head_dim + shape.value_dim);
  program::Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = program::KernelKind::kAttention;
  kernel.flops = attention_flops(shape, backward);
  // Forward moves queries, keys, values and the output; backward their gradients as well.
  kernel.bytes = (backward ? 2.0 : 1.0) * vectors * width * element_bytes();
  const Seconds memory = kernel.bytes / (gpu_.memory_bandwidth * gpu_.memory_efficiency);
  kernel.seconds =
      std::max(attention_seconds(shape, backward), memory) + gpu_.kernel_overhead + gpu_.attention_overhead;
  return sped_up(std::move(kernel));
}

/// Tiles of queries, one per multiprocessor at a time; with a causal mask the last tile of a head is the
/// longest and the mean one half as long, else all are as long.
Seconds KernelModel::attention_seconds(const AttentionShape& shape, bool backward) const {
  const AttentionPass& pass = backward ? kAttentionBackward : kAttentionForward;
  const double width = static_cast<double>(shape.head_dim + shape.value_dim) / 2.0;
  double efficiency = backward ? gpu_.attention_efficiency_backward : gpu_.attention_efficiency_forward;
  efficiency *= narrow_heads(width);
  if (shape.generation == 1) efficiency *= gpu_.flash_1_efficiency;
  if (shape.generation == 2) efficiency *= gpu_.flash_2_efficiency;
  if (std::max(shape.head_dim, shape.value_dim) > 128) efficiency *= pass.wide_heads;
  const double rate = peak_ * efficiency;
  const double sequence = static_cast<double>(shape.sequence);
  const double keys = static_cast<double>(shape.key_count()) + (shape.causal ? kQueryTile : 0.0);
  const double row = pass.multiplies * 2.0 * keys * width;
  const double rows = static_cast<double>(shape.batch * shape.heads) * sequence;
  const Seconds work = rows * row / (shape.causal ? 2.0 : 1.0) / rate;
  const Seconds longest = kQueryTile * row / (rate / total_multiprocessors_);
  return std::max(pass.shortest * longest, work + pass.tail * longest);
}

program::Kernel KernelModel::attention_forward(std::string name, const AttentionShape& shape) const {
  return attention(std::move(name), shape, false);
}

program::Kernel KernelModel::attention_backward(std::string name, const AttentionShape& shape) const {
  return attention(std::move(name), shape, true);
}

program::Kernel KernelModel::stream(std::string name, double bytes, int launches,
                                    program::KernelKind kind) const {
  program::Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = kind;
  kernel.bytes = bytes;
  kernel.launches = launches;
  kernel.seconds = bytes / (gpu_.memory_bandwidth * gpu_.memory_efficiency) +
                   static_cast<double>(launches) * gpu_.kernel_overhead;
  return sped_up(std::move(kernel));
}

program::Kernel KernelModel::random_stream(std::string name, double bytes) const {
  program::Kernel kernel = stream(std::move(name), bytes);
  kernel.seconds = bytes / (gpu_.memory_bandwidth * gpu_.random_efficiency) + gpu_.kernel_overhead;
  return sped_up(std::move(kernel));
}

program::Kernel KernelModel::permutation(std::string name, double bytes) const {
  program::Kernel kernel = stream(std::move(name), bytes);
  const double efficiency = gpu_.permute_efficiency > 0 ? gpu_.permute_efficiency : gpu_.memory_efficiency;
  kernel.seconds = bytes / (gpu_.memory_bandwidth * efficiency) + gpu_.kernel_overhead;
  return sped_up(std::move(kernel));
}

program::Kernel KernelModel::transposition(std::string name, double bytes) const {
  // torch.compile's kernels that also transpose what they cast stay at 1.4 TB/s on an H100 on which others
  // reach 2.2 (github.com/pytorch/pytorch/issues/133242, measured by torchao's authors).
  constexpr double share = 1.4 / 2.2;
  program::Kernel kernel = stream(std::move(name), bytes / share);
  kernel.bytes = bytes;
  return kernel;
}

program::Kernel KernelModel::sped_up(program::Kernel kernel) const {
  if (const auto op = program::op_class(kernel.kind, kernel.name)) kernel.seconds /= speedups_.of(*op);
  return kernel;
}

double KernelModel::slowdown_beside(Seconds seconds, Seconds communication) const {
  const double taken =
      static_cast<double>(gpu_.communication_multiprocessors) / static_cast<double>(gpu_.multiprocessors);
  const double left = std::max(1.0 - taken, 1.0 / static_cast<double>(gpu_.multiprocessors));
  const Seconds beside = std::min(communication, seconds / left);
  return (seconds + beside * (1.0 - left)) / seconds;
}

program::Kernel KernelModel::matmul_beside(std::string name, const MatmulShape& shape,
                                           const MatmulOutput& output, Seconds communication) const {
  program::Kernel alone = matmul(name, shape, output);
  if (communication <= 0) return alone;
  program::Kernel contended = beside_communication().matmul(std::move(name), shape, output);
  if (contended.seconds <= communication) return contended;
  const double left = 1.0 - communication / contended.seconds;
  alone.seconds = communication + left * alone.seconds;
  return alone;
}

KernelModel KernelModel::beside_communication() const {
  KernelModel model = *this;
  model.gpu_.multiprocessors =
      std::max<std::int64_t>(1, gpu_.multiprocessors - gpu_.communication_multiprocessors);
  return model;
}

program::Segment KernelModel::segment(std::string name, std::vector<program::Kernel> kernels) const {
  program::Segment segment;
  segment.name = std::move(name);
  Seconds gpu_seconds = 0;
  int launches = 0;
  for (const program::Kernel& kernel : kernels) {
    gpu_seconds += kernel.seconds;
    launches += kernel.launches;
    segment.flops += kernel.flops;
  }
  segment.launch_seconds = static_cast<double>(launches) * launch_interval_;
  segment.seconds = gpu_seconds;
  segment.blocking = blocking_launches_;
  segment.kernels = std::move(kernels);
  return segment;
}

}  // namespace trainsim::cost
