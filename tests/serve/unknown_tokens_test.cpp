// A tokenizer with a token that the model does not know is served; prompts with that token are refused.
#include "serve/model_with.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::unknown_tokens_test {
namespace {

using ::testing::HasSubstr;

// Of 2048 tokens; its tokenizer has one more, which is also its EOS.
ModelWith with_one_token_more() {
    std::ifstream in(engine::testing::repository("models/demo-draft/tokenizer.json"));
    Json tokenizer = Json::parse(in);
    Json added = tokenizer["added_tokens"][0];
    added["id"] = 2048;
    added["content"] = "<image>";
    tokenizer["added_tokens"].push_back(std::move(added));
    return ModelWith(Files{{"tokenizer.json", tokenizer.dump()},
                           {"tokenizer_config.json", R"({"eos_token": "<image>"})"},
                           {"chat_template.jinja", kTemplate}});
}

TEST(UnknownTokens, RefuseThePromptThatHasThem) {
    const ModelWith model = with_one_token_more();
    const Running server({}, model.config());
    const auto chat = [](const char* text) {
        return Json{{"messages", {{{"role", "user"}, {"content", text}}}}, {"max_tokens", 2}};
    };
    EXPECT_EQ(server.post("/v1/completions", {{"prompt", "a"}, {"max_tokens", 2}}).status, 200);
    EXPECT_EQ(server.post("/v1/chat/completions", chat("a")).status, 200);
    EXPECT_EQ(server.post("/v1/embeddings", {{"input", "a"}}).status, 200);
    const std::tuple<const char*, Json, const char*> cases[] = {
        {"/v1/completions", {{"prompt", "a <image>"}}, "prompt"},
        {"/v1/completions", {{"prompt", "a <image>"}, {"stream", true}}, "prompt"},
        {"/v1/completions", {{"prompt", {"a", "<image>"}}}, "prompt"},
        {"/v1/chat/completions", chat("a <image>"), "messages"},
        {"/v1/embeddings", {{"input", "a <image>"}}, "input"}};
    for (const auto& [path, body, field] : cases) {
        const Answer answer = server.post(path, body);
        ASSERT_EQ(answer.status, 400) << path << answer.body;
        const Json error = Json::parse(answer.body)["error"];
        EXPECT_EQ(error["param"], field);
        EXPECT_EQ(error["message"], std::string(field) + ": token 2048 ('<image>') of its text is not in the model's "
                                                         "vocabulary, expected 0 to 2047");
    }
}

TEST(UnknownTokens, AreNeverSampled) {
    const ModelWith model = with_one_token_more();
    const Running server({}, model.config());
    Json body{{"prompt", "a"}, {"max_tokens", 8}, {"temperature", 0}, {"min_tokens", 2}};
    body["structured_outputs"] = {{"regex", "(a|<image>)+"}};
    body["bad_words"] = {"b"};
    EXPECT_THAT(server.complete(body)["choices"][0]["text"].get<std::string>(), HasSubstr("a"));
    body["bad_words"] = {"<image>"};
    const Answer refused = server.post("/v1/completions", body);
    EXPECT_EQ(refused.status, 400) << refused.body;
    EXPECT_THAT(refused.body, HasSubstr("has a token that the model does not know"));
}

}  // namespace
}  // namespace patchbay::serve::testing::unknown_tokens_test
