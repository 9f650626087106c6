#include "unit/engine/draft_fixture.hpp"

#include <fstream>

#include "unit/engine/temporary_folder.hpp"

namespace patchbay::engine::testing {

config::EngineConfig demo(const std::string& model) {
    config::EngineConfig c;
    c.model.path = repository(model);
    c.engine.num_blocks = 1024;
    c.engine.block_size = 8;
    c.engine.threads = 1;
    c.engine.seed = 3;
    return c;
}

std::string folder_of(const std::map<std::string, std::string>& shape, const std::string& name) {
    const std::filesystem::path folder = temporary_folder() / name;
    std::filesystem::create_directories(folder);
    std::ofstream out(folder / "config.json");
    out << "{\"architectures\": [\"" << shape.at("architectures.0") << "\"]";
    for (const auto& [key, value] : shape)
        if (key != "architectures.0") out << ", \"" << key << "\": " << value;
    out << "}";
    return folder.string();
}

std::vector<Case> cases(size_t count, uint32_t vocab) {
    std::vector<Case> out;
    for (size_t i = 0; i < count; ++i) {
        auto prompt = random_prompt(i / 3, 40, vocab);
        const auto own = random_prompt(100 + i, 4 + static_cast<uint32_t>(i * 11 % 50), vocab);
        prompt.insert(prompt.end(), own.begin(), own.end());
        SamplingParams p = i % 2 ? seeded(50 + i, 30) : greedy(30);
        if (i % 4 == 1) p.repetition_penalty = 1.2f, p.frequency_penalty = 0.3f, p.top_k = 50;
        if (i % 4 == 2) p.ignore_eos = false, p.min_tokens = 5;
        if (i % 5 == 3) p.max_tokens = 1 + static_cast<uint32_t>(i % 3);
        out.push_back({std::move(prompt), p});
    }
    return out;
}

Ran run(const config::EngineConfig& c, const std::vector<Case>& all) {
    Harness h(c);
    std::vector<RequestId> ids;
    for (const Case& one : all) ids.push_back(h.add(one.prompt, one.sampling));
    h.run_all();
    Ran out;
    for (const RequestId id : ids) out.outputs.push_back(h.outputs.at(id));
    for (const Output& o : out.outputs) out.cached += o.cached_tokens;
    for (const StepReport& s : h.steps) {
        out.drafted += s.drafts.drafted_tokens;
        out.accepted += s.drafts.accepted_tokens;
        out.preemptions += s.preemption.preemptions;
        out.faults += s.calls.proposer_faults;
        out.draft_tokens += s.drafts.pass_tokens;
        out.draft_passes += s.drafts.passes;
        for (size_t i = 0; i < out.drafted_at.size(); ++i) {
            out.drafted_at[i] += s.drafts.drafted_at[i];
            out.accepted_at[i] += s.drafts.accepted_at[i];
        }
    }
    EXPECT_EQ(h.steps.back().kv.used_pages, 0u);
    EXPECT_EQ(out.faults, 0u);
    return out;
}

void expect_same_texts(const Ran& with, const Ran& without, const std::string& what) {
    for (size_t i = 0; i < without.outputs.size(); ++i) {
        const Output &a = without.outputs[i], &b = with.outputs[i];
        EXPECT_EQ(a.tokens, b.tokens) << what << ", request " << i;
        EXPECT_EQ(a.text, b.text) << what << ", request " << i;
        EXPECT_EQ(a.finish, b.finish) << what << ", request " << i;
    }
}

Ran expect_unchanged(const config::EngineConfig& c, const std::vector<Case>& all, const Ran& without,
                     const std::string& what) {
    Ran with = run(c, all);
    expect_same_texts(with, without, what);
    EXPECT_GT(with.accepted, 0u) << what;
    EXPECT_LT(with.accepted, with.drafted) << what << ": nothing was ever rejected";
    return with;
}

config::EngineConfig short_of_pages(config::EngineConfig c, uint32_t pages) {
    c.engine.num_blocks = pages;
    c.engine.max_model_len = 136;
    c.engine.watermark = 0;
    return c;
}

std::string refusal(const config::EngineConfig& c) {
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    return made ? "" : made.error();
}

}  // namespace patchbay::engine::testing
