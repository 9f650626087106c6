// Names, shapes and kinds of what a checkpoint stores.
#include "weights/stored_tensors.hpp"

#include <gmock/gmock.h>

#include "unit/weights/safetensors_fixture.hpp"

namespace patchbay::weights::stored_tensors_test {
namespace {

using testing::HasSubstr;
using Method = PackedFormat::Method;

class StoredTensorsTest : public ModelFolder {
  protected:
    std::shared_ptr<const Checkpoint> checkpoint(const std::vector<WrittenTensor>& tensors) const {
        write("model.safetensors", safetensors(tensors));
        return *Checkpoint::open(folder);
    }
    StoredTensors stored(const std::vector<WrittenTensor>& tensors) const {
        return StoredTensors(checkpoint(tensors));
    }
    static WrittenTensor f32(const std::string& name, std::vector<int64_t> shape) {
        int64_t n = 1;
        for (const int64_t each : shape) n *= each;
        return {name, "F32", std::move(shape), f32_bytes(std::vector<float>(static_cast<size_t>(n), 1))};
    }
    static WrittenTensor i32(const std::string& name) { return {name, "I32", {1}, std::string(4, '\0')}; }
    static Piece piece(const std::string& name, std::vector<int64_t> shape) {
        return {name, shape, 0, shape[0], 0, shape.back()};
    }
};

TEST_F(StoredTensorsTest, ABareModelNamesThemWithoutTheFirstWord) {
    const StoredTensors t = stored({f32("wte.weight", {2, 3}), f32("weight", {1})});
    EXPECT_TRUE(t.tensor("wte.weight"));
    EXPECT_TRUE(t.tensor("transformer.wte.weight"));
    EXPECT_FALSE(t.tensor("wte.bias"));
    EXPECT_FALSE(t.tensor("norm.weight")) << "one word is no name";
}

TEST_F(StoredTensorsTest, TheTextOfAModelThatAlsoSeesHasItsNewerNamesToo) {
    const StoredTensors t = stored({f32("model.language_model.norm.weight", {1}), f32("lm_head.weight", {2, 1})});
    EXPECT_TRUE(t.tensor("language_model.model.norm.weight"));
    EXPECT_TRUE(t.tensor("language_model.lm_head.weight"));
    EXPECT_FALSE(t.tensor("language_model.model.embed_tokens.weight"));
}

TEST_F(StoredTensorsTest, ShapesAreThoseOfTheModel) {
    const StoredTensors t = stored({f32("w", {2, 3}), f32("taps", {4, 1, 2})});
    EXPECT_TRUE(t.check(piece("w", {2, 3})));
    EXPECT_THAT(t.check(piece("w", {3, 2})).error(), HasSubstr("but the model needs"));
    Piece transposed = piece("w", {3, 2});
    transposed.stored = Piece::Stored::kTransposed;
    EXPECT_TRUE(t.check(transposed));
    EXPECT_TRUE(t.check(piece("taps", {8}))) << "a convolution's";
    EXPECT_FALSE(t.check(piece("absent", {1, 1})));
}

TEST_F(StoredTensorsTest, WeightsAreReal) {
    const StoredTensors t = stored({i32("w")});
    EXPECT_EQ(t.check(piece("w", {1})).error(), "tensor 'w' holds i32, but a weight is f32, bf16 or f16");
}

TEST_F(StoredTensorsTest, APackedLinearIsNamedByItsModule) {
    const auto all = checkpoint(
        {f32("norm.weight", {1}), i32("a.q.qweight"), i32("a.c.weight_packed"), i32("a.m.weight_blocks")});
    const auto as = [&](Method method) {
        return StoredTensors(all, PackedFormat{method, 4, 32, 0, PackedFormat::Columns::kInOrder});
    };
    const StoredTensors gptq = as(Method::kGptq), compressed = as(Method::kCompressed), mxfp4 = as(Method::kMxfp4);
    EXPECT_EQ(gptq.packed_module("a.q.weight"), "a.q");
    EXPECT_EQ(gptq.packed_module("model.a.q.weight"), "a.q");
    EXPECT_EQ(compressed.packed_module("a.c.weight"), "a.c");
    EXPECT_EQ(mxfp4.packed_module("a.m.weight"), "a.m");
    EXPECT_EQ(StoredTensors(checkpoint({i32("model.language_model.q.qweight")}), *gptq.packed())
                  .packed_module("language_model.model.q.weight"),
              "model.language_model.q");
    EXPECT_FALSE(gptq.packed_module("a.c.weight"));
    EXPECT_FALSE(gptq.packed_module("norm.weight")) << "it is real";
    EXPECT_FALSE(gptq.packed_module("a.q.bias"));
}

TEST_F(StoredTensorsTest, WithoutACheckpointNothingIsStoredAndAllIsWell) {
    const StoredTensors none;
    Piece any = piece("any", {2, 2});
    EXPECT_EQ(none.checkpoint(), nullptr);
    EXPECT_TRUE(none.check(any));
    EXPECT_TRUE(none.find_scales(any));
    EXPECT_FALSE(none.packed_module("any.weight"));
    none.forget("any.weight");
}

}  // namespace
}  // namespace patchbay::weights::stored_tensors_test
