// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>

#include "sim/base/units.hpp"
#include "sim/training/failure_simulation.hpp"
#include "sim/training/spec.hpp"

namespace trainsim::training {

/// The GPUs that a run takes.
struct Machine {
  std::int64_t gpus = 1;
  std::int64_t nodes = 1;
  /// What a GPU draws while it waits inside a step, and while it computes; 0 where that is not known.
  Watts waiting_power = 0;
  Watts computing_power = 0;

  bool knows_power() const { return computing_power > 0; }
};

/// What a node of `gpus` draws beside them if nothing else is known: half of their rated power. A node of
/// eight H100 of 700 W drew 8.4 kW at most when it trained (Latif et al. 2025, IEEE Access 13), 2.8 kW more.
Watts usual_node_overhead(std::int64_t gpus, Watts rated_power);

/// Energy of a run, and what it follows from.
struct Energy {
  /// Share of the steps' time in which a GPU computes, and what it then draws on average.
  double utilization = 0;
  Watts gpu_power = 0;
  Watts node_overhead = 0;
  double pue = 1;
  /// At the meter of the data centre.
  double kilowatt_hours = 0;
  std::optional<double> grid_intensity;
  /// Kilograms; nothing without a grid intensity.
  std::optional<double> co2;
};

/// Energy of the wall time of a run: steps, lost ones too, at the power of their utilization, waiting +
/// (computing - waiting) · utilization; checkpoints and restarts at that of waiting.
Energy energy_of(const WallTime& wall, double utilization, const Machine& machine, const PowerSpec& power);

}  // namespace trainsim::training
