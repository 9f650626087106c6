// Every check catches the plugin that breaks its rule, by its name, and no other check is set off by it.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "host/probe.hpp"
#include "paths.hpp"

namespace patchbay::specimens_test {
namespace {

namespace fs = std::filesystem;
const fs::path kFolder = std::string(kBuildDir) + "/tests/specimens";
const host::ProbeOptions kOptions{std::string(kBuildDir) + "/bin/patchbay-probe", 120};

struct Specimen {
    const char* library;  // without ".so"
    const char* check;    // that alone refuses it
    const char* reason;   // a part of what it says
};

void PrintTo(const Specimen& s, std::ostream* out) { *out << s.library; }

// Whole libraries that are wrong.
constexpr Specimen kLibraries[] = {
    {"missing", "file.readable", "there is no such file"},
    {"text", "file.loads", "the loader refuses it"},
    {"cut_off", "file.loads", "the loader refuses it"},
    {"unresolved", "file.loads", "a_function_of_no_library"},
#if !defined(__clang__) // which has no such symbols
    {"unique_tables", "file.loads", "build it with -fno-gnu-unique"},
#endif
    {"crashes_at_load", "file.loads", "ended by signal 6"},
    {"never_loads", "file.loads", "the probe took longer than"},
    {"no_entry", "abi.entry", "exports no pb_plugin_v1"},
    {"wrong_magic", "abi.magic", "magic number"},
    {"other_major", "abi.version", "built for ABI 2.0, this host speaks 1.0"},
    {"newer_minor", "abi.version", "built for ABI 1.1, this host speaks 1.0"},
    {"no_build", "abi.complete", "incomplete"},
    {"no_components", "abi.complete", "holds 0 components, expected 1 to 256"},
    {"no_summary", "component.complete", "component 'again' lacks"},
    {"unknown_kind", "component.kind", "'patchbay.oracle/1'"},
    {"other_revision", "component.revision", "of patchbay.proposer/1, this host has revision 1"},
    {"bad_name", "component.name", "'Once-More'"},
    {"two_of_a_name", "component.name", "twice"},
    {"no_function", "component.vtable", "component 'again' has a vtable that lacks propose"},
    {"no_struct_size", "component.vtable", "says struct_size 0, expected sizeof(pb_proposer)"},
    {"saves_only", "component.state_functions", "state, save and load"},
    {"counts_no_extensions", "component.extensions", "broken list of extensions"},
    {"bad_default", "component.schema", "'drafts' is 9, expected 1 to 8 tokens"},
    {"bound_is_no_number", "component.schema", "a parameter 'drafts' whose max is"},
    {"hot_without_configure", "component.configure", "it does not list patchbay.component.configure/1"},
    {"gives_no_object", "component.create", "gave no object"},
    {"fails_in_create", "component.create", "the stars are wrong"},
    {"crashes_in_create", "component.create", "ended by signal 6"},
    {"leaves_in_create", "component.create", "exit code 0"},
    {"crashes_in_destroy", "component.create", "ended by signal 6"},
    {"never_ends", "proposer.answers", "s in all: killed during this check"},
    {"eats_memory", "proposer.answers", "ended"},
    {"reads_freed_pages", "attention.window", "ended"},
    {"forges_a_verdict", "process.verdict", "a line that is none"},
    {"crashes_at_unload", "process.verdict", "without a verdict"},
    {"crashes_at_exit", "process.exit", "after its verdict"},
};

// The components of schedulers.so, samplers.so, …: by library, name and the one check that fails.
struct Wrong {
    const char* library;
    const char* kind;
    std::map<std::string, std::string> check_of;
};

const std::vector<Wrong> kComponents = {
    {"schedulers",
     "scheduler",
     {{"fails_on_an_empty_view", "scheduler.answers"},
      {"throws", "scheduler.answers"},
      {"writes_past_its_buffer", "scheduler.bounds"},
      {"writes_into_what_is_reserved", "scheduler.bounds"},
      {"plans_a_stranger", "scheduler.known_ids"},
      {"plans_twice", "scheduler.unique"},
      {"overspends", "scheduler.budget"},
      {"seats_one_too_many", "scheduler.seats"},
      {"plans_a_token_too_many", "scheduler.tokens"},
      {"plans_what_is_in_flight", "scheduler.tokens"},
      {"ignores_the_threshold", "scheduler.threshold"},
      {"splits_what_may_not_be_split", "scheduler.chunking"},
      {"preempts_who_waits", "scheduler.preemptions"},
      {"trusts_its_own_sizeof", "scheduler.stride"},
      {"writes_by_its_own_sizeof", "scheduler.stride"},
      {"depends_on_which_object_it_is", "scheduler.deterministic"},
      {"starves_long_prompts", "scheduler.progress"},
      {"plans_once_a_step", "scheduler.progress"},
      {"keeps_the_view", "scheduler.lifetimes"},
      {"fails_once_configured", "component.configure"},
      {"fails_once_it_refused", "component.configure"},
      {"takes_no_other_value", "component.configure"},
      {"one_object_for_all", "component.twice"},
      {"forgets_its_state", "component.state"},
      {"trusts_saved_bytes", "component.torn_state"}}},
    {"samplers",
     "sampler",
     {{"fails_on_an_empty_batch", "sampler.answers"},
      {"fails_on_a_bias", "sampler.answers"},
      {"gives_minus_one", "sampler.range"},
      {"writes_a_row_too_many", "sampler.bounds"},
      {"samples_at_temperature_zero", "sampler.greedy"},
      {"ignores_the_mask", "sampler.mask"},
      {"draws_from_a_counter", "sampler.repeatable"},
      {"draws_by_seed_alone", "sampler.noise"},
      {"draws_by_position_alone", "sampler.noise"},
      {"draws_by_place_in_batch", "sampler.batch"},
      {"hides_its_faults", "sampler.faults"},
      {"trusts_its_own_sizeof", "sampler.stride"},
      {"takes_logits_for_dense", "sampler.stride"},
      {"reports_logits_as_logprobs", "sampler.logprobs"},
      {"gives_a_negative_surprisal", "sampler.surprisal"},
      {"keeps_the_rows", "sampler.lifetimes"},
      {"leaves_raw_logits", "sampler.process"},
      {"forgets_the_temperature_in_process", "sampler.process"}}},
    {"proposers",
     "proposer",
     {{"fails_on_an_empty_history", "proposer.answers"},
      {"writes_where_it_may_not", "proposer.bounds"},
      {"writes_past_its_probabilities", "proposer.bounds"},
      {"notes_a_draft_too_many_as_drawn", "proposer.bounds"},
      {"trusts_its_own_sizeof", "proposer.stride"},
      {"counts_one_too_many", "proposer.counts"},
      {"proposes_minus_one", "proposer.tokens"},
      {"draws_what_it_excludes", "proposer.probabilities"},
      {"hangs_a_draft_on_itself", "proposer.trees"},
      {"has_more_paths_than_asked", "proposer.trees"},
      {"falls_silent_after_a_stranger", "proposer.notices"},
      {"keeps_the_history", "proposer.lifetimes"},
      {"drafts_for_a_stranger", "proposer.runner"}}},
    {"kv_policies",
     "kv_policy",
     {{"fails_on_no_changes", "kv_policy.answers"},
      {"writes_a_page_too_many", "kv_policy.bounds"},
      {"names_what_is_used", "kv_policy.cached"},
      {"names_one_twice", "kv_policy.unique"},
      {"names_one_too_few", "kv_policy.enough"},
      {"remembers_what_is_void", "kv_policy.adopts"},
      {"forgets_what_it_adopts", "kv_policy.adopts"},
      {"adopts_by_its_own_sizeof", "kv_policy.adopts"},
      {"trusts_its_own_sizeof", "kv_policy.stride"},
      {"depends_on_which_object_it_is", "kv_policy.repeatable"},
      {"keeps_the_pages", "kv_policy.lifetimes"}}},
    {"attentions",
     "attention",
     {{"has_no_tag", "attention.describe"},
      {"takes_any_device", "attention.refuses"},
      {"scales_wrongly", "attention.exact"},
      {"sees_past_its_window", "attention.window"},
      {"takes_a_scale_of_its_own", "attention.scale"},
      {"forgets_the_soft_cap", "attention.soft_cap"},
      {"forgets_the_slopes", "attention.slopes"},
      {"forgets_the_sinks", "attention.sinks"},
      {"treats_chunks_otherwise", "attention.chunks"},
      {"treats_batches_otherwise", "attention.batch"},
      {"writes_into_a_free_page", "attention.pages"},
      {"puts_what_has_no_slot_into_the_first", "attention.pages"},
      {"fails_without_tokens", "attention.empty"}}},
    {"models",
     "model",
     {{"serves_nothing", "model.architectures"},
      {"believes_any_vocabulary", "model.refuses"},
      {"reports_another_width", "model.facts"},
      {"takes_a_tensor_twice", "model.weights"},
      {"has_weights_without_end", "model.weights_end"},
      {"takes_a_targets_weight", "model.heads"},
      {"fills_past_the_end", "model.fill"},
      {"has_no_scale", "model.kv"},
      {"skips_the_first_row", "model.forward"},
      {"looks_ahead", "model.causal"},
      {"counts_from_the_chunk", "model.chunks"},
      {"forgets_logits_of_one_token", "model.chunks"},
      {"forgets_hidden_of_one_token", "model.chunks"},
      {"forgets_the_residual", "model.residual"},
      {"forgets_rope", "model.uses_weights"},
      {"gives_the_embedding", "model.hidden"}}},
    {"devices",
     "device",
     {{"has_no_memory", "device.info"},
      {"copies_to_the_wrong_page", "device.memory"},
      {"prepares_any_role", "device.weights"},
      {"forgets_the_bias", "device.linear"},
      {"takes_the_row_before", "device.embedding"},
      {"norms_without_weights", "device.rms_norm"},
      {"leaves_the_residual", "device.add_rms_norm"},
      {"rotates_neighbours", "device.rope"},
      {"gates_by_up", "device.silu_mul"},
      {"adds_twice", "device.add"},
      {"gathers_from_the_end", "device.gather_rows"},
      {"forgets_the_order", "device.quantised_i8"},
      {"takes_the_high_half_first", "device.quantised_i4"},
      {"halves_the_smallest", "device.quantised_fp8"},
      {"forgets_the_mean", "device.layer_norm"},
      {"folds_at_zero", "device.relu"},
      {"gelus_by_sigmoid", "device.gelu_tanh"},
      {"gelus_the_other_half", "device.gelu_tanh_mul"},
      {"turns_silu_around", "device.silu"},
      {"gelus_by_tanh", "device.gelu_erf"},
      {"gelus_exactly_the_other_half", "device.gelu_erf_mul"},
      {"opens_every_gate", "device.sigmoid_mul"},
      {"clamps_no_gate", "device.swiglu_oai"},
      {"adds_the_factor", "device.scale"},
      {"caps_hard", "device.soft_cap"},
      {"ranks_from_the_least", "device.top_k"},
      {"asks_one_expert", "device.expert_linear"},
      {"sums_without_weights", "device.weighted_sum"},
      {"gates_the_ups", "device.gated_mlp"},
      {"forgets_the_rows_before", "device.causal_conv_silu"},
      {"scans_without_a_state", "device.ssm_scan"},
      {"takes_the_token_before", "device.fill_placeholders"},
      {"looks_too_late", "device.steps"},
      {"brings_pages_back_late", "device.host_pages"},
      {"rounds_batches_otherwise", "device.batch"},
      {"writes_between_rows", "device.strides"},
      {"gates_too_late", "device.lifetimes"},
      {"writes_past_an_argument", "device.lifetimes"},
      {"keeps_the_experts", "device.lifetimes"},
      {"keeps_no_time", "device.charges"},
      {"is_always_alone", "device.ranks"},
      {"keeps_the_experts_in_a_graph", "device.graphs"},
      {"runs_what_it_should_record", "device.graphs"}}},
};

// What a reason names of the inputs, by check.
const std::map<std::string, std::string> kInputs = {
    {"scheduler.budget", "budget "},        {"scheduler.tokens", " running, "},    {"scheduler.chunking", " waiting, "},
    {"sampler.mask", " tokens allowed)"},   {"sampler.greedy", "temperature 0, "}, {"sampler.batch", ", seed "},
    {"sampler.logprobs", ", logprobs "},    {"sampler.faults", "(vocabulary "},    {"proposer.counts", "; max_drafts "},
    {"proposer.tokens", ", the newest "},   {"kv_policy.enough", " pages wanted"}, {"kv_policy.unique", " cached)"},
    {"attention.exact", ", head_dim "},     {"attention.chunks", ", block_size "}, {"attention.batch", ", KV in "},
    {"attention.window", "with a window of "},
};

host::ProbeReport probed(const std::string& library, const host::ProbeOptions& options = kOptions) {
    auto report = host::probe(kFolder / (library + ".so"), options);
    EXPECT_TRUE(report) << report.error();
    return report ? *report : host::ProbeReport{};
}

std::vector<std::string> failed(const host::ProbeReport& report, const std::string& component) {
    std::vector<std::string> out;
    for (const host::CheckLine& line : report.lines)
        if (line.component == component && line.outcome == host::CheckOutcome::kFailed) out.push_back(line.check);
    return out;
}

std::string reason_of(const host::ProbeReport& report, const std::string& component) {
    for (const host::CheckLine& line : report.lines)
        if (line.component == component && line.outcome == host::CheckOutcome::kFailed) return line.reason;
    return "";
}

class Library : public ::testing::TestWithParam<Specimen> {};

TEST_P(Library, IsRefusedByItsCheckAlone) {
    const Specimen& s = GetParam();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    if (std::string_view(s.library) == "eats_memory")
        GTEST_SKIP() << "the probe sets no limit of memory under a sanitizer";
#endif
    host::ProbeOptions options = kOptions;
    if (std::string_view(s.library).starts_with("never_"))
        options.timeout_s = 5;  // far longer than what comes before takes
    const host::ProbeReport report = probed(s.library, options);
    EXPECT_EQ(report.verdict, host::Verdict::kRefused);
    EXPECT_FALSE(report.manifest);
    EXPECT_EQ(report.check, s.check) << report.reason;
    EXPECT_THAT(report.reason, ::testing::HasSubstr(s.reason));
    EXPECT_EQ(std::count_if(report.lines.begin(), report.lines.end(),
                            [](const auto& line) { return line.outcome == host::CheckOutcome::kFailed; }),
              1);
}

INSTANTIATE_TEST_SUITE_P(Specimens, Library, ::testing::ValuesIn(kLibraries),
                         [](const auto& test) { return test.param.library; });

class Components : public ::testing::TestWithParam<Wrong> {};
void PrintTo(const Wrong& w, std::ostream* out) { *out << w.library; }

TEST_P(Components, AreRefusedEachByItsCheckAlone) {
    const Wrong& w = GetParam();
    const host::ProbeReport report = probed(w.library);
    EXPECT_EQ(report.verdict, host::Verdict::kRefused);
    std::set<std::string> seen;
    for (const host::CheckLine& line : report.lines) seen.insert(line.component);
    for (const auto& [name, check] : w.check_of) {
        const std::string component = std::string(w.kind) + "/" + name;
        EXPECT_THAT(failed(report, component), ::testing::ElementsAre(check)) << component;
        if (const auto inputs = kInputs.find(check); inputs != kInputs.end()) {
            EXPECT_THAT(reason_of(report, component), ::testing::HasSubstr(inputs->second)) << component;
        }
        seen.erase(component);
    }
    seen.erase("");
    const std::string healthy = std::string(w.kind) + "/healthy";
    EXPECT_TRUE(seen.contains(healthy));
    for (const std::string& component : seen) {
        EXPECT_THAT(component, ::testing::StartsWith(healthy)) << "a component that no line of the table names";
        EXPECT_THAT(failed(report, component), ::testing::IsEmpty()) << reason_of(report, component);
    }
}

INSTANTIATE_TEST_SUITE_P(Specimens, Components, ::testing::ValuesIn(kComponents),
                         [](const auto& test) { return test.param.library; });

TEST(HealthyPlugin, OfPureCPassesAndIsDescribed) {
    const host::ProbeReport report = probed("healthy_c");
    EXPECT_EQ(report.verdict, host::Verdict::kOk) << report.check << ": " << report.reason;
    ASSERT_TRUE(report.manifest);
    EXPECT_EQ(report.manifest->build, "by hand");
    ASSERT_EQ(report.manifest->components.size(), 1u);
    EXPECT_EQ(report.manifest->components[0].name, "again");
    EXPECT_EQ(report.manifest->components[0].params.at(0).max, 8);
    EXPECT_THAT(report.manifest->components[0].hooks, ::testing::ElementsAre("propose"));
    EXPECT_THAT(report.manifest->components[0].extensions, ::testing::IsEmpty());
}

TEST(HealthyPlugin, FindsItselfInProc) {
    const host::ProbeReport report = probed("looks_itself_up");
    EXPECT_EQ(report.verdict, host::Verdict::kOk) << report.check << ": " << report.reason;
}

// The names are taken from what the probe itself reports, so that a new check without a specimen is found here.
TEST(EveryCheck, HasASpecimen) {
    std::set<std::string> caught, known = {"process.verdict", "process.exit"};
    for (const Specimen& s : kLibraries) caught.insert(s.check);
    for (const Wrong& w : kComponents) {
        for (const auto& [name, check] : w.check_of) caught.insert(check);
        for (const host::CheckLine& line : probed(w.library).lines) known.insert(line.check);
    }
    EXPECT_THAT(caught, ::testing::UnorderedElementsAreArray(known));
}

}  // namespace
}  // namespace patchbay::specimens_test
