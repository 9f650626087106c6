// The sampler standard_cuda as built, with its kernel on the host, against the sampler standard.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "kernels/cuda_sampling.hpp"
#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "unit/devices/loaded_plugin.hpp"

namespace patchbay::kernels::cuda::standard_cuda_test {
namespace {

bool has_cuda_sampler() { return std::filesystem::exists(built_plugin("sampler-standard_cuda")); }
constexpr uint32_t kRows = 80, kTop = 4;
constexpr int64_t kVocab = 1013;

struct Batch { // every kind of request
    std::vector<pb_sampling_params> params;
    std::vector<std::vector<pb_logit_bias>> bias;
    std::vector<std::vector<int32_t>> histories;
    std::vector<std::vector<uint32_t>> masks;
    std::vector<pb_sample_row> rows;
    std::vector<float> logits;
    std::vector<int32_t> tokens = std::vector<int32_t>(kRows), top = std::vector<int32_t>(kRows * kTop, -1);
    std::vector<float> logprobs = std::vector<float>(kRows), top_logprobs = std::vector<float>(kRows * kTop);
    pb_sample_batch wire{};

    Batch() : params(kRows), bias(kRows), histories(kRows), masks(kRows), rows(kRows) {
        std::mt19937_64 draw(11);
        const auto real = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(draw); };
        for (int64_t i = 0; i < kRows * kVocab; ++i) logits.push_back(real(-9, 9));
        for (uint32_t i = 0; i < kRows; ++i) {
            pb_sampling_params& p = params[i];
            p = plain_params();
            p.temperature = i % 5 ? real(0.3f, 1.6f) : 0;
            p.logprobs = static_cast<uint32_t>(i % 6);
            if (i % 3 == 0) p.top_k = static_cast<int32_t>(draw() % 50);
            if (i % 2 == 0) p.top_p = real(0.1f, 1);
            if (i % 4 == 0) p.min_p = real(0, 0.2f);
            if (i % 7 == 0) {
                p.repetition_penalty = real(0.9f, 1.4f);
                p.presence_penalty = real(-1, 1);
                p.frequency_penalty = real(-1, 1);
            }
            if (i % 6 == 0) bias[i] = {{3, real(-4, 4)}, {800, real(-4, 4)}};
            p.logit_bias = bias[i].data();
            p.logit_bias_count = static_cast<uint32_t>(bias[i].size());
            for (uint32_t k = 0; k < 30; ++k) histories[i].push_back(static_cast<int32_t>(draw() % kVocab));
            if (i % 8 == 0)
                for (int64_t k = 0; k < (kVocab + 31) / 32; ++k) masks[i].push_back(static_cast<uint32_t>(draw()));
            rows[i] = {i,  draw(), draw() % 9999, &p, histories[i].data(), histories[i].data() + 12,
                       12, 18,     masks[i].empty() ? nullptr : masks[i].data(), nullptr};
        }
        wire.struct_size = sizeof wire;
        wire.row_count = kRows;
        wire.row_stride = sizeof rows[0];
        wire.max_logprobs = kTop;
        wire.logits = tensor(logits.data(), PB_F32, {kRows, kVocab});
        wire.rows = rows.data();
        wire.tokens = tokens.data();
        wire.logprobs = logprobs.data();
        wire.top_tokens = top.data();
        wire.top_logprobs = top_logprobs.data();
    }
};

TEST(StandardCuda, DrawsWhatStandardDraws) {
    if (!has_cuda_sampler()) GTEST_SKIP() << "built without CUDA (docs/cuda.md)";
    Batch want, got;
    LoadedPlugin standard("sampler-standard", 1);
    ASSERT_EQ(standard.create(""), PB_OK) << standard.error();
    ASSERT_EQ(standard.table<pb_sampler>().sample(standard.self(), &want.wire), PB_OK);

    LoadedPlugin plugin("sampler-standard_cuda", 1);
    ASSERT_EQ(plugin.create(""), PB_OK) << plugin.error();
    ASSERT_EQ(plugin.table<pb_sampler>().device, std::string_view("cuda"));
    pb_sample_batch shown = got.wire;
    shown.logits.data = nullptr;
    shown.tokens = shown.top_tokens = nullptr;
    shown.logprobs = shown.top_logprobs = nullptr;
    pb_sample_plan plan = patchbay::sized<pb_sample_plan>();
    const auto& on_device = plugin.extension<pb_sampler_device>(PB_SAMPLER_DEVICE);
    ASSERT_EQ(on_device.plan(plugin.self(), &shown, &plan), PB_OK) << plugin.error();
    std::vector<float> scratch(plan.scratch_bytes / sizeof(float));
    std::vector<int32_t> faults(kRows, -1);
    sample_rows(nullptr, {got.logits.data(), kVocab, kRows, kTop, plan.inputs, scratch.data(), got.tokens.data(),
                          faults.data(), got.top.data(), got.logprobs.data(), got.top_logprobs.data()});

    EXPECT_EQ(got.tokens, want.tokens);
    EXPECT_EQ(got.top, want.top);
    EXPECT_EQ(faults, std::vector<int32_t>(kRows, 0));
    for (uint32_t i = 0; i < kRows; ++i) {
        if (want.params[i].logprobs > 0) {
            EXPECT_FLOAT_EQ(got.logprobs[i], want.logprobs[i]) << "row " << i;
        }
        for (uint32_t k = 0; k < kTop; ++k)
            if (want.top[i * kTop + k] >= 0) {
                EXPECT_FLOAT_EQ(got.top_logprobs[i * kTop + k], want.top_logprobs[i * kTop + k]) << "row " << i;
            }
    }
}

TEST(StandardCuda, WorksInNoOrderButTheQueues) {
    if (!has_cuda_sampler()) GTEST_SKIP() << "built without CUDA (docs/cuda.md)";
    LoadedPlugin plugin("sampler-standard_cuda", 1);
    ASSERT_EQ(plugin.create(""), PB_OK) << plugin.error();
    pb_sample_work work{};
    work.struct_size = sizeof work;
    EXPECT_EQ(plugin.extension<pb_sampler_device>(PB_SAMPLER_DEVICE).enqueue(plugin.self(), &work), PB_UNSUPPORTED);
    EXPECT_NE(plugin.error().find("no queue to work in"), std::string::npos) << plugin.error();
}

}  // namespace
}  // namespace patchbay::kernels::cuda::standard_cuda_test
