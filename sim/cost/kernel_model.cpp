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
constexpr std::array<Tile, 3> kTiles = {{{1.0, 1.0, 1.0}, {1.0, 0.5, 0.95}, {0.5, 0.5, 0.60}}};

/// Extra time of a multiply that reads its output before it writes it; same fit.
constexpr double kAccumulateFactor = 1.05;

/// Share of the full s x s score matrix that a causal attention kernel computes.
constexpr double kCausalShare = 0.5;

double ceil_div(std::int64_t value, double tile) {
  const std::int64_t step = std::max<std::int64_t>(1, static_cast<std::int64_t>(tile));
  const std::int64_t whole = (value + step - 1) / step;
  return static_cast<double>(whole);
}

}  // namespace

KernelModel::KernelModel(const hardware::GpuSpec& gpu, FlopsPerSecond peak, std::int64_t element_bytes,
                         Seconds launch_interval)
    : gpu_(gpu),
      peak_(peak),
      element_bytes_(element_bytes),
      launch_interval_(launch_interval),
      total_multiprocessors_(static_cast<double>(gpu.multiprocessors)) {}

Seconds KernelModel::compute_seconds(const MatmulShape& shape) const {
  const double rate_per_sm = peak_ * gpu_.matmul_efficiency / total_multiprocessors_;
  Seconds best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double rows = tile.rows * static_cast<double>(gpu_.tile_m);
    const double columns = tile.columns * static_cast<double>(gpu_.tile_n);
    const double flops = 2.0 * rows * columns * (static_cast<double>(shape.k) + gpu_.matmul_half_k);
    // A tile may lie either way round, whichever wastes less of the matrix.
    const double tiles = std::min(ceil_div(shape.m, rows) * ceil_div(shape.n, columns),
                                  ceil_div(shape.m, columns) * ceil_div(shape.n, rows));
    const double waves =
        ceil_div(static_cast<std::int64_t>(tiles) * shape.batch, static_cast<double>(gpu_.multiprocessors));
    best = std::min(best, waves * flops / (rate_per_sm * tile.efficiency));
  }
  return best;
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
  kernel.bytes = batch * ((m * k + k * n) * element_bytes() + m * n * out_bytes);
  const Seconds compute = compute_seconds(shape) * (output.accumulate ? kAccumulateFactor : 1.0);
  const Seconds memory = kernel.bytes / (gpu_.memory_bandwidth * gpu_.memory_efficiency);
  kernel.seconds = std::max(compute, memory) + gpu_.kernel_overhead;
  return kernel;
}

program::Kernel KernelModel::attention(std::string name, const AttentionShape& shape, double multiplies,
                                       double tensors, double efficiency) const {
  const double tokens = static_cast<double>(shape.batch * shape.sequence);
  const double width = static_cast<double>(shape.heads * shape.head_dim);
  const double kv_width = static_cast<double>(shape.key_value_heads * shape.head_dim);
  program::Kernel kernel;
  kernel.name = std::move(name);
  kernel.kind = program::KernelKind::kAttention;
  kernel.flops = 2.0 * multiplies * tokens * static_cast<double>(shape.sequence) * width;
  kernel.bytes = tensors * tokens * (width + kv_width) * element_bytes();
  const Seconds compute = kCausalShare * kernel.flops / (peak_ * efficiency);
  const Seconds memory = kernel.bytes / (gpu_.memory_bandwidth * gpu_.memory_efficiency);
  kernel.seconds = std::max(compute, memory) + gpu_.kernel_overhead;
  return kernel;
}

program::Kernel KernelModel::attention_forward(std::string name, const AttentionShape& shape) const {
  return attention(std::move(name), shape, 2.0, 2.0, gpu_.attention_efficiency_forward);
}

program::Kernel KernelModel::attention_backward(std::string name, const AttentionShape& shape) const {
  // The kernel recomputes the scores, but by convention only its four gradient multiplies count as FLOPs; the
  // efficiency is measured with that count.
  return attention(std::move(name), shape, 4.0, 4.0, gpu_.attention_efficiency_backward);
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
  return kernel;
}

program::Kernel KernelModel::random_stream(std::string name, double bytes) const {
  program::Kernel kernel = stream(std::move(name), bytes);
  kernel.seconds = bytes / (gpu_.memory_bandwidth * gpu_.random_efficiency) + gpu_.kernel_overhead;
  return kernel;
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
  segment.kernels = std::move(kernels);
  return segment;
}

}  // namespace trainsim::cost
