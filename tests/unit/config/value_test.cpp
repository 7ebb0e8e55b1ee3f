// SPDX-License-Identifier: Apache-2.0
#include "sim/config/value.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

TEST(FlowText, IsOnOneLineAndReadsBackAsTheSame) {
  const std::string text =
      flow_text(parsed("a: 1\n"
                       "b:\n"
                       "  - x y\n"
                       "  - {c: null, d: \"8\"}\n"
                       "e: 'it''s'\n"));
  EXPECT_EQ(text, "{a: 1, b: [x y, {c: null, d: '8'}], e: 'it''s'}");
  EXPECT_EQ(flow_text(parsed(text)), text);
}

TEST(ResolvedText, ChangesWithWhatNamesStandFor) {
  const tests::TemporaryFolder folder;
  folder.write("m.yaml", "num_layers: 2\n");
  const std::string config = folder.write("c.yaml", "model: ./m.yaml\ncluster: dgx-h100\ngpus: 8\n").string();
  const std::string before = resolved_text(config, {});
  EXPECT_EQ(resolved_text(config, {}), before);
  EXPECT_NE(resolved_text(config, {"gpus=16"}), before);
  folder.write("m.yaml", "num_layers: 3\n");
  EXPECT_NE(resolved_text(config, {}), before);
}

TEST(ResolvedText, NeedsAFileThatCanBeRead) {
  EXPECT_THROW(resolved_text("/nonexistent.yaml", {}), InputError);
  const tests::TemporaryFolder folder;
  const std::string config = folder.write("c.yaml", "gpus: 8\n").string();
  EXPECT_THROW(resolved_text(config, {"no value"}), InputError);
}

}  // namespace
}  // namespace trainsim::config
