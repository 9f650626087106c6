// Logits and greedy ids of small random models against Hugging Face transformers; see README.md for the tolerances.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "runner/model_runner.hpp"
#include "weights/loader.hpp"

namespace patchbay {
namespace {

using json = nlohmann::json;
const std::string kGolden = std::string(PATCHBAY_SOURCE_DIR) + "/tests/golden/";

template <class T>
T must(Result<T> r) {
    if (!r) throw std::runtime_error(r.error());
    return *std::move(r);
}

struct Setting {
    std::string name, attention, isa;
    pb_dtype kv;

    // All but bf16 weights at the best level, where linears may round activations, and bf16 KV.
    bool computes_in_f32() const { return kv == PB_F32 && (name != "llama_bf16" || isa != "auto"); }
};

class Golden {
  public:
    explicit Golden(const Setting& s) : pool_(2) {
        const host::Services services{&pool_.service(), nullptr, nullptr};
        const auto registry = must(host::Registry::open({std::string(PATCHBAY_BINARY_DIR) + "/lib/patchbay/plugins"}));
        const std::string folder = kGolden + "models/" + s.name;
        runner::RunnerSettings r;
        r.model_config = must(weights::read_model_config(folder));
        const auto source = must(weights::WeightSource::from_folder(folder));
        r.weight_dtype = must(source.native_dtype(r.model_config));
        r.kv_dtype = s.kv;
        r.block_size = 16;
        r.num_blocks = 32;
        r.device = "cpu";
        const auto plugin = must(registry.model_for(r.model_config.at("architectures.0")));
        runner_ = must(runner::ModelRunner::create(must(registry.device("cpu", {{"isa", s.isa}}, services)), must(registry.model(plugin, {}, services)),
                                                   must(registry.attention(s.attention, {}, services)), source, r, clock_));
    }

    // Logits of the last `rows` of the tokens, the sequence computed at once.
    std::vector<float> logits(const std::vector<int32_t>& tokens, uint32_t rows) {
        kv::KvCache cache(32, 16, kv::PrefixCaching::kOff, "");
        kv::BlockTable table;
        EXPECT_TRUE(cache.grow(table, static_cast<uint32_t>(tokens.size())));
        runner::Batch batch;
        batch.clear();
        batch.add({tokens, 0, rows, table.blocks}, 16);
        batch.finish();
        const auto out = must(runner_->forward(batch));
        return {out.begin(), out.end()};
    }

    std::vector<int32_t> greedy(std::vector<int32_t> tokens, size_t count) {
        const size_t from = tokens.size();
        while (tokens.size() < from + count) {
            const auto row = logits(tokens, 1);
            tokens.push_back(static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
        }
        return {tokens.begin() + static_cast<ptrdiff_t>(from), tokens.end()};
    }

  private:
    ThreadPool pool_;
    VirtualClock clock_;
    std::unique_ptr<runner::ModelRunner> runner_;
};

class LlamaGolden : public ::testing::TestWithParam<Setting> {};

TEST_P(LlamaGolden, AgreesWithTransformers) {
    const Setting& s = GetParam();
    const double tolerance = s.computes_in_f32() ? 1e-4 : 2e-2;
    std::ifstream in(kGolden + s.name + ".json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/" + s.name));
    Golden golden(s);
    for (size_t i = 0; i < facts["prompts"].size(); ++i) {
        const auto ids = facts["prompts"][i]["ids"].get<std::vector<int32_t>>();
        const auto expected_view = must(file->tensor("prompt" + std::to_string(i) + ".logits"));
        std::vector<float> expected(expected_view.bytes / sizeof(float));
        std::memcpy(expected.data(), expected_view.data, expected_view.bytes);
        const auto got = golden.logits(ids, static_cast<uint32_t>(ids.size()));
        ASSERT_EQ(got.size(), expected.size());
        const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
        double worst = 0;
        for (size_t k = 0; k < got.size(); ++k) {
            worst = std::max<double>(worst, std::isnan(got[k]) ? 1e9 : std::abs(got[k] - expected[k]));
        }
        EXPECT_LE(worst, tolerance * (*high - *low)) << "prompt " << i;
        if (s.computes_in_f32()) {
            EXPECT_EQ(golden.greedy(ids, 32), facts["prompts"][i]["greedy_ids"].get<std::vector<int32_t>>())
                << "prompt " << i;
        }
    }
}

std::vector<Setting> settings() {
    std::vector<Setting> out;
    for (const char* name : {"llama_mha", "llama_gqa_tied", "llama3_rope", "llama_linear_rope", "llama_head_dim", "llama_bias",
                             "mistral", "llama_bf16", "llama_sharded"})
        for (const char* attention : {"paged", "reference"}) out.push_back({name, attention, "auto", PB_F32});
    for (const char* isa : {"plain", "avx2"}) out.push_back({"llama_gqa_tied", "paged", isa, PB_F32});
    out.push_back({"llama_bf16", "paged", "plain", PB_F32});
    for (const char* attention : {"paged", "reference"}) out.push_back({"llama_bf16", attention, "auto", PB_BF16});
    return out;
}

INSTANTIATE_TEST_SUITE_P(Models, LlamaGolden, ::testing::ValuesIn(settings()), [](const auto& test) {
    return test.param.name + "_" + test.param.attention + "_" + test.param.isa + (test.param.kv == PB_BF16 ? "_bf16kv" : "");
});

}  // namespace
}  // namespace patchbay
