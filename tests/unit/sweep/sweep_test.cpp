// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep.hpp"

#include <gtest/gtest.h>

#include "sim/base/diagnostics.hpp"

namespace trainsim::sweep {
namespace {

using Texts = std::vector<std::string>;

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, TheLastAxisChangesFastest) {
  const Sweep sweep({vary_axis("a=1,2"), vary_axis("b=x,y,z")});
  ASSERT_EQ(sweep.size(), 6U);
  EXPECT_EQ(sweep.keys(), (Texts{"a", "b"}));
  EXPECT_EQ(sweep.overrides(0), (Texts{"a=1", "b=x"}));
  EXPECT_EQ(sweep.overrides(2), (Texts{"a=1", "b=z"}));
  EXPECT_EQ(sweep.overrides(3), (Texts{"a=2", "b=x"}));
  EXPECT_EQ(sweep.overrides(5), (Texts{"a=2", "b=z"}));
}

TEST(Sweep, ZippedListsGoTogether) {
  const Sweep sweep({zip_axis({"a=1,2,4", "b=8,4,2"}), vary_axis("c=x,y")});
  ASSERT_EQ(sweep.size(), 6U);
  EXPECT_EQ(sweep.overrides(0), (Texts{"a=1", "b=8", "c=x"}));
  EXPECT_EQ(sweep.overrides(3), (Texts{"a=2", "b=4", "c=y"}));
  EXPECT_EQ(sweep.overrides(4), (Texts{"a=4", "b=2", "c=x"}));
}

TEST(Sweep, ZippedListsNeedTheSameLength) {
  EXPECT_EQ(
      error_of([] {
        zip_axis({"a=1,2,4", "b=8,4"});
      }),
      "trainsim: error: --zip b has 2 values, but a has 3; zipped lists need the same length (for every "
      "combination use --vary)");
}

TEST(Sweep, KeysAreVariedOnce) {
  EXPECT_EQ(error_of([] {
              Sweep({vary_axis("a=1"), vary_axis("a=2")});
            }),
            "trainsim: error: a is varied twice; vary it once, with all of its values");
  EXPECT_EQ(error_of([] {
              Sweep({vary_axis("p.r=1"), vary_axis("p.r.layers=2")});
            }),
            "trainsim: error: p.r and p.r.layers overlap; vary it once, with all of its values");
  EXPECT_EQ(Sweep({vary_axis("p.r=1"), vary_axis("p.rest=2")}).size(), 1U);
}

TEST(Sweep, NothingVariedIsAnError) {
  EXPECT_EQ(error_of([] { Sweep({}); }),
            "trainsim: error: nothing is varied; give at least one --vary KEY=VALUES, as in --vary "
            "plan.micro_batch_size=1,2,4, or --zip or --plans");
}

TEST(Sweep, TooManyPointsAreRefusedBeforeTheyAreCounted) {
  // 1000^7 = 1e21 does not fit into 64 bits.
  const auto huge = [] {
    std::vector<Axis> axes;
    for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) {
      std::string text = key;
      axes.push_back(vary_axis(text += "=1..1000"));
    }
    Sweep sweep(axes);
  };
  EXPECT_EQ(error_of(huge),
            "trainsim: error: the sweep has more than 1000000 points; vary fewer keys or take larger steps");
}

TEST(Sweep, AnAxisNeedsAKeyAndDifferentValues) {
  EXPECT_EQ(error_of([] { vary_axis("plan.micro_batch_size"); }),
            "trainsim: error: --vary 'plan.micro_batch_size' needs a key, '=' and values, as in --vary "
            "plan.micro_batch_size=1,2,4");
  EXPECT_NE(error_of([] { vary_axis("=1"); }), "");
  EXPECT_EQ(error_of([] { vary_axis("a=1,2,1"); }),
            "trainsim: error: --vary a: the value 1 is there twice; name it once");
}

TEST(Sweep, KeysThatRowsLeaveOutAreNotSet) {
  Axis plans{{"a", "b"}, {{"1", std::nullopt}, {std::nullopt, "2"}, {"3", "4"}}};
  const Sweep sweep({plans});
  EXPECT_EQ(sweep.overrides(0), (Texts{"a=1"}));
  EXPECT_EQ(sweep.overrides(1), (Texts{"b=2"}));
  EXPECT_EQ(sweep.points_with_all_keys(), (std::vector<std::size_t>{0, 1}));
}

TEST(Shard, TakesEveryNthPoint) {
  EXPECT_EQ(points_of({2, 3}, 8), (std::vector<std::size_t>{1, 4, 7}));
  EXPECT_EQ(points_of({1, 1}, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(points_of({3, 3}, 2).empty());
}

}  // namespace
}  // namespace trainsim::sweep
