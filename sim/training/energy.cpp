// SPDX-License-Identifier: Apache-2.0
#include "sim/training/energy.hpp"

namespace trainsim::training {

namespace {

constexpr double kJoulesPerKilowattHour = 3.6e6;
constexpr double kUsualOverhead = 0.5;

}  // namespace

Watts usual_node_overhead(std::int64_t gpus, Watts rated_power) {
  return kUsualOverhead * static_cast<double>(gpus) * rated_power;
}

Energy energy_of(const WallTime& wall, double utilization, const Machine& machine, const PowerSpec& power) {
  Energy energy;
  energy.utilization = utilization;
  energy.gpu_power = machine.waiting_power + (machine.computing_power - machine.waiting_power) * utilization;
  energy.node_overhead = power.node_overhead;
  energy.pue = power.pue;
  const double gpu =
      energy.gpu_power * (wall.work + wall.lost) + machine.waiting_power * (wall.checkpoints + wall.restarts);
  const double joules = static_cast<double>(machine.gpus) * gpu +
                        static_cast<double>(machine.nodes) * power.node_overhead * wall.total();
  energy.kilowatt_hours = power.pue * joules / kJoulesPerKilowattHour;
  energy.grid_intensity = power.grid_intensity;
  if (power.grid_intensity) energy.co2 = energy.kilowatt_hours * *power.grid_intensity / kKilo;
  return energy;
}

}  // namespace trainsim::training
