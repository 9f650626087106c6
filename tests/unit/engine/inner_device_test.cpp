// Devices that stand before another: the example byte_count, and what the host refuses.
#include <gmock/gmock.h>

#include "patchbay/sdk/tensor.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::inner_device_test {
namespace {

using namespace testing;
using ::testing::HasSubstr;

struct Sums : host::MetricSink {
    void add(const std::string&, const std::string& component, const std::string& name, double amount) override {
        values[component + " " + name] += amount;
    }
    void set(const std::string&, const std::string&, const std::string&, double) override {}
    std::map<std::string, double> values;
};

TEST(InnerDevice, ComputesAndItsOpsAreCounted) {
    Sums sums;
    auto made = registry().device("byte_count", {}, {nullptr, nullptr, &sums});
    ASSERT_TRUE(made) << made.error();
    const pb_device& device = *made->table;
    void* const self = made->self();
    const std::vector<float> w = {1, 2, 3, 4, 5, 6};
    const pb_weight_source source{sizeof source, PB_WEIGHT_LINEAR, PB_F32, 0, 3, 2, w.data(), nullptr, 0, nullptr};
    pb_weight* weight = nullptr;
    ASSERT_EQ(device.prepare(self, &source, &weight), PB_OK);
    std::vector<float> x = {1, 10, 2, 20}, y(6, 0);
    const pb_tensor in = tensor(x.data(), PB_F32, {2, 2}), out = tensor(y.data(), PB_F32, {2, 3});
    const pb_ops& ops = *device.ops(self);
    ASSERT_EQ(device.begin_step(self), PB_OK);
    ops.linear(ops.ctx, &out, &in, weight);
    ASSERT_EQ(device.end_step(self), PB_OK);
    EXPECT_EQ(y, (std::vector<float>{21, 43, 65, 42, 86, 130}));
    EXPECT_EQ(sums.values["byte_count tensor_bytes"], (4 + 6) * 4);
    EXPECT_EQ(sums.values["byte_count weight_bytes"], static_cast<double>(device.weight_bytes(self, weight)));
    device.release(self, weight);
}

TEST(InnerDevice, PassesOnWhyItFailed) {
    auto made = registry().device("byte_count", {}, {});
    ASSERT_TRUE(made) << made.error();
    const pb_device& device = *made->table;
    std::vector<float> x(6, 1), y(6, 0);
    const pb_tensor in = tensor(x.data(), PB_F32, {2, 3}), out = tensor(y.data(), PB_F32, {3, 2});
    const pb_ops& ops = *device.ops(made->self());
    ASSERT_EQ(device.begin_step(made->self()), PB_OK);
    ops.add(ops.ctx, &out, &in);
    const Result<> ended = made->component->check(device.end_step(made->self()), "end_step");
    ASSERT_FALSE(ended);
    EXPECT_THAT(ended.error(), HasSubstr("device 'byte_count': end_step: add: "));
}

TEST(InnerDevice, GivesTheTextsOfTheDeviceThatItWraps) {
    config::EngineConfig c = tiny_model();
    const auto text_of = [&] {
        Harness h(c);
        return h.run(h.add(random_prompt(7, 40), greedy(24))).tokens;
    };
    const std::vector<TokenId> want = text_of();
    c.device.plugin = "byte_count";
    EXPECT_EQ(text_of(), want);
}

TEST(InnerDevice, IsRefusedWhereThereIsNone) {
    const auto unknown = registry().device("byte_count", {{"inner", "cpo"}}, {});
    ASSERT_FALSE(unknown);
    EXPECT_THAT(unknown.error(), HasSubstr("device 'cpo': no device 'cpo' (did you mean 'cpu'?)"));
    const auto itself = registry().device("byte_count", {{"inner", "byte_count"}}, {});
    ASSERT_FALSE(itself);
    EXPECT_THAT(itself.error(), HasSubstr("it is an inner device itself"));
}

}  // namespace
}  // namespace patchbay::engine::inner_device_test
