// Memory of a device's own: how much of it keys and values get, and that the host leaves it alone.
#include <gtest/gtest.h>

#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine {
namespace {

using namespace testing;

std::string why_not(const config::EngineConfig& c) { // it cannot be had
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    return made ? "it can" : made.error();
}

config::EngineConfig on(const char* device, const char* attention) {
    config::EngineConfig c = tiny_model();
    c.device = {device, {}};
    c.attention = {attention, {}};
    c.engine.max_num_batched_tokens = 40;
    c.engine.max_num_seqs = 6;
    c.engine.num_blocks = 0;
    return c;
}

TEST(DeviceMemory, KeysAndValuesGetTheShareThatWeightsLeave) {
    config::EngineConfig c = on("sim", "paged");
    c.model.dtype = config::DType::kBf16;
    c.device.settings = {{"matmul_bf16", "1e12"}, {"matmul_f32", "1e12"}, {"memory_read", "1e12"},
                         {"memory_bytes", "50000000"}};
    c.engine.gpu_memory_utilization = 0.5;
    const Harness h(c);
    const EngineFacts& facts = h.engine->facts();
    ASSERT_GT(facts.model.weight_bytes, 0u);
    EXPECT_EQ(facts.kv.num_blocks, (25'000'000 - facts.model.weight_bytes) / facts.kv.page_bytes);
}

TEST(DeviceMemory, ItIsSharedOutAfterAPassOverTheLargestBatch) {
    config::EngineConfig c = on("replays", "replays");
    c.engine.gpu_memory_utilization = 0.25; // of 1 GiB, all of it free by what the device says
    Harness h(c);
    EXPECT_EQ(h.engine->facts().kv.num_blocks, (1u << 28) / h.engine->facts().kv.page_bytes);
    config::EngineConfig told = on("replays", "replays");
    told.engine.num_blocks = 64;
    Harness other(told);
    const RequestId id = h.add(random_prompt(3, 70), greedy(8)), same = other.add(random_prompt(3, 70), greedy(8));
    h.run_all();
    other.run_all();
    ASSERT_EQ(h.outputs.at(id).tokens.size(), 8u);
    EXPECT_EQ(h.outputs.at(id).tokens, other.outputs.at(same).tokens) << "the pass leaves no trace";
}

TEST(DeviceMemory, AShareOfTheHostsMemoryIsRefused) {
    config::EngineConfig c = on("cpu", "paged");
    c.engine.gpu_memory_utilization = 0.5;
    EXPECT_NE(why_not(c).find("the memory of device 'cpu' is the host's"), std::string::npos) << why_not(c);
}

TEST(DeviceMemory, AShareThatWeightsTakeWholeLeavesNoBlock) {
    config::EngineConfig c = on("sim", "paged");
    c.device.settings = {{"matmul_bf16", "1e12"}, {"matmul_f32", "1e12"}, {"memory_read", "1e12"},
                         {"memory_bytes", "50000000"}};
    c.engine.gpu_memory_utilization = 0.000001;
    EXPECT_NE(why_not(c).find("gpu_memory_utilization leaves 0 bytes, which hold no block"), std::string::npos)
        << why_not(c);
}

}  // namespace
}  // namespace patchbay::engine
