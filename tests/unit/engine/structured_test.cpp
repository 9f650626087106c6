// Structured output in the engine: every text has the form that was asked for, whatever else happens, and requests
// without one are what they are without such neighbours.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "unit/engine/engine_fixture.hpp"
#include "unit/engine/report_sums.hpp"

namespace patchbay::engine::structured_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

// A random model that speaks the demo model's tokens, byte-level and with one special token, 0.
config::EngineConfig speaking() {
    config::EngineConfig c = tiny_model();
    c.model.shape["vocab_size"] = "2048";
    c.model.tokenizer = repository("models/demo-target");
    c.engine.max_model_len = 400;
    return c;
}

const char* kSchema = R"({
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 1, "maximum": 99},
                   "tags": {"type": "array", "items": {"enum": ["red", "green"]}, "maxItems": 3}},
    "required": ["name", "age", "tags"], "additionalProperties": false})";

bool is_person(const std::string& text) {
    const auto v = nlohmann::json::parse(text, nullptr, false);
    if (!v.is_object() || v.size() != 3 || !v.at("name").is_string() || !v.at("tags").is_array()) return false;
    const int age = v.at("age");
    bool tags = v.at("tags").size() <= 3;
    for (const auto& t : v.at("tags")) tags = tags && (t == "red" || t == "green");
    return tags && age >= 1 && age <= 99;
}

using grammar::StructuredOutputs;
struct Form {
    StructuredOutputs asked;
    std::function<bool(const std::string&)> fits;
};
std::vector<Form> forms() {
    const auto matches = [](const char* pattern) {
        return [r = std::regex(pattern)](const std::string& text) { return std::regex_match(text, r); };
    };
    return {{{.json = kSchema}, is_person},
            {{.regex = R"([A-Z][a-z]{2,6} (is|was) \d{1,3}( years)?\.)"},
             matches(R"([A-Z][a-z]{2,6} (is|was) \d{1,3}( years)?\.)")},
            {{.choice = {"yes", "no", "maybe so"}}, matches("yes|no|maybe so")},
            {{.grammar = "root ::= sum \";\"\nsum ::= n | n [-+] n\nn ::= [0-9]{1,3} | \"(\" [0-9] [-+] [0-9] \")\""},
             matches(R"((\d{1,3}|\(\d[-+]\d\))([-+](\d{1,3}|\(\d[-+]\d\)))?;)")},
            {{.json_object = true},
             [](const std::string& text) { return nlohmann::json::parse(text, nullptr, false).is_object(); }}};
}

struct Case {
    std::vector<TokenId> prompt;
    SamplingParams sampling;
    std::function<bool(const std::string&)> fits; // null: no form was asked for
};

// Each form and none, greedy and seeded; the prompts hold what is asked for, so that drafts are made of it.
std::vector<Case> cases(const text::Tokenizer& tokenizer) {
    const auto all = forms();
    std::vector<Case> out;
    for (uint64_t i = 0; i < 12; ++i) {
        const size_t kind = i % (all.size() + 1);
        Case c{tokenizer.encode("{\"name\": \"Ann\", \"age\": 12, \"tags\": [\"red\", \"green\", \"red\"]} Tom is 12. "
                                "{\"name\": \"Bob\", \"age\": 11, \"tags\": [\"red\"]} (1+2)+(3-4); no, maybe so " +
                                std::to_string(i)),
               i < 6 ? seeded(40 + i, 60) : greedy(60), nullptr};
        c.sampling.ignore_eos = false;
        c.sampling.top_p = 1;
        if (kind < all.size()) {
            c.sampling.structured_outputs = all[kind].asked;
            c.fits = all[kind].fits;
        }
        out.push_back(std::move(c));
    }
    return out;
}

std::vector<Output> alone() {
    std::vector<Output> out;
    Harness h(speaking());
    for (const Case& c : cases(*h.engine->tokenizer())) out.push_back(h.run(h.add(c.prompt, c.sampling)));
    return out;
}

struct Together {
    std::vector<Output> outputs;
    std::vector<StepReport> steps;
    template <class Part>
    uint64_t sum(uint32_t Part::*field) const {
        return sum_over(steps, field);
    }
};
Together together(const config::EngineConfig& c) {
    Harness h(c);
    std::vector<RequestId> ids;
    for (const Case& one : cases(*h.engine->tokenizer())) ids.push_back(h.add(one.prompt, one.sampling));
    h.run_all();
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    Together out;
    for (const RequestId id : ids) out.outputs.push_back(h.outputs.at(id));
    out.steps = h.steps;
    return out;
}

void expect_same(const std::vector<Output>& want, const std::vector<Output>& got) {
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(want[i].tokens, got[i].tokens) << i << ": '" << want[i].text << "', '" << got[i].text << "'";
        EXPECT_EQ(want[i].finish, got[i].finish) << i;
    }
}

TEST(StructuredOutput, HasTheFormThatWasAskedFor) {
    Harness h(speaking());
    size_t ended = 0;
    for (uint64_t seed = 0; seed < 40; ++seed)
        for (const Form& form : forms()) {
            SamplingParams p = seeded(seed, 150);
            p.ignore_eos = false;
            p.structured_outputs = form.asked;
            const Output out = h.run(h.add(random_prompt(seed, 8, 2000), p));
            EXPECT_NE(out.finish, FinishReason::kError) << out.stop_reason;
            if (out.finish != FinishReason::kStop) continue; // max_tokens cut it off
            ended += 1;
            EXPECT_TRUE(form.fits(out.text)) << out.text;
        }
    EXPECT_GT(ended, 120u);
}

TEST(StructuredOutput, AndItsNeighboursAreTheSameInABatchOfChunks) {
    config::EngineConfig c = speaking();
    c.engine.max_num_batched_tokens = 48;
    expect_same(alone(), together(c).outputs);
}

TEST(StructuredOutput, IsTheSameWithDraftsWhichItsGrammarCuts) {
    config::EngineConfig c = speaking();
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    for (const uint32_t drafts : {1u, 4u, 12u}) {
        c.engine.num_speculative_tokens = drafts;
        const Together got = together(c);
        expect_same(alone(), got.outputs);
        EXPECT_GT(got.sum(&DraftReport::accepted_tokens), 5u);
        EXPECT_GT(got.sum(&GrammarReport::cut_drafts), 5u);
    }
}

TEST(StructuredOutput, IsTheSameAfterPreemptions) {
    config::EngineConfig c = speaking();
    c.engine.num_blocks = 52;
    c.engine.watermark = 0;
    const Together got = together(c);
    EXPECT_GT(got.sum(&PreemptionReport::preemptions), 0u);
    expect_same(alone(), got.outputs);
}

TEST(StructuredOutput, WaitsForTheTokenInFlightAndSaysSo) {
    config::EngineConfig c = speaking();
    c.device = {"queues", {}};
    c.attention = {"replays", {}};
    c.sampler = {"replays", {}};
    const Together without_overlap = together(c);
    c.engine.async_scheduling = config::AsyncScheduling::kOn;
    const Together got = together(c);
    expect_same(without_overlap.outputs, got.outputs);
    size_t waited = 0, overlapped = 0;
    for (const StepReport& r : got.steps) {
        waited += r.sync_reason == "structured_output";
        overlapped += r.sync_reason.empty();
    }
    EXPECT_GT(waited, 20u);
    EXPECT_GT(overlapped, 0u); // once only those without a form are left
    for (size_t i = 0; i < got.outputs.size(); ++i) EXPECT_NE(got.outputs[i].finish, FinishReason::kError) << i;
}

TEST(StructuredOutput, ThatDoesNotCompileFailsItsRequestAlone) {
    Harness h(speaking());
    const RequestId other = h.add(random_prompt(1, 8), greedy(20));
    h.step();
    Request r;
    r.prompt = {1, 2, 3};
    r.sampling.structured_outputs = StructuredOutputs{.json = R"({"$ref": "x.json"})"};
    const auto refused = h.engine->add_request(r);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error(), HasSubstr("structured_outputs: json: #/$ref: \"x.json\" is not supported"));
    r.sampling.structured_outputs = StructuredOutputs{.regex = "a", .json_object = true};
    EXPECT_THAT(h.engine->add_request(r).error(), HasSubstr("expected exactly one"));
    EXPECT_THAT(h.engine->compile_grammar({.regex = "("}).error(), HasSubstr("without its ')'"));
    EXPECT_EQ(h.run(other).tokens.size(), 20u);
    Harness silent(tiny_model());
    r.sampling.structured_outputs = StructuredOutputs{.regex = "a"};
    EXPECT_EQ(silent.engine->add_request(r).error(), "structured_outputs need a tokenizer");
}

TEST(StructuredOutput, EndsOnlyWhereItIsComplete) {
    Harness h(speaking());
    SamplingParams p = greedy(50);
    p.ignore_eos = false;
    p.logit_bias = {{0, 1000.0f}}; // would end at once
    p.structured_outputs = StructuredOutputs{.regex = "(ab){3,20}"};
    Output out = h.run(h.add({5, 6, 7}, p));
    EXPECT_EQ(out.text, "ababab");
    EXPECT_EQ(out.finish, FinishReason::kStop);
    EXPECT_EQ(out.tokens.back(), 0);
    p.min_tokens = 40; // no end before, as long as something else may follow
    out = h.run(h.add({5, 6, 7}, p));
    EXPECT_EQ(out.finish, FinishReason::kStop);
    EXPECT_EQ(out.text.size(), 40u); // (ab){20} in 40 tokens or fewer: it must end
    EXPECT_NE(out.tokens.back(), 0);
    p.min_tokens = 0;
    p.ignore_eos = true;
    out = h.run(h.add({5, 6, 7}, p));
    EXPECT_EQ(out.text.size(), 40u);
    EXPECT_EQ(out.finish, FinishReason::kStop);
}

TEST(StructuredOutput, TakesASpecialStopTokenWhereItIsComplete) {
    Harness h(speaking());
    SamplingParams p = greedy(50); // ignores the end token, which is the one special token there is
    p.stop_token_ids = {0};
    p.logit_bias = {{0, 1000.0f}};
    p.structured_outputs = StructuredOutputs{.regex = "x{2,9}"};
    const Output out = h.run(h.add({5, 6, 7}, p));
    EXPECT_EQ(out.text, "xx");
    EXPECT_EQ(out.stop_reason, "0");
}

TEST(StructuredOutput, WithoutATokenToGoOnFailsAlone) {
    Harness h(speaking());
    SamplingParams p = greedy(30);
    p.structured_outputs = StructuredOutputs{.regex = "abx{3}"};
    p.min_tokens = 20;
    const auto& tokenizer = *h.engine->tokenizer();
    for (TokenId t = 0; t < 2048; ++t) // what begins with x would stop, and may not come yet
        if (tokenizer.token_bytes(t).starts_with("x")) p.stop_token_ids.push_back(t);
    const RequestId stuck = h.add({5, 6, 7}, p), other = h.add({5, 6, 7}, greedy(20));
    h.run_all();
    EXPECT_EQ(h.outputs.at(stuck).finish, FinishReason::kError);
    EXPECT_EQ(h.outputs.at(stuck).stop_reason,
              "structured_outputs: no token that allowed_token_ids, bad_words and min_tokens leave goes on with the "
              "structured output");
    EXPECT_EQ(h.outputs.at(stuck).text, "ab");
    EXPECT_EQ(h.outputs.at(other).tokens.size(), 20u);
}

TEST(StructuredOutput, HasItsFormInEachOfSeveralOutputs) {
    Harness h(speaking());
    SamplingParams p = seeded(70, 60);
    p.ignore_eos = false;
    p.structured_outputs = StructuredOutputs{.regex = "[a-z]{3,9}!"};
    p.n = 3;
    const RequestId id = h.add(random_prompt(1, 20, 2000), p);
    h.run_all();
    std::set<std::string> texts{h.outputs.at(id).text};
    for (const uint32_t index : {1u, 2u}) {
        const Output& out = h.others.at({id, index});
        EXPECT_EQ(out.finish, FinishReason::kStop) << out.stop_reason;
        texts.insert(out.text);
    }
    EXPECT_GT(texts.size(), 1u);
    for (const std::string& text : texts) EXPECT_TRUE(std::regex_match(text, std::regex("[a-z]{3,9}!"))) << text;
}

TEST(StructuredOutput, CountsWhatBecameOfItsGrammars) {
    Harness h(speaking());
    EXPECT_TRUE(h.engine->compile_grammar({.regex = "(ab){8}"}));
    SamplingParams p = greedy(10);
    p.structured_outputs = StructuredOutputs{.regex = "(ab){8}"};
    h.add({5, 6, 7}, p);
    h.run_all();
    EXPECT_EQ(h.steps.front().grammars.compiled, 1u);
    EXPECT_EQ(h.steps.front().grammars.cached, 1u);
    EXPECT_EQ(h.steps.back().grammars.compiled, 0u);
    EXPECT_EQ(h.steps.front().grammars.masks, 1u);
}

// Though others have driven it from those that are kept since it was compiled.
TEST(StructuredOutput, IsNotCompiledAgainForARequestThatBringsItsGrammar) {
    Harness h(speaking());
    Request request;
    request.prompt = {5, 6, 7};
    request.sampling = greedy(10);
    request.sampling.structured_outputs = StructuredOutputs{.regex = "(ab){8}"};
    auto compiled = h.engine->compile_grammar(*request.sampling.structured_outputs);
    ASSERT_TRUE(compiled) << compiled.error();
    request.grammar = *std::move(compiled);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(h.engine->compile_grammar({.regex = "b" + std::to_string(i)}));
    std::string text;
    request.on_output = [&](const RequestOutput& out) { text += out.text; };
    ASSERT_TRUE(h.engine->add_request(std::move(request)));
    h.run_all();
    EXPECT_THAT(text, ::testing::StartsWith("abab"));
    EXPECT_EQ(h.steps.front().grammars.compiled, 101u);
    EXPECT_EQ(h.steps.front().grammars.cached, 0u);
}

}  // namespace
}  // namespace patchbay::engine::structured_test
