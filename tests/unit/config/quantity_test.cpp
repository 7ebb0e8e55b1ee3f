// SPDX-License-Identifier: Apache-2.0
#include "sim/config/quantity.hpp"

#include <gtest/gtest.h>

namespace trainsim::config {
namespace {

std::int64_t count(std::string_view text) {
  const Parsed<std::int64_t> parsed = parse_count(text);
  EXPECT_TRUE(parsed.value) << text << ": " << parsed.error;
  return parsed.value.value_or(-1);
}

double quantity(std::string_view text, Dimension dimension) {
  const Parsed<double> parsed = parse_quantity(text, dimension);
  EXPECT_TRUE(parsed.value) << text << ": " << parsed.error;
  return parsed.value.value_or(-1);
}

std::string count_error(std::string_view text) {
  return parse_count(text).error;
}

TEST(Count, ReadsPlainAndGroupedDigits) {
  EXPECT_EQ(count("0"), 0);
  EXPECT_EQ(count("1024"), 1024);
  EXPECT_EQ(count("1_024"), 1024);
  EXPECT_EQ(count("1_000_000"), 1'000'000);
  EXPECT_EQ(count("+8"), 8);
  EXPECT_EQ(count("-1"), -1);
}

TEST(Count, ReadsExponentsAndSuffixesThatComeOutWhole) {
  EXPECT_EQ(count("1e12"), 1'000'000'000'000);
  EXPECT_EQ(count("1.5e3"), 1500);
  EXPECT_EQ(count("8e0"), 8);
  EXPECT_EQ(count("2k"), 2000);
  EXPECT_EQ(count("2048K"), 2'048'000);
  EXPECT_EQ(count("40M"), 40'000'000);
  EXPECT_EQ(count("7B"), 7'000'000'000);
  EXPECT_EQ(count("174.6B"), 174'600'000'000);
  EXPECT_EQ(count("1.4T"), 1'400'000'000'000);
  EXPECT_EQ(count("80.0"), 80);
  EXPECT_EQ(count("100e-2"), 1);
}

TEST(Count, IsExactUpToTheLargestInteger) {
  EXPECT_EQ(count("9223372036854775807"), 9'223'372'036'854'775'807);
  EXPECT_EQ(count_error("9223372036854775808"), "9223372036854775808 is too large to count");
  EXPECT_EQ(count_error("1e400"), "1e400 is too large to count");
  EXPECT_EQ(count_error("1e99999999999999999999"), "1e99999999999999999999 is too large to count");
}

TEST(Count, RefusesFractions) {
  const std::string cure = " is not a whole number; write a count such as 1024, 1_024, 2k, 40M, 7B or 1e12";
  EXPECT_EQ(count_error("3.5"), "3.5" + cure);
  EXPECT_EQ(count_error("1e-1"), "1e-1" + cure);
  EXPECT_EQ(count_error("1.2345k"), "1.2345k" + cure);
}

TEST(Count, RefusesOtherSpellingsOfNumbers) {
  EXPECT_NE(count_error("010").find("leading zero, which some YAML readers take for octal; write 10"),
            std::string::npos);
  EXPECT_NE(count_error("00").find("write 0"), std::string::npos);
  EXPECT_NE(count_error("0x10").find("not a decimal number"), std::string::npos);
  EXPECT_NE(count_error("0o17").find("not a decimal number"), std::string::npos);
  EXPECT_NE(count_error("12:30").find("base 60"), std::string::npos);
  EXPECT_NE(count_error("true").find("true is a boolean, not a number"), std::string::npos);
  EXPECT_NE(count_error("Yes").find("Yes is a boolean"), std::string::npos);
  EXPECT_NE(count_error(".inf").find("not a finite number"), std::string::npos);
  EXPECT_NE(count_error("-.INF").find("not a finite number"), std::string::npos);
  EXPECT_NE(count_error(".nan").find("not a finite number"), std::string::npos);
}

TEST(Count, RefusesUnderscoresThatSeparateNothing) {
  for (const char* text : {"_1", "1_", "1__0", "1_k"}) EXPECT_FALSE(parse_count(text).value) << text;
}

TEST(Count, NamesAnUnknownSuffix) {
  EXPECT_NE(count_error("4096tok").find("'tok' is no suffix of a count"), std::string::npos);
  EXPECT_NE(count_error("8 GB").find("' GB' is no suffix of a count"), std::string::npos);
  EXPECT_NE(count_error("40m").find("'m' is no suffix"), std::string::npos);
  EXPECT_NE(count_error("eight").find("eight is not a count"), std::string::npos);
}

TEST(Number, ReadsDecimals) {
  EXPECT_DOUBLE_EQ(*parse_number("0.75").value, 0.75);
  EXPECT_DOUBLE_EQ(*parse_number("1e-3").value, 0.001);
  EXPECT_DOUBLE_EQ(*parse_number("-2").value, -2.0);
  EXPECT_DOUBLE_EQ(*parse_number("1_000.5").value, 1000.5);
  EXPECT_DOUBLE_EQ(*parse_number("1e-400").value, 0.0);
}

TEST(Number, RefusesUnitsAndPercentages) {
  EXPECT_EQ(parse_number("80%").error, "80% is a percentage; write the fraction, such as 0.75 for 75%");
  EXPECT_EQ(parse_number("64 MB").error,
            "64 MB is not a plain number: 'MB' is not expected; write a plain number such as 0.75");
  EXPECT_FALSE(parse_number("true").value);
  EXPECT_FALSE(parse_number(".5").value);
}

TEST(Size, KeepsPowersOf1000And1024Apart) {
  EXPECT_EQ(quantity("80 GB", Dimension::kSize), 80e9);
  EXPECT_EQ(quantity("80GB", Dimension::kSize), 80e9);
  EXPECT_EQ(quantity("80 GiB", Dimension::kSize), 80.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(quantity("81559 MiB", Dimension::kSize), 81559.0 * 1024 * 1024);
  EXPECT_EQ(quantity("1.5 KiB", Dimension::kSize), 1536);
  EXPECT_EQ(quantity("512 B", Dimension::kSize), 512);
}

TEST(Rate, KeepsBitsAndBytesApart) {
  // 8 bits are a byte: 200 Gb/s = 25 GB/s.
  for (const char* text : {"200 Gb/s", "200Gbps", "200 Gbit/s", "25 GB/s", "25GBps", "0.025 TB/s"}) {
    EXPECT_EQ(quantity(text, Dimension::kRate), 25e9) << text;
  }
  EXPECT_EQ(quantity("1 GiB/s", Dimension::kRate), 1024.0 * 1024 * 1024);
  EXPECT_EQ(quantity("8 kb/s", Dimension::kRate), 1000);
}

TEST(Time, ReadsEachUnit) {
  EXPECT_DOUBLE_EQ(quantity("3 s", Dimension::kTime), 3);
  EXPECT_DOUBLE_EQ(quantity("2 ms", Dimension::kTime), 2e-3);
  EXPECT_DOUBLE_EQ(quantity("1.5 us", Dimension::kTime), 1.5e-6);
  EXPECT_DOUBLE_EQ(quantity("1.5 µs", Dimension::kTime), 1.5e-6);
  EXPECT_DOUBLE_EQ(quantity("300ns", Dimension::kTime), 3e-7);
}

TEST(Compute, ReadsBothSpellings) {
  EXPECT_EQ(quantity("312 TFLOP/s", Dimension::kCompute), 312e12);
  EXPECT_EQ(quantity("312 TFLOPS", Dimension::kCompute), 312e12);
  EXPECT_EQ(quantity("1.979 PFLOP/s", Dimension::kCompute), 1.979e15);
}

TEST(Quantity, Powers) {
  EXPECT_EQ(parse_quantity("700 W", Dimension::kPower).value, 700);
  EXPECT_EQ(parse_quantity("1.2 kW", Dimension::kPower).value, 1200);
  EXPECT_NE(parse_quantity("0.7 kw", Dimension::kPower).error.find("did you mean kW?"), std::string::npos);
}

TEST(Quantity, ReadsDurationsOfRunsApartFromTimesOfHardware) {
  EXPECT_EQ(quantity("30 s", Dimension::kDuration), 30);
  EXPECT_EQ(quantity("10 min", Dimension::kDuration), 600);
  EXPECT_EQ(quantity("50_000 h", Dimension::kDuration), 1.8e8);
  EXPECT_EQ(quantity("54 d", Dimension::kDuration), 54 * 86400);
  EXPECT_EQ(quantity("1 day", Dimension::kDuration), 86400);
  EXPECT_EQ(quantity("1.5 days", Dimension::kDuration), 129600);
  EXPECT_EQ(quantity("250 ms", Dimension::kDuration), 0.25);
  EXPECT_EQ(parse_quantity("5 us", Dimension::kDuration).error,
            "5 us is a time, but a duration is needed; units of a duration: ms, s, min, h, d (or day, days)");
  EXPECT_EQ(parse_quantity("5 h", Dimension::kTime).error,
            "5 h is a duration, but a time is needed; units of a time: s, ms, us, ns");
  EXPECT_EQ(parse_quantity("5", Dimension::kDuration).error,
            "5 has no unit; write for example 5 min; units of a duration: ms, s, min, h, d (or day, days)");
}

TEST(Quantity, ReadsCarbonIntensities) {
  EXPECT_EQ(quantity("385 g/kWh", Dimension::kCarbon), 385);
  EXPECT_EQ(quantity("0.385 kg/kWh", Dimension::kCarbon), 385);
  EXPECT_EQ(quantity("385 kg/MWh", Dimension::kCarbon), 385);
  EXPECT_EQ(parse_quantity("385 g", Dimension::kCarbon).error,
            "385 g has the unknown unit 'g'; units of a carbon intensity: g/kWh, kg/kWh, kg/MWh");
}

TEST(Quantity, NeedsAUnit) {
  EXPECT_EQ(parse_quantity("3", Dimension::kTime).error,
            "3 has no unit; write for example 3 us; units of a time: s, ms, us, ns");
}

TEST(Quantity, NeedsAUnitOfItsDimension) {
  EXPECT_EQ(parse_quantity("80 GB/s", Dimension::kTime).error,
            "80 GB/s is a rate, but a time is needed; units of a time: s, ms, us, ns");
  EXPECT_EQ(parse_quantity("2 TB", Dimension::kTime).error,
            "2 TB is a size, but a time is needed; units of a time: s, ms, us, ns");
  EXPECT_EQ(
      parse_quantity("3 ms", Dimension::kCompute).error,
      "3 ms is a time, but a compute rate is needed; units of a compute rate: TFLOP/s, PFLOP/s, GFLOP/s, "
      "MFLOP/s");
}

TEST(Quantity, SuggestsUnitsThatDifferInCaseOrLittle) {
  EXPECT_NE(parse_quantity("200 gb/s", Dimension::kRate).error.find("did you mean GB/s or Gb/s?"),
            std::string::npos);
  EXPECT_NE(parse_quantity("80 gib", Dimension::kSize).error.find("did you mean GiB?"), std::string::npos);
  EXPECT_NE(parse_quantity("312 TFLOPs", Dimension::kCompute).error.find("did you mean TFLOPS?"),
            std::string::npos);
  EXPECT_EQ(parse_quantity("3 GHz", Dimension::kTime).error,
            "3 GHz has the unknown unit 'GHz'; units of a time: s, ms, us, ns");
}

TEST(Quantity, RefusesWhatIsNoNumber) {
  EXPECT_EQ(parse_quantity("fast", Dimension::kTime).error,
            "fast is not a time; write a time such as 1.5 us");
  EXPECT_EQ(parse_quantity("010 us", Dimension::kTime).error,
            "010 us has a leading zero, which some YAML readers take for octal; write 10 us");
}

TEST(Flag, KnowsTrueAndFalseOnly) {
  EXPECT_EQ(parse_flag("true").value, true);
  EXPECT_EQ(parse_flag("False").value, false);
  for (const char* text : {"yes", "on", "1", "tRUE", ""}) EXPECT_FALSE(parse_flag(text).value) << text;
}

}  // namespace
}  // namespace trainsim::config
