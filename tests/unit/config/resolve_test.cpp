// SPDX-License-Identifier: Apache-2.0
#include "sim/config/resolve.hpp"

#include <gtest/gtest.h>

#include "tests/unit/config/inputs.hpp"

namespace trainsim::config {
namespace {

class Resolve : public InputFolder {
 protected:
  /// What a value in a file of the folder stands for.
  std::optional<Value> resolved(const std::string& text, Component component) {
    const auto source = std::make_shared<Source>("test.yaml", folder_.path(), text, 0);
    const std::optional<Value> value = parse(source, text, reading_.report);
    return Resolver(reading_).resolve(*value, component, "it");
  }

  Reading reading_;
};

TEST(Merge, IsDeepAndKeepsOrderAndPositions) {
  const Value base = parsed("a: {x: 1, y: 2}\nb: 3\n");
  const Value overlay = parsed("\n\n\na: {y: 20, z: 30}\nc: 4\n");
  const Value merged = merge(base, overlay);
  ASSERT_EQ(merged.entries.size(), 3u);
  const Value& a = merged.find("a")->value;
  EXPECT_EQ(a.find("x")->value.text, "1");
  EXPECT_EQ(a.find("x")->value.at.line, 1);
  EXPECT_EQ(a.find("y")->value.text, "20");
  EXPECT_EQ(a.find("y")->value.at.line, 4);
  EXPECT_EQ(a.find("z")->value.text, "30");
  EXPECT_EQ(merged.find("c")->value.text, "4");
}

TEST(Merge, ReplacesListsAndScalars) {
  const Value merged = merge(parsed("a: [1, 2]\nb: x\n"), parsed("a: [3]\nb: {c: 1}\n"));
  EXPECT_EQ(merged.find("a")->value.items.size(), 1u);
  EXPECT_EQ(merged.find("b")->value.kind, Kind::kMap);
  EXPECT_EQ(merged.find("b")->value.find("extends"), nullptr);
}

TEST(Merge, ChangesANamedPart) {
  const Value merged =
      merge(parsed("nic: card\ngpu: chip\n"), parsed("nic: {latency: 1 us}\ngpu: {extends: other}\n"));
  EXPECT_EQ(merged.find("nic")->value.find("extends")->value.text, "card");
  EXPECT_EQ(merged.find("nic")->value.find("latency")->value.text, "1 us");
  EXPECT_EQ(merged.find("gpu")->value.find("extends")->value.text, "other");
}

TEST(NicBandwidth, IsTheBandwidthOfTheNic) {
  Report report;
  Value alone = parsed("nic_bandwidth: 1 GB/s\n");
  expand_nic_bandwidth(alone, "cluster", report);
  EXPECT_EQ(alone.find("nic_bandwidth"), nullptr);
  EXPECT_EQ(alone.find("nic")->value.find("bandwidth")->value.text, "1 GB/s");
  Value named = parsed("nic: card\nnic_bandwidth: 1 GB/s\n");
  expand_nic_bandwidth(named, "cluster", report);
  EXPECT_EQ(named.find("nic")->value.find("extends")->value.text, "card");
  EXPECT_TRUE(report.empty());
  Value twice = parsed("nic: {bandwidth: 2 GB/s}\nnic_bandwidth: 1 GB/s\n");
  expand_nic_bandwidth(twice, "cluster", report);
  EXPECT_NE(report.text().find("cluster.nic_bandwidth: nic.bandwidth is given as well"), std::string::npos);
}

TEST_F(Resolve, ReadsAPresetAndNamesIt) {
  const std::optional<Value> model = resolved("small", Component::kModel);
  ASSERT_TRUE(model) << reading_.report.text();
  EXPECT_EQ(model->find("name")->value.text, "small");
  EXPECT_EQ(model->find("num_layers")->value.text, "24");
}

TEST_F(Resolve, ExtendsAPresetAndSaysSo) {
  const std::optional<Value> model = resolved("{extends: small, num_layers: 4}", Component::kModel);
  ASSERT_TRUE(model) << reading_.report.text();
  EXPECT_EQ(model->find("name")->value.text, "small (modified)");
  EXPECT_EQ(model->find("num_layers")->value.text, "4");
  EXPECT_EQ(model->find("extends"), nullptr);
}

TEST_F(Resolve, ChangesAPartOfACluster) {
  const std::optional<Value> cluster =
      resolved("{extends: box, gpu: {memory: 40 GiB}, nic_bandwidth: 100 Gb/s}", Component::kCluster);
  ASSERT_TRUE(cluster) << reading_.report.text();
  const Value& gpu = cluster->find("gpu")->value;
  EXPECT_EQ(gpu.find("memory")->value.text, "40 GiB");
  EXPECT_EQ(gpu.find("tile_m")->value.text, "128");
  EXPECT_EQ(gpu.find("name")->value.text, "chip (modified)");
  const Value& nic = cluster->find("nic")->value;
  EXPECT_EQ(nic.find("bandwidth")->value.text, "100 Gb/s");
  EXPECT_EQ(nic.find("latency")->value.text, "2 us");
}

TEST_F(Resolve, TakesPathsRelativeToTheFileThatNamesThem) {
  write("sub/one.yaml", "extends: ../models/small.yaml\nname: one\n");
  const std::optional<Value> model = resolved("sub/one.yaml", Component::kModel);
  ASSERT_TRUE(model) << reading_.report.text();
  EXPECT_EQ(model->find("name")->value.text, "one");
  EXPECT_EQ(model->find("num_layers")->value.text, "24");
}

TEST_F(Resolve, NamesAFileThatExtendsAPresetAfterItself) {
  write("models/large.yaml", "extends: small\nnum_layers: 48\n");
  const std::optional<Value> model = resolved("large", Component::kModel);
  ASSERT_TRUE(model) << reading_.report.text();
  EXPECT_EQ(model->find("name")->value.text, "large");
}

TEST_F(Resolve, FindsCircles) {
  write("a.yaml", "extends: ./b.yaml\n");
  write("b.yaml", "extends: ./a.yaml\n");
  EXPECT_FALSE(resolved("./a.yaml", Component::kModel));
  EXPECT_NE(reading_.report.text().find("extends goes in a circle: ./a.yaml is made from this file"),
            std::string::npos);
}

TEST_F(Resolve, FollowsEightFilesAtMost) {
  for (int i = 1; i < 10; ++i) {
    write(std::to_string(i) + ".yaml", "extends: ./" + std::to_string(i + 1) + ".yaml\n");
  }
  write("10.yaml", "num_layers: 1\n");
  EXPECT_TRUE(resolved("./3.yaml", Component::kModel)) << reading_.report.text();  // 3 to 10 are eight files
  EXPECT_FALSE(resolved("./2.yaml", Component::kModel));
  EXPECT_NE(reading_.report.text().find("extends goes through more than 8 files"), std::string::npos);
}

TEST_F(Resolve, SuggestsPresets) {
  EXPECT_FALSE(resolved("smal", Component::kModel));
  EXPECT_NE(reading_.report.text().find("it: no model preset is called smal; did you mean small?"),
            std::string::npos);
  EXPECT_FALSE(resolved("{extends: huge}", Component::kModel));
  EXPECT_NE(reading_.report.text().find("it.extends: no model preset is called huge; known: small"),
            std::string::npos);
}

TEST_F(Resolve, GoesOnAfterAPartThatIsNotFound) {
  EXPECT_TRUE(resolved("{extends: box, gpu: chop, nic: cart}", Component::kCluster));
  EXPECT_EQ(reading_.unread, (std::vector<std::string>{"it.gpu", "it.nic"}));
}

TEST_F(Resolve, SurvivesPathsThatNoFileCanHave) {
  EXPECT_FALSE(resolved("./" + std::string(100'000, 'a'), Component::kModel));
  EXPECT_NE(reading_.report.text().find("it: no such file: "), std::string::npos);
}

TEST_F(Resolve, DoesNotLeaveThePresetFolder) {
  EXPECT_FALSE(resolved("..", Component::kModel));
  EXPECT_NE(reading_.report.text().find("no model preset is called .."), std::string::npos);
}

}  // namespace
}  // namespace trainsim::config
