// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/worker_pool.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/cli/interruption.hpp"

namespace trainsim::cli {

namespace {

/// First byte of what a worker writes.
constexpr char kDoneMark = '+';
constexpr char kFailedMark = '-';
/// How long to wait for workers before the pace is asked for again.
constexpr int kPaceMilliseconds = 200;

/// A child process at work.
struct Worker {
  std::size_t task = 0;
  pid_t process = -1;
  int pipe_end = -1;
  std::string text;
};

/// Body of a child: writes the marked result to the pipe; never returns.
[[noreturn]] void run_child(const std::function<std::string(std::size_t)>& work, std::size_t task,
                            int pipe_end) {
  std::string text;
  try {
    text = kDoneMark + work(task);
  } catch (const std::exception& error) {
    text = kFailedMark + std::string(error.what());
  }
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t step = write(pipe_end, text.data() + written, text.size() - written);
    if (step < 0 && errno != EINTR) break;
    written += static_cast<std::size_t>(std::max<ssize_t>(step, 0));
  }
  std::_Exit(0);
}

/// The workers of one call of run_forked.
class Pool {
 public:
  explicit Pool(const std::function<std::string(std::size_t)>& work) : work_(work) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (const Worker& worker : workers_) {
      kill(worker.process, SIGKILL);
      close(worker.pipe_end);
      waitpid(worker.process, nullptr, 0);
    }
  }

  std::size_t size() const { return workers_.size(); }

  void start(std::size_t task) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("can't open a pipe to a worker process");
    // What is buffered would otherwise be written by the child as well.
    std::fflush(nullptr);
    // A signal in between would do in the worker what it does here.
    const HeldInterruptions held;
    const pid_t process = fork();
    if (process < 0) throw std::runtime_error("can't start a worker process");
    if (process == 0) {
      // A worker whose parent was killed would go on for nobody.
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      leave_interruptions_to_parent();
      held.release();
      close(ends[0]);
      run_child(work_, task, ends[1]);
    }
    close(ends[1]);
    workers_.push_back({task, process, ends[0], ""});
  }

  /// Waits until at least one worker has written or ended, or for so long (-1: without end); returns those
  /// that have ended.
  std::vector<std::pair<std::size_t, WorkResult>> wait(int milliseconds) {
    std::vector<pollfd> ends;
    for (const Worker& worker : workers_) ends.push_back({worker.pipe_end, POLLIN, 0});
    if (poll(ends.data(), ends.size(), milliseconds) < 0 && errno != EINTR) {
      throw std::runtime_error("can't wait for worker processes");
    }
    std::vector<std::pair<std::size_t, WorkResult>> ended;
    for (std::size_t i = ends.size(); i-- > 0;) {
      if (ends[i].revents == 0 || read_some(workers_[i])) continue;
      ended.emplace_back(workers_[i].task, finish(workers_[i]));
      workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return ended;
  }

 private:
  /// Returns false at the end of the worker's text.
  static bool read_some(Worker& worker) {
    std::array<char, 4096> buffer{};
    const ssize_t got = read(worker.pipe_end, buffer.data(), buffer.size());
    if (got > 0) worker.text.append(buffer.data(), static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && errno == EINTR);
  }

  static WorkResult finish(Worker& worker) {
    close(worker.pipe_end);
    int status = 0;
    waitpid(worker.process, &status, 0);
    if (WIFSIGNALED(status)) {
      return {false, "the simulation was ended by signal " + std::to_string(WTERMSIG(status))};
    }
    if (worker.text.empty()) return {false, "the simulation ended without a result"};
    return {worker.text.front() == kDoneMark, worker.text.substr(1)};
  }

  const std::function<std::string(std::size_t)>& work_;
  std::vector<Worker> workers_;
};

}  // namespace

void run_forked(std::size_t tasks, std::size_t workers, const std::function<std::string(std::size_t)>& work,
                const std::function<void(std::size_t, const WorkResult&)>& receive,
                const std::function<Pace()>& pace) {
  Pool pool(work);
  std::size_t next = 0;
  while (next < tasks || pool.size() > 0) {
    const Pace now = pace ? pace() : Pace::kGoOn;
    const bool ends = now == Pace::kStop || (now == Pace::kFinishRunning && pool.size() == 0);
    if (ends) return;
    while (now == Pace::kGoOn && next < tasks && pool.size() < workers) pool.start(next++);
    for (const auto& [task, result] : pool.wait(pace ? kPaceMilliseconds : -1)) receive(task, result);
  }
}

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace trainsim::cli
