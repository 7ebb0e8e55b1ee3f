// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child_process.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace trainsim::tests {

namespace {

[[noreturn]] void run_child(const std::function<std::vector<double>()>& work, int pipe_end) {
  try {
    const std::vector<double> numbers = work();
    std::FILE* out = fdopen(pipe_end, "wb");
    const bool written = std::fwrite(numbers.data(), sizeof(double), numbers.size(), out) == numbers.size();
    std::_Exit(std::fclose(out) == 0 && written ? 0 : 1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child process: %s\n", error.what());
    std::_Exit(1);
  }
}

}  // namespace

std::vector<double> in_child(const std::function<std::vector<double>()>& work) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_child(work, ends[1]);
  }
  close(ends[1]);
  std::vector<double> numbers;
  double number = 0;
  std::FILE* in = fdopen(ends[0], "rb");
  while (std::fread(&number, sizeof number, 1, in) == 1) numbers.push_back(number);
  std::fclose(in);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error("the child process failed");
  return numbers;
}

}  // namespace trainsim::tests
