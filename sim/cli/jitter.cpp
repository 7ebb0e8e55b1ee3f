// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/jitter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/base/quantile.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"

namespace trainsim::cli {

namespace {

/// A factor >= 1: exp(|x|) with x normal (Box and Muller 1958), which is the same on every platform.
double slower(std::mt19937_64& random, double deviation) {
  const auto uniform = [&random] { return (static_cast<double>(random() >> 11U) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  const double normal = radius * std::cos(2.0 * std::numbers::pi * uniform());
  return std::exp(std::abs(deviation * normal));
}

Seconds step_time(config::Experiment experiment, std::uint64_t step) {
  experiment.cluster = jittered(experiment, step);
  return run_job(experiment, build_job(experiment, true), {}).step_time;
}

std::string exact_text(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

}  // namespace

hardware::ClusterSpec jittered(const config::Experiment& experiment, std::uint64_t step) {
  hardware::ClusterSpec cluster = experiment.cluster;
  const plan::ParallelPlan& plan = experiment.plan;
  std::seed_seq seed{experiment.jitter.seed, step};
  std::mt19937_64 random(seed);
  for (std::int64_t gpu = 0; gpu < plan.gpus && experiment.jitter.compute > 0; ++gpu)
    cluster.slow_gpus.push_back({gpu, slower(random, experiment.jitter.compute)});
  if (plan.gpus <= cluster.gpus_per_node || experiment.jitter.network <= 0) return cluster;
  for (std::int64_t node = 0; node * cluster.gpus_per_node < plan.gpus; ++node) {
    const std::int64_t place =
        plan::gpu_of(plan, node * cluster.gpus_per_node, cluster.gpus_per_node) / cluster.gpus_per_node;
    for (std::int64_t nic = 0; nic < cluster.nics_per_node; ++nic) {
      cluster.faults.push_back({hardware::FaultPlace::kNic, place * cluster.nics_per_node + nic,
                                1.0 / slower(random, experiment.jitter.network)});
    }
  }
  return cluster;
}

report::JitterResult simulate_steps(const config::Experiment& experiment, std::size_t workers,
                                    const std::function<void(double)>& progress) {
  const auto steps = static_cast<std::size_t>(experiment.jitter.steps);
  std::vector<double> times(steps);
  std::size_t done = 0;
  run_forked(
      steps, workers, [&experiment](std::size_t step) { return exact_text(step_time(experiment, step)); },
      [&](std::size_t step, const WorkResult& result) {
        if (!result.done) throw std::runtime_error("a step with jitter failed: " + result.text);
        times[step] = std::stod(result.text);
        progress(static_cast<double>(++done) / static_cast<double>(steps));
      });
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(steps);
  return {experiment.jitter.steps,
          experiment.jitter.seed,
          experiment.jitter.compute,
          experiment.jitter.network,
          mean,
          quantile(times, 0.5),
          quantile(times, 0.9),
          quantile(times, 0.99)};
}

}  // namespace trainsim::cli
