// What is promised of swaps of every slot: texts stay where builds of two compilers take turns at every boundary, and
// where whatever is swapped in, sound or faulty, at boundaries that a seed chooses.
#include <gmock/gmock.h>

#include <cstdlib>

#include "patchbay/sdk/philox.hpp"
#include "swap/checkpoint_fixture.hpp"

namespace patchbay::engine::every_kind_test {
namespace {

using namespace testing;
using host::SwapState;

constexpr uint32_t kFewBlocks = 57; // so that pages are evicted

config::EngineConfig full_engine() { // with all slots filled, and the demo model
    config::EngineConfig c = demo_engine(demo_path());
    c.engine.num_blocks = kFewBlocks;
    c.engine.max_num_batched_tokens = 256; // so that a step computes all that a swap of the model has computed anew
    c.engine.num_speculative_tokens = 3;
    c.proposer = config::PluginChoice{"ngram", {{"prompt_lookup_min", "1"}}};
    c.kv_policy = config::PluginChoice{"lru", {}};
    c.sampler.plugin = "standard";
    c.swap.probation_steps = 1;
    return c;
}

const Texts& full_texts() {
    static const Texts texts = [] {
        Swapping s(full_engine());
        s.add_requests();
        s.add_requests();
        return s.run();
    }();
    return texts;
}

struct InTurn {
    SwapSlot slot;
    std::vector<std::string> plugins; // of which none changes a text
};

void PrintTo(const InTurn& t, std::ostream* out) { *out << name_of(t.slot); }

const InTurn kInTurn[] = {{SwapSlot::kScheduler, {"fcfs", "sjf", "static"}}, {SwapSlot::kSampler, {"standard"}},
                          {SwapSlot::kProposer, {"ngram", "suffix"}},        {SwapSlot::kKvPolicy, {"lru", "lfu"}},
                          {SwapSlot::kAttention, {"paged"}},                 {SwapSlot::kModel, {demo_path()}}};

class EveryKind : public ::testing::TestWithParam<InTurn> {};

TEST_P(EveryKind, BuildsOfTwoCompilersTakeTurnsAtEveryBoundaryAndNoTextChanges) {
    const host::Registry* const other = other_compiler();
    if (!other) GTEST_SKIP() << "there is no other compiler here (install clang or g++)";
    const InTurn& t = GetParam();
    Swapping s(full_engine());
    s.add_requests();
    s.add_requests();
    size_t n = 0;
    EXPECT_EQ(s.run([&] {
        s.swap(t.slot, {t.plugins[n % t.plugins.size()], {}}, n % 2 == 0 ? *other : swap_registry());
        n += 1;
        EXPECT_TRUE(s.engine->audit());
    }),
              full_texts());
    size_t exchanged = 0;
    for (const host::SwapRecord& r : records(s.steps)) {
        EXPECT_TRUE(r.state == SwapState::kOnProbation || r.state == SwapState::kCommitted) << r.text();
        exchanged += r.state == SwapState::kOnProbation;
        EXPECT_NE(r.from.sha256, r.to.sha256) << r.text();
    }
    EXPECT_GT(exchanged, 10u);
}
INSTANTIATE_TEST_SUITE_P(Swaps, EveryKind, ::testing::ValuesIn(kInTurn),
                         [](const auto& p) { return std::string(name_of(p.param.slot)); });

// ---- a random load of swaps ----

class Dice {
  public:
    explicit Dice(uint64_t seed) : seed_(seed) {}
    uint32_t below(uint32_t n) { return draw(seed_, draws_++, Stream::kTest, 0)[0] % n; }
    template <class T>
    const T& one_of(const std::vector<T>& of) {
        return of[below(static_cast<uint32_t>(of.size()))];
    }

  private:
    const uint64_t seed_;
    uint64_t draws_ = 0;
};

// One that keeps its contract in every probe, and breaks it in some call of this engine; a scheduler and an attention,
// which an engine cannot do without, on probation.
SwapRequest faulty(Dice& dice, SwapSlot slot, uint32_t probation_steps) {
    const bool is_needed = slot == SwapSlot::kScheduler || slot == SwapSlot::kAttention;
    const uint32_t latest = is_needed ? probation_steps : probation_steps + 3;
    host::Settings settings;
    const auto fault = [&](const std::vector<std::string>& of, const char* key, uint32_t value) {
        settings = {{"fault", dice.one_of(of)}, {"at", std::to_string(1 + dice.below(latest))},
                    {key, std::to_string(value)}};
    };
    switch (slot) {
        case SwapSlot::kScheduler: fault({"throws", "unknown_id", "over_budget", "twice"}, "blocks", kFewBlocks); break;
        case SwapSlot::kProposer: fault({"throws"}, "room", 3); break;
        case SwapSlot::kKvPolicy:
            fault({"throws_in_adopt", "throws_in_update", "throws_in_choose", "names_nothing"}, "blocks", kFewBlocks);
            break;
        default: fault({"throws_in_bind", "throws_in_plan"}, "seqs", 3); break;
    }
    return {slot, {"faulty", settings}, swap_registry(), prober()};
}

SwapRequest sound(Dice& dice, const InTurn& t) {
    const host::Registry& registry = t.slot != SwapSlot::kModel && dice.below(2) == 0 ? other_builds()
                                                                                      : swap_registry();
    return {t.slot, {dice.one_of(t.plugins), {}}, registry, prober()};
}

// Of one slot or of several together. The sampler's and the model's faults are those of their own tests.
std::vector<SwapRequest> chosen(Dice& dice, uint32_t probation_steps) {
    std::vector<SwapRequest> out;
    for (const InTurn& t : kInTurn) {
        if (dice.below(5) > 0) continue;
        const bool fails = t.slot != SwapSlot::kSampler && t.slot != SwapSlot::kModel && dice.below(4) == 0;
        out.push_back(fails ? faulty(dice, t.slot, probation_steps) : sound(dice, t));
    }
    return out;
}

// PATCHBAY_SWAPS=FIRST_SEED:SEEDS has more of them.
TEST(RandomSwaps, OfAnySlotSoundOrFaultyAloneOrTogetherChangeNoText) {
    unsigned long long first = 11, seeds = 6;
    if (const char* asked = std::getenv("PATCHBAY_SWAPS")) {
        ASSERT_EQ(std::sscanf(asked, "%llu:%llu", &first, &seeds), 2) << asked;
    }
    std::map<SwapState, size_t> met;
    std::map<std::string, size_t> slots;
    for (uint64_t seed = first; seed < first + seeds; ++seed) {
        SCOPED_TRACE("again: PATCHBAY_SWAPS=" + std::to_string(seed) + ":1");
        Dice dice(seed);
        config::EngineConfig c = full_engine();
        c.swap.probation_steps = 1 + dice.below(6);
        Swapping s(c);
        s.add_requests();
        s.add_requests();
        EXPECT_EQ(s.run([&] {
            const auto requests = chosen(dice, c.swap.probation_steps);
            if (!requests.empty() && dice.below(3) == 0) s.engine->control().swap_together(requests);
            const auto sound = s.engine->audit();
            EXPECT_TRUE(sound) << sound.error();
        }),
                  full_texts());
        for (const host::SwapRecord& r : records(s.steps)) met[r.state] += 1, slots[r.kind] += 1;
        if (HasFailure()) return;
    }
    if (seeds < 6) return;
    for (const SwapState state : {SwapState::kCommitted, SwapState::kRolledBack, SwapState::kRefused})
        EXPECT_GT(met[state], 0u) << name_of(state); // else it would have been easy
    EXPECT_EQ(slots.size(), kSwapSlots.size());
}

}  // namespace
}  // namespace patchbay::engine::every_kind_test
