// SPDX-License-Identifier: Apache-2.0
#include "sim/lowering/tape.hpp"

#include <algorithm>
#include <utility>

namespace trainsim::lowering {

using program::MemoryCategory;

namespace {

bool contains(const std::vector<TensorId>& list, TensorId tensor) {
  return std::find(list.begin(), list.end(), tensor) != list.end();
}

}  // namespace

TensorId Tape::tensor(std::string name, Bytes bytes, MemoryCategory category) {
  tensors_.push_back({std::move(name), bytes, bytes, category, MemoryCategory::kActivations});
  return tensors_.size() - 1;
}

TensorId Tape::kept_as(std::string name, Bytes bytes, MemoryCategory kept) {
  tensors_.push_back({std::move(name), bytes, bytes, kept, kept});
  return tensors_.size() - 1;
}

TensorId Tape::overwritten_by_gradient(std::string name, Bytes bytes) {
  const TensorId tensor = kept_as(std::move(name), bytes, MemoryCategory::kLogits);
  tensors_[tensor].gradient_bytes = 0;
  return tensor;
}

TensorId Tape::view(std::string name, Bytes bytes) {
  const TensorId tensor = this->tensor(std::move(name), 0);
  tensors_[tensor].gradient_bytes = bytes;
  return tensor;
}

std::string Tape::text(std::size_t name) const {
  const std::string& tensor = tensors_[name / kParts].name;
  switch (name % kParts) {
    case kValue:
      return tensor;
    case kGradient:
      return "gradient of " + tensor;
    default:
      return "second term of the gradient of " + tensor;
  }
}

/// PyTorch ends a repeated forward as soon as it has saved all that backward unpacks: an operation that is
/// needed for its input alone does not run.
std::size_t Tape::repeated_operations() const {
  if (checkpoint_ == Checkpoint::kWhole) return operations_.size();
  for (std::size_t i = operations_.size(); i > 0; --i) {
    const Operation& operation = operations_[i - 1];
    if (operation.keeps.empty()) continue;
    const bool keeps_output =
        std::any_of(operation.keeps.begin(), operation.keeps.end(),
                    [&](TensorId tensor) { return contains(operation.writes, tensor); });
    return keeps_output ? i : i - 1;
  }
  return 0;
}

bool Tape::is_used_again(TensorId tensor) const {
  const std::size_t end = repeated_operations();
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const Operation& operation = operations_[i];
    if (contains(operation.keeps, tensor)) return true;
    if (i < end && (contains(operation.reads, tensor) || contains(operation.adds, tensor) ||
                    contains(operation.looks_at, tensor)))
      return true;
  }
  return false;
}

std::vector<TensorId> Tape::held() const {
  std::vector<TensorId> tensors = saved_;
  if (checkpoint_ == Checkpoint::kCompiled)
    std::erase_if(tensors, [this](TensorId tensor) { return !is_used_again(tensor); });
  return tensors;
}

std::vector<TensorId> Tape::held_in_vain() const {
  std::vector<TensorId> tensors = held();
  std::erase_if(tensors, [this](TensorId tensor) { return is_used_again(tensor); });
  return tensors;
}

/// Walks the operations forward or backward and writes down what is allocated and freed.
class Tape::Walk {
 public:
  Walk(const Tape& tape, Keep keep, MemoryCategory kept, bool input_there);

  /// The first `operations` of them.
  void forward(std::size_t operations);
  void backward();
  /// Takes what a checkpoint holds to be there; what nothing uses stays.
  void begin_with_held();
  /// Frees what a checkpoint has held in vain.
  void free_held();
  /// Backward that leaves weights for later, and the gradients of these.
  void backward_of_inputs();
  void backward_of_weights();
  MemoryTrace trace() { return std::exchange(trace_, {}); }

 private:
  Bytes bytes_of(TensorId tensor, Part part) const {
    const Tensor& what = tape_.tensors_[tensor];
    return part == kValue ? what.bytes : what.gradient_bytes;
  }
  void allocate(TensorId tensor, Part part, MemoryCategory category);
  void free(TensorId tensor, Part part);
  void allocate_value(TensorId tensor, MemoryCategory kept);
  /// Frees a value that nobody reads or keeps any more.
  void release_value(TensorId tensor);
  void run_forward(const Operation& operation, MemoryCategory kept);
  void release_inputs(const Operation& operation);
  void run_backward(std::size_t index);
  /// Whether a tensor is put out by an operation with a weight.
  bool feeds_weight(TensorId tensor) const {
    const std::size_t source = writer(tensor);
    return source < tape_.operations_.size() && tape_.operations_[source].has_weight;
  }
  bool gathers_gradient(const Operation& operation) const;
  /// Drops what an operation has kept for its backward.
  void release_kept(const Operation& operation);
  /// Runs operations again whose outputs are needed and gone.
  void repeat_for(std::size_t index);
  void repeat(std::size_t index, std::size_t current);
  /// Counts what those operations whose backward is still to come want of tensors that are made again.
  void claim_again(std::size_t begin, std::size_t end, std::size_t current);
  bool made_in(TensorId tensor, std::size_t begin, std::size_t end) const {
    const std::size_t source = writer(tensor);
    return source >= begin && source < end;
  }
  template <class Work>
  void with_buffers(const std::vector<TensorId>& buffers, const Work& work) {
    for (const TensorId buffer : buffers) allocate(buffer, kValue, tape_.tensors_[buffer].category);
    work();
    for (const TensorId buffer : buffers) free(buffer, kValue);
  }
  std::pair<std::size_t, std::size_t> chain_around(std::size_t index) const;
  void add_gradient(TensorId tensor);
  void share_gradient(TensorId tensor, TensorId from);
  void release_gradient(TensorId tensor);
  std::size_t writer(TensorId tensor) const;
  /// Whether an operation's claim on a tensor outlives its forward.
  bool claims(std::size_t operation, TensorId tensor) const;
  void count_claims(Keep keep);

  const Tape& tape_;
  MemoryCategory kept_category_;
  MemoryTrace trace_;
  bool backward_ = false;
  /// Whether gradients of weights are left for later.
  bool puts_off_ = false;
  std::vector<bool> alive_;
  /// Operations of forward that have yet to read a tensor, and operations whose backward needs it.
  std::vector<int> readers_;
  std::vector<int> claims_;
  /// By tensor: whose gradient storage it uses, and how many use a tensor's.
  std::vector<TensorId> gradient_;
  std::vector<int> sharers_;
};

Tape::Walk::Walk(const Tape& tape, Keep keep, MemoryCategory kept, bool input_there)
    : tape_(tape),
      kept_category_(kept),
      alive_(tape.tensors_.size(), false),
      readers_(tape.tensors_.size(), 0),
      claims_(tape.tensors_.size(), 0),
      gradient_(tape.tensors_.size(), kNoTensor),
      sharers_(tape.tensors_.size(), 0) {
  for (const Operation& operation : tape_.operations_) {
    for (const TensorId tensor : operation.reads) ++readers_[tensor];
    for (const TensorId tensor : operation.adds) ++readers_[tensor];
    for (const TensorId tensor : operation.looks_at) ++readers_[tensor];
  }
  count_claims(keep);
  if (input_there) alive_[tape_.input_] = true;
}

std::size_t Tape::Walk::writer(TensorId tensor) const {
  for (std::size_t i = 0; i < tape_.operations_.size(); ++i) {
    if (contains(tape_.operations_[i].writes, tensor)) return i;
  }
  return tape_.operations_.size();
}

std::pair<std::size_t, std::size_t> Tape::Walk::chain_around(std::size_t index) const {
  const auto in_chain = [this](std::size_t i) { return tape_.operations_[i].repeat == Repeat::kChain; };
  if (!in_chain(index)) return {index, index + 1};
  std::size_t begin = index;
  std::size_t end = index + 1;
  while (begin > 0 && in_chain(begin - 1)) --begin;
  while (end < tape_.operations_.size() && in_chain(end)) ++end;
  return {begin, end};
}

bool Tape::Walk::claims(std::size_t operation, TensorId tensor) const {
  const Operation& claimant = tape_.operations_[operation];
  const std::size_t source = writer(tensor);
  if (source == tape_.operations_.size()) return true;
  const Operation& origin = tape_.operations_[source];
  if (origin.repeat == Repeat::kOutput && source != operation) return false;
  if (claimant.repeat == Repeat::kNever) return true;
  const auto [begin, end] = chain_around(operation);
  return source < begin || source >= end;
}

void Tape::Walk::count_claims(Keep keep) {
  if (keep == Keep::kInput) {
    ++claims_[tape_.input_];
    for (const TensorId tensor : tape_.held()) ++claims_[tensor];
  }
  if (keep != Keep::kAll) return;
  for (std::size_t i = 0; i < tape_.operations_.size(); ++i) {
    const Operation& operation = tape_.operations_[i];
    for (const TensorId tensor : operation.keeps) claims_[tensor] += claims(i, tensor) ? 1 : 0;
    if (operation.repeat == Repeat::kNever) continue;
    // To run again an operation needs what it read.
    for (const TensorId tensor : operation.reads) {
      if (!contains(operation.keeps, tensor)) claims_[tensor] += claims(i, tensor) ? 1 : 0;
    }
  }
}

void Tape::Walk::allocate(TensorId tensor, Part part, MemoryCategory category) {
  const Bytes bytes = bytes_of(tensor, part);
  if (bytes > 0) trace_.push_back({kParts * tensor + part, bytes, category, true});
}

void Tape::Walk::free(TensorId tensor, Part part) {
  const Bytes bytes = bytes_of(tensor, part);
  if (bytes > 0) trace_.push_back({kParts * tensor + part, bytes, tape_.tensors_[tensor].category, false});
}

void Tape::Walk::allocate_value(TensorId tensor, MemoryCategory kept) {
  if (alive_[tensor]) return;
  alive_[tensor] = true;
  const Tensor& what = tape_.tensors_[tensor];
  const bool usual = what.kept == MemoryCategory::kActivations;
  allocate(tensor, kValue, claims_[tensor] > 0 ? (usual ? kept : what.kept) : what.category);
}

void Tape::Walk::release_value(TensorId tensor) {
  const bool handed_over = tensor == tape_.output_ && !backward_;
  if (!alive_[tensor] || readers_[tensor] > 0 || claims_[tensor] > 0 || handed_over) return;
  alive_[tensor] = false;
  free(tensor, kValue);
}

/// An operation whose outputs are all there does not run.
void Tape::Walk::run_forward(const Operation& operation, MemoryCategory kept) {
  const std::vector<TensorId>& writes = operation.writes;
  const bool runs = writes.empty() || std::any_of(writes.begin(), writes.end(),
                                                  [this](TensorId tensor) { return !alive_[tensor]; });
  if (runs) {
    with_buffers(operation.forward_buffers, [&] {
      for (const TensorId tensor : writes) allocate_value(tensor, kept);
    });
  }
  release_inputs(operation);
  for (const TensorId tensor : writes) release_value(tensor);
}

void Tape::Walk::release_inputs(const Operation& operation) {
  for (const std::vector<TensorId>* list : {&operation.reads, &operation.adds, &operation.looks_at}) {
    for (const TensorId tensor : *list) {
      --readers_[tensor];
      release_value(tensor);
    }
  }
}

void Tape::Walk::forward(std::size_t operations) {
  if (tape_.input_ != kNoTensor) allocate_value(tape_.input_, kept_category_);
  for (std::size_t i = 0; i < tape_.operations_.size(); ++i) {
    const Operation& operation = tape_.operations_[i];
    i < operations ? run_forward(operation, kept_category_) : release_inputs(operation);
  }
  const TensorId output = tape_.output_;
  if (output != kNoTensor && alive_[output] && claims_[output] == 0) free(output, kValue);
}

void Tape::Walk::begin_with_held() {
  for (const TensorId tensor : tape_.held()) alive_[tensor] = true;
  for (const TensorId tensor : tape_.held_in_vain()) ++claims_[tensor];
}

void Tape::Walk::free_held() {
  for (const TensorId tensor : tape_.held_in_vain()) free(tensor, kValue);
}

void Tape::Walk::add_gradient(TensorId tensor) {
  const TensorId storage = gradient_[tensor];
  const bool first = storage == kNoTensor;
  if (!first) allocate(tensor, kTerm, MemoryCategory::kTemporary);
  // A sum takes the place of its first term, unless somebody waits to read that.
  const bool in_place = !first && (!puts_off_ || sharers_[storage] == 1 || storage == tensor);
  if (in_place) return;
  if (!first) --sharers_[storage];
  allocate(tensor, kGradient,
           puts_off_ && feeds_weight(tensor) ? MemoryCategory::kActivations : MemoryCategory::kTemporary);
  gradient_[tensor] = tensor;
  ++sharers_[tensor];
}

void Tape::Walk::share_gradient(TensorId tensor, TensorId from) {
  // A second term is added to what is there.
  if (gradient_[tensor] != kNoTensor) return;
  gradient_[tensor] = gradient_[from];
  ++sharers_[gradient_[from]];
}

void Tape::Walk::release_gradient(TensorId tensor) {
  const TensorId storage = std::exchange(gradient_[tensor], kNoTensor);
  if (storage != kNoTensor && --sharers_[storage] == 0) free(storage, kGradient);
}

void Tape::Walk::claim_again(std::size_t begin, std::size_t end, std::size_t current) {
  for (std::size_t i = 0; i <= current; ++i) {
    const Operation& operation = tape_.operations_[i];
    for (const TensorId tensor : operation.keeps) claims_[tensor] += made_in(tensor, begin, end) ? 1 : 0;
    if (i < begin || i >= end) continue;
    for (const TensorId tensor : operation.reads) readers_[tensor] += made_in(tensor, begin, end) ? 1 : 0;
  }
}

void Tape::Walk::repeat(std::size_t index, std::size_t current) {
  const auto [begin, end] = chain_around(index);
  claim_again(begin, end, current);
  for (std::size_t i = begin; i < end; ++i) {
    const Operation& operation = tape_.operations_[i];
    with_buffers(operation.forward_buffers, [&] {
      for (const TensorId tensor : operation.writes) allocate_value(tensor, MemoryCategory::kRecomputation);
    });
    for (const TensorId tensor : operation.reads) {
      if (!made_in(tensor, begin, end)) continue;
      --readers_[tensor];
      release_value(tensor);
    }
    for (const TensorId tensor : operation.writes) release_value(tensor);
  }
}

void Tape::Walk::repeat_for(std::size_t index) {
  for (const TensorId tensor : tape_.operations_[index].keeps) {
    if (!alive_[tensor] && tape_.tensors_[tensor].bytes > 0) repeat(writer(tensor), index);
  }
}

void Tape::Walk::run_backward(std::size_t index) {
  const Operation& operation = tape_.operations_[index];
  repeat_for(index);
  std::vector<TensorId> terms;
  const bool put_off = puts_off_ && operation.has_weight;
  std::vector<TensorId> buffers = operation.backward_buffers;
  if (!put_off)
    buffers.insert(buffers.end(), operation.weight_buffers.begin(), operation.weight_buffers.end());
  for (const TensorId buffer : operation.gathered_gradient)
    allocate(buffer, kValue, tape_.tensors_[buffer].category);
  with_buffers(buffers, [&] {
    for (const TensorId tensor : operation.reads) {
      if (gradient_[tensor] != kNoTensor) terms.push_back(tensor);
      add_gradient(tensor);
    }
    for (const TensorId tensor : operation.adds) share_gradient(tensor, operation.writes.front());
  });
  if (!put_off) {
    release_kept(operation);
  } else if (gathers_gradient(operation)) {
    release_gradient(operation.writes.front());
  }
  if (operation.repeat != Repeat::kNever) {
    for (const TensorId tensor : operation.reads) {
      if (contains(operation.keeps, tensor) || !claims(index, tensor)) continue;
      --claims_[tensor];
      release_value(tensor);
    }
  }
  for (const TensorId tensor : terms) free(tensor, kTerm);
}

bool Tape::Walk::gathers_gradient(const Operation& operation) const {
  const std::vector<TensorId>& gathered = operation.gathered_gradient;
  return std::any_of(gathered.begin(), gathered.end(),
                     [this](TensorId buffer) { return bytes_of(buffer, kValue) > 0; });
}

void Tape::Walk::release_kept(const Operation& operation) {
  for (const TensorId buffer : operation.gathered_gradient) free(buffer, kValue);
  for (const TensorId tensor : operation.writes) release_gradient(tensor);
  for (const TensorId tensor : operation.keeps) {
    --claims_[tensor];
    release_value(tensor);
  }
}

void Tape::Walk::backward_of_inputs() {
  puts_off_ = true;
  backward();
}

/// In the order in which backward has left them.
void Tape::Walk::backward_of_weights() {
  for (std::size_t i = tape_.operations_.size(); i > 0; --i) {
    const Operation& operation = tape_.operations_[i - 1];
    if (!operation.has_weight) continue;
    with_buffers(operation.weight_buffers, [&] { release_kept(operation); });
  }
}

void Tape::Walk::backward() {
  backward_ = true;
  // Where forward has left off: what is claimed is there.
  std::fill(readers_.begin(), readers_.end(), 0);
  for (std::size_t tensor = 0; tensor < alive_.size(); ++tensor) alive_[tensor] = claims_[tensor] > 0;
  if (tape_.output_ != kNoTensor) add_gradient(tape_.output_);
  for (std::size_t i = tape_.operations_.size(); i > 0; --i) run_backward(i - 1);
  if (tape_.input_ != kNoTensor) release_gradient(tape_.input_);
}

MemoryTrace Tape::forward(Keep keep) const {
  Walk walk(*this, keep, MemoryCategory::kActivations, false);
  walk.forward(operations_.size());
  return walk.trace();
}

MemoryTrace Tape::again(bool input_kept) const {
  Walk walk(*this, Keep::kAll, MemoryCategory::kRecomputation, input_kept);
  walk.begin_with_held();
  walk.forward(repeated_operations());
  return walk.trace();
}

MemoryTrace Tape::backward() const {
  Walk walk(*this, Keep::kAll, MemoryCategory::kActivations, false);
  walk.backward();
  walk.free_held();
  return walk.trace();
}

std::array<MemoryTrace, 2> Tape::split_backward() const {
  Walk walk(*this, Keep::kAll, MemoryCategory::kActivations, false);
  std::array<MemoryTrace, 2> parts;
  walk.backward_of_inputs();
  parts[0] = walk.trace();
  walk.backward_of_weights();
  parts[1] = walk.trace();
  return parts;
}

namespace {

/// Allocations of a trace that it does not free itself.
MemoryTrace left_of(const MemoryTrace& trace) {
  MemoryTrace left;
  for (const MemoryChange& change : trace) {
    if (change.allocates) {
      left.push_back(change);
    } else {
      std::erase_if(left, [&](const MemoryChange& other) { return other.name == change.name; });
    }
  }
  return left;
}

}  // namespace

TapeTraces::TapeTraces(const Tape& tape, bool split)
    : forward(tape.forward()),
      forward_keeping_input(tape.has_input() ? tape.forward(Keep::kInput) : MemoryTrace{}),
      forward_keeping_nothing(tape.forward(Keep::kNothing)),
      again(tape.again(false)),
      again_after_kept_input(tape.has_input() ? tape.again(true) : MemoryTrace{}),
      backward(tape.backward()),
      kept(left_of(forward)),
      kept_input(left_of(forward_keeping_input)),
      texts(tape.names()) {
  if (split) {
    std::array<MemoryTrace, 2> parts = tape.split_backward();
    input_gradients = std::move(parts[0]);
    weight_gradients = std::move(parts[1]);
  }
  for (std::size_t name = 0; name < texts.size(); ++name) texts[name] = tape.text(name);
}

Bytes Tape::kept(Keep keep) const {
  Bytes bytes = 0;
  for (const MemoryChange& change : forward(keep)) bytes += change.allocates ? change.bytes : -change.bytes;
  return bytes;
}

}  // namespace trainsim::lowering
