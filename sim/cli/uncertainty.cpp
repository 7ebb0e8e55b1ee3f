// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/uncertainty.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <random>
#include <stdexcept>
#include <utility>

#include "sim/base/hash.hpp"
#include "sim/base/quantile.hpp"
#include "sim/cli/simulate.hpp"
#include "sim/cli/worker_pool.hpp"

namespace trainsim::cli {

namespace {

using config::Constant;

/// Overrides that set some constants.
using Sample = std::vector<std::string>;

/// What is simulated: first the configuration as it is, then samples of all constants, then each constant low
/// and high.
std::vector<Sample> samples_of(const std::vector<Constant>& constants, const UncertaintyOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<Sample> samples = {{}};
  for (std::size_t i = 0; i < options.samples; ++i) {
    Sample sample;
    for (const Constant& constant : constants) {
      const double uniform = static_cast<double>(random() >> 11U) * 0x1p-53;
      const double value = triangular(constant.low, constant.nominal, constant.high, uniform);
      sample.push_back(constant.path + "=" + constant.text(value));
    }
    samples.push_back(std::move(sample));
  }
  for (const Constant& constant : constants) {
    samples.push_back({constant.path + "=" + constant.text(constant.low)});
    samples.push_back({constant.path + "=" + constant.text(constant.high)});
  }
  return samples;
}

/// Sample `index` of a constant: a number in [0, 1) that depends on nothing but the seed and which constant
/// it is.
double uniform_of(const Constant& constant, std::size_t index, std::uint64_t seed) {
  const std::uint64_t bits = scramble(fingerprint(constant.path + "=" + constant.value, seed) + index);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

/// The configuration as it is for index 0, and else sample `index` of all constants.
Sample common_sample(const SampledConfig& config, std::size_t index, std::uint64_t seed) {
  Sample sample;
  for (const Constant& constant : config.constants) {
    if (index == 0 || !constant.varies()) continue;
    const double value =
        triangular(constant.low, constant.nominal, constant.high, uniform_of(constant, index, seed));
    sample.push_back(constant.path + "=" + constant.text(value));
  }
  return sample;
}

/// Step time on the ideal executor, as text that reads back exactly.
std::string simulate_sample(const std::string& config, const std::vector<std::string>& overrides,
                            const plan::Recompute& recompute, const Sample& sample) {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), sample.begin(), sample.end());
  config::Experiment experiment = config::load(config, all, config::Scope::kStep);
  if (experiment.plan.recompute.automatic) experiment.plan.recompute = recompute;
  if (experiment.network == config::NetworkMode::kFlow) experiment.network = config::NetworkMode::kIdeal;
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.17g",
                run_job(experiment, build_job(experiment, true), {}).step_time);
  return text.data();
}

/// Step times of so many samples, each simulated in a process of its own.
std::vector<double> forked_times(std::size_t count, std::size_t workers,
                                 const std::function<std::string(std::size_t)>& simulate,
                                 const std::function<void(double)>& progress) {
  std::vector<double> times(count);
  std::size_t done = 0;
  run_forked(count, workers, simulate, [&](std::size_t index, const WorkResult& result) {
    if (!result.done) throw std::runtime_error("a sample of the constants failed: " + result.text);
    times[index] = std::stod(result.text);
    progress(static_cast<double>(++done) / static_cast<double>(count));
  });
  return times;
}

}  // namespace

double triangular(double low, double mode, double high, double uniform) {
  const double width = high - low;
  if (width <= 0) return mode;
  if (uniform * width < mode - low) return low + std::sqrt(uniform * width * (mode - low));
  return high - std::sqrt((1.0 - uniform) * width * (high - mode));
}

report::Uncertainty relative_uncertainty(const std::string& config, const std::vector<std::string>& overrides,
                                         const config::Experiment& experiment,
                                         const UncertaintyOptions& options,
                                         const std::function<void(double)>& progress) {
  std::vector<Constant> constants;
  std::copy_if(experiment.constants.begin(), experiment.constants.end(), std::back_inserter(constants),
               [](const Constant& constant) { return constant.varies(); });
  const std::vector<Sample> samples = samples_of(constants, options);
  std::vector<double> times = forked_times(
      samples.size(), options.workers,
      [&](std::size_t index) {
        return simulate_sample(config, overrides, experiment.plan.recompute, samples[index]);
      },
      progress);
  const double nominal = times.front();
  for (double& time : times) time /= nominal;
  const auto first = times.begin() + 1;
  const std::vector<double> drawn(first, first + static_cast<std::ptrdiff_t>(options.samples));
  report::Uncertainty result{
      options.samples, options.seed, quantile(drawn, kIntervalTail), quantile(drawn, 1 - kIntervalTail), {}};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    const Constant& constant = constants[i];
    const std::size_t at = 1 + options.samples + 2 * i;
    result.constants.push_back({constant.path, to_string(constant.grade), constant.value,
                                constant.text(constant.low), constant.text(constant.high), times[at],
                                times[at + 1]});
  }
  std::stable_sort(result.constants.begin(), result.constants.end(),
                   [](const report::ConstantEffect& a, const report::ConstantEffect& b) {
                     return a.effect() > b.effect();
                   });
  return result;
}

std::vector<std::vector<double>> sampled_times(const std::vector<SampledConfig>& configs,
                                               const UncertaintyOptions& options,
                                               const std::function<void(double)>& progress) {
  const std::size_t each = options.samples + 1;
  const std::vector<double> all = forked_times(
      configs.size() * each, options.workers,
      [&](std::size_t task) {
        const SampledConfig& config = configs[task / each];
        return simulate_sample(config.config, config.overrides, config.recompute,
                               common_sample(config, task % each, options.seed));
      },
      progress);
  std::vector<std::vector<double>> times;
  times.reserve(configs.size());
  for (auto nominal = all.begin(); nominal != all.end(); nominal += static_cast<std::ptrdiff_t>(each)) {
    std::vector<double>& of_config =
        times.emplace_back(nominal + 1, nominal + static_cast<std::ptrdiff_t>(each));
    for (double& time : of_config) time /= *nominal;
  }
  return times;
}

}  // namespace trainsim::cli
