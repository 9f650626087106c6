// Tokens that a script says in place of a model.
#include "execution/scripted_executor.hpp"

#include <gmock/gmock.h>

#include <functional>

#include "text/tokenizer.hpp"
#include "unit/execution/played_step.hpp"

namespace patchbay::execution::testing::scripted_executor_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kVocab = static_cast<int32_t>(FakeModel::kVocab);

struct FakeScript final : Script {
    void planned(std::span<const pb_plan_item>) override {}
    void sampled(std::span<const ScriptedRows> rows) override {
        calls += 1;
        if (says) says(rows);
    }
    int calls = 0;
    std::function<void(std::span<const ScriptedRows>)> says; // empty: nothing
};

// Tokens 0 to 4 have a text, the others none.
struct FiveWords final : text::Tokenizer {
    std::vector<text::TokenId> encode(std::string_view) const override { return {}; }
    std::string_view token_bytes(text::TokenId t) const override { return t < 5 ? "word" : ""; }
    bool is_special(text::TokenId) const override { return false; }
    uint32_t vocab_size() const override { return FakeModel::kVocab; }
    std::optional<text::TokenId> eos() const override { return std::nullopt; }
    std::optional<text::TokenId> id_of(std::string_view) const override { return std::nullopt; }
};

struct Bench {
    explicit Bench(const text::Tokenizer* vocabulary = nullptr)
        : part(std::make_unique<ScriptedExecutor>(std::move(played.runner), nullptr, std::vector<int32_t>{},
                                                  script, vocabulary)) {}
    std::vector<int32_t> tokens(PlayedStep& step) {
        if (const auto done = part->submit(step.input()); !done) throw std::runtime_error(done.error());
        const auto out = part->wait(step.paths());
        if (!out) throw std::runtime_error(out.error());
        return {out->sampled.tokens.begin(), out->sampled.tokens.end()};
    }
    FakeScript script;
    PlayedRunner played{false};
    std::unique_ptr<ScriptedExecutor> part;
};

TEST(ScriptedExecutor, TheRanksOfItsRunnerAreThereAsLongAsThat) {
    struct Counted final : runner::Ranks {
        explicit Counted(int& times_left) : left(times_left) {}
        ~Counted() override { EXPECT_EQ(left, 1) << "the runner has let go of them"; }
        const pb_group& wire() const override { return group; }
        void watch(std::function<void()> f) override { left += !f; }
        Result<uint32_t> agree_blocks(uint32_t here) override { return here; }
        int& left;
        pb_group group{sizeof(pb_group), 0, 2, 0, "127.0.0.1", nullptr, nullptr, nullptr};
    };
    int left = 0;
    auto ranks = std::make_unique<Counted>(left);
    PlayedRunner played(false, ranks.get());
    FakeScript script;
    left = 0;
    ScriptedExecutor(std::move(played.runner), std::move(ranks), {}, script, nullptr).cancel();
    EXPECT_EQ(left, 1);
}

TEST(ScriptedExecutor, RowsBecomeWhatTheScriptWritesAndElseWhatIsMadeUp) {
    Bench b;
    PlayedStep step;
    step.add(7, {1, 2}).add(9, {1, 2, 3}, 3);
    const auto made_up = b.tokens(step);
    b.script.says = [](std::span<const ScriptedRows> rows) {
        ASSERT_THAT(rows, SizeIs(2));
        EXPECT_EQ(rows[0].id, 7u);
        EXPECT_EQ(rows[1].id, 9u);
        ASSERT_THAT(rows[1].tokens, SizeIs(3));
        EXPECT_THAT(rows[1].tokens, Each(Ge(0))) << "made-up tokens until others are written";
        rows[1].tokens[1] = 6;
    };
    auto expected = made_up;
    expected[2] = 6;
    EXPECT_EQ(b.tokens(step), expected);
    EXPECT_EQ(b.script.calls, 2);
}

TEST(ScriptedExecutor, AScriptSeesDraftsAndTheBranchesOfTheirSequence) {
    Bench b;
    PlayedStep step;
    step.add(7, {1, 2, 3, 4}, 3).add(9, {1}).add(7, {1, 2, 5}, 1);
    const std::vector<int32_t> drafts = {3, 4}, branch = {3, 5};
    step.paths()[0].drafts = drafts;
    step.paths()[2].drafts = branch;
    step.paths()[2].is_branch = true;
    b.script.says = [&](std::span<const ScriptedRows> rows) {
        ASSERT_THAT(rows, SizeIs(2));
        EXPECT_THAT(rows[0].drafts, ElementsAre(3, 4));
        EXPECT_THAT(rows[1].branches, IsEmpty());
        ASSERT_THAT(rows[0].branches, SizeIs(1));
        EXPECT_THAT(rows[0].branches[0].drafts, ElementsAre(3, 5));
        ASSERT_THAT(rows[0].branches[0].tokens, SizeIs(1));
        rows[0].branches[0].tokens[0] = 6;
    };
    EXPECT_EQ(b.tokens(step).at(4), 6);
}

TEST(ScriptedExecutor, WhatIsNotScriptedHasNoText) {
    const FiveWords vocabulary;
    Bench b(&vocabulary), without;
    EXPECT_EQ(b.part->tokens(), TokenSource::kMadeUpText);
    EXPECT_EQ(without.part->tokens(), TokenSource::kMadeUp) << "ids alone";
    for (uint64_t id = 0; id < 16; ++id) {
        PlayedStep step;
        step.add(id, {1, 2, 3}, 3);
        EXPECT_THAT(b.tokens(step), Each(AllOf(Ge(5), ::testing::Lt(kVocab))));
    }
}

TEST(ScriptedExecutor, AStepOfCopiesAloneIsNoneOfTheScripts) {
    Bench b;
    PlayedStep copies;
    copies.copy({1, 0});
    b.tokens(copies);
    EXPECT_EQ(b.script.calls, 0);
}

}  // namespace
}  // namespace patchbay::execution::testing::scripted_executor_test
