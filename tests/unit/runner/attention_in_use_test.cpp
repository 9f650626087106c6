// Another attention in place of the one in use, for a model and its draft alike.
#include "runner/attention_in_use.hpp"

#include <gmock/gmock.h>

#include "fake_device.hpp"
#include "patchbay/sdk/attention.hpp"

namespace patchbay::runner::attention_in_use_test {
namespace {

using testing::PlayedDevice;
using ::testing::HasSubstr;

struct FakeAttention {
    struct Bound {
        explicit Bound(int& bound) : count(bound) { count += 1; }
        ~Bound() { count -= 1; }
        int& count;
    };
    std::string tag = "A";
    uint64_t page_bytes = 64;
    int binds_left = 100; // the next one fails
    int bound = 0;

    pb_attention_layout describe(const pb_attention_spec&) const {
        pb_attention_layout out = sized<pb_attention_layout>();
        out.page_bytes = page_bytes;
        tag.copy(out.layout_tag, sizeof out.layout_tag - 1);
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec&) {
        if (binds_left-- == 0) throw Error(PB_FAILED, "no room");
        return std::make_unique<Bound>(bound);
    }
    void plan(Bound&, const pb_attention_batch&, void*) {}
    void append_kv(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
    void run(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
};
constexpr pb_component kFakeAttention = attention<FakeAttention>({"fake", "1.0.0", "plays"});

host::Attention make() {
    return {*host::Component::create(nullptr, kFakeAttention, {}, {}),
            static_cast<const pb_attention*>(kFakeAttention.vtable)};
}

FakeAttention& played(const host::Component& c) {
    return static_cast<detail::Box<FakeAttention>*>(c.self())->value;
}

// A model of one layer and its draft of one, as a ModelRunner binds them.
class AttentionInUseTest : public ::testing::Test {
  protected:
    AttentionInUseTest() {
        for (KvLayers* layers : {&target_, &draft_}) {
            pb_kv_spec spec = sized<pb_kv_spec>();
            spec.heads = spec.kv_heads = 2;
            spec.head_dim = 8;
            const KvForm form{16, PB_F32, {PB_F32}, "fake"};
            const auto kept = layers->describe({&spec, 1}, form);
            EXPECT_TRUE(kept && layers->bind({&spec, 1}, form, kv::group_layers(*kept, 16)));
            in_use_.add(*layers, [this] { renewed_ += 1; });
        }
    }
    FakeAttention& first() { return played(first_); }

    PlayedDevice device_;
    AttentionInUse in_use_{device_.opened, make()};
    const host::Component& first_ = in_use_.component();
    const std::unique_ptr<host::Component> other_ = make().component;
    KvLayers target_{device_.opened.plugin, first_}, draft_{device_.opened.plugin, first_};
    int renewed_ = 0;
};

TEST_F(AttentionInUseTest, ReadsPagesOfTheSameLayout) {
    EXPECT_FALSE(in_use_.keeps(*other_));
    EXPECT_TRUE(*in_use_.use(*other_));
    EXPECT_TRUE(in_use_.keeps(first_));
    EXPECT_EQ(&in_use_.component(), other_.get());
    EXPECT_EQ(renewed_, 2) << "graphs of both models";
    EXPECT_EQ(first().bound, 2) << "until it is forgotten";
    in_use_.forget();
    EXPECT_EQ(first().bound, 0);
    EXPECT_EQ(played(*other_).bound, 2);
    in_use_.end();
    EXPECT_EQ(played(*other_).bound, 0);
}

TEST_F(AttentionInUseTest, DoesNotReadPagesOfAnotherLayout) {
    played(*other_).tag = "B";
    EXPECT_FALSE(*in_use_.use(*other_));
    EXPECT_EQ(target_.binding().layout_tag(), "B");
    EXPECT_TRUE(in_use_.use(first_)); // which is bound still
    EXPECT_EQ(target_.binding().layout_tag(), "A");
    EXPECT_EQ(first().bound, 2);
}

TEST_F(AttentionInUseTest, StaysWhereTheDraftCannotHaveTheOther) {
    played(*other_).binds_left = 1; // the target's
    const auto used = in_use_.use(*other_);
    ASSERT_FALSE(used);
    EXPECT_THAT(used.error(), HasSubstr("no room"));
    EXPECT_EQ(&in_use_.component(), &first_);
    EXPECT_EQ(renewed_, 0);
    EXPECT_EQ(first().bound, 2);
    EXPECT_EQ(played(*other_).bound, 0);
}

TEST_F(AttentionInUseTest, RefusesOneWhosePagesAreLarger) {
    EXPECT_TRUE(in_use_.check(*other_));
    played(*other_).page_bytes = 65;
    const auto checked = in_use_.check(*other_);
    EXPECT_THAT(checked.error(), HasSubstr("a page of layer 0 takes 128 bytes"));
    EXPECT_EQ(checked.code(), StatusCode::kUnsupported);
}

TEST_F(AttentionInUseTest, SaysWhatItCostsWhereNothingIsComputed) {
    device_.opened.info.computes = 0;
    EXPECT_EQ(in_use_.check(*other_).error(),
              "attention 'fake' does not say what it costs on device 'fake', which computes nothing");
}

}  // namespace
}  // namespace patchbay::runner::attention_in_use_test
