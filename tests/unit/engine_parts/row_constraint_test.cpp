// Constraints over one row after the other: each narrows what the ones before it left.
#include "engine/sampling/row_constraint.hpp"

#include <gtest/gtest.h>

#include "engine/sampling/token_rules.hpp"
#include "unit/engine_parts/part_fixture.hpp"

namespace patchbay::engine::testing::row_constraint_test {
namespace {

// Allows the tokens of one word of a mask, and refuses drafts from a place on.
class Only final : public RowConstraint {
  public:
    Only(RequestId id, uint32_t bits, uint32_t drafts) : id_(id), bits_(bits), drafts_(drafts) {}
    bool applies(const Sequence& s) const override { return s.id == id_; }
    void mask(const PathRows& path, MaskWords& memory, Unsatisfiable& none) override {
        memory.assign(path.rows.size(), bits_);
        for (size_t i = 0; i < path.rows.size(); ++i) {
            if (path.rows[i].allowed) memory[i] &= path.rows[i].allowed[0];
            path.rows[i].allowed = &memory[i];
            if (memory[i] == 0) none.emplace_back(path.first_row + i, "nothing is left");
        }
    }
    Result<> accept(const Sequence&, TokenId t, const std::string& sampler) override {
        if (bits_ >> t & 1) return {};
        return fail(StatusCode::kInternal, sampler + " gave " + std::to_string(t));
    }
    uint32_t count_allowed(const Sequence&, std::span<const TokenId> drafts) override {
        return std::min(drafts_, static_cast<uint32_t>(drafts.size()));
    }
    void inherit(const Sequence& from, const Sequence& to) override {
        if (from.id == id_) id_ = to.id;
    }
    void erase(const Sequence& s) override {
        if (s.id == id_) id_ = 0;
    }

  private:
    RequestId id_;
    uint32_t bits_, drafts_;
};

TEST(Constraints, NarrowOneAnother) {
    Only low(1, 0b0111, 3), high(1, 0b1110, 2);
    Constraints all({&low, &high});
    const auto s = sequence(1, 4), other = sequence(2, 4);
    std::vector<pb_sample_row> rows(2);
    all.mask({*s, s->tokens, 4, 0, 5, rows});
    EXPECT_EQ(*rows[0].allowed, 0b0110u);
    EXPECT_EQ(*rows[1].allowed, 0b0110u);
    const std::vector<TokenId> drafts(8);
    EXPECT_EQ(all.count_allowed(*s, drafts), 2u);
    EXPECT_TRUE(all.accept(*s, 1, 5, "sampler"));
    const auto refused = all.accept(*s, 0, 5, "sampler");
    EXPECT_EQ(refused.error(), "sampler gave 0");
    EXPECT_EQ(refused.code(), StatusCode::kInternal);

    rows.assign(2, {});
    all.mask({*other, other->tokens, 4, 0, 0, rows});
    EXPECT_EQ(rows[0].allowed, nullptr);
    EXPECT_FALSE(all.applies(*other));
}

TEST(Constraints, RememberRowsThatNothingIsLeftFor) {
    Only low(1, 0b0011, 8), high(1, 0b1100, 8);
    Constraints all({&low, &high});
    const auto s = sequence(1, 4);
    std::vector<pb_sample_row> rows(1);
    all.mask({*s, s->tokens, 4, 0, 7, rows});
    const auto none = all.accept(*s, 1, 7, "sampler");
    EXPECT_EQ(none.error(), "nothing is left");
    EXPECT_EQ(none.code(), StatusCode::kInvalid) << "it is the request's rules that leave nothing";
    all.erase(*s);
    EXPECT_TRUE(all.accept(*s, 1, 7, "sampler"));
}

TEST(TokenRules, ForbidWhatStopsUntilMinTokens) {
    const std::vector<TokenId> eos = {2};
    TokenRules rules(nullptr, eos, 40);
    SamplingParams p;
    p.min_tokens = 3;
    p.stop_token_ids = {33};
    const auto s = sequence(1, 4, p), sibling = sequence(2, 4, p);
    auto read = rules.read(p);
    ASSERT_TRUE(read) << read.error();
    rules.add(*s, *std::move(read));
    rules.inherit(*s, *sibling);
    for (const Sequence* each : {s.get(), sibling.get()}) {
        const uint32_t* mask = rules.mask(*each, 2);
        ASSERT_NE(mask, nullptr);
        EXPECT_EQ(mask[0], ~0u ^ 0b100u);
        EXPECT_EQ(mask[1], 0xFFu ^ 0b10u);
        EXPECT_EQ(rules.mask(*each, 3), nullptr);
    }
    rules.erase(*s);
    EXPECT_EQ(rules.mask(*s, 0), nullptr);
    EXPECT_NE(rules.mask(*sibling, 0), nullptr) << "its sibling's are still there";
}

TEST(TokenRules, RefuseWhatLeavesNoToken) {
    const std::vector<TokenId> eos = {2};
    const TokenRules rules(nullptr, eos, 40);
    SamplingParams p;
    p.allowed_token_ids = std::vector<TokenId>{2};
    p.min_tokens = 1;
    const auto refused = rules.read(p);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "min_tokens forbids all allowed tokens, which stop the output");
}

}  // namespace
}  // namespace patchbay::engine::testing::row_constraint_test
