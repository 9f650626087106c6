// A draft model's passes over an executor's that a test plays: which tokens they compute, what comes out of them, and
// what a proposer may not ask.
#include "engine/speculation/draft_model.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>

#include "unit/engine/temporary_folder.hpp"
#include "unit/engine_parts/built_plugins.hpp"
#include "unit/engine_parts/neighbours.hpp"

namespace patchbay::engine::testing::draft_model_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kWords = 1000, kReach = 40; // of the draft model: tokens, positions

// A model's folder: two layers, or Medusa's heads without any.
std::string folder_of(const char* name, const std::string& config) {
    const std::filesystem::path folder = temporary_folder() / name;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "config.json") << config;
    return folder.string();
}
std::string with_layers() {
    return folder_of("layers", R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 96,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000,
        "max_position_embeddings": 40})");
}
std::string without_layers() {
    return folder_of("heads", R"({"medusa_num_heads": 3, "medusa_num_layers": 1, "hidden_size": 64,
        "vocab_size": 1000, "max_position_embeddings": 40})");
}

// The most likely token after each is the one after it, and a pass takes 1 µs.
class FakePasses final : public execution::DraftPasses {
  public:
    struct Pass {
        std::vector<int32_t> ids, positions, rows; // rows: tokens whose logits are wanted
        uint32_t kept_row, draft_step;
        bool samples;
    };
    explicit FakePasses(VirtualClock& clock) : clock_(clock) {}
    std::vector<Pass> passes;
    std::string fault; // of the next one
    uint32_t room = 32, head_passes = 3;

    const runner::BatchForm& batch_form() const override { return form_; }
    uint32_t max_tokens() const override { return room; }
    uint32_t max_head_passes() const override { return head_passes; }
    uint32_t hidden_row(uint32_t pass) const override { return 100 + 10 * pass; }
    Result<execution::StepOutput> compute(const runner::Batch& batch, const runner::SampleCall* call) override {
        const runner::BatchArrays& a = batch.arrays();
        passes.push_back({a.ids, a.positions, a.logit_rows, batch.kept_row, batch.draft_step, call != nullptr});
        clock_.advance_ns(1000);
        if (!fault.empty()) return fail(std::exchange(fault, ""));
        execution::StepOutput out;
        logits_.assign(a.logit_rows.size() * kWords, 0);
        tokens_.clear();
        for (size_t i = 0; i < a.logit_rows.size(); ++i) {
            tokens_.push_back(a.ids[static_cast<size_t>(a.logit_rows[i])] + 1);
            logits_[i * kWords + static_cast<size_t>(tokens_.back())] = 5;
        }
        if (call) {
            const size_t top = tokens_.size() * call->batch.max_logprobs;
            logprobs_.assign(std::max(tokens_.size(), top), -1);
            top_tokens_.assign(top, 3);
            out.sampled = {tokens_, top_tokens_, logprobs_, logprobs_, call->batch.max_logprobs, 0};
            out.is_sampled = true;
        } else {
            out.logits = logits_;
        }
        return out;
    }

  private:
    VirtualClock& clock_;
    const runner::BatchForm form_{.block_size = 4, .token_groups = 1, .state_groups = 0};
    std::vector<float> logits_, logprobs_;
    std::vector<int32_t> tokens_, top_tokens_;
};

World with_draft_model(uint32_t blocks = 16) {
    World w;
    w.blocks = blocks;
    w.has_draft_model = true;
    return w;
}

struct Bench : RowNeighbours {
    explicit Bench(const std::string& folder = with_layers(), World w = with_draft_model(), bool computes = true)
        : RowNeighbours(std::move(w)), part({config, built_plugins(), {}, pool, computes, target}) {
        config.device.plugin = "sim";
        sampler.sampled = [this](SampleBatch& b) {
            sampled += 1;
            const auto* logits = static_cast<const float*>(b.raw.logits.data);
            for (uint32_t i = 0; i < b.size(); ++i, logits += kWords)
                b.raw.tokens[i] = static_cast<TokenId>(std::max_element(logits, logits + kWords) - logits);
        };
        const std::string plugin = folder.ends_with("heads") ? "medusa" : "";
        const std::pair<std::string_view, std::string_view> keys[] = {
            {"path", folder}, {"load_format", "dummy"}, {"dtype", "float32"}, {"plugin", plugin}};
        std::vector<pb_setting> given;
        for (const auto& [key, value] : keys)
            if (!value.empty()) given.push_back({{key.data(), key.size()}, {value.data(), value.size()}});
        pb_runner_load what = sized<pb_runner_load>();
        what.settings = given.data();
        what.setting_count = static_cast<uint32_t>(given.size());
        what.has_simulated_acceptance = 1;
        what.simulated_acceptance = 1;
        pb_str said{};
        if (part.service().load(part.service().ctx, &what, &facts, &said) != PB_OK)
            throw std::runtime_error(std::string(said.data, said.size));
        start();
    }
    void start() { part.start({passes, kv, slot, eos, clock, rows, draft_kv}); }
    // One that decodes, with room for drafts.
    Sequence& add(uint32_t prompt_tokens) {
        Sequence& s = decode(prompt_tokens);
        s.tokens.reserve(64);
        return s;
    }
    void begin(std::vector<DraftModel::Row> of) {
        std::vector<Sequence*> all;
        for (const DraftModel::Row& r : of) all.push_back(r.sequence);
        part.begin(of, all);
    }
    struct Row {
        RequestId id;
        std::vector<TokenId> drafts;
    };
    // Tokens that a pass gives these rows; "why" if it does not.
    std::vector<TokenId> forward(const std::vector<Row>& of) {
        std::vector<pb_runner_row> asked;
        for (const Row& r : of) asked.push_back({r.id, r.drafts.data(), static_cast<uint32_t>(r.drafts.size()), 0});
        std::vector<TokenId> tokens(of.size(), 77);
        pb_runner_batch batch = sized<pb_runner_batch>();
        batch.model = facts.model;
        batch.row_count = static_cast<uint32_t>(asked.size());
        batch.row_stride = sizeof(pb_runner_row);
        batch.rows = asked.data();
        batch.tokens = tokens.data();
        batch.logprobs = logprobs.data();
        batch.top_count = 2;
        batch.top_tokens = top_tokens.data();
        batch.top_logprobs = top_logprobs.data();
        pb_str said{};
        why.clear();
        const pb_status status = part.service().forward(part.service().ctx, &batch, &said);
        if (status != PB_OK) why = std::string(said.data, said.size);
        EXPECT_EQ(status, why.empty() ? PB_OK : PB_INVALID);
        return tokens;
    }

    config::EngineConfig config;
    ThreadPool pool{1};
    weights::FlatConfig target;
    host::Slot slot{"sampler", host::UnreadState::kStartsEmpty, clock};
    FakeSampler& sampler = install<FakeSampler>(slot, kFakeSampler);
    int sampled = 0;
    FakePasses passes{clock};
    pb_runner_facts facts = sized<pb_runner_facts>();
    DraftModel part;
    std::vector<float> logprobs = std::vector<float>(8, 77), top_logprobs = std::vector<float>(8, 77);
    std::vector<TokenId> top_tokens = std::vector<TokenId>(8, 77);
    std::string why;
};

TEST(DraftModel, IsLoadedAndRunThroughItsService) {
    Bench b;
    EXPECT_EQ(b.part.service().revision, uint32_t{PB_RUNNER_REVISION});
    EXPECT_EQ(b.facts.vocab_size, kWords);
    EXPECT_EQ(b.facts.max_position, kReach);
    EXPECT_TRUE(b.part.keeps_kv());
    EXPECT_EQ(b.part.opened().draft(), nullptr) << "the runner has it";
    pb_runner_load load{};
    pb_runner_batch batch{};
    pb_str said{};
    EXPECT_EQ(b.part.service().load(b.part.service().ctx, &load, &b.facts, &said), PB_INVALID);
    EXPECT_EQ(std::string(said.data, said.size), "a struct without its struct_size");
    EXPECT_EQ(b.part.service().forward(b.part.service().ctx, &batch, &said), PB_INVALID);
    EXPECT_EQ(std::string(said.data, said.size), "a struct without its struct_size");
}

TEST(DraftModel, DraftsOneTokenAPassAndComputesNoneTwice) {
    Bench b;
    Sequence& s = b.add(5); // and 7, its newest token
    b.begin({{&s, 4}});
    EXPECT_THAT(b.forward({{s.id, {}}}), ElementsAre(8));
    ASSERT_THAT(b.passes.passes, SizeIs(1));
    EXPECT_EQ(b.passes.passes[0].ids, s.tokens) << "its prompt too";
    EXPECT_THAT(b.passes.passes[0].rows, ElementsAre(5));
    EXPECT_THAT(b.forward({{s.id, {8}}}), ElementsAre(9));
    EXPECT_THAT(b.passes.passes[1].ids, ElementsAre(8));
    EXPECT_THAT(b.passes.passes[1].positions, ElementsAre(6));
    EXPECT_THAT(b.forward({{s.id, {8, 9}}}), ElementsAre(10));
    EXPECT_THAT(b.passes.passes[2].ids, ElementsAre(9));
    EXPECT_EQ(b.sampled, 3);
    EXPECT_EQ(s.drafts, 0u) << "drafts are the sequence's once the proposer gives them";
    EXPECT_EQ(s.tokens.size(), 6u);
    EXPECT_EQ(b.part.work().passes, 3u);
    EXPECT_EQ(b.part.work().tokens, 8u);
    EXPECT_EQ(b.part.work().ns, 3000u);
    ASSERT_TRUE(b.part.end());
    EXPECT_THAT(b.passes.passes, SizeIs(3)) << "it has all that the target has";
    b.begin({{&s, 4}});
    EXPECT_EQ(b.part.work().passes, 0u) << "of each propose() alone";
}

TEST(DraftModel, FollowsTheTargetWhereNothingWasDrafted) {
    Bench b;
    Sequence &s = b.add(5), &other = b.add(3);
    b.begin({{&s, 4}, {&other, 4}});
    ASSERT_TRUE(b.part.end());
    ASSERT_THAT(b.passes.passes, SizeIs(1));
    EXPECT_THAT(b.passes.passes[0].ids, SizeIs(5 + 3)) << "what the target has computed";
    EXPECT_THAT(b.passes.passes[0].rows, IsEmpty());
    EXPECT_EQ(b.sampled, 0);
    b.begin({{&s, 4}, {&other, 4}});
    EXPECT_THAT(b.forward({{other.id, {}}, {s.id, {}}}), ElementsAre(8, 8));
    EXPECT_THAT(b.passes.passes[1].ids, ElementsAre(7, 7)) << "the newest token of each";
}

TEST(DraftModel, AFailureToFollowIsPassedOn) {
    Bench b;
    Sequence& s = b.add(5);
    b.begin({{&s, 4}});
    b.passes.fault = "the device is gone";
    EXPECT_EQ(b.part.end().error(), "the device is gone");
}

TEST(DraftModel, RunsInProposeOnly) {
    Bench b;
    Sequence& s = b.add(5);
    b.forward({{s.id, {}}});
    EXPECT_EQ(b.why, "a model is run in propose() only");
    b.begin({{&s, 4}});
    ASSERT_TRUE(b.part.end());
    b.forward({{s.id, {}}});
    EXPECT_EQ(b.why, "a model is run in propose() only");
    EXPECT_THAT(b.passes.passes, SizeIs(1)) << "that of end()";
}

TEST(DraftModel, ChecksWhatAProposerAsks) {
    Bench b;
    Sequence &s = b.add(5), &other = b.add(3);
    const std::vector<DraftModel::Row> only = {{&s, 2}};
    b.part.begin(only, {&s, &other});
    b.forward({{other.id, {}}});
    EXPECT_THAT(b.why, HasSubstr("which is not a row of the propose() under way"));
    b.forward({{s.id, {1, 2}}});
    EXPECT_THAT(b.why, HasSubstr("expected less than its max_drafts of 2"));
    b.forward({{s.id, {kWords}}});
    EXPECT_THAT(b.why, HasSubstr("expected 0 to 999"));
    EXPECT_THAT(b.passes.passes, IsEmpty());
    b.forward({{s.id, {}}});
    EXPECT_EQ(b.why, "");
    EXPECT_THAT(b.passes.passes[0].ids, SizeIs(6 + 3)) << "the other's, which is not drafted for, too";
}

TEST(DraftModel, ARowThatItDoesNotReachInAPassHasNoToken) {
    Bench b;
    b.passes.room = 7; // of a pass
    b.start();
    Sequence &s = b.add(5), &other = b.add(3);
    b.begin({{&s, 4}, {&other, 4}});
    EXPECT_THAT(b.forward({{s.id, {}}, {other.id, {}}}), ElementsAre(8, -1));
    EXPECT_THAT(b.passes.passes[0].ids, SizeIs(7));
    EXPECT_EQ(b.logprobs[1], 0);
    EXPECT_EQ(b.top_tokens[2], -1);
    EXPECT_EQ(b.top_tokens[3], -1);
    EXPECT_EQ(b.top_logprobs[3], 0);
    EXPECT_THAT(b.forward({{other.id, {}}}), ElementsAre(8)) << "and with the next one it does";
}

TEST(DraftModel, DoesNotGoOnWithASequenceWhosePassFailed) {
    Bench b;
    Sequence& s = b.add(5);
    b.begin({{&s, 4}});
    b.passes.fault = "the device is gone";
    EXPECT_THAT(b.forward({{s.id, {}}}), ElementsAre(-1));
    EXPECT_EQ(b.why, "the device is gone");
    EXPECT_EQ(s.drafts, 0u);
    EXPECT_TRUE(b.draft_kv.of(s).lost);
    EXPECT_EQ(b.part.make_room(s, 2, 1), 0u);
    EXPECT_EQ(b.part.computed_by_both(s), s.computed) << "it will not compute any of it";
    EXPECT_THAT(b.forward({{s.id, {}}}), ElementsAre(-1));
    EXPECT_EQ(b.why, "") << "there is nothing to compute";
    EXPECT_THAT(b.passes.passes, SizeIs(1));
}

TEST(DraftModel, SamplesOnTheDeviceWhereTheSamplerDoes) {
    Bench b;
    static const pb_sampler table = [] {
        pb_sampler out = *static_cast<const pb_sampler*>(kFakeSampler.vtable);
        out.device = "sim";
        return out;
    }();
    pb_component on_device = kFakeSampler;
    on_device.vtable = &table;
    host::Slot device_slot("sampler", host::UnreadState::kStartsEmpty, b.clock);
    FakeSampler& policy = install<FakeSampler>(device_slot, on_device);
    policy.sampled = [&](SampleBatch&) { b.sampled += 1; };
    b.part.start({b.passes, b.kv, device_slot, b.eos, b.clock, b.rows, b.draft_kv});
    Sequence& s = b.add(5);
    b.begin({{&s, 4}});
    EXPECT_THAT(b.forward({{s.id, {}}}), ElementsAre(8));
    EXPECT_TRUE(b.passes.passes[0].samples);
    EXPECT_EQ(b.sampled, 0) << "not on the host";
    EXPECT_EQ(b.logprobs[0], -1);
    EXPECT_EQ(b.top_tokens[1], 3);
    Sequence& other = b.add(3);
    b.begin({{&other, 4}});
    ASSERT_TRUE(b.part.end());
    EXPECT_FALSE(b.passes.passes[1].samples) << "there are no rows";
}

TEST(DraftModel, MakesTokensUpWhereNothingIsComputed) {
    Bench b(with_layers(), with_draft_model(), false);
    EXPECT_EQ(b.facts.computes, 0u);
    Sequence& s = b.add(5);
    b.begin({{&s, 4}});
    const std::vector<TokenId> tokens = b.forward({{s.id, {}}});
    EXPECT_EQ(b.why, "");
    EXPECT_THAT(tokens, Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(static_cast<int>(kWords)))));
    EXPECT_EQ(b.sampled, 0);
    EXPECT_THAT(b.passes.passes, SizeIs(1)) << "which takes its time";
    EXPECT_EQ(b.part.work().ns, 1000u);
}

// ---- room and bookkeeping

TEST(DraftModel, TakesPagesForDraftsAndLeavesOthersABlockEach) {
    const auto room = [](uint32_t blocks, uint32_t wanted, size_t running, uint32_t& held) {
        Bench b(with_layers(), with_draft_model(blocks));
        Sequence& s = b.add(5); // 6 tokens in two blocks of 4
        const uint32_t out = b.part.make_room(s, wanted, running);
        held = s.kv.table.held;
        return out;
    };
    uint32_t held = 0;
    EXPECT_EQ(room(16, 2, 1, held), 2u);
    EXPECT_EQ(held, 2u) << "they fit the last one";
    EXPECT_EQ(room(16, 3, 1, held), 3u);
    EXPECT_EQ(held, 3u);
    EXPECT_EQ(room(4, 20, 1, held), 6u) << "one of two free blocks";
    EXPECT_EQ(held, 3u);
    EXPECT_EQ(room(4, 20, 2, held), 2u) << "none is left";
    EXPECT_EQ(room(4, 20, 9, held), 2u);
    EXPECT_EQ(held, 2u);
}

TEST(DraftModel, ReachesOnlyItsOwnPositions) {
    Bench b;
    Sequence& s = b.add(kReach - 3); // and the newest: 38 tokens of 40
    EXPECT_EQ(b.part.make_room(s, 9, 0), 3u) << "the last draft is not computed";
    Sequence& longest = b.add(5);
    longest.tokens.resize(kReach + 1, 9);
    EXPECT_EQ(b.part.make_room(longest, 9, 0), 0u);
}

TEST(DraftModel, KnowsWhatNeitherModelHasToCompute) {
    Bench b;
    Sequence& s = b.add(5);
    EXPECT_EQ(b.part.computed_by_both(s), 0u);
    b.begin({{&s, 4}});
    ASSERT_TRUE(b.part.end());
    EXPECT_EQ(b.part.computed_by_both(s), 5u);
    b.draft_kv.of(s).computed = 3;
    EXPECT_EQ(b.part.computed_by_both(s), 3u);
    b.draft_kv.of(s).lost = true;
    EXPECT_EQ(b.part.computed_by_both(s), 5u) << "it computes no more of it";
    b.draft_kv.of(s) = {.computed = 9, .ahead = {}, .hidden = {}, .made = {}};
    EXPECT_EQ(b.part.computed_by_both(s), 5u);
    s.computed = kReach + 2;
    b.draft_kv.of(s).computed = kReach;
    EXPECT_EQ(b.part.computed_by_both(s), kReach + 2) << "it goes no further";
}

// ---- heads without layers

TEST(DraftModel, AHeadWithoutLayersTakesNoPagesAndNeedNotFollow) {
    Bench b(without_layers());
    EXPECT_EQ(b.facts.max_draft_depth, 3u);
    EXPECT_FALSE(b.part.keeps_kv());
    Sequence& s = b.add(5);
    EXPECT_EQ(b.part.make_room(s, 50, 1), 50u);
    EXPECT_EQ(s.kv.table.held, 2u);
    EXPECT_EQ(b.part.computed_by_both(s), s.computed);
    b.begin({{&s, 4}});
    ASSERT_TRUE(b.part.end());
    EXPECT_THAT(b.passes.passes, IsEmpty());
}

TEST(DraftModel, EachPassOfAHeadKeepsItsHiddenStatesInRowsOfItsOwn) {
    Bench b(without_layers());
    Sequence& s = b.add(5);
    b.draft_kv.computes(s, {0, 5, 20}); // the target did so in this step
    b.begin({{&s, 4}});
    EXPECT_THAT(b.forward({{s.id, {}}}), ElementsAre(8));
    EXPECT_THAT(b.forward({{s.id, {8}}}), ElementsAre(8)) << "from the same place";
    ASSERT_THAT(b.passes.passes, SizeIs(2));
    EXPECT_EQ(b.passes.passes[0].kept_row, 100u);
    EXPECT_EQ(b.passes.passes[1].kept_row, 110u);
    EXPECT_EQ(b.passes.passes[0].draft_step, 0u);
    EXPECT_EQ(b.passes.passes[1].draft_step, 1u);
}

TEST(DraftModel, RefusesPassesThatAHeadCannotHave) {
    Bench b(without_layers());
    b.passes.head_passes = 1;
    Sequence &s = b.add(5), &other = b.add(3);
    for (Sequence* one : {&s, &other}) b.draft_kv.computes(*one, {0, one->computed, 20});
    b.begin({{&s, 4}, {&other, 4}});
    b.forward({{s.id, {}}, {other.id, {8}}});
    EXPECT_EQ(b.why, "rows of 0 drafts and of 1 in one pass of a head without layers");
    EXPECT_THAT(b.passes.passes, IsEmpty());
    b.forward({{s.id, {}}, {other.id, {}}});
    EXPECT_EQ(b.why, "");
    b.forward({{s.id, {8}}, {other.id, {8}}});
    EXPECT_EQ(b.why, "more than 1 passes of a head in one propose()");
    EXPECT_THAT(b.passes.passes, SizeIs(1));
    b.begin({{&s, 4}, {&other, 4}});
    b.forward({{s.id, {8}}, {other.id, {8}}});
    EXPECT_EQ(b.why, "") << "the next one has its own";
}

}  // namespace
}  // namespace patchbay::engine::testing::draft_model_test
