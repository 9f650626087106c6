#include "experiment/spec_load.hpp"

#include <gmock/gmock.h>

#include "config/document.hpp"
#include "config/load.hpp"
#include "config/show.hpp"
#include "experiment/matrix.hpp"

namespace patchbay::experiment::spec_load_test {
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

TEST(Spec, ComesBackFromTheDocumentThatRunsAreGiven) {
    const auto spec = load("question: is it \U0001f680?\nvariants: {\U0001f680: {engine.seed: 1}}\n" + kWorkload);
    ASSERT_TRUE(spec) << spec.error();
    const auto again = load(config::show_yaml(spec->document));
    ASSERT_TRUE(again) << again.error();
    EXPECT_EQ(again->question, "is it \U0001f680?");
    EXPECT_EQ(again->variants.at(0).name, "\U0001f680");
}

TEST(Spec, ReadsGeneratedLoads) {
    const auto workload = [](const std::string& keys) {
        const auto spec = load(kWorkload + keys);
        EXPECT_TRUE(spec) << spec.error();
        return spec ? spec->workload : WorkloadSpec{};
    };
    const auto ramp = workload("  arrivals: {ramp: {from: 1, to: 9, over_s: 60}}\n");
    EXPECT_EQ(std::get<RampArrivals>(ramp.arrivals).to, 9);
    const auto on_off = workload("  arrivals: {on_off: {rate: 5, on_s: 2, off_s: 8, off_rate: 1}}\n");
    EXPECT_EQ(std::get<OnOffArrivals>(on_off.arrivals).off_rate, 1);
    const auto day = workload("  arrivals: {diurnal: {mean_rate: 5, amplitude: 1, period_s: 60, phase: 0.5}}\n");
    EXPECT_EQ(std::get<DiurnalArrivals>(day.arrivals).phase, 0.5);
    const auto loop = workload("  arrivals: {closed_loop: {users: 3, think_s: {lognormal: {mean: 2, cv: 0.5}}}}\n");
    EXPECT_EQ(std::get<ClosedLoop>(loop.arrivals).users, 3u);
    EXPECT_EQ(std::get<LognormalTime>(std::get<ClosedLoop>(loop.arrivals).think).mean, 2);
    const auto sessions = workload("  max_tokens: 99\n  sessions: {turns: {uniform: {min: 2, max: 5}}, think_s: 1.5, "
                                   "history: recorded}\n  shared_prefixes: {number: 8, tokens: 64, exponent: 1.1, "
                                   "share: 0.5}\n");
    EXPECT_EQ(std::get<UniformLength>(*sessions.sessions.turns).max, 5u);
    EXPECT_EQ(std::get<FixedTime>(sessions.sessions.think).seconds, 1.5);
    EXPECT_EQ(sessions.sessions.history, History::kRecorded);
    EXPECT_EQ(sessions.shared_prefixes.number, 8u);
    EXPECT_EQ(sessions.shared_prefixes.share, 0.5);
    EXPECT_EQ(std::get<FixedLength>(*sessions.max_tokens).tokens, 99u);
}

TEST(Spec, ReadsATraceWithItsOptions) {
    const auto spec = load("workload:\n  prompts: {trace: {path: t.jsonl, format: mooncake, skip: 3, from_s: 10, "
                           "until_s: 20, block_tokens: 64, length_scale: 0.1}}\n  arrivals: {trace: {rate: 4}}\n");
    ASSERT_TRUE(spec) << spec.error();
    const auto& trace = std::get<TracePrompts>(spec->workload.prompts);
    EXPECT_EQ(trace.path, "t.jsonl");
    EXPECT_EQ(trace.options.format, TraceFormat::kMooncake);
    EXPECT_EQ(trace.options.skip, 3u);
    EXPECT_EQ(trace.options.until_s, 20);
    EXPECT_EQ(trace.options.block_tokens, 64u);
    EXPECT_EQ(trace.options.length_scale, 0.1);
    EXPECT_EQ(std::get<TraceArrivals>(spec->workload.arrivals).rate, 4);
}

TEST(Spec, NamesTheKeyThatWasWrittenWhereALengthIsOutOfRange) {
    EXPECT_THAT(error_of(kWorkload + "  sessions: {turns: 0}\n"), HasSubstr("'turns' is 0, expected 1 to 67108864"));
    const std::string prompts = "workload:\n  prompts: {synthetic: {tokens: 5}}\n  requests: 2\n";
    EXPECT_THAT(error_of(prompts + "  output_tokens: 0\n"), HasSubstr("'output_tokens' is 0, expected 1 to"));
    EXPECT_THAT(error_of(prompts + "  output_tokens: [3, 0]\n"), HasSubstr("'output_tokens' "));
    EXPECT_THAT(error_of(prompts + "  output_tokens: {fixed: 0}\n"), HasSubstr("'fixed' is 0, expected 1 to"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: {closed_loop: {users: 2, think_s: -1}}\n"),
                HasSubstr("'think_s' is -1, expected 0 to"));
}

TEST(Spec, RefusesLoadsThatMeanNothing) {
    const std::string trace = "workload:\n  prompts: {trace: {path: t}}\n";
    EXPECT_THAT(error_of(trace + "  sessions: {turns: 3}\n"), HasSubstr("a trace has its own"));
    EXPECT_THAT(error_of(trace + "  shared_prefixes: {number: 3}\n"), HasSubstr("prefixes of their own"));
    EXPECT_THAT(error_of("workload:\n  prompts: {trace: {path: t, from_s: 5, until_s: 4}}\n"),
                HasSubstr("'until_s' is not after 'from_s'"));
    EXPECT_THAT(error_of("workload:\n  prompts: {trace: {path: t, format: moon}}\n"), HasSubstr("mooncake"));
    EXPECT_THAT(error_of("workload:\n  prompts: {trace: {format: azure}}\n"), HasSubstr("'path' is missing"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: {closed_loop: {users: 2}}\n"
                                     "  at: {request: 3, swap: {scheduler: sjf}}\n"),
                HasSubstr("these follow one another; say when with 't'"));
    EXPECT_THAT(error_of(kWorkload + "  arrivals: {closed_loop: {users: 2, think_s: {uniform: {min: 3, max: 1}}}}\n"),
                HasSubstr("'max' is less than 'min'"));
}

TEST(Spec, ReadsRepeatsThatAreDecidedLater) {
    const auto usual = load("repeats: auto\n" + kWorkload);
    ASSERT_TRUE(usual) << usual.error();
    ASSERT_TRUE(usual->adaptive);
    EXPECT_EQ(usual->adaptive->effect, 0.05);
    EXPECT_EQ(usual->adaptive->first, 10u);
    EXPECT_EQ(usual->repeats, 50u);
    const auto own = load("repeats: {auto: {effect: 2.5 %, first: 6, at_most: 30}}\n" + kWorkload);
    ASSERT_TRUE(own) << own.error();
    EXPECT_EQ(own->adaptive->effect, 0.025);
    EXPECT_EQ(own->adaptive->first, 6u);
    EXPECT_EQ(own->repeats, 30u);
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
    EXPECT_EQ(spec->warmup.requests, 3u);
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

TEST(Spec, AsksForSeveralOutputsAndForTheirForm) {
    const auto sampling = [](const std::string& keys) { return kWorkload + "  sampling: {" + keys + "}\n"; };
    const auto several = load(sampling("n: 2, best_of: 4"));
    ASSERT_TRUE(several) << several.error();
    EXPECT_EQ(several->workload.sampling.n, 2u);
    EXPECT_EQ(several->workload.sampling.best_of, 4u);
    EXPECT_FALSE(several->workload.sampling.structured_outputs);
    const auto beams = load(sampling("beam_width: 3, early_stopping: never"));
    ASSERT_TRUE(beams) << beams.error();
    EXPECT_EQ(beams->workload.sampling.beam_width, 3u);
    EXPECT_EQ(beams->workload.sampling.early_stopping, engine::EarlyStopping::kNever);
    EXPECT_FALSE(load(sampling("structured_outputs: {json_object: false}"))->workload.sampling.structured_outputs);
    EXPECT_EQ(load(sampling("structured_outputs: {regex: 'a+'}"))->workload.sampling.structured_outputs->regex, "a+");
    EXPECT_THAT(load(sampling("structured_outputs: {choice: [x, y]}"))->workload.sampling.structured_outputs->choice,
                ::testing::ElementsAre("x", "y"));
    EXPECT_EQ(load(sampling("structured_outputs: {json: '{}'}"))->workload.sampling.structured_outputs->json, "{}");
    EXPECT_THAT(error_of(sampling("structured_outputs: {regex: a, grammar: b}")),
                HasSubstr("'structured_outputs' has 2 forms, expected one of json, regex"));
    EXPECT_THAT(error_of(sampling("structured_outputs: {disable_any_whitespace: true}")),
                HasSubstr("'structured_outputs' has 0 forms"));
    EXPECT_THAT(error_of(sampling("structured_outputs: {regx: a}")), HasSubstr("did you mean 'regex'?"));
    EXPECT_THAT(error_of(sampling("n: 0")), HasSubstr("expected"));
}

TEST(Spec, HasDefaultsForAllButTheWorkload) {
    const auto spec = load(kWorkload);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->name, "e");
    EXPECT_EQ(spec->variants.size(), 1u);
    EXPECT_EQ(spec->repeats, 10u);
    EXPECT_EQ(spec->primary.front(), "output_throughput");
    EXPECT_EQ(spec->primary.size(), 6u);
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
    EXPECT_THAT(error_of("repeats: {auto: {effect: 5}}\n" + kWorkload),
                HasSubstr("e.yaml:1:26: 'effect' is '5', expected a share such as 5%"));
    EXPECT_THAT(error_of("repeats: {auto: {first: 20, at_most: 10}}\n" + kWorkload), HasSubstr("more than 'at_most'"));
    EXPECT_THAT(error_of("repeats: {outo: {}}\n" + kWorkload), HasSubstr("unknown key 'outo' (did you mean 'auto'?)"));
    EXPECT_THAT(error_of("repeats: auto\n" + kWorkload + "  windows: {drawn: {overlap: 0.5}}\n"),
                HasSubstr("'repeats: auto' needs repeats that share no rows"));
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
    EXPECT_THAT(error_of(kWorkload + "  tenants: [0, 0]\n"), HasSubstr("e.yaml:5:12: 'tenants' has no share above 0"));
    EXPECT_THAT(error_of(kWorkload + "  deadline: {min_s: 3, max_s: 2}\n"),
                HasSubstr("e.yaml:5:13: 'deadline' ends before it begins"));
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

TEST(Spec, PrimaryMetricsAreNamedByTheFileOrFollowFromTheObjective) {
    const auto spec = load("primary: [e2e_p99, kv_mean]\n" + kWorkload);
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_THAT(spec->primary, ::testing::ElementsAre("e2e_p99", "kv_mean"));
    const auto with_slo = load("slo: {ttft_ms: 100}\n" + kWorkload);
    ASSERT_TRUE(with_slo) << with_slo.error();
    EXPECT_EQ(with_slo->primary.front(), "goodput_share");
    EXPECT_THAT(error_of("primary: [ttft_p5]\n" + kWorkload),
                HasSubstr("e.yaml:1:11: unknown metric 'ttft_p5' in 'primary' (did you mean 'ttft_p50'?)"));
    EXPECT_THAT(error_of("primary: [plugin.chef.depth]\n" + kWorkload),
                HasSubstr("unknown metric 'plugin.chef.depth' in 'primary', expected some of output_throughput, "));
    EXPECT_TRUE(load("primary: [plugin.scheduler.depth, waiting_p99, time_scheduler_plan]\n" + kWorkload));
    EXPECT_THAT(error_of("primary: [e2e_p50, e2e_p50]\n" + kWorkload), HasSubstr("'e2e_p50' is twice in 'primary'"));
    EXPECT_THAT(error_of("primary: ttft_p50\n" + kWorkload), HasSubstr("expected a list of metrics: output_thr"));
    EXPECT_THAT(error_of("primary: [goodput_rate]\n" + kWorkload), HasSubstr("'goodput_rate' needs an 'slo'"));
}

TEST(Spec, ReportsAllFaultsAtOnce) {
    const std::string error = error_of("repeats: x\nsed: 1\n" + kWorkload);
    EXPECT_THAT(error, HasSubstr("e.yaml:1:10"));
    EXPECT_THAT(error, HasSubstr("e.yaml:2:1"));
}

TEST(Spec, RefusesVariantsThatChangeWhatIsAsked) {
    EXPECT_THAT(error_of("variants: {a: {slo: {ttft_ms: 3}}}\n" + kWorkload),
                HasSubstr("e.yaml:1:16: 'slo' is shared by all variants and cannot be varied"));
    EXPECT_THAT(error_of("factors: {slo.ttft_ms: [1, 2]}\n" + kWorkload), HasSubstr("'slo' is shared by all variants"));
    EXPECT_THAT(error_of("factors: {scheduler: [a]}\nvariants: {a: {}}\n" + kWorkload),
                HasSubstr("'factors' and 'variants' exclude each other"));
    EXPECT_THAT(error_of("factors: {scheduler: fcfs}\n" + kWorkload), HasSubstr("expected a list of values"));
}

// What nothing reads would make no difference, and be reported as none.
TEST(Spec, RefusesKeysOfVariantsAndFactorsThatNothingReads) {
    const auto fault_of = [](const std::string& key) {
        return error_of("variants: {a: {}, b: {" + key + "}}\n" + kWorkload);
    };
    EXPECT_EQ(fault_of("schduler: sjf"), "e.yaml:1:23: unknown key 'schduler' (did you mean 'scheduler'?)");
    EXPECT_EQ(fault_of("kv_polcy: {plugin: lfu}"), "e.yaml:1:23: unknown key 'kv_polcy' (did you mean 'kv_policy'?)");
    EXPECT_EQ(fault_of("kv_polcy.plugin: lfu"), "e.yaml:1:23: unknown key 'kv_polcy' (did you mean 'kv_policy'?)");
    EXPECT_EQ(fault_of("max_num_seqs: 8"),
              "e.yaml:1:23: unknown key 'max_num_seqs' (did you mean 'engine.max_num_seqs'?)");
    EXPECT_EQ(fault_of("prompts: {synthetic: {tokens: 3}}"),
              "e.yaml:1:23: unknown key 'prompts' (did you mean 'workload.prompts'?)");
    EXPECT_EQ(fault_of("warmp.requests: 3"), "e.yaml:1:23: unknown key 'warmp' (did you mean 'warmup'?)");
    EXPECT_EQ(fault_of("zzz: 3"), "e.yaml:1:23: unknown key 'zzz'");
    EXPECT_EQ(error_of("factors: {schedular: [fcfs, sjf]}\n" + kWorkload),
              "e.yaml:1:11: unknown key 'schedular' (did you mean 'scheduler'?)");
    EXPECT_EQ(error_of("factors: {schedular.ageing: [1, 2]}\n" + kWorkload),
              "e.yaml:1:11: unknown key 'schedular' (did you mean 'scheduler'?)");
    EXPECT_EQ(error_of("factors: {at: [{t: 1s, swap: {scheduler: sjf}}]}\n" + kWorkload),
              "e.yaml:1:11: unknown key 'at' (did you mean 'workload.at'?)");
    for (const std::string& key : config::engine_keys())
        EXPECT_TRUE(load("variants: {a: {" + key + ".x: 1}}\n" + kWorkload)) << key << " is read by the engine";
}

TEST(Spec, GivesEachVariantTheWorkloadWithItsOwnKeys) {
    const auto spec = load(kWorkload + R"(  arrivals: {poisson: {rate: 2}}
warmup: {requests: 3}
variants:
  a: {}
  faster: {workload.arrivals.poisson.rate: 8}
  bursts: {workload: {arrivals: {gamma: {rate: 2, cv: 3}}}, warmup.requests: 0}
  longer: {workload.output_tokens: 9, simulation: {run_jitter: 0.5}}
)");
    ASSERT_TRUE(spec) << spec.error();
    const auto& v = spec->variants;
    EXPECT_EQ(std::get<PoissonArrivals>(v[0].workload.arrivals).rate, 2);
    EXPECT_EQ(std::get<PoissonArrivals>(v[1].workload.arrivals).rate, 8);
    EXPECT_EQ(std::get<GammaArrivals>(v[2].workload.arrivals).cv, 3) << "another kind takes the place of the first";
    EXPECT_EQ(v[2].workload.requests, 10u);
    EXPECT_EQ(v[1].warmup.requests, 3u);
    EXPECT_EQ(v[2].warmup.requests, 0u);
    EXPECT_EQ(v[3].jitter.run_jitter, 0.5);
    EXPECT_TRUE(v[1].same_requests && v[2].same_requests) << "only their times differ";
    EXPECT_FALSE(v[3].same_requests);
    EXPECT_EQ(v[2].workload_of, 2u);
    EXPECT_EQ(v[0].workload_of, 0u);
}

TEST(Spec, FindsFaultsInTheWorkloadOfAVariantWhereTheyAre) {
    EXPECT_THAT(error_of("variants:\n  a: {workload.arrivals.poison.rate: 8}\n" + kWorkload),
                HasSubstr("e.yaml:2:7: unknown 'poison' in 'arrivals' (did you mean 'poisson'?)"));
    EXPECT_THAT(error_of("factors: {workload.output_tokens: [0]}\n" + kWorkload), HasSubstr("e.yaml:1:36"));
    EXPECT_THAT(error_of("factors: {workload.rate: [1]}\n" + kWorkload), HasSubstr("unknown key 'rate'"));
}

TEST(Spec, ReadsWhichRequestsAreCountedAndLookedAtApart) {
    const auto spec = load(kWorkload + "by: [tenant, {prompt_length: [8, 32]}]\nwindow: {from: 10%, until: 5s}\n");
    ASSERT_TRUE(spec) << spec.error();
    ASSERT_EQ(spec->by.size(), 2u);
    EXPECT_EQ(spec->by[1].bounds, (std::vector<uint32_t>{8, 32}));
    EXPECT_NEAR(spec->window->from.value, 0.1, 1e-12);
    EXPECT_FALSE(spec->window->until.is_share);
    EXPECT_EQ(load(kWorkload + "by: class\n")->by[0].kind, ClassKind::kLabel);
    EXPECT_THAT(error_of("by: tenent\n" + kWorkload),
                HasSubstr("e.yaml:1:5: unknown 'tenent' in 'by' (did you mean 'tenant'?)"));
    EXPECT_THAT(error_of("by: [tenant, tenant]\n" + kWorkload), HasSubstr("'tenant' is twice in 'by'"));
    EXPECT_THAT(error_of("by: {prompt_length: [9, 3]}\n" + kWorkload), HasSubstr("do not ascend"));
    EXPECT_THAT(error_of("by: {tenant: [9]}\n" + kWorkload), HasSubstr("only 'prompt_length' has bounds"));
    EXPECT_THAT(error_of("window: {from: soon}\n" + kWorkload),
                HasSubstr("'from' of 'window' is 'soon', expected a share of the time of arrivals such as 10%"));
    EXPECT_THAT(error_of("window: middle\n" + kWorkload),
                HasSubstr("'window' is 'middle', expected auto, whole, or a section with 'from' and 'until'"));
    EXPECT_TRUE(load("window: auto\n" + kWorkload)->window_by_rule);
    EXPECT_FALSE(load("window: whole\n" + kWorkload)->window_by_rule);
    EXPECT_FALSE(load("window: whole\n" + kWorkload)->window);
    EXPECT_THAT(error_of("window: {from: 50%, until: 20%}\n" + kWorkload), HasSubstr("ends before it begins"));
}

TEST(Spec, ReadsASearchForTheCapacity) {
    const std::string rate = "  arrivals: {poisson: {rate: 2}}\n";
    const auto spec = load(kWorkload + rate + "slo: {ttft_ms: 9}\ncapacity: {rates: [1, 8], share: 95%}\n");
    ASSERT_TRUE(spec) << spec.error();
    EXPECT_EQ(spec->capacity->slo.ttft_ms, 9);
    EXPECT_NEAR(spec->capacity->share, 0.95, 1e-12);
    EXPECT_EQ(spec->capacity->highest, 8);
    EXPECT_EQ(spec->primary.front(), "capacity");
    EXPECT_THAT(error_of("capacity: {rates: [1, 8]}\n" + kWorkload + rate), HasSubstr("'capacity' needs an objective"));
    EXPECT_THAT(error_of("capacity: {slo: {e2e_ms: 3}, rates: [8, 1]}\n" + kWorkload + rate),
                HasSubstr("are not the lowest and the highest rate"));
    EXPECT_THAT(error_of("capacity: {slo: {e2e_ms: 3}, rates: [1, 8]}\n" + kWorkload), HasSubstr("these have none"));
    EXPECT_THAT(error_of("primary: [capacity]\n" + kWorkload), HasSubstr("needs the key 'capacity'"));
    const std::string adaptive = "repeats: auto\ncapacity: {slo: {e2e_ms: 3}, rates: [1, 8]}\n" + kWorkload + rate;
    EXPECT_THAT(error_of(adaptive), HasSubstr("e.yaml:1:10: 'repeats: auto' follows from the first runs"));
    EXPECT_TRUE(load("primary: [ttft_p50]\n" + adaptive));
}

TEST(Spec, IsNamedAfterItsFolderWhereTheFileSaysNothing) {
    EXPECT_EQ(name_of_file("/x/quickstart/experiment.yaml"), "quickstart");
    EXPECT_EQ(name_of_file("/x/y/sweep.yaml"), "sweep");
}

// ---- at ----

TEST(Spec, ReadsSwapsOfAVariantAndOfTheWorkload) {
    const auto spec = load(kWorkload + R"(  at: {t: 500ms, swap: {sampler: greedy}}
variants:
  plain: {}
  switched:
    engine.max_num_seqs: 8
    at:
      - {request: 3, swap: {scheduler: {plugin: sjf, ageing: 2}}}
      - {t: 2, swap: {scheduler: fcfs, sampler: standard}}
)");
    ASSERT_TRUE(spec) << spec.error();
    ASSERT_EQ(spec->workload.at.size(), 1u);
    EXPECT_EQ(spec->workload.at[0].kind, "sampler");
    EXPECT_EQ(spec->workload.at[0].t_ns, 500'000'000u);
    EXPECT_EQ(spec->variants[0].at.size(), 0u);
    const auto& at = spec->variants[1].at;
    ASSERT_EQ(at.size(), 3u);
    EXPECT_EQ(at[0].request, 3u);
    EXPECT_EQ(at[0].choice.find("plugin")->text, "sjf");
    EXPECT_EQ(at[1].t_ns, 2'000'000'000u);
    EXPECT_FALSE(at[1].request);
    EXPECT_EQ(at[2].kind, "sampler");
    EXPECT_EQ(leaf_paths(spec->variants[1].patch), std::vector<std::string>{"engine.max_num_seqs"}); // no `at`
}

TEST(Spec, SaysWhereASwapIsWrong) {
    const auto wrong = [](const std::string& at) { return error_of(kWorkload + "variants:\n  a: {at: " + at + "}\n"); };
    EXPECT_EQ(wrong("{request: 3, swap: {schedular: sjf}}"),
              "e.yaml:6:31: 'schedular' cannot be swapped (did you mean 'scheduler'?), expected scheduler, sampler, "
              "proposer, kv_policy, attention or model");
    EXPECT_EQ(wrong("{request: 3, swap: {device: cpu}}"),
              "e.yaml:6:31: 'device' cannot be swapped, expected scheduler, sampler, "
              "proposer, kv_policy, attention or model");
    EXPECT_EQ(wrong("{requests: 3, t: 1, swap: {scheduler: sjf}}"),
              "e.yaml:6:12: unknown key 'requests' (did you mean 'request'?)");
    EXPECT_EQ(wrong("{swap: {scheduler: sjf}}"),
              "e.yaml:6:11: an item of 'at' needs either 'request' or 't': when it happens");
    EXPECT_EQ(wrong("{request: 1, t: 1, swap: {scheduler: sjf}}"),
              "e.yaml:6:11: an item of 'at' needs either 'request' or 't': when it happens");
    EXPECT_EQ(wrong("{t: soon, swap: {scheduler: sjf}}"),
              "e.yaml:6:15: 't' is 'soon', expected a time such as 5s or 500ms");
    EXPECT_THAT(wrong("{t: 5m, swap: {scheduler: sjf}}"), HasSubstr("'t' is '5m'"));
    EXPECT_THAT(wrong("{t: -1, swap: {scheduler: sjf}}"), HasSubstr("'t' is '-1'"));
    EXPECT_EQ(wrong("{request: 11, swap: {scheduler: sjf}}"),
              "e.yaml:6:11: 'request' is 11, the workload has 10 requests");
    EXPECT_THAT(wrong("{request: 1}"), HasSubstr("'swap' is missing"));
    EXPECT_THAT(wrong("{request: 1, swap: {}}"), HasSubstr("'swap' is empty, expected scheduler, "
                                                               "sampler, proposer, kv_policy, attention or model"));
    EXPECT_THAT(wrong("soon"), HasSubstr("'at' is 'soon', expected {request: N, swap: {…}} or a list"));
}

}  // namespace
}  // namespace patchbay::experiment::spec_load_test
