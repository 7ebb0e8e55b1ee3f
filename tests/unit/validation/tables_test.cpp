// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include "sim/validation/gpu_names.hpp"
#include "sim/validation/kernel_table.hpp"
#include "tests/support/temporary_folder.hpp"

namespace trainsim::validation {
namespace {

MeasuredTable read(const std::string& text, config::Report& report) {
  const tests::TemporaryFolder folder;
  return read_table(folder.write("table.csv", text), report);
}

TEST(KernelTable, MultipliesAreTimedByTheirShareOfThePeak) {
  config::Report report;
  const MeasuredTable table = read(
      "# a comment\ngpu,peak_tflops,batch,m,n,k,layout,accumulate,out_dtype,fraction_of_peak\n"
      "a100-80gb,312,2,100,200,300,NT,True,fp32,0.5\n",
      report);
  ASSERT_TRUE(report.empty()) << report.text();
  ASSERT_EQ(table.matmuls.size(), 1U);
  const MeasuredMatmul& row = table.matmuls[0];
  EXPECT_EQ(row.shape.batch, 2);
  EXPECT_EQ(row.shape.k, 300);
  EXPECT_EQ(row.output.element_bytes, 4);
  EXPECT_TRUE(row.output.accumulate);
  EXPECT_DOUBLE_EQ(row.seconds, 2.0 * 2 * 100 * 200 * 300 / (0.5 * 312e12));
}

TEST(KernelTable, AttentionCountsTheFiveMultipliesOfBackward) {
  config::Report report;
  const std::string header =
      "gpu,peak_tflops,pass,batch,seq,heads,kv_heads,qk_head_dim,v_head_dim,fraction_of_peak\n";
  const MeasuredTable table =
      read(header + "b200,2250,fwd,1,1024,8,8,128,128,0.4\nb200,2250,bwd,1,1024,8,8,128,128,0.4\n", report);
  ASSERT_EQ(table.attentions.size(), 2U);
  const double multiply = 2.0 * 8 * 1024 * 1024 * 128;
  EXPECT_DOUBLE_EQ(table.attentions[0].seconds, 2 * multiply / (0.4 * 2250e12));
  EXPECT_DOUBLE_EQ(table.attentions[1].seconds, 5 * multiply / (0.4 * 2250e12));
  EXPECT_TRUE(table.attentions[1].backward);
}

TEST(KernelTable, Collectives) {
  config::Report report;
  const MeasuredTable table = read("cluster,gpus,size_bytes,time_us\ndgx-a100-80gb,8,1048576,92.5\n", report);
  ASSERT_EQ(table.collectives.size(), 1U);
  EXPECT_EQ(table.collectives[0].gpus, 8);
  EXPECT_DOUBLE_EQ(table.collectives[0].seconds, 92.5e-6);
}

TEST(KernelTable, BadLinesAreReportedWithTheirNumberAndLeftOut) {
  config::Report report;
  const MeasuredTable table =
      read("cluster,gpus,size_bytes,time_us\nx,8,1024\nx,eight,1024,3\nx,8,1024,-3\nx,8,1024,3\n", report);
  EXPECT_EQ(table.collectives.size(), 1U);
  const std::string text = report.text();
  EXPECT_NE(text.find(":2:1: error: the line has 3 cells, but the header names 4 columns"), std::string::npos)
      << text;
  EXPECT_NE(text.find(":3:1: error: gpus: "), std::string::npos) << text;
  EXPECT_NE(text.find(":4:1: error: time_us: "), std::string::npos) << text;
  EXPECT_EQ(report.size(), 3U);
}

TEST(KernelTable, WordsAndPercentagesThatMeanNothingAreReported) {
  config::Report report;
  const MeasuredTable table = read(
      "gpu,peak_tflops,batch,m,n,k,accumulate,out_dtype,fraction_of_peak\n"
      "x,312,1,8,8,8,yes,bf16,0.5\nx,312,1,8,8,8,False,fp64,0.5\nx,312,1,8,8,8,False,bf16,62\n",
      report);
  EXPECT_TRUE(table.matmuls.empty());
  const std::string text = report.text();
  EXPECT_NE(text.find(":2:1: error: accumulate: needs False or True, not 'yes'"), std::string::npos) << text;
  EXPECT_NE(text.find(":3:1: error: out_dtype: needs bf16, fp16 or fp32, not 'fp64'"), std::string::npos);
  EXPECT_NE(text.find(":4:1: error: fraction_of_peak: needs a share such as 0.62"), std::string::npos);
  config::Report pass;
  read(
      "gpu,peak_tflops,pass,batch,seq,heads,kv_heads,qk_head_dim,v_head_dim,fraction_of_peak\n"
      "x,312,forward,1,1024,8,8,128,128,0.4\n",
      pass);
  EXPECT_NE(pass.text().find(":2:1: error: pass: needs fwd or bwd, not 'forward'"), std::string::npos);
}

TEST(KernelTable, AnUnknownHeaderIsReported) {
  config::Report report;
  read("a,b\n1,2\n", report);
  EXPECT_NE(report.text().find("the header names no table that is known here"), std::string::npos);
}

TEST(GpuNames, OfSourcesAndPresets) {
  EXPECT_EQ(presets_for_gpu("A100-SXM4-80GB")->cluster, "dgx-a100-80gb");
  EXPECT_EQ(presets_for_gpu("A100-PCIe-80GB")->gpu, "a100-80gb-pcie");
  EXPECT_EQ(presets_for_gpu("a100-40gb")->gpu, "a100-40gb");
  EXPECT_EQ(presets_for_gpu("H100-SXM5-80GB")->cluster, "dgx-h100");
  EXPECT_EQ(presets_for_gpu("b200")->gpu, "b200");
  EXPECT_EQ(presets_for_gpu("GB200")->gpu, "gb200");
  EXPECT_EQ(presets_for_gpu("V100-SXM2-32GB")->gpu, "v100-32gb");
  EXPECT_FALSE(presets_for_gpu("TPU v5p"));
}

}  // namespace
}  // namespace trainsim::validation
