// What /v1/completions refuses because its answer or its outputs would take too much memory.
#include "serve/generation_request.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::completion_bounds_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a model of 131,072 tokens refuses of a request: the field and the text; empty: nothing.
std::string refusal_of(const Json& change, size_t prompts, size_t tokens) {
    ServedModel model;
    model.names = {"m"};
    model.max_model_len = model.vocab_size = 1u << 17;
    Json body{{"prompt", std::vector<std::vector<int>>(prompts, std::vector<int>(tokens, 5))}};
    body.update(change);
    const auto got = read_completion(body, model);
    return got.refusal ? got.refusal->param + ": " + got.refusal->failure.text : "";
}

TEST(CompletionBounds, HoldForTheLogprobsOfAnAnswer) {
    EXPECT_EQ(refusal_of({{"prompt_logprobs", 20}, {"max_tokens", 1}}, 1, 131'071), "");
    EXPECT_EQ(refusal_of({{"logprobs", 1}, {"echo", true}, {"max_tokens", 0}}, 1024, 2000), "");
    EXPECT_EQ(refusal_of({{"n", 8}, {"logprobs", 20}, {"max_tokens", 100'000}}, 1, 100), "");
    EXPECT_THAT(refusal_of({{"prompt_logprobs", 100}, {"max_tokens", 1}}, 1000, 400),
                StartsWith("prompt_logprobs: its answer may hold 40400000 log-probabilities, expected at most "
                           "33554432: "));
    EXPECT_THAT(refusal_of({{"n", 16}, {"logprobs", 100}, {"max_tokens", 100'000}}, 1, 100),
                StartsWith("logprobs: its answer may hold 161600000 log-probabilities"));
    EXPECT_THAT(refusal_of({{"echo", true}, {"n", 4}, {"logprobs", 20}, {"max_tokens", 1}}, 4, 100'000),
                StartsWith("logprobs: its answer may hold 67200336 log-probabilities"));
    const Json streamed{{"n", 16}, {"logprobs", 100}, {"max_tokens", 100'000}, {"stream", true}};
    EXPECT_EQ(refusal_of(streamed, 1, 100), ""); // sent as they come
    EXPECT_EQ(refusal_of({{"logprobs", -1}, {"max_tokens", 255}}, 1, 1), "");
    EXPECT_THAT(refusal_of({{"logprobs", -1}, {"max_tokens", 256}}, 1, 1), HasSubstr("may hold 33554688"));
}

TEST(CompletionBounds, HoldForThePromptsThatAllOutputsHave) {
    EXPECT_EQ(refusal_of({{"n", 128}}, 1, 100'000), "");
    EXPECT_EQ(refusal_of({{"n", 128}}, 6, 100'000),
              "n: the token ids of its prompts take 307200000 bytes, for each of 128 outputs of a prompt; expected at "
              "most 268435456 for all");
}

}  // namespace
}  // namespace patchbay::serve::testing::completion_bounds_test
