// Trees of drafts in an engine: what is accepted by which path, and that no text, log-probability or cached block is
// another one for it.
#include <algorithm>
#include <sstream>

#include "unit/engine/draft_fixture.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::trees_test {
namespace {

using namespace testing;

config::EngineConfig with_tree(config::EngineConfig c, config::PluginChoice proposer, uint32_t drafts, uint32_t paths) {
    c.proposer = std::move(proposer);
    c.engine.num_speculative_tokens = drafts;
    c.speculative.max_paths = paths;
    return c;
}

std::string known(const std::vector<std::vector<TokenId>>& texts) {
    std::ostringstream out;
    for (const auto& text : texts) {
        for (const TokenId t : text) out << t << ' ';
        out << ';';
    }
    return out.str();
}

std::vector<TokenId> joined(std::vector<TokenId> prompt, const std::vector<TokenId>& output) {
    prompt.insert(prompt.end(), output.begin(), output.end());
    return prompt;
}

void run_audited(Harness& h) {
    while (h.engine->has_unfinished()) {
        h.step();
        const auto sound = h.engine->audit();
        ASSERT_TRUE(sound) << sound.error();
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
}

// The greedy output of one prompt, and an engine that knows it.
struct One {
    std::vector<TokenId> prompt, output;
    One(const config::EngineConfig& c, uint32_t length, uint32_t tokens) : prompt(random_prompt(1, length)) {
        Harness h(c);
        output = h.run(h.add(prompt, greedy(tokens))).tokens;
    }
    std::string text() const { return known({joined(prompt, output)}); }
};

TEST(Trees, ThePathThatIsRightIsTakenWhicheverItIs) {
    const One one(tiny_model(), 10, 41);
    for (uint32_t right = 0; right < 3; ++right) {
        const host::Settings settings{{"texts", one.text()}, {"paths", "3"}, {"right", std::to_string(right)}};
        Harness h(with_tree(tiny_model(), {"knows", settings}, 3, 3));
        const RequestId id = h.add(one.prompt, greedy(41));
        run_audited(h);
        EXPECT_EQ(h.outputs.at(id).tokens, one.output) << right;
        EXPECT_EQ(h.steps.size(), 11u) << "the prompt's makes one token, the others four";
        EXPECT_EQ(sum_over(h.steps, &DraftReport::accepted_tokens), 30u) << right;
        EXPECT_EQ(sum_over(h.steps, &DraftReport::drafted_tokens), 90u) << right;
        EXPECT_EQ(sum_over(h.steps, &DraftReport::branches), 20u) << right;
        EXPECT_EQ(sum_over(h.steps, &DraftReport::branch_tokens), right == 0 ? 0u : 30u) << right;
        EXPECT_EQ(sum_over(h.steps, &DraftReport::dropped_branches), 0u) << right;
        EXPECT_EQ(h.steps[1].work.scheduled_tokens, 12u) << "the newest token once a path, and its drafts";
        EXPECT_EQ(h.steps[1].work.decode_tokens, 12u);
    }
}

TEST(Trees, WhatPathsBeginWithIsDraftedOnce) {
    const One one(tiny_model(), 10, 41);
    const host::Settings settings{{"texts", one.text()}, {"paths", "3"}, {"right", "2"}, {"leaves", "1"}};
    Harness h(with_tree(tiny_model(), {"knows", settings}, 3, 3));
    const RequestId id = h.add(one.prompt, greedy(41));
    run_audited(h);
    EXPECT_EQ(h.outputs.at(id).tokens, one.output);
    EXPECT_EQ(sum_over(h.steps, &DraftReport::drafted_tokens), 70u) << "1 + 3 · 2 a step";
    EXPECT_EQ(sum_over(h.steps, &DraftReport::accepted_tokens), 30u);
    EXPECT_EQ(sum_over(h.steps, &DraftReport::branch_tokens), 20u) << "the first path had one of three";
    EXPECT_EQ(h.steps[1].drafts.drafted_at[0], 1u);
    EXPECT_EQ(h.steps[1].drafts.drafted_at[1], 3u);
    EXPECT_EQ(h.steps[1].drafts.accepted_at[2], 1u);
}

TEST(Trees, TakeWhatIsLeftOfTheBudgetAndOfTheSeats) {
    const One one(tiny_model(), 10, 41);
    const config::PluginChoice proposer{"knows", {{"texts", one.text()}, {"paths", "4"}, {"right", "1"}}};
    for (const auto& [budget, seats, branches, tokens] :
         {std::tuple(16u, 64u, 3u, 16u), {15u, 64u, 2u, 12u}, {8u, 64u, 1u, 8u}, {7u, 64u, 0u, 4u}, {16u, 2u, 1u, 8u},
          {16u, 1u, 0u, 4u}}) {
        auto c = with_tree(tiny_model(), proposer, 3, 4);
        c.engine.max_num_batched_tokens = budget;
        c.engine.max_num_seqs = seats;
        Harness h(c);
        const RequestId id = h.add(one.prompt, greedy(41));
        run_audited(h);
        EXPECT_EQ(h.outputs.at(id).tokens, one.output) << budget << ", " << seats;
        const auto drafted = [](const StepReport& r) { return r.drafts.drafted_tokens > 0; };
        const auto full = std::ranges::find_if(h.steps, drafted);
        ASSERT_NE(full, h.steps.end());
        EXPECT_EQ(full->drafts.branches, branches) << budget << ", " << seats;
        EXPECT_EQ(full->drafts.dropped_branches, 3 - branches) << budget << ", " << seats;
        EXPECT_EQ(full->work.scheduled_tokens, tokens) << budget << ", " << seats;
        for (const StepReport& r : h.steps) EXPECT_LE(r.work.scheduled_tokens, budget);
    }
}

TEST(Trees, WithoutFreePagesTheFirstPathIsLeft) {
    auto c = tiny_model();
    c.engine.enable_prefix_caching = false;
    const One one(c, 10, 41);
    c = with_tree(c, {"knows", {{"texts", one.text()}, {"paths", "4"}, {"right", "0"}}}, 3, 4);
    c.engine.max_model_len = 51;
    c.engine.num_blocks = 7; // of 8 tokens: just the sequence in the end
    Harness h(c);
    const RequestId id = h.add(one.prompt, greedy(41));
    run_audited(h);
    EXPECT_EQ(h.outputs.at(id).tokens, one.output);
    EXPECT_EQ(sum_over(h.steps, &DraftReport::accepted_tokens), 30u);
    EXPECT_GT(sum_over(h.steps, &DraftReport::dropped_branches), 0u);
    EXPECT_GT(sum_over(h.steps, &DraftReport::branches), 0u) << "while there were free ones";
    EXPECT_EQ(sum_over(h.steps, &PreemptionReport::preemptions), 0u) << "branches never cause preemption";
}

TEST(Trees, LeaveThePrefixCacheAsItIs) {
    auto c = tiny_model();
    c.engine.num_blocks = 40;
    const auto first = random_prompt(7, 160), second = random_prompt(1, 10);
    const One one(c, 10, 101);
    const auto again = [&](const config::EngineConfig& e) {
        Harness h(e);
        h.run(h.add(first, greedy(1)));
        EXPECT_EQ(h.run(h.add(second, greedy(101))).tokens, one.output);
        return h.run(h.add(first, greedy(1))).cached_tokens;
    };
    EXPECT_EQ(again(c), 152u);
    EXPECT_EQ(again(with_tree(c, {"knows", {{"texts", one.text()}, {"paths", "3"}}}, 3, 3)), 152u)
        << "pages of branches that lost are taken again before those that can be found";
}

TEST(Trees, CachedBlocksHoldTheWinnersTokens) {
    const One one(tiny_model(), 10, 61);
    Harness plain(tiny_model()), h(with_tree(tiny_model(), {"knows", {{"texts", one.text()}, {"paths", "3"}}}, 3, 3));
    EXPECT_EQ(h.run(h.add(one.prompt, greedy(61))).tokens, one.output);
    EXPECT_GT(sum_over(h.steps, &DraftReport::branch_tokens), 0u);
    const auto longer = joined(one.prompt, one.output);
    const Output want = plain.run(plain.add(longer, greedy(20)));
    const Output got = h.run(h.add(longer, greedy(20)));
    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_GT(got.cached_tokens, 40u) << "blocks that branches have filled among them";
}

TEST(Trees, ParentsThatAreNoneAreAFaultAndCostDraftsOnly) {
    const One one(tiny_model(), 10, 41);
    for (const char* parents : {"forward", "self", "below", "above"}) {
        const host::Settings settings{{"texts", one.text()}, {"paths", "3"}, {"parents", parents}};
        Harness h(with_tree(tiny_model(), {"knows", settings}, 3, 3));
        const RequestId id = h.add(one.prompt, greedy(41));
        run_audited(h);
        EXPECT_EQ(h.outputs.at(id).tokens, one.output) << parents;
        EXPECT_GT(sum_over(h.steps, &CallReport::proposer_faults), 3u) << parents;
        EXPECT_GT(sum_over(h.steps, &DraftReport::accepted_tokens), 5u)
            << "what does not hang on it counts, " << parents;
    }
}

// ---- beside everything else ---------------------------------------------------------------------

struct Asked {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
};

// Greedy and seeded, penalties, outputs of one prompt, log-probabilities, bad words, grammars.
std::vector<Asked> mixed() {
    std::vector<Asked> out;
    for (const Case& c : cases(12)) out.push_back({c.prompt, c.sampling});
    for (size_t i = 0; i < out.size(); ++i) {
        SamplingParams& p = out[i].sampling;
        if (i % 3 == 0) p.logprobs = 4;
        if (i % 4 == 3) p.n = 3; // a seeded one
        if (i == 5 || i == 6) p.bad_words = {"the", "he said"};
        if (i == 7 || i == 8) p.structured_outputs = grammar::StructuredOutputs{.regex = "[a-z ,]{10,60}\\."};
        if (i == 9) p.logits_statistics = true;
        if (i == 10) p.prompt_logprobs = 2;
    }
    return out;
}

struct Came {
    std::map<std::pair<RequestId, uint32_t>, Output> outputs;
    std::vector<std::vector<TokenId>> texts;
    uint64_t branch_tokens = 0, preemptions = 0, dropped = 0, pages_swapped_in = 0;
};

Came come(const config::EngineConfig& c, const std::vector<Asked>& all) {
    Harness h(c);
    std::vector<RequestId> ids;
    for (const Asked& a : all) ids.push_back(h.add(a.prompt, a.sampling));
    run_audited(h);
    Came out;
    for (size_t i = 0; i < ids.size(); ++i) out.outputs[{i, 0}] = h.outputs.at(ids[i]);
    for (const auto& [key, o] : h.others)
        out.outputs[{std::ranges::find(ids, key.first) - ids.begin(), key.second}] = o;
    for (const auto& [key, o] : out.outputs) out.texts.push_back(joined(all[key.first].prompt, o.tokens));
    out.branch_tokens = sum_over(h.steps, &DraftReport::branch_tokens);
    out.preemptions = sum_over(h.steps, &PreemptionReport::preemptions);
    out.dropped = sum_over(h.steps, &DraftReport::dropped_branches);
    out.pages_swapped_in = sum_over(h.steps, &PreemptionReport::pages_to_device);
    return out;
}

void expect_same(const std::vector<TokenLogprobs>& got, const std::vector<TokenLogprobs>& want,
                 const std::string& which) { // bit for bit
    ASSERT_EQ(got.size(), want.size()) << which;
    for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(got[i].sampled, want[i].sampled) << which;
        EXPECT_EQ(got[i].top, want[i].top) << which;
    }
}

void expect_same(const Came& got, const Came& want, const std::string& what) {
    ASSERT_EQ(got.outputs.size(), want.outputs.size()) << what;
    for (const auto& [key, w] : want.outputs) {
        const Output& g = got.outputs.at(key);
        const std::string which = what + ", request " + std::to_string(key.first) + " output " +
                                  std::to_string(key.second);
        EXPECT_EQ(g.tokens, w.tokens) << which;
        EXPECT_EQ(g.text, w.text) << which;
        EXPECT_EQ(g.finish, w.finish) << which;
        expect_same(g.logprobs, w.logprobs, which);
        expect_same(g.prompt_logprobs, w.prompt_logprobs, which + ", prompt");
        EXPECT_EQ(g.cumulative_logprob, w.cumulative_logprob) << which;
        ASSERT_EQ(g.logits.has_value(), w.logits.has_value()) << which;
        if (w.logits) { EXPECT_EQ(g.logits->entropy, w.logits->entropy) << which; }
    }
}

TEST(Trees, ChangeNoText) {
    const auto asked = mixed();
    const Came without = come(demo(), asked);
    const config::PluginChoice knows{"knows", {{"texts", known(without.texts)}, {"paths", "3"}}};
    const auto c = with_tree(demo(), knows, 4, 3);
    const auto expect = [&](const config::EngineConfig& e, const std::string& what) {
        const Came with = come(e, asked);
        expect_same(with, without, what);
        EXPECT_GT(with.branch_tokens, 0u) << what;
        return with;
    };
    expect(c, "as it comes");
    auto other = c;
    other.engine.enable_prefix_caching = false;
    expect(other, "without a prefix cache");
    other = c;
    other.engine.max_num_batched_tokens = 24;
    EXPECT_GT(expect(other, "in chunks").dropped, 0u);
    other = short_of_pages(c, 48);
    const Came crowded = expect(other, "with few pages");
    EXPECT_GT(crowded.preemptions, 0u);
    EXPECT_GT(crowded.dropped, 0u);
    other.engine.preemption_mode = config::PreemptionMode::kSwap;
    other.engine.num_swap_blocks = 100;
    EXPECT_GT(expect(other, "swapped out").pages_swapped_in, 0u);
}

TEST(Trees, OfEachProposerChangeNoTextAndAreAccepted) {
    std::vector<Asked> asked;
    for (const Case& c : cases(8)) asked.push_back({c.prompt, c.sampling});
    asked.push_back({random_prompt(3, 30, kVocab), greedy(150)}); // it repeats itself in the end
    const Came without = come(demo(), asked);
    for (const config::PluginChoice& proposer :
         {config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}}, config::PluginChoice{"suffix", {}},
          config::PluginChoice{"draft_model", {{"model", repository("models/demo-draft")}}},
          config::PluginChoice{"eagle", {{"model", repository("models/demo-eagle")}}}}) {
        const Came with = come(with_tree(demo(), proposer, 3, 4), asked);
        expect_same(with, without, proposer.plugin);
        EXPECT_GT(with.branch_tokens, 0u) << proposer.plugin;
    }
}

}  // namespace
}  // namespace patchbay::engine::trees_test
