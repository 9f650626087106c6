// truncate_prompt_tokens of texts, by a model whose tokenizer begins them with BOS and ends them with EOS.
#include "serve/model_with.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::truncation_test {
namespace {

using Ids = std::vector<int>;
constexpr int kBos = 5, kEos = 7;
constexpr const char* kText = "Once there was. The wolf said";

class Truncation : public ::testing::Test {
  protected:
    static Files tokenizer() {
        std::ifstream in(engine::testing::repository("models/demo-draft/tokenizer.json"));
        Json out = Json::parse(in);
        out["post_processor"] = Json::parse(R"({"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "bos", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                       {"SpecialToken": {"id": "eos", "type_id": 0}}],
            "pair": [], "special_tokens": {"bos": {"id": "bos", "ids": [5], "tokens": ["bos"]},
                                           "eos": {"id": "eos", "ids": [7], "tokens": ["eos"]}}})");
        return {{"tokenizer.json", out.dump()}, {"chat_template.jinja", kTemplate}};
    }
    Ids ids_of(const char* text) const { // as the tokenizer gives them
        return Json::parse(server.post("/tokenize", {{"prompt", text}}).body)["tokens"].get<Ids>();
    }
    Ids kept(Json more) const { // of a completion's prompt
        Json body{{"prompt", kText}, {"max_tokens", 1}, {"return_token_ids", true}};
        body.update(more);
        return server.complete(body)["choices"][0]["prompt_token_ids"].get<Ids>();
    }
    Json embedding(const Json& input, int keep) const {
        const Answer answer = server.post("/v1/embeddings", {{"input", input}, {"truncate_prompt_tokens", keep}});
        EXPECT_EQ(answer.status, 200) << answer.body;
        return Json::parse(answer.body);
    }

    const ModelWith model{tokenizer()};
    const Running server{{}, model.config()};
};

TEST_F(Truncation, OfATextToContinueKeepsItsEndAndWhatTheTokenizerAdds) {
    const Ids all = ids_of(kText);
    ASSERT_GT(all.size(), 6u);
    ASSERT_EQ(all.front(), kBos);
    ASSERT_EQ(all.back(), kEos);
    const Ids inside(all.begin() + 1, all.end() - 1);
    EXPECT_EQ(kept({{"truncate_prompt_tokens", 4}}), (Ids{kBos, inside.end()[-2], inside.back(), kEos}));
    EXPECT_EQ(kept({{"truncate_prompt_tokens", all.size()}}), all);
    EXPECT_EQ(kept({{"truncate_prompt_tokens", 2}}), (Ids{kBos, kEos}));
    EXPECT_EQ(kept({{"truncate_prompt_tokens", 1}}), Ids{kBos});
    EXPECT_EQ(kept({{"truncate_prompt_tokens", 2}, {"add_special_tokens", false}}),
              (Ids{inside.end()[-2], inside.back()}));
    EXPECT_EQ(kept({{"truncate_prompt_tokens", 2}, {"prompt", all}}), (Ids{inside.back(), kEos})) << "of ids the last";
}

TEST_F(Truncation, OfAChatKeepsTheEndOfWhatTheTemplateMakes) {
    Json body{{"messages", {{{"role", "user"}, {"content", kText}}}}, {"max_tokens", 1}, {"return_token_ids", true}};
    const auto ids = [&] {
        return Json::parse(server.post("/v1/chat/completions", body).body)["prompt_token_ids"].get<Ids>();
    };
    const Ids all = ids();
    body["truncate_prompt_tokens"] = 3;
    EXPECT_EQ(ids(), Ids(all.end() - 3, all.end()));
}

TEST_F(Truncation, OfATextToEmbedKeepsItsBeginning) {
    const Ids all = ids_of(kText);
    const Ids beginning{kBos, all[1], all[2], kEos}, end{all.end()[-4], all.end()[-3], all.end()[-2], kEos};
    const Json got = embedding(kText, 4);
    EXPECT_EQ(got["usage"]["prompt_tokens"], 4);
    EXPECT_EQ(got["data"], embedding(beginning, -1)["data"]);
    EXPECT_EQ(embedding(all, 4)["data"], embedding(end, -1)["data"]) << "of ids the last";
}

}  // namespace
}  // namespace patchbay::serve::testing::truncation_test
