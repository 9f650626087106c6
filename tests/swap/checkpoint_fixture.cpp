#include "swap/checkpoint_fixture.hpp"

#include <unistd.h>

#include <fstream>

#include "host/registry.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing {
namespace {

namespace fs = std::filesystem;

void change(const fs::path& file) {
    std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
    uint64_t header = 0;
    f.read(reinterpret_cast<char*>(&header), sizeof header);
    const auto size = static_cast<int64_t>(fs::file_size(file));
    for (int64_t at = static_cast<int64_t>(sizeof header + header); at < size; at += 512) {
        f.seekg(at);
        const int byte = f.get();
        f.seekp(at);
        f.put(static_cast<char>(byte ^ 0x40)); // of a bf16 its highest bit but one of the mantissa
    }
}

}  // namespace

std::string demo_path(const char* name) { return kSourceDir + std::string("/models/") + name; }

OtherCheckpoint::OtherCheckpoint()
    : folder_(fs::path(::testing::TempDir()) / ("model_swap_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    fs::copy(demo_path(), path(), fs::copy_options::recursive);
    for (const auto& file : fs::directory_iterator(path()))
        if (file.path().extension() == ".safetensors") change(file.path());
}

OtherCheckpoint::~OtherCheckpoint() { fs::remove_all(folder_); }

host::Registry with_models_of(const std::string& folder) {
    auto all = host::Registry::open({std::string(kBuildDir) + "/tests/" + folder});
    if (!all) throw std::runtime_error(all.error());
    return *std::move(all);
}

config::EngineConfig demo_engine(const std::string& path) {
    config::EngineConfig c = tiny_model();
    c.model = {};
    c.model.path = path;
    c.engine.enable_prefix_caching = true;
    c.engine.max_num_seqs = 3;
    c.engine.max_num_batched_tokens = 48;
    c.sampler.plugin = "greedy";
    c.swap.probation_steps = 2;
    return c;
}

std::map<RequestId, Asked> ask(Swapping& s, uint64_t seed, size_t count) {
    std::map<RequestId, Asked> out;
    for (uint64_t i = 0; i < count; ++i) {
        Request r;
        const Asked asked{random_prompt(seed + i, static_cast<uint32_t>(20 + i * 7)), static_cast<uint32_t>(20 + i)};
        r.prompt = asked.prompt;
        r.sampling = greedy(asked.tokens);
        r.on_output = [&s](const RequestOutput& o) {
            s.texts[o.id].insert(s.texts[o.id].end(), o.tokens.begin(), o.tokens.end());
            s.endings[o.id] += o.finish != FinishReason::kNone;
            EXPECT_NE(o.finish, FinishReason::kError) << o.stop_reason;
        };
        out[*s.engine->add_request(std::move(r))] = asked;
    }
    return out;
}

std::vector<TokenId> continued(const config::EngineConfig& c, std::vector<TokenId> prompt, uint32_t tokens,
                               parallel::World* world) {
    Swapping s(c, nullptr, world);
    Request r;
    r.prompt = std::move(prompt);
    r.sampling = greedy(tokens);
    r.on_output = [&](const RequestOutput& out) {
        s.texts[0].insert(s.texts[0].end(), out.tokens.begin(), out.tokens.end());
    };
    EXPECT_TRUE(s.engine->add_request(std::move(r)));
    s.run();
    return s.texts[0];
}

size_t expect_continued(const Texts& texts, const Texts& then, const std::map<RequestId, Asked>& asked,
                        const config::EngineConfig& first, const config::EngineConfig& other,
                        parallel::World* world) {
    size_t changed = 0;
    for (const auto& [id, what] : asked) {
        const auto& text = texts.at(id);
        const std::vector<TokenId> said = then.contains(id) ? then.at(id) : std::vector<TokenId>{};
        EXPECT_GE(text.size(), said.size());
        if (text.size() < said.size()) continue;
        EXPECT_TRUE(std::equal(said.begin(), said.end(), text.begin())) << "what was said stays said";
        std::vector<TokenId> so_far = what.prompt;
        so_far.insert(so_far.end(), said.begin(), said.end());
        const std::vector<TokenId> rest(text.begin() + static_cast<ptrdiff_t>(said.size()), text.end());
        const auto left = what.tokens - static_cast<uint32_t>(said.size());
        if (left == 0) continue;
        EXPECT_EQ(rest, continued(other, so_far, left, world)) << id;
        changed += rest != continued(first, so_far, left, world);
    }
    return changed;
}

}  // namespace patchbay::engine::testing
