// A test over a GPU that is none: new at its beginning, and at its end nothing of it may be left.
#pragma once
#include <gtest/gtest.h>

#include <string>

#include "fake_gpu.hpp"
#include "gpu.hpp"
#include "patchbay/plugin.hpp"

namespace patchbay {

class DeviceCase : public testing::Test {
  protected:
    DeviceCase() { fake::gpu() = {}; }
    ~DeviceCase() override {
        EXPECT_TRUE(fake::gpu().memory.empty()) << "memory is not given back";
        EXPECT_TRUE(fake::gpu().pinned.empty()) << "pinned memory is not given back";
        EXPECT_EQ(fake::gpu().streams, 0);
        EXPECT_EQ(fake::gpu().live_events, 0);
        EXPECT_EQ(fake::gpu().graphs + fake::gpu().launchable, 0);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "the next check would meet it";
    }

    fake::FakeGpu& fake_ = fake::gpu();
};

struct Refusal {
    pb_status status = PB_OK;
    std::string text;
};

template <class F>
Refusal refusal(F&& f) {
    try {
        f();
    } catch (const Error& e) {
        return {e.code, e.what()};
    }
    return {};
}

}  // namespace patchbay
