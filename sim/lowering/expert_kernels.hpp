// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "sim/lowering/experts.hpp"
#include "sim/lowering/kernels.hpp"

namespace trainsim::lowering {

/// Kernels of a router and of the experts on one rank. Bytes per element are derived in docs/modelling.md
/// ("Experts").
class ExpertBook {
 public:
  /// `book` and `kernels` must outlive this.
  ExpertBook(const model::ModelSpec& model, const plan::ParallelPlan& plan, const cost::KernelModel& kernels,
             const KernelBook& book);

  /// Scores of all experts for each token, the choice among them, and the sums that balance their load.
  Kernels router_forward() const;
  Kernels router_backward() const;
  /// Copies each token once for each expert that it visits, in the order of these; and its backward, which
  /// adds copies up.
  Kernels permute() const;
  Kernels permute_backward() const { return moved("tokens: permute backward"); }
  /// Adds up what experts have made of a token, and the backward of that.
  Kernels unpermute() const { return moved("tokens: unpermute"); }
  Kernels unpermute_backward() const { return moved("tokens: unpermute backward"); }
  /// Tokens arrive in the order of ranks; several experts of a rank need them in their own.
  Kernels sort() const;
  /// All experts of the rank, one after the other, each with its tokens.
  Kernels experts_forward() const;
  Kernels experts_backward() const;
  /// Their activation alone, which backward may run again.
  Kernels activation_forward() const { return book_.activation_forward(activation_elements()); }
  const ExpertShapes& shapes() const { return shapes_; }

 private:
  Kernels moved(const char* name) const;
  /// The multiplies of all experts of the rank with this weight each.
  program::Kernel grouped(std::string name, const cost::MatmulShape& shape, const cost::MatmulOutput& output,
                          const LinearShape& linear) const;
  /// Tokens of an expert. Their number is a mean over experts of all sizes, so that a multiply must not be
  /// taken for one whose rows are never whole vectors of 16 bytes.
  std::int64_t rows() const {
    return (shapes_.per_expert + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  }
  Kernels gradients(const std::string& name, const LinearShape& linear) const;
  /// Elements of all tokens of the rank's experts, `columns` wide.
  double received(std::int64_t columns) const { return static_cast<double>(shapes_.received * columns); }
  double activation_elements() const { return static_cast<double>(shapes_.received * shapes_.ffn); }

  static constexpr std::int64_t kRowAlignment = 8;

  const plan::ParallelPlan& plan_;
  const cost::KernelModel& kernels_;
  const KernelBook& book_;
  ExpertShapes shapes_;
  std::array<LinearShape, 2> linears_;
};

}  // namespace trainsim::lowering
