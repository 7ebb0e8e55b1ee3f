// SPDX-License-Identifier: Apache-2.0
#include "sim/config/schema.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "sim/config/section.hpp"
#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

/// What a recorder learns of a reader of a mapping.
template <class Read>
std::vector<SchemaKey> recorded(const std::vector<std::string>& texts, Read read) {
  Recorder recorder;
  for (const std::string& text : texts) {
    const Value value = parsed(text);
    Reading reading;
    reading.recorder = &recorder;
    Section section(value, value.at, "s", reading);
    read(section);
  }
  return recorder.keys();
}

const SchemaKey& key_at(const std::vector<SchemaKey>& keys, const std::string& path) {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const SchemaKey& key) { return key.path == path; });
  EXPECT_NE(found, keys.end()) << path;
  return *found;
}

TEST(Schema, LearnsFormsBoundsAndDefaults) {
  const auto keys = recorded({"a: 1\n"}, [](Section& section) {
    section.required("a", as_count({2, 9}));
    section.defaulted("b", as_flag(), "true");
    section.optional("c", as_quantity(Dimension::kTime));
  });
  ASSERT_EQ(keys.size(), 3U);
  EXPECT_EQ(keys[0].path, "s.a");
  EXPECT_EQ(keys[0].form->kind, Form::Kind::kCount);
  EXPECT_EQ(keys[0].form->least, 2);
  EXPECT_EQ(keys[0].form->most, 9);
  EXPECT_TRUE(keys[0].required);
  EXPECT_FALSE(keys[1].required);
  EXPECT_EQ(keys[1].fallback, "true");
  EXPECT_EQ(keys[2].form->dimension, Dimension::kTime);
}

TEST(Schema, KnowsNoDefaultThatFollowsFromOtherKeys) {
  const auto keys = recorded({"a: 1\n", "a: 2\n"}, [](Section& section) {
    const auto a = section.required("a", as_count());
    section.defaulted("b", as_count(), std::to_string(2 * a));
  });
  EXPECT_EQ(key_at(keys, "s.b").fallback, std::nullopt);
}

TEST(Schema, AKeyThatIsNeededSometimesIsNotRequired) {
  const auto keys = recorded({"a: true\n", "a: false\n"}, [](Section& section) {
    if (section.required("a", as_flag())) section.required("b", as_count());
  });
  EXPECT_TRUE(key_at(keys, "s.a").required);
  EXPECT_FALSE(key_at(keys, "s.b").required);
}

TEST(Schema, GoesIntoMappingsAndLists) {
  const auto keys = recorded({"m: {x: 1}\nl: [{y: 1}, {y: 2}]\nn: [1]\n"}, [](Section& section) {
    if (auto inner = section.mapping("m", false)) inner->required("x", as_count());
    for (Section& item : section.mappings("l")) item.required("y", as_count());
    section.list("n", as_count());
  });
  EXPECT_TRUE(key_at(keys, "s.m").mapping);
  EXPECT_TRUE(key_at(keys, "s.l").mappings);
  EXPECT_TRUE(key_at(keys, "s.l[].y").required);
  EXPECT_TRUE(key_at(keys, "s.n").list);
}

TEST(Schema, HasEveryMappingsKeys) {
  const std::vector<SchemaKey> keys = schema_keys();
  for (const SchemaKey& key : keys) {
    const std::string below = key.path + (key.mappings ? "[]." : ".");
    const bool any = std::any_of(keys.begin(), keys.end(),
                                 [&](const SchemaKey& other) { return other.path.starts_with(below); });
    if ((key.mapping || key.mappings) && !key.path.ends_with("source")) {
      EXPECT_TRUE(any) << "no probe of schema.cpp leads into " << key.path;
    }
    if (!key.mapping && !key.mappings) {
      EXPECT_TRUE(key.form.has_value()) << key.path << " is read without a Reader";
    }
  }
}

}  // namespace
}  // namespace trainsim::config
