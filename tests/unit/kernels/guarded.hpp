// Arrays for kernel tests: random inputs, and outputs that are NaN before the kernel runs and must stay NaN outside of
// their range. Also a workers that runs tasks in another order.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/thread_pool.hpp"
#include "kernels/cpu.hpp"
#include "patchbay/sdk/tensor.hpp"

namespace patchbay::kernels {

class Random {
  public:
    explicit Random(uint64_t seed) : engine_(seed) {}
    int64_t between(int64_t low, int64_t high) {
        return std::uniform_int_distribution<int64_t>(low, high)(engine_);
    }
    std::vector<float> values(int64_t n, float spread = 1.0f) {
        std::normal_distribution<float> normal(0.0f, spread);
        std::vector<float> out(static_cast<size_t>(n));
        for (float& v : out) v = normal(engine_);
        return out;
    }

  private:
    std::mt19937_64 engine_;
};

// (rows, n) f32, rows `stride` apart; all NaN, with guard values around.
class Poisoned {
  public:
    Poisoned(int64_t rows, int64_t n, int64_t gap = 3)
        : rows_(rows), n_(n), stride_(n + gap), memory_(static_cast<size_t>(rows * stride_ + 2 * kGuard), kNaN) {}

    float* data() { return memory_.data() + kGuard; }
    float* row(int64_t r) { return data() + r * stride_; }
    pb_tensor view() {
        pb_tensor t = tensor(data(), PB_F32, {rows_, n_});
        t.strides[0] = stride_;
        return t;
    }
    pb_tensor heads_view(int64_t heads) { // (rows, heads, n / heads)
        pb_tensor t = tensor(data(), PB_F32, {rows_, heads, n_ / heads});
        t.strides[0] = stride_;
        return t;
    }
    void fill(const std::vector<float>& values) {
        for (int64_t r = 0; r < rows_; ++r) std::memcpy(row(r), values.data() + r * n_, static_cast<size_t>(n_) * 4);
    }
    std::vector<float> values() {
        std::vector<float> out;
        for (int64_t r = 0; r < rows_; ++r) out.insert(out.end(), row(r), row(r) + n_);
        return out;
    }
    // True if nothing outside the rows was written.
    bool intact() {
        for (size_t i = 0; i < memory_.size(); ++i) {
            const auto at = static_cast<int64_t>(i) - kGuard;
            const bool inside = at >= 0 && at < rows_ * stride_ && at % stride_ < n_;
            if (!inside && std::bit_cast<uint32_t>(memory_[i]) != std::bit_cast<uint32_t>(kNaN)) return false;
        }
        return true;
    }

  private:
    static constexpr int64_t kGuard = 64;
    static constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    int64_t rows_, n_, stride_;
    std::vector<float> memory_;
};

// |got − want| ≤ absolute + relative · |want|, everywhere; NaN fails.
inline void expect_near(const std::vector<float>& got, const std::vector<float>& want, double absolute,
                        double relative) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
        ASSERT_TRUE(std::abs(double(got[i]) - want[i]) <= absolute + relative * std::abs(double(want[i])))
            << "element " << i << " is " << got[i] << ", expected " << want[i];
}

inline bool same_bits(const float* a, const float* b, int64_t n) {
    return std::memcmp(a, b, static_cast<size_t>(n) * sizeof(float)) == 0;
}

inline Workers crew_of(const pb_pool& pool) { return {pool.threads, pool.ctx, pool.run}; }

// Claims many threads but runs tasks on this one, last first: work is split as on a large machine, in another order.
inline Workers backwards_crew(uint32_t threads) {
    return {threads, nullptr, [](void*, uint32_t count, void (*task)(void* arg, uint32_t index), void* arg) {
                while (count > 0) task(arg, --count);
            }};
}

inline std::vector<uint16_t> to_bf16(const std::vector<float>& values) {
    std::vector<uint16_t> out;
    for (const float v : values) out.push_back(f32_to_bf16(v));
    return out;
}

inline std::vector<float> rounded_to_bf16(const std::vector<float>& values) {
    std::vector<float> out;
    for (const float v : values) out.push_back(bf16_to_f32(f32_to_bf16(v)));
    return out;
}

// Every test of this kind runs on each ISA level that the machine has.
class EachIsa : public testing::TestWithParam<Isa> {};

inline auto each_isa() { return testing::ValuesIn(available_isas()); }
inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) { return isa_name(info.param); }

}  // namespace patchbay::kernels
