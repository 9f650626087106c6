#include "unit/engine/engine_fixture.hpp"

#include "host/registry.hpp"
#include "patchbay/sdk/philox.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing {

std::string repository(const std::string& path) { return std::string(kSourceDir) + "/" + path; }

const host::Registry& registry() {
    static const host::Registry all = [] {
        auto opened = host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins",
                                            std::string(kBuildDir) + "/tests/engine_plugins"});
        if (!opened) throw std::runtime_error(opened.error());
        return *std::move(opened);
    }();
    return all;
}

config::EngineConfig tiny_model() {
    config::EngineConfig c;
    c.model.load_format = config::LoadFormat::kDummy;
    c.model.tokenizer = "none";
    c.model.shape = {{"architectures.0", "LlamaForCausalLM"},
                     {"hidden_size", "64"},
                     {"intermediate_size", "96"},
                     {"num_hidden_layers", "2"},
                     {"num_attention_heads", "4"},
                     {"num_key_value_heads", "2"},
                     {"vocab_size", "300"},
                     {"max_position_embeddings", "512"}};
    c.model.dtype = config::DType::kF32;
    c.engine.num_blocks = 512;
    c.engine.block_size = 8;
    c.engine.threads = 1;
    c.engine.seed = 3;
    return c;
}

Harness::Harness(const config::EngineConfig& c) : Harness(c, clock) {}

namespace {

std::unique_ptr<Engine> made_with(const config::EngineConfig& c, const host::Registry& plugins, Clock& clock) {
    auto made = Engine::create(c, plugins, clock);
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

}  // namespace

Harness::Harness(const config::EngineConfig& c, Clock& its_own) : engine(made_with(c, registry(), its_own)) {}

Harness::Harness(const config::EngineConfig& c, const host::Registry& plugins)
    : engine(made_with(c, plugins, clock)) {}

RequestId Harness::add(std::vector<TokenId> prompt, SamplingParams sampling) {
    Request r;
    r.prompt = std::move(prompt);
    r.sampling = std::move(sampling);
    return add(std::move(r));
}

RequestId Harness::add(Request r) {
    r.on_output = [this](const RequestOutput& delta) {
        Output& o = delta.index == 0 ? outputs[delta.id] : others[{delta.id, delta.index}];
        EXPECT_EQ(o.endings, 0u) << "output after the end";
        o.tokens.insert(o.tokens.end(), delta.tokens.begin(), delta.tokens.end());
        o.logprobs.insert(o.logprobs.end(), delta.logprobs.begin(), delta.logprobs.end());
        o.prompt_logprobs.insert(o.prompt_logprobs.end(), delta.prompt_logprobs.begin(), delta.prompt_logprobs.end());
        o.text += delta.text;
        if (delta.finish == FinishReason::kNone) return;
        o.finish = delta.finish;
        o.stop_reason = delta.stop_reason;
        o.stop_token = delta.stop_token;
        o.cached_tokens = delta.cached_tokens;
        o.preemptions = delta.preemptions;
        o.cumulative_logprob = delta.cumulative_logprob;
        o.beam_score = delta.beam_score;
        o.logits = delta.logits;
        o.embedding = delta.embedding;
        o.endings += 1;
    };
    auto id = engine->add_request(std::move(r));
    if (!id) throw std::runtime_error(id.error());
    outputs[*id];
    return *id;
}

StepReport Harness::step() {
    clock.advance_ns(1000);
    auto report = engine->step();
    if (!report) throw std::runtime_error(report.error());
    steps.push_back(*report);
    return *report;
}

const Output& Harness::run(RequestId id) {
    while (outputs.at(id).endings == 0) step();
    return outputs.at(id);
}

const std::map<RequestId, Output>& Harness::run_all() {
    while (engine->has_unfinished()) step();
    return outputs;
}

SamplingParams greedy(uint32_t max_tokens) {
    SamplingParams p;
    p.temperature = 0;
    p.max_tokens = max_tokens;
    p.ignore_eos = true;
    return p;
}

SamplingParams seeded(uint64_t seed, uint32_t max_tokens) {
    SamplingParams p = greedy(max_tokens);
    p.temperature = 1;
    p.top_p = 0.95f;
    p.seed = seed;
    return p;
}

std::vector<TokenId> random_prompt(uint64_t seed, uint32_t length, uint32_t vocab) {
    std::vector<TokenId> out;
    for (uint32_t i = 0; i < length; ++i)
        out.push_back(static_cast<TokenId>(draw(seed, i, Stream::kTest, 0)[0] % vocab));
    return out;
}

}  // namespace patchbay::engine::testing
