// SPDX-License-Identifier: Apache-2.0
#include "sim/config/experiment.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include "sim/base/diagnostics.hpp"
#include "sim/config/field_index.hpp"
#include "sim/config/flatten.hpp"
#include "sim/config/overrides.hpp"
#include "sim/config/parser.hpp"
#include "sim/config/presets.hpp"
#include "sim/config/resolve.hpp"
#include "sim/config/section.hpp"
#include "sim/config/spec_readers.hpp"
#include "sim/config/utf8.hpp"

namespace trainsim::config {

namespace {

const Words<NetworkMode> kNetworkModes = {{"flow", NetworkMode::kFlow},
                                          {"ideal", NetworkMode::kIdeal},
                                          {"free", NetworkMode::kFree},
                                          {"step", NetworkMode::kStep}};
const Words<plan::Launch> kLaunches = {{"eager", plan::Launch::kEager},
                                       {"compiled", plan::Launch::kCompiled},
                                       {"cuda-graph", plan::Launch::kCudaGraph},
                                       {"blocking", plan::Launch::kBlocking}};
const Words<plan::Framework> kFrameworks = {{"megatron", plan::Framework::kMegatron},
                                            {"fsdp", plan::Framework::kFsdp},
                                            {"deepspeed", plan::Framework::kDeepSpeed},
                                            {"internevo", plan::Framework::kInternEvo}};
const Words<plan::Loss> kLosses = {
    {"standard", plan::Loss::kStandard}, {"fused", plan::Loss::kFused}, {"compiled", plan::Loss::kCompiled}};
const Words<plan::Fusion> kFusions = {{"none", plan::Fusion::kNone},
                                      {"standard", plan::Fusion::kStandard},
                                      {"compiled", plan::Fusion::kCompiled}};

constexpr CountRange kGpus = {1, 1'000'000};

/// A part of the configuration that a name may stand for.
struct Named {
  const char* key;
  Component component;
};

constexpr Named kModel = {"model", Component::kModel};
constexpr Named kCluster = {"cluster", Component::kCluster};
constexpr Named kGpu = {"gpu", Component::kGpu};

/// The file that the command line names: a path, or a preset configuration.
std::filesystem::path find_config(const std::string& config) {
  const std::filesystem::path folder = presets_root() / "configs";
  std::error_code error;
  if (is_path(config) || std::filesystem::exists(config, error)) return config;
  std::filesystem::path file = preset_file(folder, config);
  if (!file.empty()) return file;
  throw InputError(clip(config) + ": error: no such file, and no preset configuration is called so; " +
                   preset_hint(folder, config));
}

/// Writes a cluster's shorthands out.
void expand_cluster_shorthand(Value& root, Report& report) {
  Entry* cluster = root.find("cluster");
  if (cluster == nullptr || cluster->value.kind != Kind::kMap) return;
  expand_nic_bandwidth(cluster->value, "cluster", report);
}

/// The configuration as a tree, overrides included. Throws when there is no tree to go on with.
Value read_tree(const std::filesystem::path& file, const std::vector<std::string>& overrides,
                Report& report) {
  const std::shared_ptr<const Source> source = read_source(file, 0, report);
  std::optional<Value> root = source ? parse_mapping(source, report) : std::nullopt;
  if (!root) report.throw_if_any();
  expand_cluster_shorthand(*root, report);
  apply_overrides(*root, overrides, report);
  return std::move(*root);
}

/// Replaces the names of model and cluster by what they stand for, where that can be found out.
void resolve_names(Value& root, Reading& reading) {
  Resolver resolver(reading);
  for (const Named& named : {kModel, kCluster}) {
    Entry* entry = root.find(named.key);
    if (entry == nullptr) continue;
    std::optional<Value> resolved = resolver.resolve(entry->value, named.component, named.key);
    if (resolved) entry->value = std::move(*resolved);
  }
}

/// Lets `section.key` stand for the model's own value of that key, if it is legal.
template <class T>
void carry_to_model(Value& root, const char* section, const char* key, const Reader<T>& reader,
                    Reading& reading) {
  const Entry* from = root.find(section);
  const Entry* given = from == nullptr ? nullptr : from->value.find(key);
  Entry* model = root.find("model");
  if (given == nullptr || model == nullptr || model->value.kind != Kind::kMap) return;
  if (reader.parse(given->value).value) {
    model->value.set(key, given->at, given->value);
  } else {
    reading.unread.push_back(join_path("model", key));
  }
}

/// Puts plain values where the cluster has constants with grades.
std::vector<Constant> take_cluster_constants(Value& root, Report& report) {
  Entry* cluster = root.find(kCluster.key);
  if (cluster == nullptr) return {};
  return take_constants(cluster->value, kCluster.key, report);
}

/// Gives optional sections that are missing an empty mapping, so that their defaults are read like others.
void add_optional_sections(Value& root) {
  for (const char* key : {"software", "memory", "simulation"}) {
    if (root.find(key) == nullptr) root.set(key, root.at, make_map(root.at));
  }
  Entry* run = root.find("run");
  if (run != nullptr && run->value.kind == Kind::kMap && run->value.find("power") == nullptr)
    run->value.set("power", run->at, make_map(run->at));
}

/// Linear layers that are one multiply; none, if the list is empty.
plan::FusedLinears read_fused_linears(Section& section, const plan::FusedLinears& usual) {
  using plan::FusedLinears;
  const Words<bool FusedLinears::*> words = {{"qkv", &FusedLinears::qkv}, {"mlp", &FusedLinears::mlp}};
  FusedLinears linears{false, false};
  set_flags(section, "fused_linears", words, linears);
  if (section.raw("fused_linears") == nullptr) {
    std::string names;
    for (const std::string& name : plan::fused_names(usual)) names += (names.empty() ? "" : ", ") + name;
    section.note_default("fused_linears", "[" + names + "]");
    return usual;
  }
  return linears;
}

void read_software(Section& top, Experiment& experiment) {
  plan::ParallelPlan& plan = experiment.plan;
  std::optional<Section> section = top.mapping("software", false);
  if (!section) return;
  const std::string usual = to_string(plan::usual_framework(plan.sharding));
  plan.framework = section->defaulted("framework", as_choice(kFrameworks), usual);
  const bool current = plan::usual_transformer_engine(plan.framework, experiment.model.attention);
  plan.transformer_engine = section->defaulted("transformer_engine", as_flag(), current ? "true" : "false");
  plan.launch = section->defaulted("launch", as_choice(kLaunches), "eager");
  plan.fusion = section->defaulted("fusion", as_choice(kFusions), "standard");
  plan.loss = section->defaulted("loss", as_choice(kLosses), "standard");
  plan.loss_metrics = section->defaulted("loss_metrics", as_count({0, 16}), "0");
  plan.gradient_accumulation_fusion = section->defaulted("gradient_accumulation_fusion", as_flag(), "true");
  plan.persistent_norm = section->defaulted("persistent_norm", as_flag(), "true");
  plan.fused_linears =
      read_fused_linears(*section, plan::usual_fused_linears(plan.framework, experiment.model.gated()));
  plan.checkpoint_early_stop = section->defaulted("checkpoint_early_stop", as_flag(),
                                                  plan::usual_early_stop(plan.framework) ? "true" : "false");
  // The model's reader has taken the value already; here it only is a key to know and to check.
  section->optional("attention", as_choice(attention_words()));
  section->finish();
}

/// Speeds that are assumed of operations, beside what the cost model says.
void read_op(Section& top, OpSpeedups& speedups) {
  std::optional<Section> section = top.mapping("op", false);
  if (!section) return;
  const auto factor = [&section](const char* name) {
    std::optional<Section> op = section->mapping(name, false);
    if (!op) return 1.0;
    const double speedup = op->required("speedup", as_number({0.001, 1000.0, true}));
    op->finish();
    return speedup;
  };
  for (const OpClass op : kAllOpClasses) speedups.of(op) *= factor(to_string(op));
  const double memory_bound = factor("memory");
  for (const OpClass op : kMemoryBoundOps) speedups.of(op) *= memory_bound;
  section->finish();
}

void read_memory(Section& top, plan::ParallelPlan& plan) {
  std::optional<Section> section = top.mapping("memory", false);
  if (!section) return;
  const auto size = as_quantity(Dimension::kSize, {0.0, 1e15, true});
  plan.memory_reserve = static_cast<Bytes>(section->defaulted("reserve", size, "1.5 GiB"));
  plan.expandable_segments = section->defaulted("expandable_segments", as_flag(), "false");
  section->finish();
}

/// Steps and jitter need each other.
void read_jitter(Section& simulation, Jitter& jitter) {
  const auto steps = simulation.optional("steps", as_count({2, 100'000}));
  std::optional<Section> section = simulation.mapping("jitter", false);
  if (!section) {
    if (simulation.raw("steps") != nullptr && simulation.raw("jitter") == nullptr)
      simulation.fail("steps",
                      "all steps are alike without jitter; give jitter: {compute: 0.02}, or remove this key");
    return;
  }
  if (simulation.raw("steps") == nullptr)
    simulation.fail("jitter", "needs steps, the number of steps to simulate with it");
  constexpr NumberRange deviation = {0.0, 1.0, true};
  jitter.steps = steps.value_or(0);
  jitter.compute = section->optional("compute", as_number(deviation)).value_or(0);
  jitter.network = section->optional("network", as_number(deviation)).value_or(0);
  jitter.seed = static_cast<std::uint64_t>(section->defaulted("seed", as_count({0, 1'000'000'000}), "1"));
  if (section->raw("compute") == nullptr && section->raw("network") == nullptr)
    section->fail("compute", "missing, as is network; give at least one");
  section->finish();
}

void read_simulation(Section& top, Experiment& experiment) {
  std::optional<Section> section = top.mapping("simulation", false);
  if (!section) return;
  experiment.network = section->defaulted("network", as_choice(kNetworkModes), "flow");
  read_jitter(*section, experiment.jitter);
  section->finish();
}

/// Jitter of NICs that nobody uses.
void check_jitter(const Experiment& experiment, Section& top) {
  const bool one_node = experiment.plan.gpus <= experiment.cluster.gpus_per_node;
  if (experiment.jitter.network <= 0 || !one_node || experiment.cluster.gpus_per_node < 1) return;
  top.fail("simulation", "jitter.network has no effect: the job's " + std::to_string(experiment.plan.gpus) +
                             " GPUs share a node and use no NIC; remove it");
}

/// Data-parallel ranks that share a node; all, where that can't be known.
std::int64_t ranks_of_a_node(const Experiment& experiment) {
  const std::int64_t gpus = experiment.cluster.gpus_per_node;
  if (gpus < 1 || experiment.plan.tensor_parallel < 1 || experiment.plan.pipeline_parallel < 1) return 0;
  return std::max<std::int64_t>(1, plan::data_ranks_in_node(experiment.plan, gpus));
}

Experiment read_experiment(const Value& root, Reading& reading) {
  Experiment experiment;
  Section top(root, root.at, "", reading);
  experiment.description = top.optional("description", as_text()).value_or("");
  if (auto section = top.mapping(kModel.key, true, expected_value(kModel.component)))
    experiment.model = read_model(*section);
  if (auto section = top.mapping(kCluster.key, true, expected_value(kCluster.component)))
    experiment.cluster = read_cluster(*section);
  experiment.plan.gpus = top.required("gpus", as_count(kGpus));
  if (auto section = top.mapping("plan", true)) read_plan(*section, experiment.plan);
  if (experiment.plan.shard_group == kShardGroupOfNode)
    experiment.plan.shard_group = ranks_of_a_node(experiment);
  read_software(top, experiment);
  read_op(top, experiment.plan.op_speedups);
  read_memory(top, experiment.plan);
  read_simulation(top, experiment);
  check_jitter(experiment, top);
  experiment.run = read_run(top, experiment.cluster);
  top.finish();
  return experiment;
}

/// The field that the input has for what a check calls `field`.
std::string field_as_given(const std::string& field, const FieldIndex& index) {
  if (field == "model.sequence_length" && index.has("plan.sequence_length")) return "plan.sequence_length";
  const bool derived = field == "plan.global_batch_size" && !index.has(field);
  if (derived && index.has("plan.gradient_accumulation")) return "plan.gradient_accumulation";
  return field;
}

void add_problems(const Problems& problems, const FieldIndex& index, Report& report) {
  for (const Problem& problem : problems) {
    const std::string field = field_as_given(problem.field, index);
    report.add(index.locate(field), field, problem.message);
  }
}

/// What must be known of an input before a run is compared with its plan, and with its cluster.
const std::vector<std::string> kOfRun = {
    "gpus", "plan", "model", "run.tokens", "run.steps", "run.rampup_batch_size", "run.checkpoint.interval"};
const std::vector<std::string> kOfWriting = {"gpus", "plan", "model", "cluster", "run.checkpoint"};
const std::vector<std::string> kOfPower = {"cluster"};

/// Whether all of these fields, and those below them, could be read.
bool all_read(const std::vector<std::string>& unread, const std::vector<std::string>& fields) {
  const auto concerns = [&unread](const std::string& field) {
    return std::any_of(unread.begin(), unread.end(), [&field](const std::string& each) {
      return each == field || each.starts_with(field + ".") || each.starts_with(field + "[");
    });
  };
  return std::none_of(fields.begin(), fields.end(), concerns);
}

/// Checks the section `run` against a plan whose own problems are known.
void check_whole_run(const Experiment& experiment, const Problems& of_plan, const FieldIndex& index,
                     Reading& reading) {
  if (!experiment.run) return;
  if (all_read(reading.unread, kOfPower))
    add_problems(check_power(experiment.cluster, index), index, reading.report);
  // What a run must agree with is known once the plan is legal.
  if (of_plan.empty() && all_read(reading.unread, kOfRun))
    add_problems(check_run(*experiment.run, experiment.plan, experiment.model), index, reading.report);
  if (of_plan.empty() && all_read(reading.unread, kOfWriting))
    add_problems(check_writing(*experiment.run, experiment.plan, experiment.cluster), index, reading.report);
}

/// Leaves of a configuration what a step depends on.
void drop_run(Experiment& experiment) {
  experiment.run.reset();
  const auto of_run = [](const auto& value) { return value.first.starts_with("run."); };
  std::erase_if(experiment.defaults, of_run);
  std::erase_if(experiment.values, of_run);
}

/// Reads, completes and checks a configuration with all that its names stand for.
Experiment read_and_check(Value root, const std::string& name, Reading& reading, Scope scope) {
  resolve_names(root, reading);
  carry_to_model(root, "plan", "sequence_length", as_count(kSequenceRange), reading);
  carry_to_model(root, "software", "attention", as_choice(attention_words()), reading);
  add_optional_sections(root);
  std::vector<Constant> constants = take_cluster_constants(root, reading.report);
  Experiment experiment = read_experiment(root, reading);
  const FieldIndex index(root);
  const Problems problems =
      plan::check(experiment.plan, experiment.model, experiment.cluster, reading.unread);
  add_problems(problems, index, reading.report);
  if (scope == Scope::kRun) check_whole_run(experiment, problems, index, reading);
  reading.report.throw_if_any();
  for (const Problem& warning : plan::warnings(experiment.plan, experiment.model, experiment.cluster)) {
    experiment.warnings.push_back(field_as_given(warning.field, index) + ": " + warning.message);
  }
  experiment.name = name;
  experiment.constants = std::move(constants);
  experiment.defaults = std::move(reading.defaults);
  experiment.values = flatten(root);
  experiment.values.insert(experiment.values.end(), experiment.defaults.begin(), experiment.defaults.end());
  if (scope == Scope::kStep) drop_run(experiment);
  return experiment;
}

/// A component that is asked for by name outside of any configuration, with overrides of it.
template <class Spec>
Spec load_component(const std::string& name, const Named& named, Spec (*read)(Section&),
                    const std::vector<std::string>& overrides = {},
                    const std::function<Problems(const Spec&)>& check = {}) {
  Reading reading;
  const Position at = {std::make_shared<Source>(named.key, "", name, 0), 1, 1};
  Value root = make_map(at);
  root.set(named.key, at, make_scalar(name, at));
  apply_overrides(root, overrides, reading.report);
  for (const Entry& entry : root.entries) {
    if (entry.key == named.key) continue;
    reading.report.add(entry.at, entry.key,
                       std::string("has no effect here; only what is below ") + named.key + " can be set");
  }
  expand_cluster_shorthand(root, reading.report);
  Resolver resolver(reading);
  std::optional<Value> resolved = resolver.resolve(root.find(named.key)->value, named.component, "");
  reading.report.throw_if_any();
  take_constants(*resolved, named.key, reading.report);
  Section section(*resolved, resolved->at, named.key, reading);
  Spec spec = read(section);
  reading.report.throw_if_any();
  if (!check) return spec;
  root.set(named.key, at, std::move(*resolved));
  const FieldIndex index(root);
  Problems problems = check(spec);
  std::erase_if(problems, [&named](const Problem& problem) { return !problem.field.starts_with(named.key); });
  add_problems(problems, index, reading.report);
  reading.report.throw_if_any();
  return spec;
}

}  // namespace

void record_keys(Value root, Recorder& recorder) {
  Reading reading;
  reading.recorder = &recorder;
  add_optional_sections(root);
  read_experiment(root, reading);
}

Experiment load(const std::string& config, const std::vector<std::string>& overrides, Scope scope) {
  Reading reading;
  const std::filesystem::path file = find_config(config);
  Value root = read_tree(file, overrides, reading.report);
  return read_and_check(std::move(root), file.stem().string(), reading, scope);
}

std::string resolved_text(const std::string& config, const std::vector<std::string>& overrides) {
  Reading reading;
  const std::filesystem::path file = find_config(config);
  Value root = read_tree(file, overrides, reading.report);
  reading.report.throw_if_any();
  resolve_names(root, reading);
  return file.stem().string() + ": " + flow_text(root);
}

Experiment resolve(Value root, const std::vector<std::string>& overrides, const std::string& name) {
  Reading reading;
  expand_cluster_shorthand(root, reading.report);
  apply_overrides(root, overrides, reading.report);
  return read_and_check(std::move(root), name, reading, Scope::kRun);
}

model::ModelSpec load_model(const std::string& name) {
  return load_component(name, kModel, read_model);
}

hardware::ClusterSpec load_cluster(const std::string& name, const std::vector<std::string>& overrides,
                                   const ClusterCheck& check) {
  return load_component(name, kCluster, read_cluster, overrides, check);
}

hardware::GpuSpec load_gpu(const std::string& name) {
  return load_component(name, kGpu, read_gpu);
}

}  // namespace trainsim::config
