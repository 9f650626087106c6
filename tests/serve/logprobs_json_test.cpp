// Log-probabilities as JSON, of a vocabulary in which two tokens have one text.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "serve/reply.hpp"
#include "text/tokenizer_json.hpp"

namespace patchbay::serve::logprobs_json_test {
namespace {

using engine::TokenLogprobs;

// "a", "b", and two bytes that are no character, so that both are shown as U+FFFD.
ServedModel model() {
    const auto made = text::tokenizer_from_json(nlohmann::json::parse(R"({
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "\u0122": 2, "\u0123": 3}, "merges": []},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "decoder": {"type": "ByteLevel"}})"),
                                                {}, "fixed");
    if (!made) throw std::runtime_error(made.error());
    ServedModel out;
    out.tokenizer = *made;
    out.vocab_size = 4;
    return out;
}

TokenLogprobs likeliest(std::vector<std::pair<engine::TokenId, float>> top, float sampled) {
    TokenLogprobs out;
    out.sampled = sampled;
    out.top = std::move(top);
    return out;
}

Json top_logprobs(const GenerationRequest& request, const TokenLogprobs& of, engine::TokenId sampled) {
    size_t offset = 0;
    return completion_logprobs(request, model(), {}, {}, {sampled}, {of}, offset)["top_logprobs"][0];
}

TEST(LogprobsJson, OfACompletionHaveEachTextOnceByTheLikeliest) {
    const TokenLogprobs three = likeliest({{2, -0.5f}, {3, -1.0f}, {0, -2.0f}}, -1.0f);
    GenerationRequest request;
    EXPECT_EQ(top_logprobs(request, three, 3).dump(), "{\"\uFFFD\":-0.5,\"a\":-2.0}");
    EXPECT_EQ(top_logprobs(request, likeliest({{0, -0.5f}}, -4.0f), 1).dump(), "{\"a\":-0.5,\"b\":-4.0}");
    request.tokens_as_ids = true;
    EXPECT_EQ(top_logprobs(request, three, 3).dump(),
              R"({"token_id:2":-0.5,"token_id:3":-1.0,"token_id:0":-2.0})");
}

TEST(LogprobsJson, OfAPromptHaveEachIdOnceAndTheTokensOwn) {
    const std::vector<engine::TokenId> prompt{0, 3, 1};
    const std::vector<TokenLogprobs> of_prompt{likeliest({{2, -0.5f}, {3, -1.0f}}, -1.0f),
                                               likeliest({{2, -0.5f}}, -4.0f)};
    const Json got = prompt_logprobs_json(model(), prompt, of_prompt);
    ASSERT_EQ(got.size(), 3u);
    EXPECT_EQ(got[0], nullptr);
    const auto entry = [](double logprob, const Json& rank, const char* text) {
        return Json{{"logprob", logprob}, {"rank", rank}, {"decoded_token", text}};
    };
    EXPECT_EQ(got[1], (Json{{"2", entry(-0.5, 1, "\uFFFD")}, {"3", entry(-1, 2, "\uFFFD")}}));
    EXPECT_EQ(got[2], (Json{{"2", entry(-0.5, 1, "\uFFFD")}, {"1", entry(-4, nullptr, "b")}}));
}

}  // namespace
}  // namespace patchbay::serve::logprobs_json_test
