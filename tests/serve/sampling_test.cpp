// Every sampling field of a request reaches the engine: over HTTP it gives what the engine gives for the same setting,
// and something other than without it.
#include "serve/generation_request.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::sampling_test {
namespace {

using engine::SamplingParams;
using engine::TokenId;

constexpr const char* kPrompt = "The wolf said to the king that the king said to the wolf";
constexpr uint32_t kTokens = 24;

Json request_of(float temperature) {
    return {{"model", "demo"}, {"prompt", kPrompt}, {"temperature", temperature}, {"max_tokens", kTokens},
            {"seed", 5},       {"ignore_eos", true}, {"return_token_ids", true}};
}

SamplingParams params_of(float temperature) {
    SamplingParams p;
    p.temperature = temperature;
    p.max_tokens = kTokens;
    p.seed = 5;
    p.ignore_eos = true;
    return p;
}

engine::testing::Output plain(const SamplingParams& params) {
    static engine::testing::Harness all(Running::demo_model());
    return all.run(all.add(all.engine->tokenizer()->encode(kPrompt), params));
}

struct Field {
    const char* name;
    float temperature; // of the draws that it changes
    Json value;
    std::function<void(SamplingParams&)> set;
};

void PrintTo(const Field& field, std::ostream* out) { *out << field.name; }

class SamplingFields : public ::testing::TestWithParam<Field> {};

TEST_P(SamplingFields, ReachTheEngine) {
    const Field& field = GetParam();
    SamplingParams params = params_of(field.temperature);
    const engine::testing::Output without = plain(params);
    field.set(params);
    const engine::testing::Output with = plain(params);
    Json body = request_of(field.temperature);
    body[field.name] = field.value;
    const Json choice = shared().complete(body)["choices"][0];
    EXPECT_EQ(choice["token_ids"].get<std::vector<TokenId>>(), with.tokens);
    EXPECT_NE(with.tokens, without.tokens) << "the case shows nothing";
}

std::vector<Field> fields() {
    const TokenId first = plain(params_of(0)).tokens.at(0), third = plain(params_of(0)).tokens.at(2);
    const std::string biased = std::to_string(first), text = plain(params_of(0)).text;
    const size_t begin = text.find_first_not_of(' ');
    const std::string word = text.substr(begin, text.find(' ', begin) - begin);
    return {
        {"top_k", 2, 3, [](auto& p) { p.top_k = 3; }},
        {"top_p", 2, 0.3, [](auto& p) { p.top_p = 0.3f; }},
        {"min_p", 2, 0.2, [](auto& p) { p.min_p = 0.2f; }},
        {"seed", 2, 77, [](auto& p) { p.seed = 77; }},
        {"repetition_penalty", 0, 1.8, [](auto& p) { p.repetition_penalty = 1.8f; }},
        {"presence_penalty", 0, 2, [](auto& p) { p.presence_penalty = 2; }},
        {"frequency_penalty", 0, 2, [](auto& p) { p.frequency_penalty = 2; }},
        {"logit_bias", 0, Json{{biased, -100}}, [first](auto& p) { p.logit_bias[first] = -100; }},
        {"allowed_token_ids", 0, Json{20, 21, 22}, [](auto& p) { p.allowed_token_ids = {{20, 21, 22}}; }},
        {"stop_token_ids", 0, Json{third}, [third](auto& p) { p.stop_token_ids = {third}; }},
        {"bad_words", 0, Json{word}, [word](auto& p) { p.bad_words = {word}; }},
        {"max_tokens", 0, 5, [](auto& p) { p.max_tokens = 5; }},
        {"dry_multiplier", 0, 3, [](auto& p) { p.dry_multiplier = 3; }},
        {"top_n_sigma", 2, 0.5, [](auto& p) { p.top_n_sigma = 0.5f; }},
        {"typical_p", 2, 0.2, [](auto& p) { p.typical_p = 0.2f; }},
        {"mirostat", 2, 2, [](auto& p) { p.mirostat = 2; }},
    };
}
INSTANTIATE_TEST_SUITE_P(Each, SamplingFields, ::testing::ValuesIn(fields()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(DryRange, IsReadByTheNameAndValuesOfLlamaCpp) {
    ServedModel model;
    model.names = {"demo"};
    GenerationRequest request;
    const auto read = [&](Json body) {
        request = {};
        body["dry_multiplier"] = 3;
        const auto refusal = read_generation(body, model, request);
        return refusal ? refusal->failure.text : "";
    };
    EXPECT_EQ(read({{"dry_penalty_last_n", 64}}), "");
    EXPECT_EQ(request.sampling.dry_range, 64u);
    EXPECT_EQ(request.sampling.dry_multiplier, 3);
    EXPECT_EQ(read({{"dry_penalty_last_n", -1}}), "");
    EXPECT_EQ(request.sampling.dry_range, 0u) << "all";
    EXPECT_EQ(request.sampling.dry_multiplier, 3);
    EXPECT_EQ(read({{"dry_penalty_last_n", 0}}), "");
    EXPECT_EQ(request.sampling.dry_multiplier, 0) << "off";
    EXPECT_EQ(read({{"dry_penalty_last_n", -2}}), "dry_penalty_last_n: got -2, expected -1 or more");
    EXPECT_EQ(read({{"dry_penalty_last_n", 8}, {"dry_range", 8}}),
              "dry_penalty_last_n: is dry_range by another name, expected one of them");
}

// The token that a greedy continuation makes third ends it, but not before min_tokens.
TEST(EndingFields, KeepAnOutputGoingAndEndIt) {
    const std::vector<TokenId> all = plain(params_of(0)).tokens;
    Json body = request_of(0);
    body["stop_token_ids"] = {all[2]};
    const Json stopped = shared().complete(body)["choices"][0];
    EXPECT_EQ(stopped["token_ids"].size(), 3u);
    EXPECT_EQ(stopped["finish_reason"], "stop");
    EXPECT_EQ(stopped["stop_reason"], Json(all[2])) << "a number";
    body["min_tokens"] = 10;
    const Json longer = shared().complete(body)["choices"][0];
    EXPECT_GE(longer["token_ids"].size(), 10u);
}

// Sends three requests with the values of a field to an engine with one seat; those of the records in the order in
// which they ran.
std::vector<int64_t> served_in_order(const char* scheduler, const char* field, std::vector<int> values,
                                     int64_t (*value_of)(const pb_sequence&)) {
    config::EngineConfig config = Running::demo_model();
    config.scheduler.plugin = scheduler;
    config.engine.max_num_seqs = 1;
    const Running server({}, config);
    std::vector<std::unique_ptr<HttpClient>> clients;
    auto held = std::make_unique<HeldEngine>(server); // so that all three are there at the first step
    for (const int value : values) {
        Json body = request_of(0);
        body.update({{field, value}, {"max_tokens", 1900}}); // so long that the calls below meet each
        clients.push_back(std::make_unique<HttpClient>(server.port()));
        clients.back()->post("/v1/completions", body.dump());
    }
    wait_until("requests", [&] { return server.server->engine().status().inbox == 3; });
    held.reset();
    std::vector<int64_t> served;
    for (bool idle = false; !idle;) // each call waits for a step to end
        server.server->engine().call([&](engine::Engine& engine) {
            idle = !engine.has_unfinished();
            for (const pb_sequence& s : engine.view().running)
                if (served.empty() || served.back() != value_of(s)) served.push_back(value_of(s));
        });
    for (const auto& client : clients) EXPECT_EQ(client->read_answer().status, 200);
    return served;
}

// The engine gives a request with the smaller number its place first.
TEST(RequestFields, PriorityOrdersWhatWaits) {
    const auto priority = [](const pb_sequence& s) { return int64_t{s.priority}; };
    EXPECT_EQ(served_in_order("priority", "priority", {3, 1, 2}, priority), (std::vector<int64_t>{1, 2, 3}));
}

// Of those who wait, the one whose deadline is the earliest, counted from its arrival.
TEST(RequestFields, DeadlineOrdersWhatWaits) {
    const auto seconds = [](const pb_sequence& s) {
        return s.deadline_us == 0 ? 0 : static_cast<int64_t>((s.deadline_us - s.arrival_us) / 1'000'000);
    };
    EXPECT_EQ(served_in_order("edf", "deadline_ms", {0, 9'000'000, 3'000'000}, seconds),
              (std::vector<int64_t>{3000, 9000, 0}));
}

// No step waits for the words of a request to be tokenised, so that one which is refused has its answer without a step.
TEST(RequestFields, BadWordsAreReadOffTheStepThread) {
    const Running server;
    Json body = request_of(0);
    body["bad_words"] = {"wolf", " "};
    const HeldEngine held(server);
    HttpClient client(server.port());
    client.post("/v1/completions", body.dump());
    const Answer answer = client.read_answer();
    EXPECT_EQ(answer.status, 400);
    const Json error = Json::parse(answer.body)["error"];
    EXPECT_EQ(error["message"], "bad_words: a word that is empty or blank");
    EXPECT_EQ(error["param"], "bad_words");
}

TEST(RequestFields, ASeedOfMinusOneIsNone) {
    Json body = request_of(2);
    body["seed"] = -1;
    const auto ids = [&] { return shared().complete(body)["choices"][0]["token_ids"]; };
    EXPECT_NE(ids(), ids());
    body["seed"] = -2;
    EXPECT_EQ(ids(), ids());
}

TEST(RequestFields, CacheSaltKeepsPromptsApart) {
    const auto cached = [&](const char* salt) {
        Json body = request_of(0);
        std::string prompt = "a salted story: ";
        for (int i = 0; i < 20; ++i) prompt += "the wolf said to the king ";
        body.update({{"prompt", prompt}, {"cache_salt", salt}, {"max_tokens", 1}});
        return shared().complete(body)["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
    };
    EXPECT_EQ(cached("one"), 0);
    EXPECT_GT(cached("one"), 0);
    EXPECT_EQ(cached("two"), 0) << "of another salt";
}

TEST(RequestFields, JsonObjectIsTheFormOfTheOutput) {
    for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
        Json body{{"temperature", 0.7}, {"seed", 3}, {"max_tokens", 1000}};
        body["response_format"] = {{"type", "json_object"}};
        const bool chat = path == std::string("/v1/chat/completions");
        if (chat) body["messages"] = {{{"role", "user"}, {"content", "A person as JSON"}}};
        else body["prompt"] = "A person as JSON: ";
        const Answer answer = shared().post(path, body);
        ASSERT_EQ(answer.status, 200) << answer.body;
        const Json choice = Json::parse(answer.body)["choices"][0];
        const std::string text = chat ? choice["message"]["content"] : choice["text"];
        EXPECT_EQ(choice["finish_reason"], "stop") << text;
        EXPECT_TRUE(Json::parse(text, nullptr, false).is_object()) << text;
    }
}

// Of the event's own output, as vLLM does; the last event counts all.
TEST(RequestFields, ContinuousUsageCountsWithEachEvent) {
    Json body = request_of(0);
    body.update({{"stream", true}, {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}},
                 {"n", 2}, {"temperature", 1}});
    HttpClient client(shared().port());
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    uint64_t tokens[2] = {}, all = 0;
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json json = Json::parse(*event);
        all = json["usage"]["completion_tokens"];
        for (const Json& choice : json["choices"]) {
            uint64_t& so_far = tokens[choice["index"].get<size_t>()];
            so_far += choice["token_ids"].size();
            EXPECT_EQ(all, so_far);
        }
    }
    EXPECT_EQ(tokens[0], kTokens);
    EXPECT_EQ(tokens[1], kTokens);
    EXPECT_EQ(all, 2 * kTokens);
}

}  // namespace
}  // namespace patchbay::serve::testing::sampling_test
