// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainsim::exchange {

/// What a foreign file is.
enum class SourceKind {
  /// To be told from its contents.
  kAuto,
  /// A model's config.json of Hugging Face transformers.
  kHuggingFace,
  /// A shell script or command line that runs Megatron-LM.
  kMegatron,
  /// A DeepSpeed configuration (JSON).
  kDeepSpeed,
  /// A torchtitan job configuration (TOML).
  kTorchtitan,
  /// The log of a run of Megatron-LM with timers.
  kMegatronLog,
  /// A trace of PyTorch's profiler (JSON).
  kKineto,
};

/// What to import.
struct ImportRequest {
  /// Files in the order in which they are read; where two say different things, the later one counts. "-" is
  /// standard input.
  std::vector<std::string> files;
  /// What all files are; kMegatronLog and kKineto say it of the logs and traces among them, of which there
  /// must be one, and large files are read to their end to find out.
  SourceKind kind = SourceKind::kAuto;
  /// A cluster preset or path; empty = none.
  std::string cluster;
  /// GPUs of the job; nothing = what the files say.
  std::optional<std::int64_t> gpus;
  /// Variables of shell scripts, which keep these values.
  std::map<std::string, std::string> defined;
};

/// What came out.
struct Imported {
  /// The configuration, with comments.
  std::string yaml;
  /// What was assumed, is missing or was left out, for people.
  std::vector<std::string> report;
  /// What `trainsim check` would say of it; empty when it is legal, or when something is still missing.
  std::string fault;
};

/// Reads foreign files and writes our configuration. Throws InputError for files that cannot be read,
/// understood or expressed.
Imported import_files(const ImportRequest& request);

}  // namespace trainsim::exchange
