// Layers that attend over another layer's KV, against the same model whose layers keep a copy each.
#include <gmock/gmock.h>

#include "unit/engine/engine_fixture.hpp"


namespace patchbay::engine::testing::shared_kv_test {
namespace {

using ::testing::HasSubstr;

// Five layers, of which the last three keep nothing.
config::EngineConfig sharing() {
    config::EngineConfig c = tiny_model();
    c.model.shape["architectures.0"] = "SharedKvForCausalLM";
    c.model.shape["num_hidden_layers"] = "5";
    c.model.shape["num_kv_shared_layers"] = "3";
    return c;
}

config::EngineConfig copying() {
    config::EngineConfig c = sharing();
    c.model.shape["copies"] = "true";
    return c;
}

struct Said {
    std::vector<TokenId> tokens;
    std::vector<float> logprobs;
    bool operator==(const Said&) const = default;
};

enum class Room { kPlenty, kTight /* small steps, and not pages enough for all */ };

// What several requests get, together; two of them begin alike.
std::vector<Said> say(config::EngineConfig c, Room room) {
    if (room == Room::kTight) {
        c.engine.num_blocks = 30;
        c.engine.max_model_len = 128;
        c.engine.max_num_batched_tokens = 16;
        c.engine.max_num_seqs = 8;
    }
    Harness h(c);
    std::vector<RequestId> ids;
    for (const uint32_t length : {40u, 40u, 70u, 9u, 50u, 61u}) {
        SamplingParams p = greedy(24);
        p.ignore_eos = true;
        p.logprobs = 1;
        ids.push_back(h.add(random_prompt(length, length), p));
    }
    h.run_all();
    std::vector<Said> out;
    for (const RequestId id : ids) {
        const Output& o = h.outputs.at(id);
        Said& one = out.emplace_back();
        one.tokens = o.tokens;
        for (const TokenLogprobs& t : o.logprobs) one.logprobs.push_back(t.sampled);
    }
    return out;
}

std::string refusal(const config::EngineConfig& c) {
    VirtualClock clock;
    const auto made = Engine::create(c, registry(), clock);
    if (!made) return made.error();
    Request r;
    r.prompt = {1, 2, 3};
    if (!(*made)->add_request(std::move(r))) return "";
    const auto stepped = (*made)->step();
    return stepped ? "" : stepped.error();
}

TEST(SharedKv, GivesTheBitsOfLayersThatKeepACopyEach) {
    using Kv = config::KvDType;
    for (const Kv kv : {Kv::kF32, Kv::kBf16, Kv::kInt8}) {
        auto shares = sharing(), copies = copying();
        shares.engine.kv_cache_dtype = copies.engine.kv_cache_dtype = kv;
        const auto expected = say(copies, Room::kPlenty);
        EXPECT_EQ(say(shares, Room::kPlenty), expected);
        EXPECT_EQ(say(shares, Room::kTight), expected) << "in chunks, with preemption";
        shares.engine.enable_prefix_caching = false;
        EXPECT_EQ(say(shares, Room::kPlenty), expected) << "without prefix caching";
    }
}

TEST(SharedKv, TakesPagesOfTheLayersThatKeepAnyOnly) {
    const Harness shares(sharing()), copies(copying());
    EXPECT_EQ(shares.engine->facts().kv.page_bytes * 5, copies.engine->facts().kv.page_bytes * 2);
}

TEST(SharedKv, HasTheTypeOfItsOwner) {
    auto shares = sharing(), copies = copying();
    shares.engine.kv_cache_dtype_layers = {{"1", 1, 1, config::KvDType::kInt8}};
    copies.engine.kv_cache_dtype_layers = {{"1-4", 1, 4, config::KvDType::kInt8}};
    EXPECT_EQ(say(shares, Room::kPlenty), say(copies, Room::kPlenty));
}

TEST(SharedKv, IsRefusedWhereNoEarlierLayerKeepsIt) {
    auto c = sharing();
    c.model.shape["owner"] = "4";
    EXPECT_THAT(refusal(c), HasSubstr("layer 2 shares the KV of layer 4, which is not an earlier one"));
    c.model.shape["owner"] = "2";
    EXPECT_THAT(refusal(c), HasSubstr("layer 2 shares the KV of layer 2, which is not an earlier one"));
}

TEST(SharedKv, IsNotWrittenByALayerThatSharesIt) {
    auto c = sharing();
    c.model.shape["gives_what_it_shares"] = "true";
    EXPECT_THAT(refusal(c), HasSubstr("gives layer 2, which shares another's KV, its own"));
}

}  // namespace
}  // namespace patchbay::engine::testing::shared_kv_test
