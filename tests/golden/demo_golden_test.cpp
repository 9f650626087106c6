// The demo models byte for byte: tokenizer, greedy ids and text.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/engine.hpp"
#include "host/registry.hpp"
#include "paths.hpp"

namespace patchbay::demo_golden_test {
namespace {

using json = nlohmann::json;
const std::string kSource = kSourceDir;

json golden(const std::string& name) {
    std::ifstream in(kSource + "/tests/golden/" + name);
    return json::parse(in);
}

TEST(DemoGolden, TheTokenizerAgreesOnEveryText) {
    const auto tokenizer = text::Tokenizer::load(kSource + "/models/demo-target");
    ASSERT_TRUE(tokenizer) << tokenizer.error();
    const json all = golden("demo_tokenizer.json");
    ASSERT_GT(all["cases"].size(), 50u);
    for (const json& c : all["cases"]) {
        const auto text = c["text"].get<std::string>();
        EXPECT_EQ((*tokenizer)->encode(text), c["ids"].get<std::vector<text::TokenId>>()) << text;
    }
}

void check_greedy(const std::string& model) {
    const auto registry = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"});
    ASSERT_TRUE(registry) << registry.error();
    config::EngineConfig c;
    c.model.path = kSource + "/models/" + model;
    c.model.dtype = config::DType::kF32; // as the goldens were made
    c.engine.kv_cache_dtype = config::KvDType::kF32;
    VirtualClock clock;
    const auto engine = engine::Engine::create(c, *registry, clock);
    ASSERT_TRUE(engine) << engine.error();
    const json all = golden("demo_greedy.json");
    const json cases = all.at(model);
    ASSERT_GE(cases.size(), 2u);
    std::map<engine::RequestId, std::pair<std::vector<text::TokenId>, std::string>> got;
    std::map<engine::RequestId, json> expected;
    for (const json& one : cases) {
        engine::Request r;
        r.prompt = (*engine)->tokenizer()->encode(one["prompt"].get<std::string>());
        EXPECT_EQ(r.prompt, one["ids"].get<std::vector<text::TokenId>>());
        r.sampling.temperature = 0;
        r.sampling.max_tokens = static_cast<uint32_t>(one["greedy_ids"].size());
        r.sampling.ignore_eos = true;
        r.on_output = [&](const engine::RequestOutput& out) {
            auto& [tokens, text] = got[out.id];
            tokens.insert(tokens.end(), out.tokens.begin(), out.tokens.end());
            text += out.text;
        };
        const auto id = (*engine)->add_request(r);
        ASSERT_TRUE(id) << id.error();
        expected[*id] = one;
    }
    while ((*engine)->has_unfinished()) ASSERT_TRUE((*engine)->step());
    for (const auto& [id, one] : expected) {
        EXPECT_EQ(got[id].first, one["greedy_ids"].get<std::vector<text::TokenId>>()) << one["prompt"];
        EXPECT_EQ(got[id].second, one["text"].get<std::string>()) << one["prompt"];
    }
}

TEST(DemoGolden, TheTargetWritesWhatTransformersWrites) { check_greedy("demo-target"); }
TEST(DemoGolden, TheDraftWritesWhatTransformersWrites) { check_greedy("demo-draft"); }

}  // namespace
}  // namespace patchbay::demo_golden_test
