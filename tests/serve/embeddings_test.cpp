// /v1/embeddings, by what is sent and answered.
#include <openssl/evp.h>

#include <cmath>
#include <cstring>

#include "serve/model_with.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::embeddings_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPath = "/v1/embeddings";
constexpr const char* kText = "Once upon a time there was a wolf.";

Json embed(const Json& body, const Running& server = shared()) {
    const Answer answer = server.post(kPath, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? Json::parse(answer.body) : Json();
}

std::vector<float> first(const Json& answer) { return answer["data"][0]["embedding"].get<std::vector<float>>(); }

Json error_of(const Json& body, int status = 400, const Running& server = shared()) {
    const Answer answer = server.post(kPath, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return answer.status == 200 ? Json() : Json::parse(answer.body)["error"];
}

double length(const std::vector<float>& values) {
    double squares = 0;
    for (const float x : values) squares += double{x} * double{x};
    return std::sqrt(squares);
}

// What the engine gives for a text, without the server.
std::vector<float> expected(const std::string& text, engine::PoolingType type) {
    engine::testing::Harness plain(Running::demo_model());
    engine::Request r;
    r.prompt = plain.engine->tokenizer()->encode(text);
    r.pooling = type;
    return plain.run(plain.add(std::move(r))).embedding;
}

std::vector<float> scaled(std::vector<float> values) {
    const double by = length(values);
    for (float& x : values) x = static_cast<float>(double{x} / by);
    return values;
}

TEST(Embeddings, HaveTheShapeOfOpenAIs) {
    const Json got = embed({{"model", "demo"}, {"input", kText}});
    EXPECT_THAT(got["id"].get<std::string>(), StartsWith("embd-"));
    EXPECT_EQ(got["object"], "list");
    EXPECT_EQ(got["model"], "demo");
    ASSERT_EQ(got["data"].size(), 1u);
    EXPECT_EQ(got["data"][0]["object"], "embedding");
    EXPECT_EQ(got["data"][0]["index"], 0);
    const auto tokens = Json::parse(shared().post("/tokenize", {{"prompt", kText}}).body)["count"];
    EXPECT_EQ(got["usage"]["prompt_tokens"], tokens);
    EXPECT_EQ(got["usage"]["total_tokens"], tokens);
    EXPECT_EQ(first(got), scaled(expected(kText, engine::PoolingType::kLast)));
    EXPECT_EQ(embed({{"model", ""}, {"input", kText}})["model"], "demo");
}

TEST(Embeddings, AreNormalisedUnlessTheRequestSaysOtherwise) {
    EXPECT_NEAR(length(first(embed({{"input", kText}}))), 1, 1e-6);
    EXPECT_EQ(first(embed({{"input", kText}, {"normalize", false}})), expected(kText, engine::PoolingType::kLast));
}

TEST(Embeddings, TakeTextsAndTokenIdsAloneAndInLists) {
    const auto ids = Json::parse(shared().post("/tokenize", {{"prompt", kText}}).body)["tokens"];
    const Json one = embed({{"input", kText}}), other = embed({{"input", "The king"}});
    const auto all = embed({{"input", {kText, "The king", kText}}});
    ASSERT_EQ(all["data"].size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(all["data"][i]["index"], i);
        EXPECT_EQ(all["data"][i]["embedding"], (i == 1 ? other : one)["data"][0]["embedding"]);
    }
    EXPECT_EQ(all["usage"]["prompt_tokens"], 2 * one["usage"]["prompt_tokens"].get<int>() +
                                                 other["usage"]["prompt_tokens"].get<int>());
    EXPECT_EQ(first(embed({{"input", ids}})), first(one));
    const Json lists = embed({{"input", Json::array({ids, {1, 2, 3}})}});
    ASSERT_EQ(lists["data"].size(), 2u);
    EXPECT_EQ(first(lists), first(one));
    EXPECT_NE(lists["data"][1]["embedding"], lists["data"][0]["embedding"]);
}

TEST(Embeddings, InBase64AreLittleEndianFloats) {
    const auto numbers = first(embed({{"input", kText}}));
    const auto text = embed({{"input", kText}, {"encoding_format", "base64"}})["data"][0]["embedding"]
                          .get<std::string>();
    std::vector<unsigned char> bytes(text.size());
    const int decoded = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()),
                                        static_cast<int>(text.size()));
    ASSERT_GE(decoded, static_cast<int>(numbers.size() * 4));
    std::vector<float> values(numbers.size());
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    EXPECT_EQ(values, numbers);
    EXPECT_EQ(text.size(), (numbers.size() * 4 + 2) / 3 * 4);
}

TEST(Embeddings, AreRefusedWithTheFieldAtFault) {
    const auto refused = [](const Json& body, const char* param, const char* why, int status = 400) {
        const Json error = error_of(body, status);
        EXPECT_EQ(error["param"], param) << error;
        EXPECT_EQ(error["type"], status == 404 ? "not_found_error" : "invalid_request_error") << error;
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(why));
    };
    refused(Json::object(), "input", "is missing");
    refused({{"input", Json::array()}}, "input", "expected a string");
    refused({{"input", 5}}, "input", "expected a string");
    refused({{"input", {1, "a"}}}, "input", "neither a string nor");
    refused({{"input", {-1}}}, "input", "token -1");
    refused({{"input", std::vector<std::string>(2049, "a")}}, "input", "up to 2048");
    refused({{"input", "a"}, {"encoding_format", "int8"}}, "encoding_format", "expected float or base64");
    refused({{"input", "a"}, {"dimensions", 8}}, "dimensions", "was not trained for shorter embeddings");
    refused({{"input", "a"}, {"dimensions", "8"}}, "dimensions", "expected a whole number");
    refused({{"input", "a"}, {"model", "gpt"}}, "model", "does not exist", 404);
    const Json error = error_of({{"input", std::vector<int>(5000, 1)}});
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("exceeds max_model_len"));
    EXPECT_EQ(get(shared().port(), kPath).status, 405);
}

TEST(Embeddings, OfLongInputsMayBeTruncatedFromTheLeft) {
    std::vector<int> ids;
    for (int i = 0; i < 5000; ++i) ids.push_back(i % 90);
    const std::vector<int> last(ids.end() - 20, ids.end());
    EXPECT_EQ(first(embed({{"input", ids}, {"truncate_prompt_tokens", 20}})), first(embed({{"input", last}})));
    EXPECT_GT(embed({{"input", ids}, {"truncate_prompt_tokens", -1}})["usage"]["prompt_tokens"], 20);
}

TEST(Embeddings, DimensionsMayBeThoseOfTheModel) {
    const auto whole = first(embed({{"input", kText}}));
    EXPECT_EQ(first(embed({{"input", kText}, {"dimensions", whole.size()}})), whole);
}

constexpr const char* kMeanPooling = R"({"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false})";

TEST(Embeddings, ArePooledAsConfigured) {
    config::EngineConfig c = Running::demo_model();
    c.pooler_config.pooling_type = config::PoolingType::kMean;
    c.pooler_config.normalize = false;
    const Running server({}, c);
    EXPECT_EQ(first(embed({{"input", kText}}, server)), expected(kText, engine::PoolingType::kMean));
    EXPECT_NEAR(length(first(embed({{"input", kText}, {"normalize", true}}, server))), 1, 1e-6);
}

TEST(Embeddings, ArePooledAsTheModelsFolderSays) {
    const ModelWith mean(Files{{"1_Pooling/config.json", kMeanPooling}, {"modules.json", "[]"}});
    const Running server({}, mean.config());
    EXPECT_EQ(first(embed({{"input", kText}}, server)), expected(kText, engine::PoolingType::kMean))
        << "and not normalised, as no module does it";
    const ModelWith normalised(Files{{"1_Pooling/config.json", kMeanPooling},
                                     {"modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])"}});
    const Running second({}, normalised.config());
    EXPECT_NEAR(length(first(embed({{"input", kText}}, second))), 1, 1e-6);
}

TEST(Embeddings, ArePooledAsNewerFoldersSay) {
    const ModelWith mean(Files{{"1_Pooling/config.json", R"({"embedding_dimension": 128, "pooling_mode": "mean"})"}}),
        last(Files{{"1_Pooling/config.json", R"({"embedding_dimension": 128, "pooling_mode": "lasttoken"})"}});
    const Running of_mean({}, mean.config()), of_last({}, last.config());
    EXPECT_EQ(first(embed({{"input", kText}}, of_mean)), scaled(expected(kText, engine::PoolingType::kMean)));
    EXPECT_EQ(first(embed({{"input", kText}}, of_last)), scaled(expected(kText, engine::PoolingType::kLast)));
}

TEST(Embeddings, ThatTheFolderMakesOtherwiseAreRefusedAndTextsAreNot) {
    const std::string pooling = "1_Pooling/config.json", modules = "modules.json",
                      alone = "expected lasttoken or mean alone (or set pooler_config.pooling_type: LAST or MEAN)";
    const auto list = [](const char* last) {
        return Json{{{"idx", 0}, {"path", ""}, {"type", "sentence_transformers.models.Transformer"}},
                    {{"idx", 1}, {"path", "1_Pooling"}, {"type", "sentence_transformers.models.Pooling"}},
                    {{"idx", 2}, {"path", "2"}, {"type", last}}}.dump();
    };
    const std::tuple<Files, const char*, std::string> cases[] = {
        {{{pooling, R"({"pooling_mode_cls_token": true})"}}, "unsupported", "is pooling_mode_cls_token, " + alone},
        {{{pooling, R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": true})"}}, "unsupported",
         "is pooling_mode_lasttoken and pooling_mode_mean_tokens, " + alone},
        {{{pooling, R"({"pooling_mode_lasttoken": true, "pooling_mode_max_tokens": true})"}}, "unsupported", alone},
        {{{pooling, R"({"pooling_mode": "cls"})"}}, "unsupported", "the pooling is cls, " + alone},
        {{{pooling, R"({"pooling_mode": ["mean", "max"]})"}}, "unsupported", "the pooling is [\"mean\",\"max\"]"},
        {{{pooling, "{}"}}, "unsupported", "the pooling is not given, " + alone},
        {{{pooling, "[1"}}, "invalid", pooling},
        {{{modules, list("sentence_transformers.models.Dense")}}, "unsupported",
         "the module Dense is not supported, expected Transformer, Pooling and Normalize alone"},
        {{{modules, list("LayerNorm")}}, "unsupported", "the module LayerNorm is not supported"},
        {{{modules, R"({"0": "Transformer"})"}}, "invalid", "expected a list of modules"},
        {{{modules, "[{}]"}}, "invalid", "expected modules with a type"}};
    for (const auto& [files, code, message] : cases) {
        const ModelWith model(files);
        const Running server({}, model.config());
        const Json error = error_of({{"input", kText}}, 400, server);
        EXPECT_EQ(error["code"], code) << error;
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(message));
        EXPECT_EQ(server.complete({{"prompt", kText}, {"max_tokens", 2}})["usage"]["completion_tokens"], 2);
    }
}

TEST(Embeddings, ArePooledAsConfiguredWhateverTheFolderSays) {
    const ModelWith cls(Files{{"1_Pooling/config.json", R"({"pooling_mode_cls_token": true})"}});
    config::EngineConfig c = cls.config();
    c.pooler_config.pooling_type = config::PoolingType::kLast;
    const Running server({}, c);
    EXPECT_EQ(first(embed({{"input", kText}}, server)), first(embed({{"input", kText}})));
}

TEST(Embeddings, OfAMatryoshkaModelMayBeCutShort) {
    const ModelWith any(Files{}, {{"is_matryoshka", true}}), two(Files{}, {{"matryoshka_dimensions", {8, 16}}});
    const Running free({}, any.config()), bound({}, two.config());
    auto cut = expected(kText, engine::PoolingType::kLast);
    const size_t size = cut.size();
    cut.resize(16);
    EXPECT_EQ(first(embed({{"input", kText}, {"dimensions", 16}}, free)), scaled(cut));
    EXPECT_EQ(first(embed({{"input", kText}, {"dimensions", 16}}, bound)), scaled(cut));
    EXPECT_EQ(error_of({{"input", kText}, {"dimensions", 17}}, 400, bound)["message"],
              "dimensions: is 17, expected one of 8, 16");
    EXPECT_EQ(error_of({{"input", kText}, {"dimensions", 0}}, 400, free)["message"],
              "dimensions: is 0, expected 1 to " + std::to_string(size));
}

TEST(Embeddings, AClientThatGoesAbortsThem) {
    config::EngineConfig c = Running::demo_model();
    c.engine.max_num_batched_tokens = 8; // many steps
    const Running server({}, c);
    {
        HttpClient client(server.port());
        client.post(kPath, Json{{"input", std::vector<std::vector<int>>(1200, std::vector<int>(100, 5))}}.dump());
        wait_until("step", [&] { return server.server->engine().status().steps > 0; });
        client.reset();
    }
    EXPECT_EQ(server.pages_in_use_when_idle(), 0u);
    EXPECT_THAT(get(server.port(), "/metrics").body,
                ::testing::ContainsRegex("patchbay_requests_finished_total.reason=\"abort\". [1-9]"));
}

TEST(Embeddings, AreCountedByTheirRoute) {
    const Running server;
    embed({{"input", kText}}, server);
    error_of(Json::object(), 400, server);
    const std::string text = get(server.port(), "/metrics").body;
    EXPECT_THAT(text, HasSubstr("patchbay_http_requests_total{route=\"/v1/embeddings\",status=\"200\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_http_requests_total{route=\"/v1/embeddings\",status=\"400\"} 1\n"));
    EXPECT_THAT(text, HasSubstr("patchbay_generation_tokens_total 0\n"));
}

}  // namespace
}  // namespace patchbay::serve::testing::embeddings_test
