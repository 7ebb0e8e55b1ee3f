// SPDX-License-Identifier: Apache-2.0
// How fast is the simulator? Prints the table of experiments/speed/README.md. Every run is a child process of
// its own, so that SimGrid starts afresh and peak memory can be told apart.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/simulate.hpp"
#include "sim/config/experiment.hpp"
#include "sim/engine/executor.hpp"

namespace {

using namespace trainsim;

/// What a run cost and did.
struct Cost {
  double seconds = 0;
  double mebibytes = 0;
  double actors = 0;
  double activities = 0;
};

/// Runs `work`, which returns actors and activities, in a child process; the best time of `repeats`.
Cost measure(int repeats, const std::function<std::pair<double, double>()>& work) {
  Cost best;
  for (int i = 0; i < repeats; ++i) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const auto begin = std::chrono::steady_clock::now();
      const auto [actors, activities] = work();
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      const double numbers[3] = {seconds, actors, activities};
      std::_Exit(write(ends[1], numbers, sizeof numbers) == sizeof numbers ? 0 : 1);
    }
    double numbers[3] = {};
    const bool got = read(ends[0], numbers, sizeof numbers) == sizeof numbers;
    close(ends[0]);
    close(ends[1]);
    int status = 0;
    rusage usage{};
    wait4(child, &status, 0, &usage);
    if (!got || status != 0) throw std::runtime_error("a run failed");
    if (i == 0 || numbers[0] < best.seconds) {
      best = {numbers[0], static_cast<double>(usage.ru_maxrss) / 1024.0, numbers[1], numbers[2]};
    }
  }
  return best;
}

void print(const char* name, const Cost& cost) {
  std::printf("%-58s %8.3f s %7.0f MiB %7.0f actors %9.0f activities\n", name, cost.seconds, cost.mebibytes,
              cost.actors, cost.activities);
  std::fflush(stdout);
}

Cost trainsim_run(int repeats, const std::string& config, const std::vector<std::string>& overrides,
                  bool fold, bool closed_form = true) {
  return measure(repeats, [&] {
    const config::Experiment experiment = config::load(config, overrides);
    engine::ExecutorOptions options;
    options.closed_form_collectives = closed_form;
    const program::Timeline timeline =
        engine::make_simgrid_executor(options)->run(cli::build_job(experiment, fold));
    return std::pair(static_cast<double>(timeline.actors), static_cast<double>(timeline.activities));
  });
}

/// A loop around SimGrid that does nothing else: `actors` actors share `activities`, all of them sleeps, or
/// every other one a flow over a link of the actor's own.
Cost bare_run(int repeats, double actors, double activities, bool flows) {
  return measure(repeats, [=] {
    namespace sg4 = simgrid::s4u;
    std::string name = "bare";
    std::vector<std::string> words = {name, "--cfg=network/model:CM02", "--cfg=contexts/stack-size:64",
                                      "--cfg=network/crosstraffic:0", "--log=root.thres:critical"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    sg4::Engine engine(&count, arguments.data());
    sg4::NetZone* zone = sg4::create_full_zone("bare");
    const auto ranks = static_cast<int>(actors);
    const auto rounds = static_cast<int>(activities / actors / (flows ? 2 : 1));
    std::vector<sg4::Host*> from;
    std::vector<sg4::Host*> to;
    for (int i = 0; i < ranks; ++i) {
      from.push_back(zone->create_host("from-" + std::to_string(i), 1.0)->seal());
      to.push_back(zone->create_host("to-" + std::to_string(i), 1.0)->seal());
      const sg4::Link* link = zone->create_link("link-" + std::to_string(i), 1e10)->seal();
      zone->add_route(from.back()->get_netpoint(), to.back()->get_netpoint(), nullptr, nullptr,
                      {sg4::LinkInRoute(link)}, false);
    }
    zone->seal();
    for (std::size_t i = 0; i < from.size(); ++i) {
      sg4::Actor::create("actor", from[i], [&from, &to, i, rounds, flows] {
        for (int round = 0; round < rounds; ++round) {
          sg4::this_actor::sleep_for(1e-3 * (1.0 + 1e-4 * static_cast<double>(i)));
          if (flows) sg4::Comm::sendto(from[i], to[i], 1'000'000);
        }
      });
    }
    engine.run();
    return std::pair(actors, activities);
  });
}

void compare_with_bare(const char* name, const Cost& ours, bool flows) {
  print(name, ours);
  const Cost bare = bare_run(2, ours.actors, ours.activities, flows);
  print(flows ? "  bare SimGrid loop, sleeps and flows" : "  bare SimGrid loop, sleeps", bare);
  std::printf("  ratio of times: %.2f\n", ours.seconds / bare.seconds);
}

/// Unfolded runs of 24 micro-batches on more and more replicas: what an activity costs, alone and against a
/// bare loop of as many actors and activities, whose cost grows with their number too.
void print_cost_per_activity(const std::string& config) {
  double first = 0;
  for (const int replicas : {1, 4, 16, 64}) {
    const std::string gpus = std::to_string(64 * replicas);
    const Cost cost = trainsim_run(replicas < 16 ? 3 : 1, config,
                                   {"gpus=" + gpus, "plan.data_parallel=" + std::to_string(replicas),
                                    "plan.global_batch_size=" + std::to_string(24 * replicas)},
                                   false);
    const double each = cost.seconds / cost.activities;
    if (first <= 0) first = each;
    print(("gpt175b with 24 micro-batches on " + gpus + " GPUs, unfolded").c_str(), cost);
    const Cost bare = bare_run(1, cost.actors, cost.activities, false);
    std::printf("  %.3f us an activity, %.2f times that on 64 GPUs; %.2f of a bare loop's time\n", each * 1e6,
                each / first, cost.seconds / bare.seconds);
  }
}

}  // namespace

int main() {
  const std::string gpt = "gpt175b";
  // The case for which a peer's event simulator takes 17 minutes: 64 GPUs, 8 stages x 64 micro-batches.
  const std::vector<std::string> peer = {"gpus=64", "plan.data_parallel=1", "plan.global_batch_size=64",
                                         "plan.virtual_pipeline=1", "plan.schedule=1f1b"};
  const std::vector<std::string> half = {"gpus=512", "plan.data_parallel=8", "plan.global_batch_size=768"};
  print("gpt175b, folded", trainsim_run(5, gpt, {}, true));
  print("64 GPUs, 8 stages x 64 micro-batches, unfolded", trainsim_run(3, gpt, peer, false));
  print("gpt175b on 512 GPUs, unfolded", trainsim_run(1, gpt, half, false));
  print("gpt175b on 1024 GPUs, unfolded", trainsim_run(1, gpt, {}, false));
  print("llama3-405b on 16384 GPUs, folded", trainsim_run(3, "llama3-405b", {}, true));
  print("llama3-405b on 98304 GPUs with full bisection, folded",
        trainsim_run(1, "llama3-405b",
                     {"gpus=98304", "cluster.max_gpus=98304", "cluster.fabric.pod_oversubscription=1",
                      "plan.global_batch_size=12288"},
                     true));
  print_cost_per_activity(gpt);
  const Cost one =
      trainsim_run(7, gpt, {"gpus=64", "plan.data_parallel=1", "plan.global_batch_size=96"}, true);
  const Cost many =
      trainsim_run(7, gpt, {"gpus=8192", "plan.data_parallel=128", "plan.global_batch_size=12288"}, true);
  print("gpt175b with DP 1, folded", one);
  print("gpt175b with DP 128, folded", many);
  std::printf("  ratio of times %.2f, of memory %.2f\n", many.seconds / one.seconds,
              many.mebibytes / one.mebibytes);
  compare_with_bare("64 GPUs unfolded, against a bare loop", trainsim_run(3, gpt, peer, false), false);
  compare_with_bare("the same, every collective as flows", trainsim_run(2, gpt, peer, false, false), true);
  return 0;
}
