// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/executor.hpp"

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <utility>
#include <vector>

#include <simgrid/s4u.hpp>
#include <xbt/log.h>

#include "sim/engine/collective_costs.hpp"
#include "sim/engine/flow_time.hpp"
#include "sim/engine/job_view.hpp"
#include "sim/engine/simgrid/platform.hpp"
#include "sim/engine/simgrid/ring_steps.hpp"

namespace trainsim::engine {

namespace {

namespace sg4 = simgrid::s4u;
using program::Instruction;
using program::Opcode;
using program::Stream;

/// While it lives Ctrl-C is held back; after that it does what it did before.
class KeptInterrupt {
 public:
  KeptInterrupt() {
    sigset_t interrupt{};
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &mask_);
    sigaction(SIGINT, nullptr, &action_);
  }
  KeptInterrupt(const KeptInterrupt&) = delete;
  KeptInterrupt& operator=(const KeptInterrupt&) = delete;
  ~KeptInterrupt() {
    sigaction(SIGINT, &action_, nullptr);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_{};
  struct sigaction action_ {};
};

/// Lets one actor wait until another says go. A permit given early is kept.
class Parker {
 public:
  void park() { permit_->acquire(); }
  void unpark() { permit_->release(); }

 private:
  sg4::SemaphorePtr permit_ = sg4::Semaphore::create(0);
};

/// A point in simulated time that one stream of the same rank may wait for. It may lie ahead of SimGrid's
/// clock.
struct Signal {
  bool happened = false;
  Seconds time = 0;
  Parker* waiter = nullptr;

  void raise(Seconds when) {
    happened = true;
    time = when;
    if (waiter != nullptr) waiter->unpark();
  }
  void wait(Parker& parker) {
    if (happened) return;
    waiter = &parker;
    parker.park();
  }
};

struct Message {
  Signal arrival;
  Seconds started = 0;
};

/// Members of a group that have reached the current collective.
struct GroupState {
  std::size_t arrived = 0;
  std::vector<Parker*> waiting;
  /// Latest arrival so far.
  Seconds latest = 0;
  /// When the last member had arrived and when the collective ended. Read by members when they wake, before
  /// any of them can reach the next collective.
  Seconds ready = 0;
  Seconds end = 0;
};

/// What all actors of a run share.
struct Shared {
  const program::Job& job;
  const ExecutorOptions& options;
  const Platform& platform;
  program::Timeline& timeline;
  CollectiveCosts costs;
  std::vector<program::RankRecorder> recorders;
  std::vector<std::vector<Signal>> events;
  std::vector<std::vector<Message>> messages;
  std::vector<GroupState> groups;
  std::vector<bool> closed_form;
  std::size_t instructions = 1;
  std::size_t done = 0;
};

/// Runs one stream of one rank; the body of an actor.
///
/// A stream has a clock of its own that may run ahead of SimGrid's: computing, and collectives over links
/// that nobody else uses, touch nothing shared, so their ends are known at once. Before anything that others
/// can notice (a message, a flow over shared links) the stream sleeps until SimGrid's clock has caught up.
/// The result is the same as sleeping after every instruction, for a fraction of the events.
class StreamActor {
 public:
  StreamActor(Shared& shared, std::size_t rank, Stream stream)
      : shared_(shared),
        rank_(rank),
        stream_(stream),
        bound_(shared.job.ranks[rank]),
        code_(shared.job.programs[bound_.program].stream(stream)) {}

  void operator()() {
    Parker parker;
    parker_ = &parker;
    for (next_ = 0; next_ < code_.size(); ++next_) {
      step(code_[next_]);
      report_progress();
    }
    recorder().finish(now_);
    finished_ = true;
  }

  /// Index of the rank in Job::ranks.
  std::size_t rank() const { return rank_; }
  /// What the stream waits for, for a deadlock report; empty when it has ended.
  std::string waiting_for() const {
    return finished_ ? "" : describe_wait(shared_.job, rank_, stream_, code_[next_]);
  }

 private:
  void step(const Instruction& instruction);
  void compute(const Instruction& instruction);
  void collective(const Instruction& instruction);
  void run_collective(std::size_t index, const Instruction& instruction);
  void run_phase(std::size_t index, const program::Phase& phase);
  void send(const Instruction& instruction);
  void receive(const Instruction& instruction);
  void wait(const Instruction& instruction);
  /// Lets SimGrid's clock catch up with the stream's.
  void catch_up() {
    if (now_ > sg4::Engine::get_clock()) sg4::this_actor::sleep_until(now_);
  }
  program::RankRecorder& recorder() { return shared_.recorders[rank_]; }
  /// The instruction that the stream is at.
  program::Where where(const Instruction& instruction) const {
    return {stream_, static_cast<std::uint32_t>(next_), instruction.cause, &instruction};
  }
  void report_progress() {
    if ((++shared_.done & 0xfffU) == 0 && shared_.options.progress) {
      shared_.options.progress(static_cast<double>(shared_.done) / static_cast<double>(shared_.instructions));
    }
  }

  Shared& shared_;
  std::size_t rank_;
  Stream stream_;
  const program::Rank& bound_;
  const std::vector<Instruction>& code_;
  std::size_t next_ = 0;
  Seconds now_ = 0;
  program::Host host_;
  Parker* parker_ = nullptr;
  bool finished_ = false;
};

void StreamActor::step(const Instruction& instruction) {
  switch (instruction.op) {
    case Opcode::kCompute:
      compute(instruction);
      break;
    case Opcode::kSynchronize:
      host_.synchronize(now_, instruction.amount);
      break;
    case Opcode::kCollective:
      collective(instruction);
      break;
    case Opcode::kSend:
      send(instruction);
      break;
    case Opcode::kReceive:
      receive(instruction);
      break;
    case Opcode::kWait:
      wait(instruction);
      break;
    case Opcode::kRecord:
      shared_.events[rank_][instruction.id].raise(now_);
      break;
    case Opcode::kAllocate:
    case Opcode::kFree:
      break;
    case Opcode::kSlotBegin:
      recorder().begin_slot(instruction.id, now_);
      break;
    case Opcode::kSlotEnd:
      recorder().end_slot(now_);
      break;
  }
}

void StreamActor::compute(const Instruction& instruction) {
  // A slow GPU copies as fast as others.
  const Seconds duration = instruction.amount * (stream_ == Stream::kCompute ? bound_.slowdown : 1.0);
  const program::Segment& segment = shared_.job.programs[bound_.program].segments[instruction.id];
  const Seconds end = host_.run(now_, duration, segment);
  ++shared_.timeline.activities;
  recorder().compute(where(instruction), now_, duration, end);
  now_ = end;
}

void StreamActor::collective(const Instruction& instruction) {
  const std::int32_t bound = bound_.groups[static_cast<std::size_t>(instruction.group)];
  if (bound < 0) return;
  const auto index = static_cast<std::size_t>(bound);
  if (!shared_.closed_form[index]) catch_up();
  GroupState& state = shared_.groups[index];
  state.latest = std::max(state.latest, now_);
  if (++state.arrived < shared_.job.groups[index].members.size()) {
    state.waiting.push_back(parker_);
    parker_->park();
  } else {
    state.ready = std::exchange(state.latest, 0);
    state.arrived = 0;
    run_collective(index, instruction);
    for (Parker* member : std::exchange(state.waiting, {})) member->unpark();
  }
  recorder().collective(where(instruction), now_, state.ready, state.end);
  now_ = state.end;
}

/// The last member to arrive drives the flows of all, and sets the end.
void StreamActor::run_collective(std::size_t index, const Instruction& instruction) {
  GroupState& state = shared_.groups[index];
  ++shared_.timeline.activities;
  const LoneCost& known = shared_.costs.of(index, instruction.collective, instruction.amount);
  if (shared_.closed_form[index]) {
    state.end = state.ready + known.as_private;
    return;
  }
  // A copy: other actors may work out costs while this one sleeps.
  const program::CollectiveCost cost = known.cost;
  for (const program::Phase& phase : cost.phases) run_phase(index, phase);
  state.end = sg4::Engine::get_clock();
}

/// All flows at once, until the last has ended, and the latencies of a ring that it does not hide; or step by
/// step.
void StreamActor::run_phase(std::size_t index, const program::Phase& phase) {
  const program::Group& group = shared_.job.groups[index];
  sg4::this_actor::sleep_for(phase.delay);
  if (shared_.options.ring_steps && phase.ring.count > 0) {
    shared_.timeline.activities += run_ring_steps(shared_.platform, shared_.job, index, phase);
    return;
  }
  const Seconds begin = sg4::Engine::get_clock();
  std::vector<std::pair<sg4::CommPtr, bool>> flows;
  for (std::size_t i = 0; i < group.flows.size(); ++i) {
    const double bytes = whole_bytes(phase.bytes_of(group.flows[i]));
    if (bytes <= 0) continue;
    ++shared_.timeline.activities;
    flows.emplace_back(
        sg4::Comm::sendto_async(shared_.platform.host(group.members.front()),
                                shared_.platform.group_ports(index)[i], static_cast<std::uint64_t>(bytes)),
        group.flows[i].between_nodes);
  }
  Seconds inside = 0;
  Seconds between = 0;
  for (const auto& [flow, between_nodes] : flows) {
    flow->wait();
    Seconds& longest = between_nodes ? between : inside;
    longest = std::max(longest, flow->get_finish_time() - begin);
  }
  sg4::this_actor::sleep_until(begin + phase.ring.time(inside, between));
}

void StreamActor::send(const Instruction& instruction) {
  const program::Peer& peer = bound_.peers[static_cast<std::size_t>(instruction.peer)];
  Message& message = shared_.messages[static_cast<std::size_t>(peer.rank)][instruction.id];
  const Seconds begin = now_;
  ++shared_.timeline.activities;
  message.started = begin;
  now_ += peer.latency;
  catch_up();
  const double bytes = whole_bytes(instruction.amount);
  if (sg4::Host* port = shared_.platform.peer_port(rank_, instruction.peer); port != nullptr && bytes > 0) {
    sg4::Comm::sendto(shared_.platform.host(rank_), port, static_cast<std::uint64_t>(bytes));
    now_ = sg4::Engine::get_clock();
  }
  recorder().send(where(instruction), begin, now_);
  message.arrival.raise(now_);
}

void StreamActor::receive(const Instruction& instruction) {
  Message& message = shared_.messages[rank_][instruction.id];
  message.arrival.wait(*parker_);
  const Seconds arrival = std::max(now_, message.arrival.time);
  recorder().receive(where(instruction), now_, arrival, message.started);
  now_ = arrival;
}

void StreamActor::wait(const Instruction& instruction) {
  Signal& event = shared_.events[rank_][instruction.id];
  event.wait(*parker_);
  const Seconds until = std::max(now_, event.time);
  recorder().wait(where(instruction), now_, until);
  now_ = until;
}

Shared make_shared_state(const program::Job& job, const ExecutorOptions& options, const Platform& platform,
                         program::Timeline& timeline) {
  Shared shared{job, options, platform, timeline, CollectiveCosts(job), {}, {}, {}, {}, {}};
  timeline.ranks.resize(job.ranks.size());
  timeline.has_spans = options.record_spans;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    shared.recorders.emplace_back(timeline.ranks[rank], options.record_spans);
    const program::Program& program = job.programs[job.ranks[rank].program];
    shared.events.emplace_back(program.events);
    shared.messages.emplace_back(program.messages);
  }
  shared.groups.resize(job.groups.size());
  shared.closed_form = options.closed_form_collectives && !options.ring_steps
                           ? private_groups(job)
                           : std::vector<bool>(job.groups.size(), false);
  shared.instructions = count_instructions(job);
  return shared;
}

/// SimGrid's engine takes Ctrl-C over to print its actors; what Ctrl-C does is for our caller to say.
sg4::Engine make_engine(int& count, char** arguments) {
  const KeptInterrupt kept;
  return sg4::Engine(&count, arguments);
}

class SimgridExecutor : public Executor {
 public:
  explicit SimgridExecutor(ExecutorOptions options) : options_(std::move(options)) {}
  program::Timeline run(const program::Job& job) override;

 private:
  ExecutorOptions options_;
};

program::Timeline SimgridExecutor::run(const program::Job& job) {
  static bool used = false;
  if (std::exchange(used, true)) throw std::logic_error("SimGrid can run only once in a process");
  std::vector<std::string> words = engine_arguments();
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  sg4::Engine engine = make_engine(count, arguments.data());
  const Platform platform(job, options_.ring_steps);
  program::Timeline timeline;
  Shared shared = make_shared_state(job, options_, platform, timeline);
  std::vector<StreamActor> actors;
  actors.reserve(job.ranks.size() * program::kStreams);
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (int stream = 0; stream < program::kStreams; ++stream) {
      if (job.programs[job.ranks[rank].program].streams[static_cast<std::size_t>(stream)].empty()) continue;
      actors.emplace_back(shared, rank, static_cast<Stream>(stream));
    }
  }
  sg4::Engine::on_deadlock_cb([&actors] {
    std::string waiting;
    for (const StreamActor& actor : actors) {
      if (const std::string text = actor.waiting_for(); !text.empty()) waiting += "\n  " + text;
    }
    throw std::logic_error("the programs wait for each other for ever:" + waiting);
  });
  for (StreamActor& actor : actors) {
    sg4::Actor::create("stream", platform.host(actor.rank()), [body = &actor] { (*body)(); });
  }
  timeline.actors = static_cast<std::int64_t>(actors.size());
  engine.run();
  close(timeline);
  if (options_.progress) options_.progress(1.0);
  return timeline;
}

}  // namespace

std::unique_ptr<Executor> make_simgrid_executor(ExecutorOptions options) {
  return std::make_unique<SimgridExecutor>(std::move(options));
}

}  // namespace trainsim::engine
