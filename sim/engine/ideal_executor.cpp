// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/engine/collective_costs.hpp"
#include "sim/engine/executor.hpp"
#include "sim/engine/flow_time.hpp"
#include "sim/engine/job_view.hpp"

namespace trainsim::engine {

namespace {

using program::Instruction;
using program::Opcode;
using program::Stream;

/// Without contention the time of every instruction follows from the times of the instructions it waits for,
/// so the streams can be run in any order that respects the waits: each as far as it goes, again when woken.
class IdealRun {
 public:
  IdealRun(const program::Job& job, const ExecutorOptions& options);
  program::Timeline run();

 private:
  static constexpr Seconds kNever = -1.0;

  /// Progress of one stream; `key` = rank * kStreams + stream.
  struct StreamState {
    const std::vector<Instruction>* code = nullptr;
    std::size_t next = 0;
    Seconds now = 0;
    program::Host host;
    /// Set while the stream is inside a collective that others have not reached, and its outcome once all
    /// have.
    bool in_collective = false;
    Seconds collective_ready = kNever;
    Seconds collective_end = kNever;
  };
  struct Message {
    Seconds started = kNever;
    Seconds arrived = kNever;
    std::int32_t waiter = -1;
  };
  struct Event {
    Seconds time = kNever;
    std::int32_t waiter = -1;
  };
  struct GroupState {
    std::vector<std::size_t> arrived;
    Seconds latest = 0;
  };

  void advance(std::size_t key);
  /// Runs one instruction; false when it has to wait.
  bool step(std::size_t key, const Instruction& instruction);
  void compute(std::size_t key, const Instruction& instruction);
  bool collective(std::size_t key, const Instruction& instruction);
  void send(std::size_t key, const Instruction& instruction);
  bool receive(std::size_t key, const Instruction& instruction);
  bool wait(std::size_t key, const Instruction& instruction);
  void record(std::size_t key, const Instruction& instruction);
  void wake(std::int32_t key) {
    if (key >= 0) runnable_.push_back(static_cast<std::size_t>(key));
  }
  program::RankRecorder& recorder(std::size_t key) { return recorders_[key / program::kStreams]; }
  /// The instruction that a stream is at.
  program::Where where(std::size_t key, const Instruction& instruction) const {
    return {static_cast<Stream>(key % program::kStreams), static_cast<std::uint32_t>(streams_[key].next),
            instruction.cause, &instruction};
  }
  void fail_if_stuck() const;

  const program::Job& job_;
  CollectiveCosts costs_;
  const ExecutorOptions& options_;
  program::Timeline timeline_;
  std::vector<program::RankRecorder> recorders_;
  std::vector<StreamState> streams_;
  std::vector<std::vector<Event>> events_;
  std::vector<std::vector<Message>> messages_;
  std::vector<GroupState> groups_;
  std::deque<std::size_t> runnable_;
};

IdealRun::IdealRun(const program::Job& job, const ExecutorOptions& options)
    : job_(job), costs_(job), options_(options), groups_(job.groups.size()) {
  timeline_.ranks.resize(job.ranks.size());
  timeline_.has_spans = options.record_spans;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    recorders_.emplace_back(timeline_.ranks[rank], options.record_spans);
    const program::Program& program = job.programs[job.ranks[rank].program];
    events_.emplace_back(program.events);
    messages_.emplace_back(program.messages);
    for (const auto& code : program.streams) {
      streams_.emplace_back().code = &code;
      if (!code.empty()) ++timeline_.actors;
      runnable_.push_back(streams_.size() - 1);
    }
  }
}

program::Timeline IdealRun::run() {
  while (!runnable_.empty()) {
    const std::size_t key = runnable_.front();
    runnable_.pop_front();
    advance(key);
  }
  fail_if_stuck();
  for (std::size_t key = 0; key < streams_.size(); ++key) {
    recorders_[key / program::kStreams].finish(streams_[key].now);
  }
  close(timeline_);
  if (options_.progress) options_.progress(1.0);
  return std::move(timeline_);
}

void IdealRun::advance(std::size_t key) {
  StreamState& stream = streams_[key];
  while (stream.next < stream.code->size() && step(key, (*stream.code)[stream.next])) ++stream.next;
}

bool IdealRun::step(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  switch (instruction.op) {
    case Opcode::kCompute:
      compute(key, instruction);
      return true;
    case Opcode::kSynchronize:
      stream.host.synchronize(stream.now, instruction.amount);
      return true;
    case Opcode::kCollective:
      return collective(key, instruction);
    case Opcode::kSend:
      send(key, instruction);
      return true;
    case Opcode::kReceive:
      return receive(key, instruction);
    case Opcode::kWait:
      return wait(key, instruction);
    case Opcode::kRecord:
      record(key, instruction);
      return true;
    case Opcode::kAllocate:
    case Opcode::kFree:
      return true;
    case Opcode::kSlotBegin:
      recorder(key).begin_slot(instruction.id, stream.now);
      return true;
    case Opcode::kSlotEnd:
      recorder(key).end_slot(stream.now);
      return true;
  }
  return true;
}

void IdealRun::compute(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  const program::Rank& rank = job_.ranks[key / program::kStreams];
  // A slow GPU copies as fast as others.
  const bool computes = key % program::kStreams == static_cast<std::size_t>(Stream::kCompute);
  const Seconds duration = instruction.amount * (computes ? rank.slowdown : 1.0);
  const program::Segment& segment = job_.programs[rank.program].segments[instruction.id];
  const Seconds end = stream.host.run(stream.now, duration, segment);
  ++timeline_.activities;
  recorder(key).compute(where(key, instruction), stream.now, duration, end);
  stream.now = end;
}

bool IdealRun::collective(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  const std::int32_t index =
      job_.ranks[key / program::kStreams].groups[static_cast<std::size_t>(instruction.group)];
  if (index < 0) return true;
  const program::Group& group = job_.groups[static_cast<std::size_t>(index)];
  GroupState& state = groups_[static_cast<std::size_t>(index)];
  if (!stream.in_collective) {
    stream.in_collective = true;
    state.latest = std::max(state.latest, stream.now);
    state.arrived.push_back(key);
    if (state.arrived.size() < group.members.size()) return false;
    ++timeline_.activities;
    const Seconds end =
        state.latest +
        costs_.of(static_cast<std::size_t>(index), instruction.collective, instruction.amount).alone;
    for (const std::size_t member : state.arrived) {
      streams_[member].collective_ready = state.latest;
      streams_[member].collective_end = end;
      if (member != key) wake(static_cast<std::int32_t>(member));
    }
    state = {};
  }
  if (stream.collective_end == kNever) return false;
  recorder(key).collective(where(key, instruction), stream.now, stream.collective_ready,
                           stream.collective_end);
  stream.now = stream.collective_end;
  stream.in_collective = false;
  stream.collective_end = kNever;
  return true;
}

void IdealRun::send(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  const program::Peer& peer =
      job_.ranks[key / program::kStreams].peers[static_cast<std::size_t>(instruction.peer)];
  Message& message = messages_[static_cast<std::size_t>(peer.rank)][instruction.id];
  const Seconds duration = peer.latency + lone_flow_time(job_, peer.flow, instruction.amount);
  ++timeline_.activities;
  message.started = stream.now;
  message.arrived = stream.now + duration;
  recorder(key).send(where(key, instruction), stream.now, message.arrived);
  stream.now = message.arrived;
  wake(message.waiter);
}

bool IdealRun::receive(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  Message& message = messages_[key / program::kStreams][instruction.id];
  if (message.arrived == kNever) {
    message.waiter = static_cast<std::int32_t>(key);
    return false;
  }
  const Seconds until = std::max(stream.now, message.arrived);
  recorder(key).receive(where(key, instruction), stream.now, until, message.started);
  stream.now = until;
  return true;
}

bool IdealRun::wait(std::size_t key, const Instruction& instruction) {
  StreamState& stream = streams_[key];
  Event& event = events_[key / program::kStreams][instruction.id];
  if (event.time == kNever) {
    event.waiter = static_cast<std::int32_t>(key);
    return false;
  }
  const Seconds until = std::max(stream.now, event.time);
  recorder(key).wait(where(key, instruction), stream.now, until);
  stream.now = until;
  return true;
}

void IdealRun::record(std::size_t key, const Instruction& instruction) {
  Event& event = events_[key / program::kStreams][instruction.id];
  event.time = streams_[key].now;
  wake(event.waiter);
}

void IdealRun::fail_if_stuck() const {
  std::string waiting;
  for (std::size_t key = 0; key < streams_.size(); ++key) {
    const StreamState& stream = streams_[key];
    if (stream.next >= stream.code->size()) continue;
    waiting +=
        "\n  " + describe_wait(job_, key / program::kStreams, static_cast<Stream>(key % program::kStreams),
                               (*stream.code)[stream.next]);
  }
  if (!waiting.empty()) throw std::logic_error("the programs wait for each other for ever:" + waiting);
}

class IdealExecutor : public Executor {
 public:
  explicit IdealExecutor(ExecutorOptions options) : options_(std::move(options)) {}
  program::Timeline run(const program::Job& job) override { return IdealRun(job, options_).run(); }

 private:
  ExecutorOptions options_;
};

}  // namespace

std::unique_ptr<Executor> make_ideal_executor(ExecutorOptions options) {
  return std::make_unique<IdealExecutor>(std::move(options));
}

}  // namespace trainsim::engine
