// The sampling parameters that a model's generation_config.json recommends.
#include "serve/default_sampling.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "serve/generation_request.hpp"
#include "serve/server_fixture.hpp"
#include "serve/temporary_folder.hpp"

namespace patchbay::serve::testing::default_sampling_test {
namespace {

using ::testing::HasSubstr;

struct GenerationConfig {
    TemporaryFolder folder;

    Result<DefaultSampling> read(const std::string& text) const {
        std::ofstream(folder.path() / "generation_config.json") << text;
        return default_sampling(folder.path());
    }
    std::string refusal(const std::string& text) const {
        const auto out = read(text);
        return out ? "(was read)" : out.error();
    }
};

TEST(DefaultSampling, IsOfTheModelsGenerationConfig) {
    const GenerationConfig config;
    const auto none = default_sampling(config.folder.path());
    ASSERT_TRUE(none) << none.error();
    EXPECT_EQ(none->text, "");
    const auto some = config.read(
        R"({"do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": null, "eos_token_id": [1, 2]})");
    ASSERT_TRUE(some) << some.error();
    EXPECT_EQ(some->params.temperature, 0.6f);
    EXPECT_EQ(some->params.top_k, 20);
    EXPECT_EQ(some->params.top_p, 0.95f);
    EXPECT_EQ(some->params.repetition_penalty, 1);
    EXPECT_EQ(some->text, "temperature 0.6, top_k 20, top_p 0.95");
}

TEST(DefaultSampling, NamesTheKeyThatIsWrong) {
    const GenerationConfig config;
    EXPECT_THAT(config.refusal(R"({"temperature": "warm"})"),
                HasSubstr("generation_config.json: temperature is warm, expected a number"));
    EXPECT_THAT(config.refusal(R"({"top_k": 50.0})"), HasSubstr("top_k is 50.0, expected a whole number (--gen"));
    EXPECT_THAT(config.refusal(R"({"top_p": 2})"), HasSubstr("generation_config.json: top_p is 2"));
    EXPECT_THAT(config.refusal("{"), HasSubstr("invalid JSON"));
}

TEST(DefaultSampling, CountsForWhatARequestDoesNotSet) {
    ServedModel model;
    model.names = {"demo"};
    model.default_sampling.params.temperature = 0.6f;
    model.default_sampling.params.top_k = 20;
    const auto read = [&](const Json& body) {
        GenerationRequest request;
        EXPECT_FALSE(read_generation(body, model, request)) << body;
        return request.sampling;
    };
    EXPECT_EQ(read(Json::object()).top_k, 20);
    EXPECT_EQ(read({{"temperature", 1.5}}).temperature, 1.5f);
    EXPECT_EQ(read({{"temperature", 1.5}}).top_k, 20);
    EXPECT_EQ(read({{"top_k", nullptr}}).top_k, 20);
    EXPECT_EQ(read({{"use_beam_search", true}, {"n", 2}}).top_k, 0) << "beams are not sampled";
}

TEST(DefaultSampling, IsThatOfTheServedModel) {
    const GenerationConfig folder;
    config::EngineConfig config = Running::demo_model();
    std::filesystem::copy(config.model.path, folder.folder.path(), std::filesystem::copy_options::recursive);
    ASSERT_TRUE(folder.read(R"({"temperature": 0})"));
    config.model.path = folder.folder.path();
    const Running running({}, config);
    const auto text = [&](Json more) {
        more.update({{"prompt", "The wolf"}, {"max_tokens", 12}, {"seed", 3}});
        return running.complete(more)["choices"][0]["text"].get<std::string>();
    };
    EXPECT_EQ(text(Json::object()), text({{"temperature", 0}}));
    EXPECT_NE(text(Json::object()), text({{"temperature", 1.5}}));
}

}  // namespace
}  // namespace patchbay::serve::testing::default_sampling_test
