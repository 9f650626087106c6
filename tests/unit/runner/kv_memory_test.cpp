// What lies in pages of KV, wherever they are copied to.
#include "runner/kv_memory.hpp"

#include <gmock/gmock.h>

#include "played_runner.hpp"

namespace patchbay::runner::kv_memory_test {
namespace {

using testing::PlayedDevice;
using ::testing::Each;
using ::testing::HasSubstr;

RunnerSettings with_host_pages(uint32_t slots) {
    RunnerSettings s;
    s.block_size = 4;
    s.preemption_mode = config::PreemptionMode::kSwap;
    s.num_swap_blocks = slots;
    return s;
}

struct Bench {
    explicit Bench(const RunnerSettings& s = with_host_pages(2), uint32_t pages = 4) {
        pb_model_facts facts = sized<pb_model_facts>();
        facts.layer_count = 1;
        facts.max_position = 64;
        const auto described = part.describe(*model.component, facts, s, 0);
        if (!described) throw std::runtime_error(described.error());
        const auto done = [&]() -> Result<> {
            PB_CHECK(part.bind(*described, kv::group_layers(described->kept, s.block_size), 0));
            PB_CHECK(part.allocate_pages(pages));
            return part.allocate_host_pages(s);
        }();
        if (!done) throw std::runtime_error(done.error());
    }
    void write(kv::BlockId page, uint8_t value) {
        std::fill_n(part.pages().page(page), part.page_bytes(), value);
    }
    std::vector<int> read(kv::BlockId page) {
        const uint8_t* const at = part.pages().page(page);
        return {at, at + part.page_bytes()};
    }
    void copy(kv::BlockId to, kv::BlockId from, kv::Way way = kv::Way::kWithin) {
        const auto done = part.copy({to, from, way});
        EXPECT_TRUE(done) << done.error();
    }

    PlayedDevice device;
    VirtualClock clock;
    host::Model model = testing::view_of<host::Model, pb_model>(testing::kFakeModel);
    host::Attention attention = testing::view_of<host::Attention, pb_attention>(testing::kFakePages);
    KvMemory part{device.opened, *attention.component, clock};
};

TEST(KvMemory, APageIsCopiedWholeAndNoOther) {
    Bench b;
    for (const kv::BlockId page : {0, 1, 2, 3}) b.write(page, static_cast<uint8_t>(10 + page));
    b.copy(2, 0);
    EXPECT_THAT(b.read(2), Each(10));
    EXPECT_THAT(b.read(0), Each(10));
    EXPECT_THAT(b.read(1), Each(11));
    EXPECT_THAT(b.read(3), Each(13));
}

TEST(KvMemory, APageComesBackFromHostMemoryToAnyOther) {
    Bench b;
    b.write(1, 5);
    b.write(2, 6);
    b.copy(0, 1, kv::Way::kToHost);
    b.copy(1, 2, kv::Way::kToHost);
    b.write(1, 0);
    b.copy(3, 0, kv::Way::kToDevice);
    EXPECT_THAT(b.read(3), Each(5));
    b.copy(3, 1, kv::Way::kToDevice);
    EXPECT_THAT(b.read(3), Each(6));
    EXPECT_THAT(b.read(1), Each(0));
}

TEST(KvMemory, PagesAndSlotsOfThoseWhoHaveLeftBecomeZero) {
    RunnerSettings s = with_host_pages(1);
    s.zero_freed_blocks = true;
    Bench b(s);
    b.write(1, 5);
    b.copy(0, 1, kv::Way::kToHost);
    b.copy(1, 1, kv::Way::kZeroPage);
    EXPECT_THAT(b.read(1), Each(0));
    b.copy(0, 0, kv::Way::kZeroSlot);
    b.write(2, 7);
    b.copy(2, 0, kv::Way::kToDevice);
    EXPECT_THAT(b.read(2), Each(0));
}

TEST(KvMemory, ShowsALayerAllPages) {
    Bench b;
    const pb_kv_view view = b.part.view(0, nullptr);
    EXPECT_EQ(b.part.batch_form().block_size, 4u);
    EXPECT_EQ(b.part.batch_form().token_groups, 1u);
    EXPECT_EQ(b.part.batch_form().state_groups, 0u);
    EXPECT_EQ(b.part.max_seq_len(), 64u);
    EXPECT_EQ(view.layer, 0u);
    EXPECT_EQ(b.part.pages().count(), 4u);
}

TEST(KvMemory, AHostSpaceThatHoldsNoPageIsRefused) {
    RunnerSettings s = with_host_pages(0);
    s.swap_space = 1e-9; // GiB: one byte
    try {
        Bench b(s);
        ADD_FAILURE() << "it was taken";
    } catch (const std::runtime_error& e) {
        EXPECT_THAT(e.what(), HasSubstr("swap_space of 1 bytes holds no block"));
    }
}

TEST(KvMemory, WithoutPreemptionToHostMemoryThereIsNone) {
    RunnerSettings s = with_host_pages(2);
    s.preemption_mode = config::PreemptionMode::kRecompute;
    const Bench b(s);
    EXPECT_EQ(b.part.host_pages().slots(), 0u);
}

TEST(KvMemory, ADraftModelsPagesAreItsTargets) {
    Bench target, draft;
    draft.part.share_pages(target.part);
    EXPECT_EQ(draft.part.pages().page(0), target.part.pages().page(0));
}

}  // namespace
}  // namespace patchbay::runner::kv_memory_test
