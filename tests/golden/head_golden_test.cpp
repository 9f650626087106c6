// Logits and drafts of small random heads on a small random Llama, against PyTorch; see README.md.
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
#include "must.hpp"
#include "paths.hpp"

namespace patchbay::head_golden_test {
namespace {

using json = nlohmann::json;
const std::string kGolden = std::string(kSourceDir) + "/tests/golden/";
constexpr uint32_t kBlocks = 32, kBlock = 16, kPasses = 8, kRows = 64;

class Head {
  public:
    Head(const std::string& name, const std::string& target) : pool_(2) {
        const host::Services services{&pool_.service(), nullptr, nullptr};
        const host::Registry registry =
            must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
        runner::RunnerSettings r;
        r.model_config = must(weights::read_model_config(kGolden + "models/" + target));
        r.weights = {PB_F32};
        r.block_size = kBlock;
        r.num_blocks = kBlocks;
        r.device = "cpu";
        r.max_num_seqs = r.max_num_batched_tokens = kRows;
        r.max_model_len = 128;
        r.num_speculative_tokens = kPasses - 1;
        const std::string folder = kGolden + "models/" + name;
        auto config = must(weights::read_model_config(folder));
        for (const auto& [key, value] : r.model_config) config["target." + key] = value;
        auto model = must(registry.model(name, {}, services));
        const pb_model_facts facts = must(runner::read_facts(*model.component, config));
        runner::DraftModel guest{std::move(model), facts, std::move(config),
                                 must(weights::WeightSource::from_folder(folder)), {PB_F32}, {}};
        runner_ = must(runner::ModelRunner::create(
            must(registry.device("cpu", {}, services)), must(registry.model("llama", {}, services)),
            must(registry.attention("paged", {}, services)),
            must(weights::WeightSource::from_folder(kGolden + "models/" + target)), r, clock_, &guest));
    }

    // Of the head, at each position of the prompt, then after each draft but the last.
    std::vector<std::vector<float>> logits(const std::vector<int32_t>& prompt, std::vector<int32_t> following) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->kv().grouping().groups);
        kv::BlockTable table;
        const auto n = static_cast<uint32_t>(prompt.size());
        EXPECT_TRUE(cache.tables().grow(table, n + static_cast<uint32_t>(following.size())));
        runner::Batch batch;
        batch.clear(runner_->kv().batch_form());
        batch.add({prompt, 0, 0, table});
        batch.finish();
        must(runner_->passes().forward(batch));

        std::vector<int32_t> tokens(prompt.begin() + 1, prompt.end()), features;
        tokens.push_back(following[0]);
        for (uint32_t i = 0; i < n; ++i) features.push_back(static_cast<int32_t>(i)); // where the target left them
        std::vector<std::vector<float>> out;
        const runner::HiddenStates& hidden = *runner_->draft()->goes_on_from();
        for (uint32_t pass = 0; pass < following.size(); ++pass) {
            const auto rows = static_cast<uint32_t>(tokens.size());
            batch.clear(runner_->draft()->kv().batch_form());
            batch.add({tokens, pass == 0 ? 0 : n + pass - 1, rows, table, features});
            batch.finish();
            batch.kept_row = hidden.row_of_pass(pass);
            const auto got = must(runner_->draft()->passes().forward(batch));
            out.emplace_back(got.begin(), got.end());
            if (pass + 1 < following.size()) tokens = {following[pass + 1]};
            features = {static_cast<int32_t>(hidden.row_of_pass(pass) + rows - 1)};
        }
        return out;
    }

    // Of the head that predicts the token `ahead` after the next one, at each position of the prompt.
    std::vector<float> logits_ahead(const std::vector<int32_t>& prompt, uint32_t ahead) {
        kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner_->kv().grouping().groups);
        kv::BlockTable table;
        const auto n = static_cast<uint32_t>(prompt.size());
        EXPECT_TRUE(cache.tables().grow(table, n));
        runner::Batch batch;
        batch.clear(runner_->kv().batch_form());
        batch.add({prompt, 0, 0, table});
        batch.finish();
        must(runner_->passes().forward(batch));
        std::vector<int32_t> features;
        for (uint32_t i = 0; i < n; ++i) features.push_back(static_cast<int32_t>(i));
        batch.clear(runner_->draft()->kv().batch_form());
        batch.add({prompt, 0, n, table, features});
        batch.finish();
        batch.draft_step = ahead;
        const auto got = must(runner_->draft()->passes().forward(batch));
        return {got.begin(), got.end()};
    }

  private:
    ThreadPool pool_;
    VirtualClock clock_;
    std::unique_ptr<runner::ModelRunner> runner_;
};

// The largest difference over the range of the expected.
double worst_of(const std::vector<float>& got, const weights::TensorView& view) {
    std::vector<float> expected(view.bytes / sizeof(float));
    std::memcpy(expected.data(), view.data, view.bytes);
    if (got.size() != expected.size()) return INFINITY;
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
    double worst = 0;
    for (size_t k = 0; k < got.size(); ++k)
        worst = std::max<double>(worst, std::isnan(got[k]) ? INFINITY : std::abs(got[k] - expected[k]));
    return worst / (*high - *low);
}

TEST(HeadGolden, EagleAgreesWithPyTorchInEachPlaceAndAfterItsOwnDrafts) {
    std::ifstream in(kGolden + "eagle.json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/eagle"));
    Head head("eagle", facts["target"]);
    for (size_t i = 0; i < facts["prompts"].size(); ++i) {
        const json& p = facts["prompts"][i];
        std::vector<int32_t> following = {p["next"].get<int32_t>()};
        const auto drafts = p["drafts"].get<std::vector<int32_t>>();
        following.insert(following.end(), drafts.begin(), drafts.end() - 1);
        const auto got = head.logits(p["ids"].get<std::vector<int32_t>>(), following);
        for (size_t k = 0; k < got.size(); ++k) {
            const std::string name = "prompt" + std::to_string(i) + (k == 0 ? ".logits" : ".draft" + std::to_string(k));
            EXPECT_LE(worst_of(got[k], must(file->tensor(name))), 1e-4) << name;
            const size_t width = got[k].size() - got.back().size();
            const auto last = got[k].begin() + static_cast<ptrdiff_t>(width);
            EXPECT_EQ(std::max_element(last, got[k].end()) - last, drafts[k]) << name;
        }
    }
}

TEST(HeadGolden, MedusaAgreesWithPyTorchInEachHead) {
    std::ifstream in(kGolden + "medusa.json");
    const json facts = json::parse(in);
    const auto file = must(weights::Checkpoint::open(kGolden + "logits/medusa"));
    Head head("medusa", facts["target"]);
    for (size_t i = 0; i < facts["prompts"].size(); ++i)
        for (uint32_t k = 0; k < facts["heads"].get<uint32_t>(); ++k) {
            const std::string name = "prompt" + std::to_string(i) + ".head" + std::to_string(k);
            const auto got = head.logits_ahead(facts["prompts"][i]["ids"].get<std::vector<int32_t>>(), k);
            EXPECT_LE(worst_of(got, must(file->tensor(name))), 1e-4) << name;
        }
}

}  // namespace
}  // namespace patchbay::head_golden_test
