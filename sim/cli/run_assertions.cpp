// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/run_assertions.hpp"

#include <algorithm>
#include <array>

#include "sim/base/diagnostics.hpp"
#include "sim/report/writers.hpp"

namespace trainsim::cli {

namespace {

using config::Experiment;

/// A part of the result, whether a configuration asks for it, and how it would.
struct Part {
  const char* name;
  bool (*is_asked)(const Experiment&);
  const char* cure;
};

bool has_grid_intensity(const Experiment& experiment) {
  return experiment.run->power.grid_intensity.has_value();
}

constexpr const char* kGridIntensity =
    "run.power.grid_intensity, as in --set 'run.power.grid_intensity=385 g/kWh'";

/// What stands further down is asked of configurations that have what stands above it.
constexpr std::array<Part, 7> kParts = {
    {{"run", [](const Experiment& each) { return each.run.has_value(); },
      "a section run, as in --set run.tokens=300B"},
     {"run.cost", [](const Experiment& each) { return each.run->price.has_value(); },
      "run.price_per_gpu_hour, as in --set 'run.price_per_gpu_hour=2 USD'"},
     {"run.energy", [](const Experiment& each) { return each.cluster.gpu.power_limit > 0; },
      "cluster.gpu.rated_power and static_power"},
     {"run.energy.co2_kg", has_grid_intensity, kGridIntensity},
     {"run.energy.grid_intensity_g_per_kwh", has_grid_intensity, kGridIntensity},
     {"run.checkpoint", [](const Experiment& each) { return each.run->checkpoint.has_value(); },
      "run.checkpoint, as in --set 'run.checkpoint={interval: 30 min, stall: 20 s}'"},
     {"run.failures", [](const Experiment& each) { return each.run->failures.has_value(); },
      "run.failures and run.checkpoint, as in --set 'run.failures={gpu_mtbf: 50_000 h, restart_time: 10 "
      "min}' "
      "--set 'run.checkpoint={stall: 20 s}'"}}};

/// Whether a name is that of a part or of something in it.
bool is_in(const std::string& name, const std::string& part) {
  return name == part || name.starts_with(part + ".");
}

}  // namespace

void check_run_assertions(const std::vector<std::string>& assertions, const Experiment& experiment) {
  for (const std::string& assertion : assertions) {
    const std::string name = report::asserted_name(assertion);
    const auto missing = std::find_if(kParts.begin(), kParts.end(), [&](const Part& part) {
      return is_in(name, part.name) && !part.is_asked(experiment);
    });
    if (missing == kParts.end()) continue;
    throw InputError("--assert '" + assertion + "': error: " + missing->name + " needs " + missing->cure);
  }
}

}  // namespace trainsim::cli
