// Beam search: what Hugging Face's finds, whatever the blocks, chunks and neighbours; groups are admitted and preempted
// whole, and give all pages back.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "unit/engine/beam_searches.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::beams_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using json = nlohmann::json;

config::EngineConfig golden_model(const std::string& name) {
    config::EngineConfig c;
    c.model.path = repository("tests/golden/models/" + name);
    c.model.tokenizer = "none";
    c.engine.num_blocks = 512;
    c.engine.block_size = 8;
    c.engine.threads = 1;
    return c;
}

const json& goldens() {
    static const json all = json::parse(std::ifstream(repository("tests/golden/beams.json")));
    return all.at("cases");
}

SamplingParams params_of(const json& c) {
    SamplingParams p = beams(c["beam_width"], c["max_tokens"]);
    p.n = c["n"];
    p.min_tokens = c["min_tokens"];
    p.length_penalty = c["length_penalty"];
    const json& stopping = c["early_stopping"];
    p.early_stopping = stopping == "never" ? EarlyStopping::kNever
                       : stopping == true  ? EarlyStopping::kYes
                                           : EarlyStopping::kNo;
    p.stop_token_ids = c["ends"].get<std::vector<TokenId>>();
    return p;
}

void expect_golden(const json& c, const Harness& h, RequestId id) {
    for (uint32_t i = 0; i < c["n"]; ++i) {
        const Output& got = output(h, id, i);
        EXPECT_EQ(got.tokens, c["found"][i]["ids"].get<std::vector<TokenId>>()) << c;
        const double score = c["found"][i]["score"]; // which float32 adds up
        EXPECT_NEAR(got.beam_score.value_or(99), score, 1e-3 + 1e-6 * std::abs(score)) << c;
        EXPECT_EQ(got.endings, 1u);
    }
}

TEST(Beams, FindWhatHuggingFaceFinds) {
    size_t ended = 0;
    std::map<std::string, std::unique_ptr<Harness>> engines;
    for (const json& c : goldens()) {
        auto& h = engines[c["model"]];
        if (!h) h = std::make_unique<Harness>(golden_model(c["model"]));
        const RequestId id = h->add(c["prompt"].get<std::vector<TokenId>>(), params_of(c));
        h->run_all();
        expect_golden(c, *h, id);
        ended += h->outputs.at(id).finish == FinishReason::kStop;
    }
    EXPECT_GT(ended, 20u);
    for (const auto& [name, h] : engines) {
        EXPECT_EQ(h->steps.back().kv.used_pages, 0u);
        EXPECT_GT(sum_over(h->steps, &ScheduledWork::forked), 50u);
    }
}

// All at once, in too little of everything.
template <class F>
Harness& together(std::unique_ptr<Harness>& h, F&& change) {
    auto c = golden_model("llama_gqa_tied");
    change(c);
    h = std::make_unique<Harness>(c);
    std::vector<std::pair<RequestId, json>> ids;
    uint64_t i = 0;
    for (const json& one : goldens()) {
        if (one["model"] != "llama_gqa_tied" || i++ % 6 != 0) continue;
        ids.emplace_back(h->add(one["prompt"].get<std::vector<TokenId>>(), params_of(one)), one);
        h->add(random_prompt(i, 10, 250), seeded(i, 20));
    }
    while (h->engine->has_unfinished()) {
        h->step();
        const auto sound = h->engine->audit();
        if (!sound) throw std::runtime_error(sound.error());
    }
    for (const auto& [id, one] : ids) expect_golden(one, *h, id);
    EXPECT_EQ(h->steps.back().kv.used_pages, 0u);
    return *h;
}

TEST(Beams, OfOneAreGreedy) {
    Harness h(tiny_model());
    const auto prompt = random_prompt(4, 20);
    const RequestId one = h.add(prompt, beams(1, 12)), plain = h.add(prompt, greedy(12));
    h.run_all();
    EXPECT_EQ(h.outputs.at(one).tokens, h.outputs.at(plain).tokens);
    EXPECT_EQ(h.outputs.at(one).finish, FinishReason::kLength);
    const View view = h.engine->view();
    EXPECT_EQ(view.free_pages, view.total_pages);
}

TEST(Beams, FindTheSameInChunksAndSmallSteps) {
    std::unique_ptr<Harness> h;
    together(h, [](config::EngineConfig& c) {
        c.engine.max_num_batched_tokens = 5; // fewer than some groups have beams
        c.engine.max_num_seqs = 11;
        c.engine.enable_prefix_caching = false;
    });
}

TEST(Beams, FindTheSameWhenTheyArePreempted) {
    for (const bool caching : {true, false}) {
        std::unique_ptr<Harness> h;
        together(h, [&](config::EngineConfig& c) {
            c.engine.block_size = 4;
            c.engine.num_blocks = 48;
            c.engine.max_model_len = 40;
            c.engine.watermark = 0;
            c.engine.enable_prefix_caching = caching;
        });
        EXPECT_GT(sum_over(h->steps, &PreemptionReport::preemptions), 5u);
    }
}

TEST(Beams, FindTheSameWithEveryScheduler) {
    for (const char* name : {"fcfs", "priority", "sjf", "srpt", "edf", "fair", "mlfq", "static", "orca",
                             "prefill_first", "sarathi"}) {
        SCOPED_TRACE(name);
        std::unique_ptr<Harness> h;
        together(h, [&](config::EngineConfig& c) {
            c.scheduler = {name, {}};
            c.engine.max_num_seqs = 9;
        });
        EXPECT_EQ(sum_over(h->steps, &CallReport::plan_faults), 0u);
    }
}

void draft_by_lookup(config::EngineConfig& c) {
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 3;
}

TEST(Beams, AreNotDraftedFor) {
    auto c = golden_model("llama_gqa_tied");
    draft_by_lookup(c);
    const std::vector<TokenId> repetitive{5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6};
    const auto drafted = [&](const SamplingParams& params) {
        Harness h(c);
        h.run(h.add(repetitive, params));
        return sum_over(h.steps, &DraftReport::drafted_tokens);
    };
    EXPECT_EQ(drafted(beams(3, 60)), 0u);
    EXPECT_GT(drafted(greedy(60)), 0u);
}

TEST(Beams, FindTheSameBesideRequestsThatAreDraftedFor) {
    std::unique_ptr<Harness> h;
    together(h, draft_by_lookup);
    EXPECT_GT(sum_over(h->steps, &DraftReport::drafted_tokens), 0u);
}

TEST(Beams, TakeNoStepInFlightAndSaySo) {
    std::unique_ptr<Harness> h;
    together(h, [](config::EngineConfig& c) {
        c.device = {"queues", {}};
        c.attention = {"replays", {}};
        c.sampler = {"replays", {}};
        c.engine.async_scheduling = config::AsyncScheduling::kOn;
    });
    const auto because = [&](const char* why) {
        return std::ranges::count_if(h->steps, [&](const StepReport& r) { return r.sync_reason == why; });
    };
    EXPECT_GT(because("beam_search"), 10);
    EXPECT_GT(because(""), 0);
}

TEST(Beams, FitExactlyWhatTheyMayTake) {
    auto c = golden_model("llama_gqa_tied");
    c.engine.block_size = 4;
    c.engine.max_model_len = 24;
    c.engine.watermark = 0;
    c.engine.num_blocks = 2 + 4 * 4; // of a prompt of 9 tokens 2 are shared; 4 for the others of each beam
    Harness h(c);
    h.run(h.add(random_prompt(1, 9, 250), beams(4, 15)));
    EXPECT_EQ(sum_over(h.steps, &PreemptionReport::preemptions), 0u);
    c.engine.num_blocks -= 1;
    Harness small(c);
    Request r;
    r.prompt = random_prompt(1, 9, 250);
    r.sampling = beams(4, 15);
    EXPECT_EQ(small.engine->add_request(r).error(),
              "beam_width is 4: beams of up to 24 tokens may take 18 blocks, of which there are 17");
}

TEST(Beams, TakeTheirSeatsTogether) {
    auto c = golden_model("llama_gqa_tied");
    c.engine.max_num_seqs = 4;
    Harness h(c);
    const RequestId other = h.add(random_prompt(1, 9, 250), greedy(5)),
                    id = h.add(random_prompt(2, 9, 250), beams(4, 6));
    for (int i = 0; i < 5; ++i) {
        h.step();
        EXPECT_EQ(h.steps.back().queues.running_requests, i < 4 ? 1u : 0u);
    }
    EXPECT_EQ(h.outputs.at(other).endings, 1u);
    h.step();
    EXPECT_EQ(h.steps.back().queues.running_requests, 4u);
    h.run(id);
}

TEST(Beams, ShareTheirPagesUntilTheyWrite) {
    Harness h(golden_model("llama_gqa_tied"));
    h.add(random_prompt(1, 20, 250), beams(4, 6)); // two full blocks and half of one
    h.step();
    EXPECT_EQ(h.steps.back().kv.used_pages, 3u);
    EXPECT_EQ(h.steps.back().work.forked, 3u);
    h.step();
    EXPECT_EQ(h.steps.back().kv.copied_pages, 3u);
    EXPECT_EQ(h.steps.back().work.decode_tokens, 4u);
}

TEST(Beams, EndWithTheirRequest) {
    for (int steps = 0; steps < 6; ++steps) {
        auto c = golden_model("llama_gqa_tied");
        Harness h(c);
        SamplingParams p = beams(4, 30);
        p.n = 2;
        const RequestId id = h.add(random_prompt(1, 20, 250), p), other = h.add(random_prompt(2, 20, 250), greedy(8));
        for (int i = 0; i < steps; ++i) h.step();
        h.engine->abort(id);
        for (uint32_t i = 0; i < 2; ++i) {
            EXPECT_EQ(output(h, id, i).finish, FinishReason::kAbort);
            EXPECT_EQ(output(h, id, i).endings, 1u);
        }
        EXPECT_EQ(h.others.size(), 1u);
        EXPECT_EQ(h.run(other).tokens.size(), 8u);
        EXPECT_FALSE(h.engine->has_unfinished());
        EXPECT_TRUE(h.engine->reset_prefix_cache());
    }
}

TEST(Beams, StopAtTexts) {
    auto c = tiny_model();
    c.model.shape["vocab_size"] = "2048";
    c.model.tokenizer = repository("models/demo-target");
    Harness h(c);
    SamplingParams p = beams(3, 20);
    p.n = 1;
    p.logprobs = 2;
    const auto prompt = random_prompt(3, 12, 2000);
    const Output whole = h.run(h.add(prompt, p));
    ASSERT_GT(whole.text.size(), 12u);
    EXPECT_EQ(whole.text, h.engine->tokenizer()->decode(whole.tokens));
    EXPECT_EQ(whole.logprobs.size(), 20u);
    double total = 0;
    for (const TokenLogprobs& t : whole.logprobs) total += t.sampled;
    EXPECT_NEAR(*whole.cumulative_logprob, total, 1e-9);
    EXPECT_NEAR(*whole.beam_score, total / 20, 1e-9);
    p.stop = {whole.text.substr(6, 4)};
    p.length_penalty = -10; // short ones are best
    p.early_stopping = EarlyStopping::kNever;
    const Output cut = h.run(h.add(prompt, p));
    EXPECT_EQ(cut.finish, FinishReason::kStop);
    EXPECT_EQ(cut.stop_reason, p.stop[0]);
    EXPECT_EQ(cut.text.find(p.stop[0]), std::string::npos);
    EXPECT_FALSE(cut.stop_token);
    p.stop.clear();
    p.stop_token_ids = {whole.tokens[2]};
    EXPECT_EQ(h.run(h.add(prompt, p)).stop_token, whole.tokens[2]);
}

TEST(Beams, ThatCannotBeHadAreRefused) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 4;
    Harness h(c);
    const auto refusal = [&](auto&& change) {
        Request r;
        r.prompt = {1, 2};
        r.sampling = beams(4, 5);
        change(r.sampling);
        return h.engine->add_request(r).error();
    };
    EXPECT_EQ(refusal([](SamplingParams& p) { p.beam_width = 5; }),
              "beam_width is 5, more than max_num_seqs of 4, and beams run together");
    EXPECT_EQ(refusal([](SamplingParams& p) { p.beam_width = 3; }), "beam_width is 3, less than n of 4");
    EXPECT_THAT(refusal([](SamplingParams& p) { p.frequency_penalty = 1; }), HasSubstr("frequency_penalty with beam_"));
    EXPECT_THAT(refusal([](SamplingParams& p) { p.allowed_token_ids = {{1}}; }), HasSubstr("allowed_token_ids with"));
    config::EngineConfig demo;
    demo.model.path = repository("models/demo-target"); // of 2,048 tokens
    demo.engine.num_blocks = 4096;
    demo.engine.max_num_seqs = 128;
    Harness wide(demo);
    Request many;
    many.prompt = {1, 2};
    many.sampling = beams(128, 5);
    many.sampling.ignore_eos = true;
    many.sampling.stop_token_ids = {1, 2, 3, 4, 5, 6, 7};
    EXPECT_TRUE(wide.engine->add_request(many));
    many.sampling.stop_token_ids.push_back(8);
    EXPECT_THAT(wide.engine->add_request(many).error(),
                HasSubstr("with 8 tokens that end an output: 1152 candidates of each beam, expected at most 1024"));
    auto states = golden_model("bamba");
    Harness bamba(states);
    Request r;
    r.prompt = {1, 2};
    r.sampling = beams(2, 5);
    EXPECT_THAT(bamba.engine->add_request(r).error(), HasSubstr("keep states"));
}

}  // namespace
}  // namespace patchbay::engine::beams_test
