// SPDX-License-Identifier: Apache-2.0
// How a comparison's arguments are taken apart.
#include "sim/cli/compare.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::cli {
namespace {

using Texts = std::vector<std::string>;

TEST(CompareSpec, ChangesFollowTheLastSignBeforeTheFirstEquals) {
  const CompareSpec plain = parse_compare_spec("gpt175b", nullptr);
  EXPECT_EQ(plain.config, "gpt175b");
  EXPECT_TRUE(plain.changes.empty());
  const CompareSpec one = parse_compare_spec("gpt175b@plan.recompute=full", nullptr);
  EXPECT_EQ(one.config, "gpt175b");
  EXPECT_EQ(one.changes, Texts{"plan.recompute=full"});
  const CompareSpec two =
      parse_compare_spec("runs@may/a.yaml@plan.pipeline_layout=[1, 2],gpus=+50%", nullptr);
  EXPECT_EQ(two.config, "runs@may/a.yaml");
  EXPECT_EQ(two.changes, (Texts{"plan.pipeline_layout=[1, 2]", "gpus=+50%"}));
  EXPECT_EQ(parse_compare_spec("a@cluster.nic=b@c", nullptr).changes, Texts{"cluster.nic=b@c"});
  // A file that is not there, rather than a change without a value.
  EXPECT_EQ(parse_compare_spec("runs@may/a.yaml", nullptr).config, "runs@may/a.yaml");
}

TEST(CompareSpec, ASignAloneGoesOnFromTheFirst) {
  const CompareSpec first = parse_compare_spec("gpt175b@gpus=512", nullptr);
  const CompareSpec next = parse_compare_spec("@plan.recompute=full", &first);
  EXPECT_EQ(next.config, "gpt175b");
  EXPECT_EQ(next.changes, (Texts{"gpus=512", "plan.recompute=full"}));
  EXPECT_THROW(parse_compare_spec("@plan.recompute=full", nullptr), InputError);
}

TEST(CompareSpec, AFileThatExistsIsTakenWhole) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.write("a@b=c.yaml", "gpus: 8\n").string();
  EXPECT_EQ(parse_compare_spec(path, nullptr).config, path);
}

}  // namespace
}  // namespace trainsim::cli
