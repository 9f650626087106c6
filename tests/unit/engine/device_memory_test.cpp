// Memory of a device's own: how much of it keys and values get, and that the host leaves it alone.
#include <gtest/gtest.h>

#include <deque>

#include "runner/model_runner.hpp"
#include "unit/engine/engine_fixture.hpp"

namespace patchbay::engine::device_memory_test {
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
    config::EngineConfig config = on("replays", "replays");
    config.engine.num_blocks = 64;
    Harness other(config);
    const RequestId id = h.add(random_prompt(3, 70), greedy(8)), same = other.add(random_prompt(3, 70), greedy(8));
    h.run_all();
    other.run_all();
    ASSERT_EQ(h.outputs.at(id).tokens.size(), 8u);
    EXPECT_EQ(h.outputs.at(id).tokens, other.outputs.at(same).tokens) << "the pass leaves no trace";
}

// What a runner asks of a device and of a model, which are the device replays and a Llama but for that.
struct Asked {
    uint64_t bytes = 0;  // allocated since
    uint32_t tokens = 0, rows = 0, sequences = 0; // of the latest pass
};
Asked asked;

const pb_device* real_device;
const pb_model* real_model;

host::Device noting_device() {
    host::Device device = *registry().device("replays", {}, {});
    real_device = device.table;
    static pb_device noting;
    noting = *real_device;
    noting.alloc = [](void* self, uint64_t bytes, void** out) {
        asked.bytes += bytes;
        return real_device->alloc(self, bytes, out);
    };
    device.table = &noting;
    return device;
}

host::Model noting_model() {
    static const host::Model model = *registry().model("llama", {}, {}); // keeps the code loaded
    real_model = model.table;
    static pb_model noting;
    noting = *real_model;
    noting.forward = [](void* self, const pb_forward* f) {
        asked.tokens = f->token_count;
        asked.rows = static_cast<uint32_t>(f->logit_rows.shape[0]);
        return real_model->forward(self, f);
    };
    static std::deque<pb_component> types; // which outlive their components
    pb_component& type = types.emplace_back(model.component->type());
    type.vtable = &noting;
    return {*host::Component::create(nullptr, type, {}, {}), &noting};
}

runner::RunnerSettings measured(uint32_t tokens, uint32_t sequences, const host::Component* sampler) {
    runner::RunnerSettings s;
    s.model_config = {{"architectures.0", "LlamaForCausalLM"}, {"vocab_size", "300"},
                      {"hidden_size", "32"},                   {"intermediate_size", "48"},
                      {"num_hidden_layers", "2"},              {"num_attention_heads", "4"},
                      {"max_position_embeddings", "256"}};
    s.device = "replays";
    s.num_blocks = 0;
    s.block_size = 8;
    s.gpu_memory_utilization = 0.01;
    s.max_num_batched_tokens = tokens;
    s.max_num_seqs = sequences;
    s.cudagraph_mode = config::GraphMode::kNone;
    s.sampler = sampler;
    return s;
}

std::unique_ptr<runner::ModelRunner> made_with(const runner::RunnerSettings& s) {
    static VirtualClock clock;
    asked = {};
    auto made = runner::ModelRunner::create(noting_device(), noting_model(), *registry().attention("replays", {}, {}),
                                            weights::WeightSource::dummy(1), s, clock);
    if (!made) throw std::runtime_error(made.error());
    return *std::move(made);
}

TEST(DeviceMemory, ThePassIsOverAllTokensAndRowsThatAStepCanHave) {
    made_with(measured(40, 6, nullptr));
    EXPECT_EQ(asked.tokens, 40u) << "also those left over when 6 sequences have 6 each";
    EXPECT_EQ(asked.rows, 40u) << "6 sampled ones, and of prompts at most 64";
    made_with(measured(203, 6, nullptr));
    EXPECT_EQ(asked.tokens, 203u);
    EXPECT_EQ(asked.rows, 6u + 64u);
    auto s = measured(700, 70, nullptr);
    s.num_speculative_tokens = 2;
    made_with(s);
    EXPECT_EQ(asked.tokens, 700u);
    EXPECT_EQ(asked.rows, 2 * 70u * 3u);
    made_with(measured(1000, 3, nullptr));
    EXPECT_EQ(asked.tokens, 3 * 256u) << "as long as sequences can be";
}

// A step of all tokens, all rows, masks, penalties and the most log-probabilities, with another one in flight.
TEST(DeviceMemory, NoLaterStepTakesMoreThanThePass) {
    constexpr uint32_t kTokens = 203, kSequences = 6, kRows = 70, kVocab = 300, kPrompt = 64;
    const host::Sampler sampler = *registry().sampler("replays", {}, {});
    auto s = measured(kTokens, kSequences, sampler.component.get());
    s.max_logprobs = -1;
    const auto runner = made_with(s);
    const std::vector<int32_t> ids(kTokens, 5);
    kv::BlockTable table;
    table.pages.assign(1, std::vector<kv::BlockId>(256 / 8, 0));
    runner::Batch batch;
    batch.clear(runner->kv().batch_form());
    const auto add = [&](uint32_t tokens, uint32_t rows) {
        batch.add({std::span(ids).first(tokens), 256 - tokens, rows, table});
    };
    add(kTokens - kSequences + 1, kRows - kSequences + 1); // the others decode, all of them as long as can be
    for (uint32_t i = 1; i < kSequences; ++i) add(1, 1);
    batch.finish();
    pb_sampling_params p = sized<pb_sampling_params>();
    p.temperature = p.top_p = 1;
    p.repetition_penalty = 1.5f;
    p.logprobs = kVocab + 1;
    const std::vector<uint32_t> mask((kVocab + 31) / 32, ~0u);
    const std::vector<pb_sample_row> rows(
        kRows, {1, 2, kPrompt, &p, ids.data(), ids.data(), kTokens / kSequences, 0, mask.data(), nullptr});
    pb_sample_batch samples = sized<pb_sample_batch>();
    samples.row_count = kRows;
    samples.row_stride = sizeof(pb_sample_row);
    samples.max_logprobs = kVocab;
    samples.rows = rows.data();
    asked = {};
    for (int step = 0; step < 3; ++step) {
        const auto done = runner->passes().forward(batch, {*sampler.component, samples});
        ASSERT_TRUE(done) << done.error();
        EXPECT_EQ(done->tokens.size(), kRows);
    }
    EXPECT_EQ(asked.rows, kRows);
    EXPECT_EQ(asked.bytes, 0u);
}

// The largest number of log-probabilities that it does not refuse.
TEST(DeviceMemory, ASamplerIsAskedForNoMoreThanItAccepts) {
    static const pb_sampler* real;
    static uint32_t highest, refused;
    highest = refused = 0;
    const host::Sampler sampler = *registry().sampler("replays", {}, {});
    real = static_cast<const pb_sampler*>(sampler.component->type().vtable);
    static pb_sampler noting;
    noting = *real;
    noting.accepts = [](void* self, const pb_sampling_params* p) -> pb_status {
        if (p->logprobs > 21 || p->presence_penalty != 0) return refused += 1, PB_UNSUPPORTED;
        highest = std::max(highest, p->logprobs);
        return real->accepts(self, p);
    };
    pb_component type = sampler.component->type();
    type.vtable = &noting;
    const auto choosy = *host::Component::create(nullptr, type, {}, {});
    EXPECT_TRUE(made_with(measured(40, 6, choosy.get())));
    EXPECT_EQ(highest, 21u);
    EXPECT_GT(refused, 1u);
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
}  // namespace patchbay::engine::device_memory_test
