// Drafts together with everything else that an engine does, all at once: each drafter under each condition gives the
// texts that there are without drafts and without the condition. By rejection, where texts differ: it repeats itself,
// and every text keeps the form that was asked for.
#include <functional>
#include <regex>

#include "unit/engine/draft_fixture.hpp"

namespace patchbay::engine::testing::combinations_test {
namespace {

using config::KvDType;
using config::Verification;

constexpr const char* kMedusaTarget = "tests/golden/models/llama_gqa_tied"; // ids only, vocabulary of 256
constexpr uint64_t kRequests = 12;
constexpr const char* kForm = R"((red|green|the ){3,7}\d{1,3}\.)";

struct Drafter {
    const char* name;
    std::map<std::string, std::string> settings;
    uint32_t drafts;
    const char* target = "models/demo-target";
};

const std::vector<Drafter>& drafters() {
    static const std::vector<Drafter> all = {
        {"ngram", {{"prompt_lookup_min", "1"}}, 4},
        {"suffix", {{"suffix_decoding_max_cached_requests", "8"}}, 4},
        {"last_token", {}, 3}, // mostly wrong
        {"draft_model", {{"model", repository("models/demo-draft")}}, 4},
        {"eagle", {{"model", repository("models/demo-eagle")}}, 4},
        {"medusa", {{"model", repository("tests/golden/models/medusa")}}, 3, kMedusaTarget},
    };
    return all;
}

struct Condition {
    const char* name;
    std::function<void(config::EngineConfig&)> set;
    KvDType kv = KvDType::kAuto;
    bool scarce = false, swaps = false, finds_prefixes = false, adapts = false; // may choose no drafts
};

void make_scarce(config::EngineConfig& c) { // for a few sequences of those that come
    c.engine.max_model_len = 120;
    c.engine.watermark = 0;
    c.engine.num_blocks = 40;
    if (c.proposer && c.proposer->plugin == "draft_model") c.engine.num_blocks = 200; // groups of its layers too
}
void make_swap(config::EngineConfig& c) {
    make_scarce(c);
    c.engine.preemption_mode = config::PreemptionMode::kSwap;
    c.engine.num_swap_blocks = 4000;
}
void find_prefixes(config::EngineConfig& c) {
    c.engine.enable_prefix_caching = true;
    c.engine.max_num_seqs = 3;
}
void adapt(config::EngineConfig& c) {
    if (c.proposer) c.speculative.mode = config::DraftMode::kAdaptive;
}
void cut_in_chunks(config::EngineConfig& c) { c.engine.max_num_batched_tokens = 29; }

const std::vector<Condition>& conditions() {
    static const std::vector<Condition> all = {
        {"plenty", [](config::EngineConfig&) {}},
        {"recomputing", make_scarce, KvDType::kAuto, true},
        {"swapping", make_swap, KvDType::kAuto, true, true},
        {"prefixes", find_prefixes, KvDType::kAuto, false, false, true},
        {"adaptive", adapt, KvDType::kAuto, false, false, false, true},
        {"fp8", [](config::EngineConfig&) {}, KvDType::kFp8},
        {"swapping_fp8", make_swap, KvDType::kFp8, true, true},
        {"everything_int8",
         [](config::EngineConfig& c) {
             make_swap(c);
             find_prefixes(c);
             cut_in_chunks(c);
             adapt(c);
             c.engine.max_num_seqs = 16;
             c.engine.num_blocks -= 14;
         },
         KvDType::kInt8, true, true, true, true},
    };
    return all;
}

config::EngineConfig target_of(const Drafter& d, KvDType kv) {
    config::EngineConfig c = demo(d.target);
    if (d.target == kMedusaTarget) c.model.tokenizer = "none";
    c.engine.kv_cache_dtype = kv;
    c.engine.enable_prefix_caching = false;
    return c;
}

config::EngineConfig with(const Drafter& d, const Condition& condition) {
    config::EngineConfig c = target_of(d, condition.kv);
    c.proposer = config::PluginChoice{d.name, d.settings};
    c.engine.num_speculative_tokens = d.drafts;
    condition.set(c);
    return c;
}

bool is_formed(uint64_t i) { return i % 11 == 4 || i % 11 == 8; }

// Each way of sampling, in turn.
SamplingParams sampling(uint64_t i, bool has_text) {
    SamplingParams p = i % 11 == 0 ? greedy(20) : seeded(70 + i, 20);
    switch (i % 11) {
        case 1: p.logprobs = 4; break;
        case 2: p.repetition_penalty = 1.2f, p.frequency_penalty = 0.4f, p.logit_bias = {{5, 2.0f}}; break;
        case 3: p.n = 3, p.presence_penalty = 0.3f; break;
        case 4: p.max_tokens = 32; break;
        case 5: p.temperature = 0.3f, p.dry_multiplier = 0.8f, p.dry_allowed_length = 1; break;
        case 6: p.typical_p = 0.9f, p.xtc_probability = 0.5f, p.xtc_threshold = 0.02f; break;
        case 7: p.top_p = 1, p.mirostat = 2, p.mirostat_tau = 3; break;
        case 8: p.n = 2, p.logprobs = 2, p.top_n_sigma = 2; break;
        case 9: p.top_k = 40; break; // and bad words
        case 10:
            p.allowed_token_ids.emplace();
            for (TokenId t = 1; t < 40; ++t) p.allowed_token_ids->push_back(t);
            break;
        default: break;
    }
    if (has_text && i % 11 == 9) p.bad_words = {"the", "a", "e"};
    if (has_text && is_formed(i)) p.ignore_eos = false, p.structured_outputs = {.regex = kForm};
    return p;
}

struct Ran {
    std::map<std::pair<RequestId, uint32_t>, Output> outputs; // by request and index
    uint64_t drafted = 0, accepted = 0, preemptions = 0, swapped_in = 0, cached = 0;
};

Ran run(const config::EngineConfig& c) {
    Harness h(c);
    const bool has_text = h.engine->tokenizer() != nullptr;
    const uint32_t vocab = has_text ? kVocab : 256;
    for (uint64_t i = 0; i < kRequests; ++i) {
        auto prompt = random_prompt(i / 3, 20, vocab);
        const auto own = random_prompt(200 + i, 3, vocab);
        for (int twice = 0; twice < 2; ++twice) prompt.insert(prompt.end(), own.begin(), own.end()); // to draft from
        h.add(prompt, sampling(i, has_text));
    }
    h.run_all();
    Ran out;
    for (const auto& [id, o] : h.outputs) out.outputs[{id, 0}] = o;
    out.outputs.insert(h.others.begin(), h.others.end());
    for (const auto& [id, o] : out.outputs) {
        EXPECT_EQ(o.endings, 1u) << id.first << "." << id.second;
        EXPECT_NE(o.finish, FinishReason::kError) << id.first << ": " << o.stop_reason;
    }
    for (const StepReport& s : h.steps) {
        out.drafted += s.drafts.drafted_tokens;
        out.accepted += s.drafts.accepted_tokens;
        out.preemptions += s.preemption.preemptions;
        out.swapped_in += s.preemption.swapped_in;
        out.cached += s.kv.prefix_hit_tokens;
        EXPECT_EQ(s.calls.plan_faults + s.calls.proposer_faults + s.calls.sampler_faults, 0u);
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    EXPECT_EQ(h.steps.back().preemption.used_swap_pages, 0u);
    return out;
}

void expect_same(const Ran& want, const Ran& got) {
    ASSERT_EQ(want.outputs.size(), got.outputs.size());
    for (const auto& [id, a] : want.outputs) {
        const Output& b = got.outputs.at(id);
        const std::string which = std::to_string(id.first) + "." + std::to_string(id.second);
        EXPECT_EQ(a.tokens, b.tokens) << which;
        EXPECT_EQ(a.text, b.text) << which;
        EXPECT_EQ(a.finish, b.finish) << which;
        ASSERT_EQ(a.logprobs.size(), b.logprobs.size()) << which;
        for (size_t t = 0; t < a.logprobs.size(); ++t) {
            EXPECT_EQ(a.logprobs[t].sampled, b.logprobs[t].sampled) << which << ", token " << t;
            EXPECT_EQ(a.logprobs[t].top, b.logprobs[t].top) << which << ", token " << t;
        }
    }
}

void expect_met(const Ran& r, const Condition& condition) { // or nothing was shown
    EXPECT_GT(condition.adapts ? r.drafted : r.accepted, 0u);
    EXPECT_LT(r.accepted, r.drafted);
    EXPECT_EQ(r.preemptions > 0, condition.scarce);
    EXPECT_EQ(r.swapped_in > 0, condition.swaps);
    EXPECT_EQ(r.cached > 0, condition.finds_prefixes);
}

void PrintTo(const Condition& c, std::ostream* out) { *out << c.name; }

class Combinations : public ::testing::TestWithParam<Condition> {};

TEST_P(Combinations, OfDraftsWithTheRestChangeNoText) {
    const Condition& condition = GetParam();
    std::map<std::string, Ran> without; // drafts, and the condition; by target
    for (const Drafter& d : drafters()) {
        SCOPED_TRACE(d.name);
        if (!without.contains(d.target)) without[d.target] = run(target_of(d, condition.kv));
        const Ran got = run(with(d, condition));
        expect_same(without.at(d.target), got);
        expect_met(got, condition);
    }
}

TEST_P(Combinations, OfRejectionWithTheRestRepeatThemselvesAndKeepTheirForm) {
    const Condition& condition = GetParam();
    for (const Drafter& d : drafters()) {
        if (d.name == std::string("suffix") || d.name == std::string("last_token")) continue; // as ngram, to it
        SCOPED_TRACE(d.name);
        config::EngineConfig c = with(d, condition);
        c.speculative.rejection_sample_method = Verification::kRejection;
        const Ran once = run(c);
        expect_same(once, run(c));
        expect_met(once, condition);
        size_t whole = 0; // the others were cut off
        for (const auto& [id, o] : once.outputs) {
            if (o.finish != FinishReason::kStop) continue;
            EXPECT_TRUE(std::regex_match(o.text, std::regex(kForm))) << o.text;
            whole += 1;
        }
        EXPECT_EQ(whole > 0, d.target != kMedusaTarget) << "outputs that were asked for a form";
    }
}

INSTANTIATE_TEST_SUITE_P(All, Combinations, ::testing::ValuesIn(conditions()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace patchbay::engine::testing::combinations_test
