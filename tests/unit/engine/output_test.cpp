// What a user reads: deltas that add up to the text, in whole characters, and stop strings cut where they stand. With
// and without drafts, which make several tokens a delta.
#include <fstream>
#include <nlohmann/json.hpp>

#include "unit/engine/draft_fixture.hpp"
#include "unit/engine/temporary_folder.hpp"
#include "unit/text/spaced_words.hpp"

namespace patchbay::engine::testing::output_test {
namespace {

// A random model that speaks the demo model's byte-level tokens: half of what it says are parts of characters.
config::EngineConfig speaking(bool drafts) {
    config::EngineConfig c = tiny_model();
    c.model.shape["vocab_size"] = "2048";
    c.model.tokenizer = repository("models/demo-target");
    if (!drafts) return c;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.engine.num_speculative_tokens = 4;
    return c;
}

struct Deltas {
    std::vector<RequestOutput> all;
    std::vector<TokenId> tokens;
    std::string text;
};

Deltas deltas(Harness& h, const SamplingParams& p, uint64_t prompt) {
    Deltas out;
    Request r;
    r.prompt = random_prompt(prompt, 12, 2048);
    r.sampling = p;
    r.on_output = [&](const RequestOutput& o) {
        out.all.push_back(o);
        out.tokens.insert(out.tokens.end(), o.tokens.begin(), o.tokens.end());
        out.text += o.text;
    };
    EXPECT_TRUE(h.engine->add_request(std::move(r)));
    while (h.engine->has_unfinished()) h.step();
    return out;
}

// Letters, and bytes that begin and end other characters: these come in parts, some never whole, and drafts are right
// now and then.
SamplingParams of_bytes(uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = seeded(seed, max_tokens);
    p.top_p = 1;
    for (const TokenId first : {65 /* a */, 107 /* 174 */, 128 /* 195 */})
        for (TokenId t = first; t < first + 6; ++t) p.logit_bias[t] = 20;
    return p;
}

bool is_whole_characters(const std::string& text) {
    using nlohmann::json;
    return text.empty() || json(text).dump(-1, ' ', false, json::error_handler_t::replace) ==
                               json(text).dump(-1, ' ', false, json::error_handler_t::ignore);
}

TEST(Output, DeltasAddUpToTheTextInWholeCharacters) {
    for (const bool drafts : {false, true}) {
        Harness h(speaking(drafts));
        size_t held_back = 0, cut_off = 0, several = 0;
        for (uint64_t seed = 0; seed < 30; ++seed) {
            const Deltas d = deltas(h, of_bytes(seed, 30), seed % 3);
            std::string whole;
            for (const RequestOutput& o : d.all) {
                EXPECT_TRUE(is_whole_characters(o.text)) << seed << ": '" << o.text << "'";
                held_back += o.text.empty();
                several += o.tokens.size() > 1;
            }
            EXPECT_EQ(d.text, h.engine->tokenizer()->decode(d.tokens)) << seed;
            EXPECT_EQ(d.tokens.size(), 30u);
            EXPECT_EQ(d.all.front().tokens.size(), 1u) << "the first token is not published at once";
            cut_off += d.text.ends_with("\xEF\xBF\xBD"); // what was left of a character is flushed
        }
        EXPECT_GT(held_back, 100u);
        EXPECT_GT(cut_off, 3u);
        EXPECT_EQ(several > 0, drafts);
    }
}

TEST(Output, StopStringsAreCutWhereTheyStand) {
    for (const bool drafts : {false, true}) {
        Harness h(speaking(drafts));
        size_t over_borders = 0;
        for (uint64_t seed = 0; seed < 20; ++seed) {
            const SamplingParams p = seeded(seed, 30);
            const Deltas plain = deltas(h, p, seed % 3);
            const size_t at = plain.text.size() / 2;
            size_t from = at; // at the beginning of a character
            while (from > 0 && (static_cast<unsigned char>(plain.text[from]) & 0xC0) == 0x80) from -= 1;
            size_t to = std::min(plain.text.size(), from + 9);
            while (to < plain.text.size() && (static_cast<unsigned char>(plain.text[to]) & 0xC0) == 0x80) to += 1;
            const std::string stop = plain.text.substr(from, to - from);
            const size_t first = plain.text.find(stop);
            for (const bool keeps : {false, true}) {
                SamplingParams stopped = p;
                stopped.stop = {"nothing of the kind", stop};
                stopped.include_stop_str_in_output = keeps;
                const Deltas d = deltas(h, stopped, seed % 3);
                EXPECT_EQ(d.text, plain.text.substr(0, first + (keeps ? stop.size() : 0))) << seed << ": " << stop;
                EXPECT_EQ(d.all.back().finish, FinishReason::kStop) << seed;
                EXPECT_EQ(d.all.back().stop_reason, stop);
                EXPECT_LE(d.tokens.size(), plain.tokens.size());
                over_borders += d.all.size() > 1 && d.all.back().text.size() < stop.size();
            }
            SamplingParams late = p; // what may become a stop string is held back, but not for ever
            late.stop = {plain.text.substr(from) + "never"};
            const Deltas d = deltas(h, late, seed % 3);
            EXPECT_EQ(d.text, plain.text) << seed;
            EXPECT_EQ(d.all.back().finish, FinishReason::kLength);
        }
        EXPECT_GT(over_borders, 5u);
    }
}

TEST(Output, ATokenThatStopsHasItsTextWhereStopStringsHaveTheirs) {
    Harness h(speaking(false));
    const Deltas plain = deltas(h, seeded(3, 30), 0);
    SamplingParams p = seeded(3, 30);
    p.stop_token_ids = {plain.tokens[9]};
    const Deltas cut = deltas(h, p, 0);
    p.include_stop_str_in_output = true;
    const Deltas kept = deltas(h, p, 0);
    EXPECT_EQ(kept.tokens, cut.tokens);
    EXPECT_EQ(kept.all.back().stop_reason, std::to_string(plain.tokens[9]));
    EXPECT_EQ(kept.text, plain.text.substr(0, kept.text.size()));
    EXPECT_GT(kept.text.size(), cut.text.size());
}

// By the callback of another request, which is handed its own delta first. What was held back before comes at the end.
TEST(Output, OfARequestThatIsAbortedWithinAStepIsThatOfTheTokensBefore) {
    for (const bool drafts : {false, true}) {
        Harness h(speaking(drafts));
        size_t flushed = 0;
        for (uint64_t seed = 0; seed < 24; ++seed) {
            const Deltas whole = deltas(h, of_bytes(seed, 40), seed % 3);
            const uint32_t step = 2 + static_cast<uint32_t>(seed % 5);
            uint32_t aborters = 0;
            RequestId victim = 0;
            Deltas d;
            Request aborter, r;
            aborter.prompt = random_prompt(9, 12, 2048);
            aborter.sampling = seeded(seed, 20);
            aborter.on_output = [&](const RequestOutput&) {
                if (++aborters == step) h.engine->abort(victim);
            };
            r.prompt = random_prompt(seed % 3, 12, 2048);
            r.sampling = of_bytes(seed, 40);
            r.sampling.stop = {"nothing of the kind"};
            r.on_output = [&](const RequestOutput& o) {
                d.all.push_back(o);
                d.tokens.insert(d.tokens.end(), o.tokens.begin(), o.tokens.end());
                d.text += o.text;
            };
            ASSERT_TRUE(h.engine->add_request(std::move(aborter)));
            const auto id = h.engine->add_request(std::move(r));
            ASSERT_TRUE(id);
            victim = *id;
            while (h.engine->has_unfinished()) h.step();
            ASSERT_EQ(d.all.size(), step) << seed << ": those of the steps before, and the end";
            EXPECT_EQ(d.all.back().finish, FinishReason::kAbort) << seed;
            EXPECT_TRUE(d.all.back().tokens.empty()) << seed;
            EXPECT_TRUE(std::ranges::equal(d.tokens, std::span(whole.tokens).first(d.tokens.size()))) << seed;
            EXPECT_EQ(d.text, h.engine->tokenizer()->decode(d.tokens)) << seed;
            flushed += !d.all.back().text.empty();
        }
        EXPECT_GT(flushed, 0u);
    }
}

TEST(Output, NoStopStringCountsBeforeMinTokens) {
    Harness h(speaking(false));
    const SamplingParams p = seeded(4, 30);
    const Deltas plain = deltas(h, p, 1);
    SamplingParams stopped = p;
    stopped.stop = {h.engine->tokenizer()->decode(std::vector<TokenId>{plain.tokens[3]})};
    ASSERT_FALSE(stopped.stop[0].empty());
    EXPECT_LE(deltas(h, stopped, 1).tokens.size(), 4u);
    stopped.min_tokens = 20;
    EXPECT_GE(deltas(h, stopped, 1).tokens.size(), 20u);
}

SamplingParams one_beam(uint32_t max_tokens) {
    SamplingParams p;
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    p.beam_width = 1;
    p.early_stopping = EarlyStopping::kYes;
    return p;
}

std::string text_of_first(const Harness& h, const Deltas& d, uint32_t count) {
    return h.engine->tokenizer()->decode({d.tokens.begin(), d.tokens.begin() + count});
}

// It begins in the last of min_tokens.
TEST(Output, AStopStringThatEndsAfterMinTokensCounts) {
    Harness h(speaking(false));
    for (const bool beams : {false, true}) {
        size_t cases = 0;
        for (uint64_t prompt = 0; prompt < 8; ++prompt) {
            SamplingParams p = beams ? one_beam(12) : seeded(prompt, 12);
            const Deltas plain = deltas(h, p, prompt);
            const auto begin = [&](uint32_t count) { // of the text; nothing where it ends within a character
                const std::string text = text_of_first(h, plain, count);
                return plain.text.starts_with(text) && !text.ends_with("\xEF\xBF\xBD") ? text : "";
            };
            for (uint32_t n = 2; n < 11; ++n) {
                const std::string before = begin(n - 1), first = begin(n), both = begin(n + 1);
                if (before.empty() || first.size() == before.size() || both.size() <= first.size()) continue;
                p.stop = {both.substr(before.size())};
                p.min_tokens = n;
                if (plain.text.find(p.stop[0]) != before.size()) continue;
                const Deltas d = deltas(h, p, prompt);
                EXPECT_EQ(d.all.back().stop_reason, p.stop[0]) << prompt << ", " << n;
                EXPECT_EQ(d.tokens.size(), n + 1) << prompt << ", " << n;
                EXPECT_EQ(d.text, before) << prompt << ", " << n;
                cases += 1;
            }
        }
        EXPECT_GT(cases, 5u) << beams;
    }
}

TEST(Output, OfBeamsHasTheTextOfATokenThatStops) {
    Harness h(speaking(false));
    SamplingParams p = one_beam(12);
    const Deltas plain = deltas(h, p, 0);
    const auto end = plain.tokens.begin() + 5;
    p.stop_token_ids = {*end};
    p.min_tokens = 5;
    const Deltas cut = deltas(h, p, 0);
    ASSERT_EQ(cut.tokens, std::vector<TokenId>(plain.tokens.begin(), end + 1));
    EXPECT_EQ(cut.text, text_of_first(h, plain, 5));
    p.include_stop_str_in_output = true;
    const Deltas kept = deltas(h, p, 0);
    EXPECT_EQ(kept.tokens, cut.tokens);
    EXPECT_EQ(kept.text, h.engine->tokenizer()->decode(kept.tokens));
}

// A random model that speaks words with the space before them.
config::EngineConfig of_words() {
    const std::string file = temporary_folder() / "spaced_words.json";
    std::ofstream(file) << text::kSpacedWords;
    config::EngineConfig c = tiny_model();
    c.model.tokenizer = file;
    return c;
}

std::string text_after(Harness& h, std::vector<TokenId> prompt, SamplingParams p) {
    p.logit_bias[text::kSpaceTime] = 100;
    const Output& out = h.run(h.add(std::move(prompt), std::move(p)));
    return out.text + (out.stop_reason.empty() ? "" : "; " + out.stop_reason);
}

TEST(Output, ContinuesTheTextOfThePrompt) {
    Harness h(of_words());
    const std::vector<TokenId> words = {text::kBegin, text::kOnce, text::kUpon, text::kA}, none = {text::kBegin};
    EXPECT_EQ(text_after(h, words, greedy(2)), " time time");
    EXPECT_EQ(text_after(h, none, greedy(2)), "time time");
    SamplingParams stops = greedy(4);
    stops.stop = {" time"};
    EXPECT_EQ(text_after(h, words, stops), ";  time");
    EXPECT_EQ(text_after(h, none, stops), "time;  time");
    SamplingParams formed = greedy(4);
    formed.structured_outputs = grammar::StructuredOutputs{.choice = {"time"}};
    EXPECT_EQ(text_after(h, words, formed), "time") << "by the token without a space";
    EXPECT_EQ(text_after(h, none, formed), "time");
    formed.structured_outputs = grammar::StructuredOutputs{.choice = {" time"}};
    EXPECT_EQ(text_after(h, words, formed), " time");
}

TEST(Output, OfBeamsContinuesTheTextOfThePrompt) {
    Harness h(of_words());
    SamplingParams p = one_beam(4);
    size_t words = 0;
    for (TokenId last = 0; last < 300; ++last) {
        const Output out = h.run(h.add({text::kOnce, text::kA, last}, p)); // unknown ids have no text
        std::vector<TokenId> all = {text::kOnce, text::kA, last};
        all.insert(all.end(), out.tokens.begin(), out.tokens.end());
        EXPECT_EQ(h.engine->tokenizer()->decode({text::kOnce, text::kA, last}) + out.text,
                  h.engine->tokenizer()->decode(all)) << last;
        words += out.text.starts_with(" ");
    }
    EXPECT_GT(words, 0u);
}

}  // namespace
}  // namespace patchbay::engine::testing::output_test
