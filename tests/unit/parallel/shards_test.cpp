// Ranks in threads of this process, each with its share of a golden model's weights on a CPU device of its own:
// together they have the logits of one rank, and each has the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/thread_pool.hpp"
#include "host/registry.hpp"
#include "kv/kv_cache.hpp"
#include "parallel/thread_store.hpp"
#include "runner/model_runner.hpp"
#include "runner/ranks.hpp"
#include "weights/loader.hpp"
#include "must.hpp"
#include "paths.hpp"

namespace patchbay::shards_test {
namespace {

const host::Registry& registry() {
    static const host::Registry all =
        must(host::Registry::open({std::string(kBuildDir) + "/lib/patchbay/plugins"}));
    return all;
}

constexpr uint32_t kBlocks = 16, kBlock = 16;

class ThreadRanks final : public runner::Ranks {
  public:
    explicit ThreadRanks(const pb_group& wire) : wire_(wire) {}
    const pb_group& wire() const override { return wire_; }
    void watch(std::function<void()>) override {}
    Result<uint32_t> agree_blocks(uint32_t here) override { return here; }

  private:
    pb_group wire_;
};

struct Rank { // of one model
    ThreadPool pool{1};
    std::unique_ptr<ThreadRanks> ranks;
    VirtualClock clock;
    std::unique_ptr<runner::ModelRunner> runner;
};

Result<> load(Rank& rank, const std::string& model, const pb_group* group) {
    const std::string folder = std::string(kSourceDir) + "/tests/golden/models/" + model;
    const host::Services services{&rank.pool.service(), nullptr, nullptr};
    runner::RunnerSettings r;
    PB_TRY(r.model_config, weights::read_model_config(folder));
    PB_TRY(const auto source, weights::WeightSource::from_folder(folder));
    PB_TRY(const pb_dtype dtype, source.native_dtype(r.model_config));
    r.weights = weights::WeightForm{dtype};
    r.block_size = kBlock;
    r.num_blocks = kBlocks;
    r.device = "cpu";
    r.max_num_seqs = r.max_num_batched_tokens = 0; // of a batch: not known
    if (group) {
        rank.ranks = std::make_unique<ThreadRanks>(*group);
        r.ranks = rank.ranks.get();
    }
    PB_TRY(const auto plugin, registry().model_for(r.model_config.at("architectures.0")));
    PB_TRY(auto device, registry().device("cpu", {{"isa", "plain"}}, services)); // f32, whatever the weights are
    PB_TRY(auto component, registry().model(plugin, {}, services));
    PB_TRY(auto attention, registry().attention("reference", {}, services));
    PB_TRY(rank.runner, runner::ModelRunner::create(std::move(device), std::move(component), std::move(attention),
                                                    source, r, rank.clock));
    return {};
}

// Logits of each token, `cut` of them computed in a step before the others.
std::vector<float> logits(runner::ModelRunner& runner, const std::vector<int32_t>& tokens, uint32_t cut) {
    kv::KvCache cache(kBlocks, kBlock, kv::PrefixCaching::kOff, "", runner.kv().grouping().groups);
    kv::BlockTable table;
    EXPECT_TRUE(cache.tables().grow(table, static_cast<uint32_t>(tokens.size())));
    std::vector<float> out;
    for (uint32_t done = 0; done < tokens.size();) {
        const uint32_t n = done < cut ? cut : static_cast<uint32_t>(tokens.size()) - done;
        runner::Batch batch;
        batch.clear(runner.kv().batch_form());
        batch.add({std::span(tokens).subspan(done, n), done, n, table});
        batch.finish();
        const auto some = must(runner.passes().forward(batch));
        out.insert(out.end(), some.begin(), some.end());
        done += n;
    }
    return out;
}

// What f(rank, group) gives on each rank, all at once.
template <class F>
auto on_ranks(uint32_t size, F&& f) {
    parallel::ThreadStore group(size, 20'000);
    using Value = decltype(f(0u, pb_group()));
    std::vector<std::optional<Value>> values(size);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < size; ++r) threads.emplace_back([&, r] { values[r] = f(r, group.group(r)); });
    for (std::thread& t : threads) t.join();
    return values;
}

struct Case {
    const char* model;
    uint32_t ranks;
};

class Shards : public ::testing::TestWithParam<Case> {};

TEST_P(Shards, TogetherHaveTheLogitsOfOneRank) {
    const auto& [model, ranks] = GetParam();
    std::vector<int32_t> tokens(40);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 37 % 120);
    Rank alone;
    const auto loaded = load(alone, model, nullptr);
    ASSERT_TRUE(loaded) << loaded.error();
    const std::vector<float> expected = logits(*alone.runner, tokens, 0);
    const auto [low, high] = std::minmax_element(expected.begin(), expected.end());

    struct Ranked {
        std::string error;
        std::vector<float> whole, in_two;
    };
    const auto ranked = on_ranks(ranks, [&](uint32_t, pb_group group) {
        Rank rank;
        const auto done = load(rank, model, &group);
        if (!done) return Ranked{done.error(), {}, {}};
        return Ranked{"", logits(*rank.runner, tokens, 0), logits(*rank.runner, tokens, 11)};
    });
    for (uint32_t r = 0; r < ranks; ++r) {
        ASSERT_EQ(ranked[r]->error, "") << r;
        ASSERT_EQ(ranked[r]->whole.size(), expected.size());
        float worst = 0;
        for (size_t i = 0; i < expected.size(); ++i)
            worst = std::max(worst, std::abs(ranked[r]->whole[i] - expected[i]));
        EXPECT_LE(worst, 1e-5f * (*high - *low)) << "rank " << r;
        EXPECT_EQ(ranked[r]->whole, ranked[0]->whole) << "rank " << r << " has other bits than rank 0";
        EXPECT_EQ(ranked[r]->in_two, ranked[r]->whole) << "a row depends on those beside it";
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Shards,
                         ::testing::Values(Case{"llama_mha", 2}, Case{"llama_mha", 4}, Case{"llama_gqa_tied", 2},
                                           Case{"llama_bias", 4}, Case{"mistral_window", 2}, Case{"qwen2", 2},
                                           Case{"qwen3", 2}, Case{"phi3", 2}, Case{"gemma", 2}, Case{"gemma2", 2},
                                           Case{"gemma3", 2}, Case{"gemma3_vision", 2}, Case{"gpt2", 2},
                                           Case{"gpt2_scaled", 4}, Case{"opt", 2}, Case{"opt_post_norm", 4},
                                           Case{"mixtral", 2}, Case{"qwen3_moe", 2}, Case{"qwen3_moe_mixed", 2}),
                         [](const auto& of) {
                             return std::string(of.param.model) + "_on_" + std::to_string(of.param.ranks);
                         });

TEST(Shard, TakesLessMemoryThanTheWhole) {
    Rank alone;
    ASSERT_TRUE(load(alone, "llama_mha", nullptr));
    const auto bytes = on_ranks(2, [&](uint32_t, pb_group group) {
        Rank rank;
        const auto done = load(rank, "llama_mha", &group);
        return done ? rank.runner->weights().bytes : 0;
    });
    for (const auto& of_rank : bytes) {
        EXPECT_LT(*of_rank, alone.runner->weights().bytes * 3 / 4); // the token table is whole on each
        EXPECT_GT(*of_rank, alone.runner->weights().bytes / 2);
    }
}

TEST(Shard, IsRefusedByAModelThatCannotBeDealt) {
    const auto ranked = on_ranks(4, [&](uint32_t, pb_group group) {
        Rank rank;
        const auto done = load(rank, "llama_gqa_tied", &group);
        return done ? "" : done.error();
    });
    for (const auto& reason : ranked)
        EXPECT_EQ(*reason, "model 'llama': load_config: num_key_value_heads 2 does not divide among 4 ranks "
                           "(tensor_parallel_size may be 1, 2)");
}

}  // namespace
}  // namespace patchbay::shards_test
