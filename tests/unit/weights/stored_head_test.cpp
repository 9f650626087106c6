#include "weights/stored_head.hpp"

#include <gmock/gmock.h>

#include "unit/weights/safetensors_fixture.hpp"

namespace patchbay::weights::stored_head_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Names {
    const char *head, *table;
};

class StoredHead : public ModelFolder, public testing::WithParamInterface<Names> {
  protected:
    WeightSource source(const std::vector<float>& head, const std::vector<float>& table) const {
        write("model.safetensors", safetensors({{GetParam().head, "F32", {2, 1}, f32_bytes(head)},
                                                {GetParam().table, "F32", {2, 1}, f32_bytes(table)}}));
        return *WeightSource::from_folder(folder);
    }
};

TEST_P(StoredHead, IsUsedWhereItIsNotTheTokenTable) {
    FlatConfig config{{"tie_word_embeddings", "true"}};
    const auto note = settle_head(config, source({1, 2}, {1, 3}));
    ASSERT_TRUE(note) << note.error();
    EXPECT_EQ(config["tie_word_embeddings"], "false");
    EXPECT_THAT(*note, HasSubstr("the stored one is used"));
}

TEST_P(StoredHead, ThatIsACopyOfTheTokenTableStaysTied) {
    FlatConfig config{{"tie_word_embeddings", "true"}};
    const auto note = settle_head(config, source({1, 2}, {1, 2}));
    ASSERT_TRUE(note) << note.error();
    EXPECT_EQ(config["tie_word_embeddings"], "true");
    EXPECT_THAT(*note, IsEmpty());
}

TEST_P(StoredHead, OfAModelThatAlsoSeesSetsTheKeyOfItsText) {
    for (const char* key : {"tie_word_embeddings", "text_config.tie_word_embeddings"}) {
        FlatConfig config{{key, "true"}, {"text_config.hidden_size", "1"}};
        const auto note = settle_head(config, source({1, 2}, {1, 3}));
        ASSERT_TRUE(note) << note.error();
        EXPECT_EQ(config["text_config.tie_word_embeddings"], "false");
        EXPECT_THAT(*note, HasSubstr("the stored one is used"));
    }
    FlatConfig silent{{"text_config.hidden_size", "1"}};
    EXPECT_THAT(*settle_head(silent, source({1, 2}, {1, 3})), IsEmpty());
    EXPECT_EQ(silent["text_config.tie_word_embeddings"], "false");
}

TEST_P(StoredHead, ThatIsPackedIsNotTheTokenTable) {
    std::string module = GetParam().head;
    module.resize(module.rfind('.'));
    for (const char* kind : {".qweight", ".weight_packed"}) {
        write("model.safetensors", safetensors({{module + kind, "I32", {1}, std::string(4, '\0')},
                                                {GetParam().table, "F32", {2, 1}, f32_bytes({1, 2})}}));
        FlatConfig config{{"tie_word_embeddings", "true"}};
        EXPECT_THAT(*settle_head(config, *WeightSource::from_folder(folder)), HasSubstr("the stored one is used"));
        EXPECT_EQ(config["tie_word_embeddings"], "false");
    }
}

INSTANTIATE_TEST_SUITE_P(Weights, StoredHead,
                         testing::Values(Names{"lm_head.weight", "model.embed_tokens.weight"},
                                         Names{"lm_head.weight", "transformer.wte.weight"},
                                         Names{"lm_head.weight", "transformer.word_embeddings.weight"},
                                         Names{"embed_out.weight", "gpt_neox.embed_in.weight"}));

}  // namespace
}  // namespace patchbay::weights::stored_head_test
