#include "experiment/spec_load.hpp"

#include <gmock/gmock.h>

#include "config/document.hpp"

namespace patchbay::experiment {
namespace {

using ::testing::HasSubstr;

Result<ExperimentSpec> load(const std::string& yaml) {
    auto node = config::parse_yaml(yaml, "e.yaml");
    EXPECT_TRUE(node) << node.error();
    return spec_from(*node, "e");
}

const std::string kWorkload = "workload:\n  requests: 10\n  prompts: {synthetic: {tokens: 5}}\n  output_tokens: 8\n";

std::string error_of(const std::string& yaml) {
    const auto spec = load(yaml);
    EXPECT_FALSE(spec);
    return spec ? "" : spec.error();
}

TEST(Spec, ReadsEverything) {
    const auto spec = load(R"(question: does it matter
name: q
model: models/x
scheduler: fcfs
variants:
  a: {scheduler: static}
  b: {scheduler: {plugin: sjf, ageing: 2}, engine.max_num_seqs: 8}
baseline: b
repeats: 7
seed: 42
results: out
warmup: {requests: 3}
slo: {ttft_ms: 200, tpot_ms: 20.5}
workload:
  requests: 60
  prompts: {text: {path: t.txt, tokens: {uniform: {min: 16, max: 256}}}}
  output_tokens: [4, 8, 16]
  ignore_eos: false
  max_prompt_tokens: 100
  arrivals: {gamma: {rate: 4.5, cv: 2}}
  sampling: {temperature: 0.8, top_p: 0.9, stop: [END]}
)");
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->name, "q");
    EXPECT_EQ(spec->question, "does it matter");
    ASSERT_EQ(spec->variants.size(), 2u);
    EXPECT_EQ(spec->variants[1].patch.at("engine.max_num_seqs")->text, "8");
    EXPECT_EQ(spec->baseline, 1u);
    EXPECT_EQ(spec->repeats, 7u);
    EXPECT_EQ(spec->seed, 42u);
    EXPECT_EQ(spec->warmup_requests, 3u);
    EXPECT_EQ(spec->slo.ttft_ms, 200);
    EXPECT_EQ(spec->slo.tpot_ms, 20.5);
    EXPECT_FALSE(spec->slo.e2e_ms);
    const WorkloadSpec& w = spec->workload;
    EXPECT_EQ(w.requests, 60u);
    EXPECT_EQ(std::get<UniformLength>(std::get<TextPrompts>(w.prompts).tokens).max, 256u);
    EXPECT_THAT(std::get<EmpiricalLength>(*w.output_tokens).values, ::testing::ElementsAre(4, 8, 16));
    EXPECT_FALSE(w.ignore_eos);
    EXPECT_EQ(std::get<GammaArrivals>(w.arrivals).cv, 2);
    EXPECT_FLOAT_EQ(w.sampling.temperature, 0.8f);
    EXPECT_THAT(w.sampling.stop, ::testing::ElementsAre("END"));
}

TEST(Spec, HasDefaultsForAllButTheWorkload) {
    const auto spec = load(kWorkload);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->name, "e");
    EXPECT_EQ(spec->variants.size(), 1u);
    EXPECT_EQ(spec->repeats, 5u);
    EXPECT_TRUE(std::holds_alternative<AllAtOnce>(spec->workload.arrivals));
    EXPECT_EQ(spec->workload.sampling.temperature, 1);
    EXPECT_THAT(error_of("repeats: 3\n"), HasSubstr("'workload' is missing"));
}

TEST(Spec, ExpandsFactorsIntoVariants) {
    const auto spec = load(
        "factors:\n  scheduler: [fcfs, sjf]\n  engine.max_num_seqs: [4, 8, 16]\nbaseline: scheduler=fcfs "
        "max_num_seqs=8\n" +
        kWorkload);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->variants.size(), 6u);
    EXPECT_EQ(spec->baseline, 1u);
}

TEST(Spec, FaultsHaveTheirPlaceAndAGuess) {
    EXPECT_THAT(error_of("repeat: 3\n" + kWorkload),
                HasSubstr("e.yaml:1:1: unknown key 'repeat' (did you mean 'repeats'?)"));
    EXPECT_THAT(error_of("repeats: many\n" + kWorkload), HasSubstr("e.yaml:1:10: "));
    EXPECT_THAT(error_of("repeats: 0\n" + kWorkload), HasSubstr("e.yaml:1:10: "));
    EXPECT_THAT(error_of("variants: {fcfs: {}, sjf: {}}\nbaseline: fcsf\n" + kWorkload),
                HasSubstr("e.yaml:2:11: no variant 'fcsf' (did you mean 'fcfs'?)"));
    EXPECT_THAT(error_of("workload:\n  requests: 1\n  output_tokens: 1\n  prompts: {sinthetic: {tokens: 5}}\n"),
                HasSubstr("e.yaml:4:13: unknown 'sinthetic' in 'prompts' (did you mean 'synthetic'?)"));
    EXPECT_THAT(error_of("workload:\n  requests: 1\n  output_tokens: 1\n  prompts: {synthetic: {tokns: 5}}\n"),
                HasSubstr("e.yaml:4:25: unknown key 'tokns'"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: {poisson: {rate: -1}}\n"), HasSubstr("e.yaml:5:30: "));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: {poisson: {}}\n"), HasSubstr("'rate' is missing"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: poisson\n"),
                ::testing::ContainsRegex("[0-9]+:13: 'rate' is missing"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: trace\n"),
                HasSubstr("e.yaml:5:13: arrivals from a trace need prompts from a trace"));
    EXPECT_THAT(error_of("workload:\n  requests: 1\n  prompts: {synthetic: {tokens: {uniform: {min: 9, max: 3}}}}\n  "
                         "output_tokens: 1\n"),
                HasSubstr("'max' is 3, less than 'min' of 9"));
    EXPECT_THAT(error_of("workload:\n  prompts: synthetic\n"),
                ::testing::AllOf(HasSubstr("'output_tokens' is missing"), HasSubstr("'requests' is missing")));
    EXPECT_THAT(error_of("workload:\n  requests: 1\n  output_tokens: 1\n  prompts: {jsonl: {}}\n"),
                HasSubstr("'path' is missing"));
}

TEST(Spec, ReportsAllFaultsAtOnce) {
    const std::string error = error_of("repeats: x\nsed: 1\n" + kWorkload);
    EXPECT_THAT(error, HasSubstr("e.yaml:1:10"));
    EXPECT_THAT(error, HasSubstr("e.yaml:2:1"));
}

TEST(Spec, RefusesVariantsThatChangeWhatIsAsked) {
    EXPECT_THAT(error_of("variants: {a: {workload: {requests: 3}}}\n" + kWorkload),
                HasSubstr("e.yaml:1:16: 'workload' is shared by all variants and cannot be varied"));
    EXPECT_THAT(error_of("factors: {slo.ttft_ms: [1, 2]}\n" + kWorkload), HasSubstr("'slo' is shared by all variants"));
    EXPECT_THAT(error_of("factors: {scheduler: [a]}\nvariants: {a: {}}\n" + kWorkload),
                HasSubstr("'factors' and 'variants' exclude each other"));
    EXPECT_THAT(error_of("factors: {scheduler: fcfs}\n" + kWorkload), HasSubstr("expected a list of values"));
}

TEST(Spec, IsNamedAfterItsFolderWhereTheFileSaysNothing) {
    EXPECT_EQ(name_of_file("/x/quickstart/experiment.yaml"), "quickstart");
    EXPECT_EQ(name_of_file("/x/y/sweep.yaml"), "sweep");
}

}  // namespace
}  // namespace patchbay::experiment
