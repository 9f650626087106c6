// What a request may expect of the engine: order, limits, stops, aborts, refusals.
#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"


namespace patchbay::engine::testing::engine_test {
namespace {

using ::testing::HasSubstr;

std::string refusal(Engine& engine, std::vector<TokenId> prompt, SamplingParams sampling) {
    Request r;
    r.prompt = std::move(prompt);
    r.sampling = std::move(sampling);
    const auto id = engine.add_request(std::move(r));
    return id ? "accepted" : id.error();
}

TEST(Engine, EndsByLengthAndFreesItsBlocks) {
    Harness h(tiny_model());
    const Output& out = h.run(h.add(random_prompt(1, 30), greedy(10)));
    EXPECT_EQ(out.tokens.size(), 10u);
    EXPECT_EQ(out.finish, FinishReason::kLength);
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    EXPECT_FALSE(h.engine->has_unfinished());
}

TEST(Engine, PromptsThatFitTheBudgetAreScheduledInOneStep) {
    Harness h(tiny_model());
    for (int i = 0; i < 4; ++i) h.add(random_prompt(static_cast<uint64_t>(i), 50), greedy(4));
    const StepReport first = h.step();
    EXPECT_EQ(first.work.scheduled_seqs, 4u);
    EXPECT_EQ(first.work.scheduled_tokens, 200u);
    EXPECT_EQ(first.work.sampled_tokens, 4u);
}

TEST(Engine, ChunkingFollowsTheContract) { // budget 1024, three sequences: 800 + 224 with chunks, 800 alone without
    auto c = tiny_model();
    c.model.shape["max_position_embeddings"] = "2048";
    c.engine.max_num_batched_tokens = 1024;
    c.engine.max_num_seqs = 3;
    for (const bool chunked : {true, false}) {
        c.engine.enable_chunked_prefill = chunked;
        Harness h(c);
        uint64_t seed = 0;
        for (const uint32_t n : {800u, 800u, 10u, 10u}) h.add(random_prompt(++seed, n), greedy(2));
        const StepReport first = h.step();
        EXPECT_EQ(first.work.scheduled_tokens, chunked ? 1024u : 800u);
        EXPECT_EQ(first.work.scheduled_seqs, chunked ? 2u : 1u);
        h.run_all();
    }
}

TEST(Engine, AStopTokenEndsTheOutputAndIsPartOfIt) {
    Harness probe(tiny_model());
    const auto tokens = probe.run(probe.add(random_prompt(5, 12), greedy(8))).tokens;
    SamplingParams p = greedy(8);
    p.stop_token_ids = {tokens[3]};
    Harness h(tiny_model());
    const Output& out = h.run(h.add(random_prompt(5, 12), p));
    const auto first = std::find(tokens.begin(), tokens.end(), tokens[3]) - tokens.begin();
    EXPECT_EQ(out.finish, FinishReason::kStop);
    EXPECT_EQ(out.tokens, std::vector<TokenId>(tokens.begin(), tokens.begin() + first + 1));
    EXPECT_EQ(out.stop_reason, std::to_string(tokens[3]));
    EXPECT_EQ(out.stop_token, tokens[3]);
}

TEST(Engine, NoStopTokenIsSampledBeforeMinTokens) {
    SamplingParams p = greedy(20);
    for (TokenId t = 0; t < 150; ++t) p.stop_token_ids.push_back(t);
    p.min_tokens = 6;
    Harness h(tiny_model());
    const Output& out = h.run(h.add(random_prompt(5, 12), p));
    ASSERT_GE(out.tokens.size(), 6u);
    for (size_t i = 0; i < 6; ++i) EXPECT_GE(out.tokens[i], 150);
}

TEST(Engine, AStopInTheMiddleOfAcceptedDraftsCutsThere) {
    const auto prompt = random_prompt(8, 40);
    Harness plain(tiny_model());
    const auto all = plain.run(plain.add(prompt, greedy(40))).tokens;
    std::string output;
    for (const TokenId t : all) output += std::to_string(t) + " ";
    auto c = tiny_model();
    c.proposer = config::PluginChoice{"foretells", {{"prompt", "40"}, {"output", output}}};
    c.engine.num_speculative_tokens = 4;
    uint32_t cut = 0; // drafts that were accepted after a stop
    for (const size_t at : {5u, 9u, 17u, 30u}) {
        SamplingParams p = greedy(40);
        p.stop_token_ids = {all[at]};
        const auto first = std::find(all.begin(), all.end(), all[at]) - all.begin();
        Harness h(c);
        EXPECT_EQ(h.run(h.add(prompt, p)).tokens, std::vector<TokenId>(all.begin(), all.begin() + first + 1));
        cut += h.steps.back().drafts.accepted_tokens + 1 - h.steps.back().work.sampled_tokens;
    }
    EXPECT_GT(cut, 0u) << "no stop came among accepted drafts, so nothing was shown";
}

TEST(Engine, AbortWorksInEveryStateAndKeepsNothing) {
    auto c = tiny_model();
    c.engine.max_num_seqs = 1;
    Harness h(c);
    Request later;
    later.prompt = random_prompt(3, 10);
    later.sampling = greedy(5);
    later.arrival_ns = 1'000'000'000;
    const RequestId running = h.add(random_prompt(1, 20), greedy(50)),
                    waiting = h.add(random_prompt(2, 20), greedy(50)), pending = h.add(later);
    h.step();
    h.step();
    for (const RequestId id : {running, waiting, pending}) h.engine->abort(id);
    h.engine->abort(12345);
    for (const RequestId id : {running, waiting, pending}) {
        EXPECT_EQ(h.outputs.at(id).finish, FinishReason::kAbort);
        EXPECT_EQ(h.outputs.at(id).endings, 1u);
    }
    EXPECT_FALSE(h.engine->has_unfinished());
    EXPECT_TRUE(h.engine->reset_prefix_cache()) << "blocks are still in use";
}

TEST(Engine, ACallbackMayAbortAndAdd) {
    Harness h(tiny_model());
    const RequestId victim = h.add(random_prompt(1, 20), greedy(50));
    bool done = false;
    Request r;
    r.prompt = random_prompt(2, 20);
    r.sampling = greedy(3);
    r.on_output = [&](const RequestOutput& out) {
        if (out.finish == FinishReason::kNone) return;
        h.engine->abort(victim);
        h.add(random_prompt(3, 5), greedy(2));
        done = true;
    };
    ASSERT_TRUE(h.engine->add_request(std::move(r)));
    h.run_all();
    EXPECT_TRUE(done);
    EXPECT_EQ(h.outputs.at(victim).finish, FinishReason::kAbort);
    EXPECT_EQ(h.outputs.size(), 2u);
}

// Aborted by the callback of another one, which is handed its token first.
TEST(Engine, AnAbortWithinAStepDropsTheTokensOfTheStep) {
    for (const uint32_t at : {1u, 4u, 5u}) { // in the fifth step they end anyhow
        Harness h(tiny_model());
        RequestId victim = 0, several = 0;
        uint32_t deltas = 0;
        Request r;
        r.prompt = random_prompt(2, 20);
        r.sampling = greedy(20);
        r.on_output = [&](const RequestOutput&) {
            if (++deltas != at) return;
            h.engine->abort(victim);
            h.engine->abort(several);
        };
        ASSERT_TRUE(h.engine->add_request(std::move(r)));
        SamplingParams p = greedy(5);
        p.logprobs = 0;
        victim = h.add(random_prompt(1, 20), p);
        p = seeded(3, 5);
        p.n = 2;
        several = h.add(random_prompt(3, 20), p);
        h.run_all();
        const Output& got = h.outputs.at(victim);
        EXPECT_EQ(got.finish, FinishReason::kAbort);
        EXPECT_EQ(got.stop_reason, "");
        EXPECT_EQ(got.tokens.size(), at - 1);
        double sum = 0;
        for (const TokenLogprobs& token : got.logprobs) sum += token.sampled;
        EXPECT_EQ(got.logprobs.size(), at - 1);
        EXPECT_NEAR(got.cumulative_logprob.value(), sum, 1e-6);
        EXPECT_EQ(h.outputs.at(several).tokens.size(), at - 1);
        EXPECT_EQ(h.outputs.at(several).finish, FinishReason::kAbort);
        EXPECT_EQ((h.others.at({several, 1}).tokens.size()), at > 1 ? at - 2 : 0u) << "it began a step later";
        EXPECT_EQ((h.others.at({several, 1}).finish), FinishReason::kAbort);
        EXPECT_TRUE(h.engine->reset_prefix_cache()) << "blocks are still in use";
    }
}

TEST(Engine, ArrivalsInTheFutureWaitForTheirTime) {
    Harness h(tiny_model());
    Request r;
    r.prompt = random_prompt(2, 20);
    r.sampling = greedy(3);
    r.arrival_ns = 5'000'000'000;
    const RequestId id = h.add(r);
    h.run(id);
    EXPECT_GE(h.clock.now_ns(), 5'000'000'000u);
    EXPECT_GE(h.steps[0].start_ns, 5'000'000'000u);
}

TEST(Engine, RefusalsSayWhatWasGotAndExpected) {
    auto c = tiny_model();
    c.engine.max_model_len = 64;
    Harness h(c);
    Engine& e = *h.engine;
    SamplingParams bad = greedy(4);
    EXPECT_EQ(refusal(e, {}, greedy(4)), "the prompt is empty");
    EXPECT_EQ(refusal(e, random_prompt(1, 62), greedy(4)),
              "a prompt of 62 tokens and max_tokens of 4 exceed max_model_len of 64");
    EXPECT_EQ(refusal(e, {1, 300}, greedy(4)), "prompt token 300, expected 0 to 299");
    bad.temperature = -1;
    EXPECT_EQ(refusal(e, {1}, bad), "temperature is -1, expected 0 to 100");
    bad = greedy(4);
    bad.top_p = 1.5f;
    EXPECT_THAT(refusal(e, {1}, bad), HasSubstr("top_p is 1.5, expected"));
    bad = greedy(0);
    EXPECT_EQ(refusal(e, {1}, bad), "max_tokens is 0, expected at least 1");
    bad = greedy(4);
    bad.min_tokens = 5;
    EXPECT_EQ(refusal(e, {1}, bad), "min_tokens is 5, more than max_tokens of 4");
    bad = greedy(4);
    bad.stop = {"x"};
    EXPECT_EQ(refusal(e, {1}, bad), "stop strings need a tokenizer");
    bad = greedy(4);
    bad.stop_token_ids.resize(1025);
    EXPECT_EQ(refusal(e, {1}, bad), "1025 stop_token_ids, expected at most 1024");
    bad = greedy(4);
    bad.logit_bias[900] = 1;
    EXPECT_EQ(refusal(e, {1}, bad), "logit_bias for token 900, expected 0 to 299");
    EXPECT_EQ(h.run(h.add(random_prompt(1, 5), greedy(3))).tokens.size(), 3u) << "a refusal affected another request";
}

TEST(Engine, AFullQueueIsSaid) {
    auto c = tiny_model();
    c.engine.max_waiting = 2;
    Harness h(c);
    h.add({1, 2}, greedy(2));
    h.add({1, 2}, greedy(2));
    EXPECT_EQ(refusal(*h.engine, {1, 2}, greedy(2)), "the queue is full: max_waiting is 2");
}

TEST(Engine, TheQueueIsCheckedWhenARequestArrives) {
    auto c = tiny_model();
    c.engine.max_waiting = 2;
    c.engine.max_num_seqs = 1;
    Harness h(c);
    const auto arriving = [&](uint64_t at_ns) {
        Request r;
        r.prompt = random_prompt(at_ns, 5);
        r.sampling = greedy(4);
        r.arrival_ns = at_ns;
        return h.add(std::move(r));
    };
    std::vector<RequestId> apart, together;
    for (uint64_t i = 1; i <= 6; ++i) apart.push_back(arriving(i * 1'000'000'000));
    for (int i = 0; i < 4; ++i) together.push_back(arriving(60'000'000'000));
    std::optional<StatusCode> code; // of one more
    Request last;
    last.prompt = {1, 2};
    last.arrival_ns = 60'000'000'000;
    last.on_output = [&](const RequestOutput& out) { code = out.error_code; };
    ASSERT_TRUE(h.engine->add_request(std::move(last)));
    h.run_all();
    for (const RequestId id : apart) EXPECT_EQ(h.outputs[id].finish, FinishReason::kLength) << id;
    for (size_t i = 0; i < together.size(); ++i)
        EXPECT_EQ(h.outputs[together[i]].finish, i < 2 ? FinishReason::kLength : FinishReason::kError) << i;
    EXPECT_EQ(h.outputs[together[3]].stop_reason, "the queue is full: max_waiting is 2");
    EXPECT_EQ(code, StatusCode::kExhausted);
}

TEST(Engine, ASamplerThatFailsInAcceptsIsNotTheUsersFault) {
    auto c = tiny_model();
    c.sampler = {"fails_on_request", {{"judges", "false"}}};
    Harness h(c);
    Request r;
    r.prompt = {1, 2};
    const auto refused = h.engine->add_request(r);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.code(), StatusCode::kFailed) << refused.error();
    r.prompt.clear();
    EXPECT_NE(h.engine->add_request(r).code(), StatusCode::kInternal);
}

TEST(Engine, AProposerThatFailsCostsOnlyItsDrafts) {
    auto c = tiny_model();
    Harness without(c);
    c.proposer = config::PluginChoice{"fails_on_request", {{"fail_at", "3"}}};
    c.engine.num_speculative_tokens = 2;
    Harness h(c);
    for (Harness* each : {&without, &h}) {
        each->add(random_prompt(1, 5), greedy(3)); // ends in the step whose drafts fail
        each->add(random_prompt(2, 6), greedy(20));
        each->run_all();
    }
    for (const auto& [id, output] : h.outputs) EXPECT_EQ(output.tokens, without.outputs[id].tokens);
    uint32_t faults = 0;
    for (const StepReport& step : h.steps) faults += step.calls.proposer_faults;
    EXPECT_EQ(faults, 1u);
}

TEST(Engine, ATokenOutsideTheVocabularyEndsOneRequestOnly) {
    auto c = tiny_model();
    c.sampler = {"fails_on_request", {{"bad_at", "8"}}};
    Harness h(c);
    const RequestId bad = h.add(random_prompt(1, 6), greedy(10)), good = h.add(random_prompt(2, 9), greedy(10));
    h.run_all();
    EXPECT_EQ(h.outputs[bad].finish, FinishReason::kError);
    EXPECT_EQ(h.outputs[bad].stop_reason, "sampler 'fails_on_request' gave token 2147483647, expected 0 to 299");
    EXPECT_EQ(h.outputs[bad].tokens.size(), 2u);
    EXPECT_EQ(h.outputs[good].finish, FinishReason::kLength);
    uint32_t faults = 0;
    for (const StepReport& step : h.steps) faults += step.calls.sampler_faults;
    EXPECT_EQ(faults, 1u);
}

TEST(Engine, APromptWhoseCachedBlocksWentIsStillAdmittedWhole) {
    auto c = tiny_model();
    c.engine.enable_chunked_prefill = false;
    c.engine.num_blocks = 12;
    c.engine.max_num_seqs = 1;
    c.engine.watermark = 0;
    Harness h(c);
    const auto prompt = random_prompt(1, 40);
    h.add(prompt, greedy(2));
    h.run_all();
    h.add(random_prompt(9, 80), greedy(10)); // takes every block
    const RequestId again = h.add(prompt, greedy(2)); // was shown to the scheduler as cached
    h.run_all();
    EXPECT_EQ(h.outputs[again].finish, FinishReason::kLength);
    EXPECT_LT(h.steps.size(), 40u);
}

TEST(Engine, APlanIsTrimmedToTheBlocksThatAreLeftInItsOrder) {
    auto c = tiny_model();
    c.engine.num_blocks = 6; // of 8 tokens
    c.scheduler = {"fails_on_request", {{"overplans", "true"}}};
    Harness h(c);
    for (const uint64_t i : {1, 2, 3}) h.add(random_prompt(i, 36), greedy(2));
    const StepReport first = h.step();
    EXPECT_EQ(first.work.scheduled_tokens, 36u + 8u); // five blocks, the last one, none
    EXPECT_EQ(first.work.trimmed, 2u);
    EXPECT_EQ(first.queues.running_requests, 2u);
    EXPECT_EQ(first.queues.waiting_requests, 1u);
    EXPECT_EQ(first.kv.used_pages, 6u);
}

TEST(Engine, WithoutChunkedPrefillTheLongestSequenceFitsAStep) {
    auto c = tiny_model();
    c.engine.enable_chunked_prefill = false;
    c.engine.max_num_batched_tokens = 64;
    Harness h(c);
    EXPECT_EQ(h.engine->facts().max_model_len, 64u);
    EXPECT_EQ(refusal(*h.engine, random_prompt(1, 65), greedy(2)),
              "a prompt of 65 tokens and max_tokens of 2 exceed max_model_len of 64");
}

TEST(Engine, TokensOfAPromptAreCountedAsPrefillAlsoTheLastOne) {
    auto c = tiny_model();
    c.engine.max_num_batched_tokens = 4;
    Harness h(c);
    h.add(random_prompt(1, 1), greedy(1));
    h.add(random_prompt(2, 9), greedy(3)); // chunks of 3, 4 and 2
    h.run_all();
    uint32_t prefill = 0, decode = 0;
    for (const StepReport& step : h.steps) prefill += step.work.prefill_tokens, decode += step.work.decode_tokens;
    EXPECT_EQ(prefill, 10u);
    EXPECT_EQ(decode, 2u);
}

TEST(Engine, TwoEqualPromptsInOneStepShareTheirFullBlocks) {
    Harness h(tiny_model());
    const auto prompt = random_prompt(4, 41); // five full blocks of 8 and a token
    h.add(prompt, greedy(2));
    h.add(prompt, greedy(2));
    const StepReport first = h.step();
    EXPECT_EQ(first.kv.used_pages, 5u + 1u + 1u);
    EXPECT_EQ(first.kv.prefix_hit_tokens, 40u);
    const auto& all = h.run_all();
    EXPECT_EQ(all.begin()->second.tokens, all.rbegin()->second.tokens);
}

TEST(Engine, HitsAreCountedOnceARequest) {
    auto c = tiny_model();
    c.engine.num_blocks = 16;
    c.engine.max_model_len = 120;
    Harness h(c);
    for (int i = 0; i < 6; ++i) h.add(random_prompt(static_cast<uint64_t>(i), 40), greedy(30));
    h.run_all();
    uint64_t queried = 0, hit = 0, preemptions = 0;
    for (const StepReport& r : h.steps)
        queried += r.kv.prefix_query_tokens, hit += r.kv.prefix_hit_tokens, preemptions += r.preemption.preemptions;
    EXPECT_GT(preemptions, 0u);
    EXPECT_EQ(queried, 6u * 40u);
    EXPECT_EQ(hit, 0u) << "what a request finds of its own after a preemption is no hit";
}

TEST(Engine, LogprobsAreOfTheRawLogits) {
    Harness h(tiny_model());
    SamplingParams p = greedy(5);
    p.logprobs = 300;
    EXPECT_THAT(refusal(*h.engine, {1, 2}, p), HasSubstr("logprobs is 300"));
    p.logprobs = 5;
    const Output& out = h.run(h.add(random_prompt(9, 20), p));
    ASSERT_EQ(out.logprobs.size(), 5u);
    for (size_t i = 0; i < 5; ++i) {
        ASSERT_EQ(out.logprobs[i].top.size(), 5u);
        EXPECT_EQ(out.logprobs[i].top[0].first, out.tokens[i]);
        EXPECT_EQ(out.logprobs[i].top[0].second, out.logprobs[i].sampled);
        EXPECT_LT(out.logprobs[i].sampled, 0);
        for (size_t k = 1; k < 5; ++k) EXPECT_LE(out.logprobs[i].top[k].second, out.logprobs[i].top[k - 1].second);
    }
}

TEST(Engine, UnseededRequestsDifferFromEachOtherButNotFromRunToRun) {
    const auto run = [] {
        Harness h(tiny_model());
        SamplingParams p = greedy(20);
        p.temperature = 1;
        h.add(random_prompt(1, 10), p);
        h.add(random_prompt(1, 10), p);
        h.run_all();
        return std::make_pair(h.outputs.begin()->second.tokens, h.outputs.rbegin()->second.tokens);
    };
    const auto first = run();
    EXPECT_NE(first.first, first.second);
    EXPECT_EQ(first, run());
}

TEST(Engine, TheWaitForAnArrivalIsNoPartOfAStep) {
    Harness h(tiny_model());
    Request late;
    late.prompt = random_prompt(1, 5);
    late.sampling = greedy(1);
    late.arrival_ns = 5'000'000'000;
    h.add(std::move(late));
    const StepReport report = h.step(); // nothing but the wait moves the virtual clock
    EXPECT_EQ(report.work.scheduled_seqs, 1u);
    EXPECT_EQ(report.start_ns, 5'000'000'000u);
    EXPECT_EQ(report.phase_ns[static_cast<size_t>(Phase::kAdmit)], 0u);
}

TEST(Engine, TheOldestThatWaitsNeedNotBeAtTheHeadOfTheQueue) {
    auto c = tiny_model();
    c.scheduler.plugin = "priority";
    c.engine.enable_prefix_caching = false;
    c.engine.num_blocks = 9; // of 8 tokens, for three requests of 48: the first is preempted, then the second
    Harness h(c);
    constexpr uint64_t kSecond = 1'000'000'000;
    h.clock.wait_until_ns(3 * kSecond);
    for (const int i : {1, 2, 3}) {
        Request r;
        r.prompt = random_prompt(static_cast<uint64_t>(i), 8);
        r.sampling = greedy(40);
        r.priority = 10 - i;
        r.arrival_ns = static_cast<uint64_t>(i) * kSecond;
        h.add(std::move(r));
    }
    StepReport report;
    while (report.queues.waiting_requests < 2) report = h.step();
    EXPECT_EQ(report.queues.oldest_wait_ns, report.end_ns - kSecond);
    h.run_all();
    EXPECT_EQ(h.steps.back().queues.oldest_wait_ns, 0u);
}

TEST(Engine, AModelThatDoesNotFitItsCacheIsRefusedWithAHint) {
    auto c = tiny_model();
    c.engine.num_blocks = 4;
    c.engine.max_model_len = 100;
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_EQ(
        made.error(),
        "max_model_len of 100 tokens does not fit the KV cache of 4 blocks of 8 (raise kv_cache_memory or num_blocks)");
}

TEST(Engine, AnUnknownArchitectureIsNamed) {
    auto c = tiny_model();
    c.model.shape["architectures.0"] = "BloomForCausalLM";
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), HasSubstr("no model plugin serves architecture 'BloomForCausalLM' (there are: "
                                        "BambaForCausalLM, Cohere2ForCausalLM, "));
    EXPECT_THAT(made.error(), HasSubstr(", LlamaForCausalLM, MedusaModel, MinistralForCausalLM, "));
}

}  // namespace
}  // namespace patchbay::engine::testing::engine_test
