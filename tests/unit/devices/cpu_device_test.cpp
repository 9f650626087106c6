#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "kernels/cpu_isa.hpp"
#include "kernels/reference.hpp"
#include "loaded_plugin.hpp"
#include "patchbay/abi/device.h"
#include "patchbay/sdk/tensor.hpp"
#include "patchbay/sizes.hpp"

namespace patchbay::cpu_device_test {
namespace {

class CpuDevice : public testing::TestWithParam<kernels::Isa> {
  protected:
    void SetUp() override {
        ASSERT_EQ(plugin.create(kernels::isa_name(GetParam())), PB_OK) << plugin.error();
        device = &plugin.table<pb_device>();
        ops = device->ops(plugin.self());
    }

    pb_weight* prepare(pb_weight_role role, int64_t rows, int64_t cols, const std::vector<float>& data,
                       uint64_t uses = 0, const float* bias = nullptr) {
        const pb_weight_source source{sizeof source, role, PB_F32, 0, rows, cols, data.data(), bias, uses, nullptr};
        pb_weight* out = nullptr;
        EXPECT_EQ(device->prepare(plugin.self(), &source, &out), PB_OK) << plugin.error();
        return out;
    }

    pb_status end_step() { return device->end_step(plugin.self()); }

    static std::vector<float> ramp(int64_t n) {
        std::vector<float> out(static_cast<size_t>(n));
        for (int64_t i = 0; i < n; ++i) out[size_t(i)] = float((i * 7919) % 23 - 11) / 8.0f;
        return out;
    }

    LoadedPlugin plugin{"device-cpu", 2};
    const pb_device* device = nullptr;
    const pb_ops* ops = nullptr;
};
INSTANTIATE_TEST_SUITE_P(Isa, CpuDevice, testing::ValuesIn(kernels::available_isas()),
                         [](const auto& test) { return std::string(kernels::isa_name(test.param)); });

TEST_P(CpuDevice, SaysWhatItIs) {
    pb_device_info info = patchbay::sized<pb_device_info>();
    ASSERT_EQ(device->info(plugin.self(), &info), PB_OK);
    EXPECT_EQ(info.computes, 1u);
    EXPECT_EQ(info.activation_dtype, PB_F32);
    EXPECT_STREQ(info.isa, kernels::isa_name(GetParam()));
    EXPECT_EQ(std::string(info.name), kernels::cpu_brand() + " (" + info.isa + ")");
    EXPECT_GT(info.memory_total, 0u);
    EXPECT_GE(info.memory_total, info.memory_free);
}

TEST_P(CpuDevice, AllocatesAlignedZeros) {
    for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{3} << 20}) {
        void* memory = nullptr;
        ASSERT_EQ(device->alloc(plugin.self(), bytes, &memory), PB_OK);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
        const auto* begin = static_cast<const unsigned char*>(memory);
        EXPECT_TRUE(std::all_of(begin, begin + bytes, [](unsigned char b) { return b == 0; }));
        device->free(plugin.self(), memory);
    }
}

TEST_P(CpuDevice, RefusesMemoryThatTheMachineDoesNotHave) {
    void* memory = nullptr;
    EXPECT_EQ(device->alloc(plugin.self(), UINT64_MAX - 10, &memory), PB_FAILED);
    EXPECT_EQ(plugin.error(), "cannot allocate 18446744073709551605 bytes of host memory");
}

TEST_P(CpuDevice, UsesATiedWeightAsEmbeddingAndAsLinear) {
    const std::vector<float> data = ramp(50 * 12);
    pb_weight* weight = prepare(PB_WEIGHT_EMBEDDING, 50, 12, data, 1u << PB_WEIGHT_LINEAR | 1u << PB_WEIGHT_EMBEDDING);
    EXPECT_GE(device->weight_bytes(plugin.self(), weight), 50u * 12 * 4);
    EXPECT_LT(device->weight_bytes(plugin.self(), weight), 2u * 50 * 12 * 4) << "two copies of one weight";
    std::vector<int32_t> ids = {49, 0, 7};
    std::vector<float> hidden(3 * 12), logits(3 * 50), want(3 * 50);
    const pb_tensor id_view = tensor(ids.data(), PB_I32, {3}), hidden_view = tensor(hidden.data(), PB_F32, {3, 12}),
                    logit_view = tensor(logits.data(), PB_F32, {3, 50});
    ASSERT_EQ(device->begin_step(plugin.self()), PB_OK);
    ops->embedding(ops->ctx, &hidden_view, weight, &id_view);
    ops->linear(ops->ctx, &logit_view, &hidden_view, weight);
    ASSERT_EQ(end_step(), PB_OK) << plugin.error();
    for (size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(std::equal(hidden.begin() + i * 12, hidden.begin() + (i + 1) * 12, data.begin() + ids[i] * 12));
    kernels::reference::linear(want.data(), hidden.data(), data.data(), nullptr, 3, 50, 12);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(logits[i], want[i], 1e-4);
    device->release(plugin.self(), weight);
}

TEST_P(CpuDevice, AddsABias) {
    const std::vector<float> data = ramp(3 * 4), bias = {1, -2, 3};
    pb_weight* weight = prepare(PB_WEIGHT_LINEAR, 3, 4, data, 0, bias.data());
    std::vector<float> x(4, 0.0f), out(3);
    const pb_tensor x_view = tensor(x.data(), PB_F32, {1, 4}), out_view = tensor(out.data(), PB_F32, {1, 3});
    ops->linear(ops->ctx, &out_view, &x_view, weight);
    ASSERT_EQ(end_step(), PB_OK);
    EXPECT_EQ(out, bias);
    device->release(plugin.self(), weight);
}

TEST_P(CpuDevice, ReportsTheFirstMisfitAtTheEndOfTheStepAndThenForgetsIt) {
    pb_weight* weight = prepare(PB_WEIGHT_LINEAR, 4, 8, ramp(32));
    pb_weight* norm = prepare(PB_WEIGHT_VECTOR, 1, 8, ramp(8));
    std::vector<float> x(2 * 8, 1.0f), out(2 * 4, 5.0f);
    pb_tensor x_view = tensor(x.data(), PB_F32, {2, 8}), out_view = tensor(out.data(), PB_F32, {2, 4});
    const pb_tensor narrow = tensor(x.data(), PB_F32, {2, 7});
    ASSERT_EQ(device->begin_step(plugin.self()), PB_OK);
    ops->linear(ops->ctx, &out_view, &narrow, weight);
    ops->rms_norm(ops->ctx, &x_view, &x_view, weight, 1e-5f); // a second fault, which is not the cause
    ops->linear(ops->ctx, &out_view, &x_view, weight);        // fits, but comes after the fault
    EXPECT_EQ(end_step(), PB_INVALID);
    EXPECT_EQ(plugin.error(), "linear: x is f32 (2, 7), expected f32 (2, 8)");
    EXPECT_EQ(out, std::vector<float>(8, 5.0f));
    ASSERT_EQ(device->begin_step(plugin.self()), PB_OK);
    ops->linear(ops->ctx, &out_view, &x_view, weight);
    EXPECT_EQ(end_step(), PB_OK);
    EXPECT_NE(out[0], 5.0f);
    device->release(plugin.self(), weight);
    device->release(plugin.self(), norm);
}

TEST_P(CpuDevice, NeverReadsPastATable) {
    pb_weight* table = prepare(PB_WEIGHT_EMBEDDING, 5, 4, ramp(20));
    std::vector<float> x(8), out(8);
    const pb_tensor out_view = tensor(out.data(), PB_F32, {2, 4}), x_view = tensor(x.data(), PB_F32, {2, 4});
    for (const int32_t bad : {-1, 5}) {
        std::vector<int32_t> ids = {0, bad};
        const pb_tensor id_view = tensor(ids.data(), PB_I32, {2});
        ops->embedding(ops->ctx, &out_view, table, &id_view);
        EXPECT_EQ(end_step(), PB_INVALID);
        EXPECT_EQ(plugin.error(), "embedding: ids[1] is " + std::to_string(bad) + ", expected 0 to 4");
        ops->gather_rows(ops->ctx, &out_view, &x_view, &id_view);
        EXPECT_EQ(end_step(), PB_INVALID);
    }
    ops->linear(ops->ctx, &out_view, &x_view, table);
    EXPECT_EQ(end_step(), PB_INVALID);
    EXPECT_EQ(plugin.error(), "linear: the weight was not prepared for linear");
    device->release(plugin.self(), table);
}

TEST_P(CpuDevice, RefusesMisfitsOfEveryOp) {
    pb_weight* norm = prepare(PB_WEIGHT_VECTOR, 1, 8, ramp(8));
    std::vector<float> memory(64);
    std::vector<int32_t> ids(4);
    const pb_tensor wide = tensor(memory.data(), PB_F32, {2, 9}), x = tensor(memory.data(), PB_F32, {2, 8}),
                    heads = tensor(memory.data(), PB_F32, {2, 1, 8}), half = tensor(memory.data(), PB_BF16, {2, 8}),
                    two = tensor(ids.data(), PB_I32, {2}), three = tensor(ids.data(), PB_I32, {3}),
                    none = tensor(nullptr, PB_F32, {2, 8});
    const auto refused = [&](auto&& op) {
        op();
        EXPECT_EQ(end_step(), PB_INVALID) << plugin.error();
    };
    refused([&] { ops->rms_norm(ops->ctx, &wide, &wide, norm, 0); });
    refused([&] { ops->rms_norm(ops->ctx, &x, &wide, norm, 0); });
    refused([&] { ops->rms_norm(ops->ctx, &half, &half, norm, 0); });
    refused([&] { ops->rms_norm(ops->ctx, &none, &none, norm, 0); });
    refused([&] { ops->rms_norm(ops->ctx, &x, &x, nullptr, 0); });
    refused([&] { ops->add_rms_norm(ops->ctx, &x, &wide, &x, norm, 0); });
    refused([&] { ops->rope(ops->ctx, &x, &two, norm, 1); });
    refused([&] { ops->rope(ops->ctx, &heads, &three, norm, 1); });
    refused([&] { ops->rope(ops->ctx, &heads, &two, norm, 1); }); // 8 pairs do not fit 8 elements
    refused([&] { ops->silu_mul(ops->ctx, &x, &x); });
    refused([&] { ops->add(ops->ctx, &x, &wide); });
    refused([&] { ops->gather_rows(ops->ctx, &x, &x, &three); });
    refused([&] { ops->layer_norm(ops->ctx, &x, &wide, norm, norm, 0); });
    refused([&] { ops->layer_norm(ops->ctx, &x, &x, norm, nullptr, 0); });
    refused([&] { ops->relu(ops->ctx, &half); });
    refused([&] { ops->gelu_tanh(ops->ctx, &heads); });
    refused([&] { ops->gelu_tanh_mul(ops->ctx, &x, &x); });
    refused([&] { ops->scale(ops->ctx, &none, 2); });
    refused([&] { ops->soft_cap(ops->ctx, &x, 0); });
    device->release(plugin.self(), norm);
}

TEST_P(CpuDevice, RefusesMisfitsOfMixturesOfExperts) {
    pb_weight *expert = prepare(PB_WEIGHT_LINEAR, 4, 8, ramp(32)), *other = prepare(PB_WEIGHT_LINEAR, 4, 6, ramp(24)),
              *norm = prepare(PB_WEIGHT_VECTOR, 1, 8, ramp(8));
    std::vector<float> memory(64), small(64);
    std::vector<int32_t> ids(8);
    const pb_tensor logits = tensor(memory.data(), PB_F32, {2, 3}), x = tensor(memory.data(), PB_F32, {2, 1, 8}),
                    out = tensor(small.data(), PB_F32, {2, 2, 4}), k2 = tensor(ids.data(), PB_I32, {2, 2}),
                    k4 = tensor(ids.data(), PB_I32, {2, 4}), w2 = tensor(small.data(), PB_F32, {2, 2}),
                    w4 = tensor(small.data(), PB_F32, {2, 4}), three_of_x = tensor(memory.data(), PB_F32, {2, 3, 8}),
                    y = tensor(small.data(), PB_F32, {2, 8});
    const auto refused = [&](auto&& op, const std::string& why) {
        op();
        EXPECT_EQ(end_step(), PB_INVALID);
        EXPECT_EQ(plugin.error(), why);
    };
    refused([&] { ops->top_k(ops->ctx, &k4, &w4, &logits, 0); }, "top_k: k is 4, expected 1 to 3");
    refused([&] { ops->top_k(ops->ctx, &k4, &w2, &logits, 0); }, "top_k: ids is i32 (2, 4), expected i32 (2, 2)");
    const auto experts = [&](pb_weight* a, pb_weight* b, const pb_tensor& in, const pb_tensor& which) {
        const pb_weight* const both[] = {a, b};
        ops->expert_linear(ops->ctx, &out, &in, both, 2, &which);
    };
    refused([&] { experts(expert, other, x, k2); }, "expert_linear: expert 1 has another shape than expert 0");
    refused([&] { experts(expert, norm, x, k2); }, "expert_linear: the weight was not prepared for linear");
    refused([&] { experts(expert, expert, three_of_x, k2); },
            "expert_linear: x is f32 (2, 3, 8), expected f32 (2, 2, 8)");
    refused([&] { experts(expert, expert, x, k4); }, "expert_linear: ids is i32 (2, 4), expected i32 (2, 2)");
    ids[3] = 2;
    refused([&] { experts(expert, expert, x, k2); }, "expert_linear: ids[3] is 2, expected 0 to 1");
    refused([&] { ops->weighted_sum(ops->ctx, &y, &three_of_x, &w2); },
            "weighted_sum: weights is f32 (2, 2), expected f32 (2, 3)");
    for (pb_weight* w : {expert, other, norm}) device->release(plugin.self(), w);
}

TEST_P(CpuDevice, TakesAStepOfNoTokens) {
    pb_weight* weight = prepare(PB_WEIGHT_LINEAR, 4, 8, ramp(32));
    const pb_tensor x = tensor(nullptr, PB_F32, {0, 8}), out = tensor(nullptr, PB_F32, {0, 4});
    ops->linear(ops->ctx, &out, &x, weight);
    EXPECT_EQ(end_step(), PB_OK) << plugin.error();
    device->release(plugin.self(), weight);
}

TEST_P(CpuDevice, RefusesWeightsThatItCannotHold) {
    const std::vector<float> data = ramp(4);
    pb_weight* out = nullptr;
    const auto refused = [&](pb_weight_source source, pb_status status) {
        source.struct_size = sizeof source;
        EXPECT_EQ(device->prepare(plugin.self(), &source, &out), status) << plugin.error();
    };
    refused({0, PB_WEIGHT_LINEAR, PB_F16, 0, 2, 2, data.data(), nullptr, 0, nullptr}, PB_UNSUPPORTED);
    EXPECT_EQ(plugin.error(), "weight: dtype f16, this device takes f32 and bf16, and quantised i8, i4 and fp8");
    refused({0, PB_WEIGHT_LINEAR, PB_I8, 0, 2, 2, data.data(), nullptr, 0, nullptr}, PB_INVALID);
    EXPECT_EQ(plugin.error(), "weight: codes of i8 without scales");
    refused({0, PB_WEIGHT_LINEAR, PB_F32, 0, 0, 2, data.data(), nullptr, 0, nullptr}, PB_INVALID);
    refused({0, PB_WEIGHT_LINEAR, PB_F32, 0, int64_t{1} << 30, int64_t{1} << 30, data.data(), nullptr, 0, nullptr},
            PB_INVALID);
    refused({0, PB_WEIGHT_LINEAR, PB_F32, 0, 2, 2, nullptr, nullptr, 0, nullptr}, PB_INVALID);
    refused({0, 9, PB_F32, 0, 2, 2, data.data(), nullptr, 0, nullptr}, PB_INVALID);
}

TEST_P(CpuDevice, MultipliesByQuantisedWeights) {
    constexpr int64_t kRows = 40, kCols = 64;
    std::vector<int8_t> codes(kRows * kCols);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>(int(i * 7919 % 255) - 127);
    std::vector<float> scales(kRows * 2), bias = ramp(kRows), x(kCols), out(kRows);
    for (size_t i = 0; i < scales.size(); ++i) scales[i] = 0.25f * float(1 + i % 3);
    const pb_quant quant{sizeof quant, 32, scales.data(), nullptr, nullptr};
    const pb_weight_source source{sizeof source, PB_WEIGHT_LINEAR, PB_I8, 0, kRows, kCols, codes.data(), bias.data(), 0,
                                  &quant};
    pb_weight* weight = nullptr;
    ASSERT_EQ(device->prepare(plugin.self(), &source, &weight), PB_OK) << plugin.error();
    EXPECT_GE(device->weight_bytes(plugin.self(), weight), uint64_t{kRows} * kCols);
    EXPECT_LT(device->weight_bytes(plugin.self(), weight), uint64_t{kRows} * kCols * 2);
    for (size_t i = 0; i < x.size(); ++i) x[i] = float(int(i % 32 * 37 % 255) - 127); // codes of itself
    x[5] = x[40] = 127;
    const pb_tensor x_view = tensor(x.data(), PB_F32, {1, kCols}), out_view = tensor(out.data(), PB_F32, {1, kRows});
    ops->linear(ops->ctx, &out_view, &x_view, weight);
    ASSERT_EQ(end_step(), PB_OK) << plugin.error();
    for (int64_t r = 0; r < kRows; ++r) {
        float want = bias[size_t(r)];
        for (int64_t c = 0; c < kCols; ++c)
            want += x[size_t(c)] * float(codes[size_t(r * kCols + c)]) * scales[size_t(r * 2 + c / 32)];
        EXPECT_EQ(out[size_t(r)], want) << r; // all whole multiples of an eighth
    }
    device->release(plugin.self(), weight);
}

TEST_P(CpuDevice, RefusesQuantisedWeightsThatMakeNoSense) {
    const std::vector<int8_t> codes(64);
    std::vector<float> scales(4, 1.0f), offsets(4, 0.0f);
    std::vector<int32_t> order(32);
    std::iota(order.begin(), order.end(), 0);
    pb_quant quant{sizeof quant, 16, scales.data(), offsets.data(), order.data()};
    pb_weight_source source{sizeof source, PB_WEIGHT_LINEAR, PB_I8, 0, 2, 32, codes.data(), nullptr, 0, &quant};
    const auto refused = [&](pb_status status, const char* why) {
        pb_weight* out = nullptr;
        EXPECT_EQ(device->prepare(plugin.self(), &source, &out), status);
        EXPECT_EQ(plugin.error(), why);
    };
    order[3] = 4;
    refused(PB_INVALID, "weight: order[4] is 4, expected a permutation of 0 to 31");
    order[3] = 32;
    refused(PB_INVALID, "weight: order[3] is 32, expected a permutation of 0 to 31");
    order[3] = 3;
    offsets[2] = std::numeric_limits<float>::infinity();
    refused(PB_INVALID, "weight: offset 0 of row 1 is not finite");
    scales[3] = std::numeric_limits<float>::quiet_NaN();
    refused(PB_INVALID, "weight: scale 1 of row 1 is not finite");
    quant.group = 24;
    refused(PB_INVALID, "weight: groups of 24, expected 16, 32, 64 or 128");
    quant.group = 16;
    quant.scales = nullptr;
    refused(PB_INVALID, "weight: no scales");
    source.dtype = PB_U8;
    refused(PB_UNSUPPORTED, "weight: quantised, of dtype u8, this device takes codes of i8, i4 and fp8");
    source.role = PB_WEIGHT_VECTOR;
    refused(PB_UNSUPPORTED, "weight: a quantised vector, this device takes quantised matrices");
}

TEST(CpuDeviceIsa, IsLoweredByTheEnvironmentAndRefusedWhenUnknown) {
    LoadedPlugin lowered("device-cpu", 1), refused("device-cpu", 1);
    setenv(kernels::kIsaVariable, "plain", 1);
    ASSERT_EQ(lowered.create("auto"), PB_OK);
    setenv(kernels::kIsaVariable, "altivec", 1);
    EXPECT_EQ(refused.create("auto"), PB_INVALID);
    unsetenv(kernels::kIsaVariable);
    EXPECT_EQ(refused.error(), "PATCHBAY_CPU_ISA: unknown level 'altivec', expected plain, avx2, avx512 or amx");
    pb_device_info info = patchbay::sized<pb_device_info>();
    ASSERT_EQ(lowered.table<pb_device>().info(lowered.self(), &info), PB_OK);
    EXPECT_STREQ(info.isa, "plain");
}

}  // namespace
}  // namespace patchbay::cpu_device_test
