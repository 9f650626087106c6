// How an engine verifies drafts otherwise than by matching: by rejection, and by given rates.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::testing::speculation_test {
namespace {

using ::testing::HasSubstr;
using config::Verification;

config::EngineConfig with(config::EngineConfig c, const std::string& proposer,
                          std::map<std::string, std::string> settings = {}, uint32_t k = 3) {
    c.proposer = config::PluginChoice{proposer, std::move(settings)};
    c.engine.num_speculative_tokens = k;
    return c;
}

config::EngineConfig demo(const std::string& proposer, Verification verification) {
    config::EngineConfig c;
    c.model.path = repository("models/demo-target");
    c.engine.num_blocks = 1024;
    c.engine.block_size = 8;
    c.engine.threads = 1;
    std::map<std::string, std::string> settings;
    if (proposer == "draft_model") settings["model"] = repository("models/demo-draft");
    if (proposer == "eagle") settings["model"] = repository("models/demo-eagle");
    if (proposer == "ngram") settings["prompt_lookup_min"] = "1";
    c = with(std::move(c), proposer, settings);
    c.speculative.rejection_sample_method = verification;
    return c;
}

std::string refusal(const config::EngineConfig& c) {
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    return made ? "" : made.error();
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 400; // fifty times as slow, and looking for other faults
#else
constexpr uint64_t kSeeds = 2000;
#endif

// Second and third tokens of many seeds, among those that top_k leaves; n of them a request.
std::map<std::vector<TokenId>, double> openings(const config::EngineConfig& c, uint64_t& accepted, uint32_t n = 1) {
    Harness h(c);
    SamplingParams p = seeded(0, 4);
    p.top_k = 3;
    p.top_p = 0.9f;
    p.repetition_penalty = 1.1f;
    p.n = n;
    const auto prompt = random_prompt(4, 6, 2048);
    for (uint64_t seed = 0; seed < kSeeds; seed += n) {
        p.seed = 1000 + seed;
        h.add(prompt, p);
    }
    h.run_all();
    std::map<std::vector<TokenId>, double> out;
    for (const auto& [id, o] : h.outputs) out[{o.tokens[1], o.tokens[2]}] += 1;
    for (const auto& [id, o] : h.others) out[{o.tokens[1], o.tokens[2]}] += 1;
    EXPECT_EQ(sum_over(h.steps, &PreemptionReport::swapped_in) > 0,
              c.engine.preemption_mode == config::PreemptionMode::kSwap);
    accepted = sum_over(h.steps, &DraftReport::accepted_tokens);
    EXPECT_LT(accepted, sum_over(h.steps, &DraftReport::drafted_tokens));
    return out;
}

// Chi-square of two samples, in standard deviations above what chance gives.
double distance(const std::map<std::vector<TokenId>, double>& a, const std::map<std::vector<TokenId>, double>& b) {
    std::map<std::vector<TokenId>, std::pair<double, double>> all;
    for (const auto& [key, n] : a) all[key].first = n;
    for (const auto& [key, n] : b) all[key].second = n;
    double chi = 0, cells = 0, rare_a = 0, rare_b = 0;
    const auto add = [&](double x, double y) {
        if (x + y == 0) return;
        chi += (x - y) * (x - y) / (x + y);
        cells += 1;
    };
    for (const auto& [key, n] : all) {
        if (n.first + n.second < 20) rare_a += n.first, rare_b += n.second;
        else add(n.first, n.second);
    }
    add(rare_a, rare_b);
    const double df = cells - 1, spread = 2 / (9 * df);
    return (std::cbrt(chi / df) - (1 - spread)) / std::sqrt(spread);
}

// Though a proposer would have something to say about every chunk of the prompt.
TEST(Speculation, BeginsWithTheFirstToken) {
    auto c = with(tiny_model(), "last_token");
    c.engine.max_num_batched_tokens = 8;
    Harness h(c);
    h.add(random_prompt(1, 30), greedy(10));
    for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(h.step().work.scheduled_tokens, 8u);
        EXPECT_EQ(h.engine->view().running.at(0).draft_tokens, 0u) << step;
    }
    EXPECT_EQ(h.step().work.scheduled_tokens, 6u);
    EXPECT_EQ(h.step().drafts.drafted_tokens, 3u);
}

TEST(Rejection, MakesTheTextsOfTheTargetsDistribution) {
    uint64_t accepted = 0;
    const auto matched = openings(demo("draft_model", Verification::kMatch), accepted);
    EXPECT_GT(matched.size(), 5u);
    for (const char* proposer : {"draft_model", "last_token"}) {
        const auto got = openings(demo(proposer, Verification::kRejection), accepted);
        EXPECT_LT(distance(matched, got), 4) << proposer;
        EXPECT_GT(accepted, 0u) << proposer;
    }
}

// A head's drafts, several outputs of a prompt, codes in place of keys and values, and hardly any pages.
TEST(Rejection, MakesTheTextsOfTheTargetsDistributionWhateverElseHappens) {
    uint64_t accepted = 0;
    auto c = demo("eagle", Verification::kMatch);
    c.engine.kv_cache_dtype = config::KvDType::kFp8;
    const auto matched = openings(c, accepted, 50);
    c.speculative.rejection_sample_method = Verification::kRejection;
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 1000;
    c.engine.max_model_len = 24;
    c.engine.num_blocks = 90; // for 64 sequences of one or two
    c.engine.watermark = 0;
    EXPECT_LT(distance(matched, openings(c, accepted, 50)), 4);
    EXPECT_GT(accepted, 0u);
}

TEST(Rejection, WithOneTokenLeftToChooseIsGreedy) {
    const auto prompt = random_prompt(1, 20, 2048);
    SamplingParams one = seeded(5, 40);
    one.top_k = 1;
    Harness plain(demo("draft_model", Verification::kMatch)), judged(demo("draft_model", Verification::kRejection));
    const auto text = plain.run(plain.add(prompt, greedy(40))).tokens;
    EXPECT_EQ(judged.run(judged.add(prompt, one)).tokens, text) << "top-k holds for every token";
    EXPECT_EQ(judged.run(judged.add(prompt, greedy(40))).tokens, text) << "temperature 0";
    EXPECT_GT(sum_over(judged.steps, &DraftReport::accepted_tokens), 10u);
}

struct Ran {
    std::map<std::pair<RequestId, uint32_t>, Output> outputs; // by request and index
    uint64_t preemptions = 0, accepted = 0;
};

// Prompts that share beginnings, two outputs each, penalties and log-probabilities.
Ran mixed(const config::EngineConfig& c) {
    Harness h(c);
    for (uint64_t i = 0; i < 10; ++i) {
        auto prompt = random_prompt(i / 2, 30, 2048);
        prompt.push_back(static_cast<TokenId>(i));
        SamplingParams p = seeded(i, 40);
        p.n = i % 3 == 0 ? 2 : 1;
        p.logprobs = 5;
        p.top_k = 5;
        if (i % 2) p.frequency_penalty = 0.4f, p.presence_penalty = 0.2f;
        h.add(prompt, p);
    }
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    Ran out{h.others, sum_over(h.steps, &PreemptionReport::preemptions),
            sum_over(h.steps, &DraftReport::accepted_tokens)};
    for (const auto& [id, o] : h.outputs) out.outputs[{id, 0}] = o;
    EXPECT_EQ(out.outputs.size(), 14u);
    for (const auto& [id, o] : out.outputs) {
        EXPECT_EQ(o.finish, FinishReason::kLength) << id.first;
        EXPECT_EQ(o.tokens.size(), o.logprobs.size()) << id.first;
    }
    return out;
}

void expect_same(const Ran& got, const Ran& want) {
    ASSERT_EQ(got.outputs.size(), want.outputs.size());
    for (const auto& [id, w] : want.outputs) {
        const Output& g = got.outputs.at(id);
        SCOPED_TRACE("request " + std::to_string(id.first) + ", output " + std::to_string(id.second));
        EXPECT_EQ(g.tokens, w.tokens);
        ASSERT_EQ(g.logprobs.size(), w.logprobs.size());
        for (size_t i = 0; i < w.logprobs.size(); ++i) {
            EXPECT_EQ(g.logprobs[i].sampled, w.logprobs[i].sampled) << i;
            EXPECT_EQ(g.logprobs[i].top, w.logprobs[i].top) << i;
        }
    }
}

TEST(Rejection, GoesWithEverythingElseAndRepeatsItself) {
    for (const char* proposer : {"draft_model", "ngram"}) {
        auto c = demo(proposer, Verification::kRejection);
        c.engine.num_blocks = 200;
        c.engine.max_model_len = 80;
        c.engine.watermark = 0;
        SCOPED_TRACE(proposer);
        const Ran once = mixed(c);
        EXPECT_GT(once.accepted, 0u);
        expect_same(mixed(c), once);
        c.engine.num_blocks = proposer == std::string("ngram") ? 80 : 150;
        EXPECT_GT(mixed(c).preemptions, 0u) << proposer;
    }
}

TEST(Rejection, GivesTheLogProbabilitiesOfTheTokensThatItEmits) {
    Harness h(demo("draft_model", Verification::kRejection));
    SamplingParams p = seeded(3, 60);
    p.logprobs = 10;
    p.top_k = 10;
    const Output o = h.run(h.add(random_prompt(2, 20, 2048), p));
    ASSERT_EQ(o.logprobs.size(), 60u);
    for (size_t i = 0; i < o.tokens.size(); ++i) { // every token is among the ten most likely
        const auto& top = o.logprobs[i].top;
        const auto at = std::find_if(top.begin(), top.end(), [&](const auto& t) { return t.first == o.tokens[i]; });
        ASSERT_NE(at, top.end()) << i;
        EXPECT_NEAR(at->second, o.logprobs[i].sampled, 1e-5) << i;
    }
    EXPECT_GT(sum_over(h.steps, &DraftReport::accepted_tokens), 5u);
    EXPECT_LT(sum_over(h.steps, &DraftReport::accepted_tokens), sum_over(h.steps, &DraftReport::drafted_tokens));
}

TEST(Rejection, KeepsToAGrammar) {
    const std::string form = "(a|b|the ){5,9}\\.";
    for (const char* proposer : {"draft_model", "ngram"}) {
        Harness h(demo(proposer, Verification::kRejection));
        for (uint64_t seed = 0; seed < 20; ++seed) {
            SamplingParams p = seeded(seed, 60);
            p.structured_outputs = grammar::StructuredOutputs{.regex = form};
            const Output o = h.run(h.add(random_prompt(seed, 8, 2000), p));
            EXPECT_EQ(o.finish, FinishReason::kStop) << o.stop_reason;
            EXPECT_TRUE(std::regex_match(o.text, std::regex(form))) << o.text;
        }
        EXPECT_GT(sum_over(h.steps, &DraftReport::drafted_tokens), 0u) << proposer;
        if (proposer == std::string("ngram")) { // the model knows no form, and is hardly ever right
            EXPECT_GT(sum_over(h.steps, &DraftReport::accepted_tokens), 0u);
        }
    }
}

TEST(Rejection, IsRefusedWhereThereAreNoProbabilities) {
    auto c = demo("ngram", Verification::kRejection);
    c.sampler.plugin = "fails_on_request";
    EXPECT_THAT(refusal(c), HasSubstr("rejection needs a sampler that gives its probabilities to the host, and "
                                      "'fails_on_request' does not"));
    c = with(tiny_model(), "last_token");
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}}};
    c.speculative.rejection_sample_method = Verification::kRejection;
    EXPECT_THAT(refusal(c), HasSubstr("rejection on a device that computes nothing"));
}

// Calls of the sampler in turn: one of the target, then one for each draft. A model that drafts for itself is right.
TEST(DraftModel, ThatFailsInAPassCostsDraftsOnly) {
    const auto prompt = random_prompt(1, 20, 2048);
    for (const char* call : {"2", "3", "4"}) {
        auto c = demo("draft_model", Verification::kMatch);
        c.proposer->settings["model"] = repository("models/demo-target");
        Harness without(c);
        const auto text = without.run(without.add(prompt, greedy(30))).tokens;
        c.sampler = {"fails_on_request", {{"fail_at", call}}};
        Harness h(c);
        EXPECT_EQ(h.run(h.add(prompt, greedy(30))).tokens, text) << call;
        EXPECT_EQ(sum_over(h.steps, &CallReport::proposer_faults), 1u) << call;
        EXPECT_GT(sum_over(h.steps, &DraftReport::accepted_tokens), 10u) << "drafts are made again, " << call;
        EXPECT_EQ(sum_over(h.steps, &DraftReport::accepted_tokens), sum_over(h.steps, &DraftReport::drafted_tokens))
            << call;
        EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    }
}

void expect_rates(const Harness& h, const std::vector<double>& rates, double tolerance) {
    for (size_t i = 0; i < rates.size(); ++i) {
        double drafted = 0, accepted = 0;
        for (const StepReport& r : h.steps) drafted += r.drafts.drafted_at[i], accepted += r.drafts.accepted_at[i];
        ASSERT_GT(drafted, 1000) << i;
        EXPECT_NEAR(accepted / drafted, rates[i], tolerance) << i;
    }
}

TEST(SyntheticAcceptance, IsTheGivenOneOnADeviceThatComputes) {
    const std::vector<double> rates = {0.8, 0.5, 0.2};
    auto c = with(tiny_model(), "last_token");
    c.speculative = {config::DraftMode::kFixed, Verification::kSynthetic, rates};
    Harness h(c);
    for (uint64_t i = 0; i < 40; ++i) h.add(random_prompt(i, 10), i % 2 ? seeded(i, 200) : greedy(200));
    h.run_all();
    EXPECT_TRUE(h.engine->facts().synthetic_acceptance);
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    expect_rates(h, rates, 0.03);
}

TEST(SyntheticAcceptance, DecidesWhatADeviceThatComputesNothingAccepts) {
    const std::vector<double> rates = {0.7, 0.7, 0.3};
    auto c = with(tiny_model(), "last_token");
    c.model.dtype = config::DType::kBf16;
    c.device = {"sim", {{"matmul_bf16", "1e9"}, {"matmul_f32", "1e9"}, {"memory_read", "1e9"},
                        {"memory_bytes", "100000000"}}};
    EXPECT_THAT(refusal(c), HasSubstr("which drafts would be accepted is not known"));
    c.speculative = {config::DraftMode::kFixed, Verification::kSynthetic, rates};
    Harness h(c);
    for (uint64_t i = 0; i < 40; ++i) h.add(random_prompt(i, 10), seeded(i, 400));
    h.run_all();
    expect_rates(h, rates, 0.02);
}

TEST(SyntheticAcceptance, AnswersNoQuestionAboutItsTexts) {
    auto c = with(tiny_model(), "last_token", {}, 1);
    c.speculative = {config::DraftMode::kFixed, Verification::kSynthetic, {0.5}};
    Harness h(c);
    Request r;
    r.prompt = random_prompt(1, 8);
    r.sampling = greedy(5);
    r.sampling.logprobs = 1;
    EXPECT_EQ(h.engine->add_request(r).error(),
              "logprobs with rejection_sample_method: synthetic, whose texts are not the model's");
    const auto refuses = [&](auto&& ask) {
        r.sampling = seeded(1, 5);
        ask(r.sampling);
        return !h.engine->add_request(r) && h.engine->add_request(r).error().ends_with("not the model's");
    };
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.prompt_logprobs = 1; }));
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.logits_statistics = true; }));
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.best_of = 2; }));
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.beam_width = 2; }));
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.bad_words = {"king"}; }));
    EXPECT_TRUE(refuses([](SamplingParams& p) { p.allowed_token_ids = {{1}}; }));
    EXPECT_FALSE(refuses([](SamplingParams&) {}));
}

}  // namespace
}  // namespace patchbay::engine::testing::speculation_test
