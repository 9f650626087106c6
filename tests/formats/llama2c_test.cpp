// scripts/import_llama2c.py: a small checkpoint number by number, and real ones under $PATCHBAY_TEST_DATA, which must
// say what an independent float32 program said of them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/thread_pool.hpp"
#include "engine/engine.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "runner/model_runner.hpp"
#include "must.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::llama2c_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class Llama2c : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("patchbay-llama2c-" + std::to_string(::getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    // What the script said; empty: it succeeded.
    std::string import(const fs::path& checkpoint, const std::string& options) const {
        const std::string command = std::string(PATCHBAY_PYTHON) + " " + kSourceDir +
                                    "/scripts/import_llama2c.py '" + checkpoint.string() + "' --out '" +
                                    (folder_ / "model").string() + "' " + options + " > '" +
                                    (folder_ / "log").string() + "' 2>&1";
        if (std::system(command.c_str()) == 0) return "";
        return file_text(folder_ / "log");
    }
    std::vector<float> tensor(const std::string& name) const {
        const auto checkpoint = must(weights::Checkpoint::open(folder_ / "model"));
        const auto view = must(checkpoint->tensor(name));
        std::vector<float> out(view.bytes / sizeof(float));
        std::memcpy(out.data(), view.data, view.bytes);
        return out;
    }
    fs::path folder_;
};

// dim 8, hidden 3, 1 layer, 2 heads of 4, 1 head of k and v, 5 tokens, 2 positions; all numbers counted from 0.
class SmallLlama2c : public Llama2c {
  protected:
    fs::path write(int vocab, size_t floats) const {
        const int32_t header[] = {8, 3, 1, 2, 1, vocab, 2};
        std::vector<float> numbers(floats);
        for (size_t i = 0; i < floats; ++i) numbers[i] = static_cast<float>(i);
        std::ofstream out(folder_ / "small.bin", std::ios::binary);
        out.write(reinterpret_cast<const char*>(header), sizeof header);
        out.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(4 * floats));
        return folder_ / "small.bin";
    }
    static constexpr size_t kShared = 5 * 8 + 8 + 64 + 32 + 32 + 64 + 8 + 24 + 24 + 24 + 8 + 2 * 4;
};

TEST_F(SmallLlama2c, PutsTheRowsOfEachHeadInHuggingFacesOrder) {
    ASSERT_EQ(import(write(5, kShared), ""), "");
    const auto row = [](const std::vector<float>& matrix, size_t r) { return matrix[r * 8]; };
    const auto q = tensor("model.layers.0.self_attn.q_proj.weight"),
               k = tensor("model.layers.0.self_attn.k_proj.weight");
    const float begin = 48;  // after the embedding and a norm
    const float order[] = {0, 2, 1, 3, 4, 6, 5, 7};
    for (size_t r = 0; r < 8; ++r) EXPECT_EQ(row(q, r), begin + 8 * order[r]) << r;
    for (size_t r = 0; r < 4; ++r) EXPECT_EQ(row(k, r), begin + 64 + 8 * order[r]) << r;
    EXPECT_EQ(tensor("model.layers.0.self_attn.v_proj.weight")[9], begin + 96 + 9);
    EXPECT_EQ(tensor("model.layers.0.mlp.down_proj.weight")[0], begin + 192 + 8 + 24);
    EXPECT_EQ(tensor("model.norm.weight")[7], begin + 192 + 8 + 72 + 7);
    const auto config = must(weights::read_model_config(folder_ / "model"));
    EXPECT_EQ(config.at("tie_word_embeddings"), "true");
    EXPECT_EQ(config.at("num_key_value_heads"), "1");
    EXPECT_EQ(config.at("intermediate_size"), "3");
}

TEST_F(SmallLlama2c, HasAHeadOfItsOwnWhereTheVocabularyIsNegative) {
    ASSERT_EQ(import(write(-5, kShared + 40), ""), "");
    EXPECT_EQ(tensor("lm_head.weight")[39], static_cast<float>(kShared + 39));
    EXPECT_EQ(must(weights::read_model_config(folder_ / "model")).at("tie_word_embeddings"), "false");
}

TEST_F(SmallLlama2c, SaysWhatIsWrongWithAFile) {
    EXPECT_NE(import(write(5, kShared - 1), "").find("it is no float32 checkpoint of llama2.c, or it is truncated"),
              std::string::npos);
    EXPECT_NE(import(write(5, kShared + 1), "").find("4 bytes are left over"), std::string::npos);
    EXPECT_NE(import(write(0, kShared), "").find("which fit no model"), std::string::npos);
}

struct Published {
    const char *folder, *checkpoint, *tokenizer;
};

class PublishedLlama2c : public Llama2c, public ::testing::WithParamInterface<Published> {
  protected:
    static fs::path given() {
        const char* const data = std::getenv("PATCHBAY_TEST_DATA");
        return fs::path(data ? data : std::string(kSourceDir) + "/../shared/data") / "weights" /
               GetParam().folder;
    }
    // What the independent program said.
    json import_published() {
        EXPECT_EQ(
            import(given() / GetParam().checkpoint, "--tokenizer '" + (given() / GetParam().tokenizer).string() + "'"),
            "");
        std::ifstream in(given() / "golden_greedy_fp32.json");
        return json::parse(in);
    }
    // Logits of each of the tokens, in float32 but for the weights.
    std::vector<float> logits(const host::Registry& registry, const std::vector<int32_t>& tokens,
                              const weights::WeightForm& form) const {
        constexpr uint32_t kBlocks = 32, kBlock = 16;
        VirtualClock clock;
        ThreadPool pool(2);
        const host::Services services{&pool.service(), nullptr, nullptr};
        runner::RunnerSettings r;
        r.model_config = must(weights::read_model_config(folder_ / "model"));
        r.weights = form;
        r.kv_dtypes.default_dtype = PB_F32;
        r.block_size = kBlock;
        r.num_blocks = kBlocks;
        r.device = "cpu";
        r.max_num_seqs = r.max_num_batched_tokens = 0; // of a batch: not known
        const auto runner = must(runner::ModelRunner::create(
            must(registry.device("cpu", {}, services)), must(registry.model("llama", {}, services)),
            must(registry.attention("paged", {}, services)),
            must(weights::WeightSource::from_folder(folder_ / "model")), r, clock));
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner->kv().grouping().groups);
        kv::BlockTable table;
        const auto count = static_cast<uint32_t>(tokens.size());
        if (!cache.tables().grow(table, count)) throw std::runtime_error("the prompt is too long");
        runner::Batch batch;
        batch.clear(runner->kv().batch_form());
        batch.add({tokens, 0, count, table});
        batch.finish();
        const auto out = must(runner->passes().forward(batch));
        return {out.begin(), out.end()};
    }
};

TEST_P(PublishedLlama2c, SaysWhatAnIndependentProgramSaid) {
    if (!fs::exists(given())) GTEST_SKIP() << "no " << given() << "; set PATCHBAY_TEST_DATA";
    const json golden = import_published();
    const auto registry = must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));

    config::EngineConfig c;
    c.model.path = (folder_ / "model").string();
    VirtualClock clock;
    const auto engine = must(engine::Engine::create(c, registry, clock));
    std::map<engine::RequestId, std::pair<json, std::vector<int32_t>>> wanted_and_got;
    for (const json& one : golden.at("cases")) {
        engine::Request r;
        r.prompt = engine->tokenizer()->encode(one.at("prompt").get<std::string>());
        EXPECT_EQ(r.prompt, one.at("prompt_ids").get<std::vector<int32_t>>()) << one.at("prompt");
        const auto vocab = golden.at("config").at("vocab_size").get<size_t>();
        const auto got = logits(registry, r.prompt, {PB_F32});
        for (const auto& [position, row] : one.at("logits_at_pos").items()) {
            const auto expected = row.get<std::vector<float>>();
            ASSERT_EQ(expected.size(), vocab);
            const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
            float worst = 0;
            for (size_t i = 0; i < vocab; ++i) {
                const float logit = got[std::stoul(position) * vocab + i];
                worst = std::max(worst, std::isnan(logit) ? INFINITY : std::abs(logit - expected[i]));
            }
            EXPECT_LE(worst, 1e-5f * (*high - *low)) << one.at("prompt") << " at " << position;
        }
        r.sampling.temperature = 0;
        r.sampling.ignore_eos = true;
        r.sampling.max_tokens = static_cast<uint32_t>(one.at("greedy_ids").size());
        r.on_output = [&](const engine::RequestOutput& out) {
            auto& tokens = wanted_and_got[out.id].second;
            tokens.insert(tokens.end(), out.tokens.begin(), out.tokens.end());
        };
        const auto id = must(engine->add_request(r));
        wanted_and_got[id].first = one.at("greedy_ids");
    }
    while (engine->has_unfinished()) ASSERT_TRUE(engine->step());
    for (const auto& [id, pair] : wanted_and_got) EXPECT_EQ(pair.second, pair.first.get<std::vector<int32_t>>());
}

// Along the text that the program wrote: how often the rounded model would have gone on as it did.
TEST_P(PublishedLlama2c, MostlyGoesOnAsThatProgramDidWhenItsWeightsAreRounded) {
    if (!fs::exists(given())) GTEST_SKIP() << "no " << given() << "; set PATCHBAY_TEST_DATA";
    const json golden = import_published();
    const auto registry = must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
    const auto vocab = golden.at("config").at("vocab_size").get<size_t>();
    using weights::Quantization;
    struct Bound {
        Quantization quantization;
        double same;  // share of tokens
    };
    for (const Bound& bound : {Bound{Quantization::kInt8, 0.97}, Bound{Quantization::kInt4, 0.8}}) {
        size_t same = 0, all = 0;
        for (const json& one : golden.at("cases")) {
            auto tokens = one.at("prompt_ids").get<std::vector<int32_t>>();
            const auto ids = one.at("greedy_ids").get<std::vector<int32_t>>();
            const size_t first = tokens.size() - 1;
            tokens.insert(tokens.end(), ids.begin(), ids.end());
            const auto got = logits(registry, tokens, {PB_F32, bound.quantization, 32});
            for (size_t i = 0; i < ids.size(); ++i, ++all) {
                const auto row = got.begin() + static_cast<std::ptrdiff_t>((first + i) * vocab);
                same += std::max_element(row, row + static_cast<std::ptrdiff_t>(vocab)) - row == ids[i];
            }
        }
        EXPECT_GE(static_cast<double>(same), bound.same * static_cast<double>(all)) << same << " of " << all;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedLlama2c,
                         ::testing::Values(Published{"stories260K", "stories260K.bin", "tok512.model"},
                                           Published{"stories260K", "stories260K.bin", "tok512.bin"},
                                           Published{"babyllama", "model5000.bin", "tok105.model"}));

}  // namespace
}  // namespace patchbay::llama2c_test
