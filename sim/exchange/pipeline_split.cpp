// SPDX-License-Identifier: Apache-2.0
#include "sim/exchange/pipeline_split.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>

#include "sim/base/diagnostics.hpp"

namespace trainsim::exchange {

namespace {

constexpr std::int64_t kMostStages = 100'000;

[[noreturn]] void cannot(const std::string& why) {
  throw InputError("error: " + why);
}

/// Reads "Et*3|(tt|)*29,m|L": letters are embedding, layers and loss; "|" ends a stage; "*N" repeats the
/// letter or group before it.
class Layout {
 public:
  explicit Layout(std::string_view text) : text_(text) {}

  std::vector<std::int64_t> run() {
    const std::string letters = group(false, 0);
    if (at_ < text_.size()) wrong();
    std::vector<std::int64_t> layers(1, 0);
    for (const char letter : letters) {
      if (letter == '|') layers.push_back(0);
      if (letter == 't') ++layers.back();
      if (letter == 'm')
        cannot(
            "--pipeline-model-parallel-layout has multi-token prediction (m), which this version "
            "cannot simulate");
    }
    return layers;
  }

 private:
  [[noreturn]] void wrong() const {
    cannot("--pipeline-model-parallel-layout '" + std::string(text_) + "' is wrong at character " +
           std::to_string(at_ + 1) + "; it has the letters E, t, L, '|' and repeats such as t*3 or (tt|)*4");
  }

  std::string group(bool inner, int depth) {
    constexpr int deepest = 20;
    if (depth > deepest) wrong();
    std::string all;
    std::string last;
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (letter == ')' && inner) break;
      if (letter == '*') {
        ++at_;
        repeat(last);
        all += last;
        last.clear();
        continue;
      }
      all += last;
      last.clear();
      if (letter == '(') {
        ++at_;
        last = group(true, depth + 1);
        if (at_ >= text_.size()) wrong();
      } else if (std::string_view("EtmL|").find(letter) != std::string_view::npos) {
        last = letter;
      } else if (letter != ',' && letter != ' ') {
        wrong();
      }
      ++at_;
    }
    all += last;
    if (all.size() > static_cast<std::size_t>(kMostStages)) wrong();
    return all;
  }

  void repeat(std::string& piece) {
    std::size_t times = 0;
    const std::size_t start = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 &&
           times < static_cast<std::size_t>(kMostStages))
      times = 10 * times + static_cast<std::size_t>(text_[at_++] - '0');
    if (at_ == start || piece.empty() || times * piece.size() > static_cast<std::size_t>(kMostStages))
      wrong();
    std::string repeated;
    for (std::size_t i = 0; i < times; ++i) repeated += piece;
    piece = std::move(repeated);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

PipelineSplit from_layout(const PipelineOptions& options) {
  PipelineSplit split;
  split.layout = Layout(options.layout).run();
  const auto stages = static_cast<std::int64_t>(split.layout.size());
  if (stages % options.stages != 0)
    cannot("--pipeline-model-parallel-layout has " + std::to_string(stages) +
           " parts, not a multiple of the " + std::to_string(options.stages) + " stages");
  split.chunks = stages / options.stages;
  split.chunks_origin = split.layout_origin = "--pipeline-model-parallel-layout";
  return split;
}

/// Layers of each chunk with a given first and last stage, the others alike; chunks of a stage are alike too.
void uneven(const PipelineOptions& options, PipelineSplit& split) {
  const std::int64_t others = options.stages - (options.first ? 1 : 0) - (options.last ? 1 : 0);
  const std::int64_t left = options.layers - options.first.value_or(0) - options.last.value_or(0);
  if (left < 0 || (others == 0 ? left != 0 : left % others != 0))
    cannot("--decoder-first- and --decoder-last-pipeline-num-layers leave " + std::to_string(left) +
           " layers for " + std::to_string(others) + " stages, which must share them evenly");
  std::vector<std::int64_t> stages(static_cast<std::size_t>(options.stages), others == 0 ? 0 : left / others);
  if (options.first) stages.front() = *options.first;
  if (options.last) stages.back() = *options.last;
  for (std::int64_t chunk = 0; chunk < split.chunks; ++chunk) {
    for (const std::int64_t layers : stages) {
      if (layers % split.chunks != 0)
        cannot(std::to_string(layers) + " layers of a stage do not divide into " +
               std::to_string(split.chunks) + " chunks");
      split.layout.push_back(layers / split.chunks);
    }
  }
  split.layout_origin = "--decoder-first- and --decoder-last-pipeline-num-layers";
}

}  // namespace

PipelineSplit split_pipeline(const PipelineOptions& options) {
  if (options.stages < 1 || options.stages > kMostStages)
    cannot("--pipeline-model-parallel-size must be 1 or more");
  if (!options.layout.empty()) return from_layout(options);
  PipelineSplit split;
  const std::int64_t dealt =
      options.layers + (options.counts_embedding ? 1 : 0) + (options.counts_loss ? 1 : 0);
  const bool counts = options.counts_embedding || options.counts_loss;
  if (options.chunks) {
    split.chunks = std::max<std::int64_t>(1, *options.chunks);
    split.chunks_origin = "--num-virtual-stages-per-pipeline-rank";
  } else if (options.layers_per_chunk) {
    const std::int64_t per_chunk = std::max<std::int64_t>(1, *options.layers_per_chunk);
    if (options.layers == 0) cannot("--num-layers-per-virtual-pipeline-stage needs --num-layers");
    if (dealt % (options.stages * per_chunk) != 0)
      cannot(std::to_string(dealt) + " layers on " + std::to_string(options.stages) +
             " stages do not divide into chunks of " + std::to_string(per_chunk) +
             " (--num-layers-per-virtual-pipeline-stage)");
    split.chunks = dealt / options.stages / per_chunk;
    split.chunks_origin = "--num-layers-per-virtual-pipeline-stage " + std::to_string(per_chunk);
  }
  if (split.chunks > kMostStages) cannot("there are more than 100,000 chunks");
  if (options.first || options.last) {
    uneven(options, split);
  } else if (counts) {
    const std::int64_t parts = options.stages * split.chunks;
    if (dealt % parts != 0)
      cannot(std::to_string(dealt) + " layers, embedding and loss counted, do not divide by " +
             std::to_string(parts) + " parts of the pipeline");
    split.layout.assign(static_cast<std::size_t>(parts), dealt / parts);
    if (options.counts_embedding) --split.layout.front();
    if (options.counts_loss) --split.layout.back();
    split.layout_origin = "--account-for-embedding- and --account-for-loss-in-pipeline-split";
  }
  return split;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    text += text.empty() ? "[" : ", ";
    text += std::to_string(number);
  }
  return text.empty() ? "[]" : text + "]";
}

}  // namespace trainsim::exchange
