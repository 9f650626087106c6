// /v1/completions and what goes with it, by what is sent and answered.
#include <regex>
#include <tuple>

#include "base/utf8.hpp"
#include "paths.hpp"
#include "serve/reply.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::completions_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPath = "/v1/completions";

Json greedy(const Json& prompt, int max_tokens = 12) {
    return {{"model", "demo"}, {"prompt", prompt}, {"temperature", 0}, {"max_tokens", max_tokens}};
}

struct Streamed {
    std::vector<std::string> events; // without [DONE]
    std::string text;
    bool done = false;
};

Streamed stream(const Json& body) {
    HttpClient client(shared().port());
    client.post(kPath, body.dump());
    const Answer head = client.read_head();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-type"), "text/event-stream; charset=utf-8");
    Streamed out;
    while (const auto event = client.read_event()) {
        EXPECT_FALSE(out.done) << "after [DONE]: " << *event;
        if (*event == "[DONE]") {
            out.done = true;
            continue;
        }
        out.events.push_back(*event);
        const Json json = Json::parse(*event);
        if (!json["choices"].empty()) out.text += json["choices"][0]["text"].get<std::string>();
    }
    client.get("/health"); // the connection serves on
    EXPECT_EQ(client.read_answer().status, 200);
    return out;
}

TEST(Completions, GiveTheTextOfAPlainLoop) {
    const Json got = shared().complete(greedy("Once upon a time", 24));
    const Json& choice = got["choices"][0];
    EXPECT_EQ(choice["text"], expected_text("Once upon a time", 24));
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"], nullptr);
    EXPECT_EQ(got["object"], "text_completion");
    EXPECT_EQ(got["model"], "demo");
    EXPECT_THAT(got["id"].get<std::string>(), StartsWith("cmpl-"));
    EXPECT_EQ(got["usage"]["completion_tokens"], 24);
    EXPECT_EQ(got["usage"]["total_tokens"], 24 + got["usage"]["prompt_tokens"].get<int>());
}

TEST(Completions, GiveTheTextOfGenerate) {
    const std::string command = std::string(kBuildDir) + "/bin/patchbay generate --model " +
                                engine::testing::repository("models/demo-draft") +
                                " --prompt 'The wolf said' --temperature 0 --max-tokens 20 --threads 1 2>/dev/null";
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_TRUE(pipe);
    std::string printed;
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) printed.append(part, n);
    ASSERT_EQ(pclose(pipe), 0);
    Json body = greedy("The wolf said", 20);
    body["echo"] = true;
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"].get<std::string>() + "\n", printed);
}

TEST(Completions, StreamEventsToTheLetter) {
    Json body = greedy("The king", 3);
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    const Streamed got = stream(body);
    EXPECT_TRUE(got.done);
    EXPECT_EQ(got.text, expected_text("The king", 3));
    ASSERT_GE(got.events.size(), 2u);
    const Json first = Json::parse(got.events[0]);
    const std::string head = "{\"id\":" + first["id"].dump() + ",\"object\":\"text_completion\",\"created\":" +
                             first["created"].dump() + ",\"model\":\"demo\",\"choices\":[";
    for (size_t i = 0; i + 1 < got.events.size(); ++i) {
        const Json choice = Json::parse(got.events[i])["choices"][0];
        const bool last = i + 2 == got.events.size();
        EXPECT_EQ(got.events[i], head + "{\"index\":0,\"text\":" + choice["text"].dump() +
                                     ",\"logprobs\":null,\"finish_reason\":" + (last ? "\"length\"" : "null") +
                                     ",\"stop_reason\":null}],\"usage\":null}");
    }
    const Json usage = Json::parse(got.events.back());
    EXPECT_EQ(usage["choices"], Json::array());
    EXPECT_EQ(usage["usage"]["completion_tokens"], 3);
}

TEST(Completions, StreamWithoutUsageWhereNoneIsAsked) {
    Json body = greedy("The king", 4);
    body["stream"] = true;
    const Streamed got = stream(body);
    EXPECT_TRUE(got.done);
    for (const std::string& event : got.events) EXPECT_FALSE(Json::parse(event).contains("usage")) << event;
}

TEST(Completions, TakePromptsAsTokensAndSeveralAtOnce) {
    const Json tokens = Json::parse(shared().post("/tokenize", {{"prompt", "The wolf said"}}).body)["tokens"];
    EXPECT_EQ(shared().complete(greedy(tokens))["choices"][0]["text"], expected_text("The wolf said", 12));
    const Json got = shared().complete(greedy({"Once", "The king", "The wolf said"}));
    ASSERT_EQ(got["choices"].size(), 3u);
    const char* prompts[] = {"Once", "The king", "The wolf said"};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(got["choices"][i]["index"], i);
        EXPECT_EQ(got["choices"][i]["text"], expected_text(prompts[i], 12));
    }
    const Json of_ids = shared().complete(greedy({tokens, tokens}));
    EXPECT_EQ(of_ids["choices"][1]["text"], expected_text("The wolf said", 12));
}

TEST(Completions, StopAtTextsAndSayWhich) {
    const std::string all = expected_text("The wolf said", 30);
    const std::string word = all.substr(all.size() / 2, 3);
    Json body = greedy("The wolf said", 30);
    body["stop"] = word;
    const Json choice = shared().complete(body)["choices"][0];
    EXPECT_EQ(choice["text"], all.substr(0, all.find(word)));
    EXPECT_EQ(choice["finish_reason"], "stop");
    EXPECT_EQ(choice["stop_reason"], word);
    body["include_stop_str_in_output"] = true;
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], all.substr(0, all.find(word) + word.size()));
}

TEST(Completions, DrawSeveralOutputsByTheirSeeds) {
    Json body = greedy("The king", 8);
    body.update({{"temperature", 0.9}, {"seed", 7}, {"n", 3}});
    const Json got = shared().complete(body);
    ASSERT_EQ(got["choices"].size(), 3u);
    body.update({{"seed", 9}, {"n", 1}});
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], got["choices"][2]["text"]);
    body.update({{"seed", 7}, {"n", 2}, {"best_of", 4}});
    EXPECT_EQ(shared().complete(body)["choices"].size(), 2u);
    body.update({{"stream", true}, {"n", 3}, {"best_of", 3}});
    std::map<int, std::string> texts;
    for (const std::string& event : stream(body).events) {
        const Json choice = Json::parse(event)["choices"][0];
        texts[choice["index"]] += choice["text"].get<std::string>();
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(texts[i], got["choices"][i]["text"].get<std::string>());
}

TEST(Completions, SearchByBeams) {
    Json body = greedy("The king", 6);
    body.update({{"use_beam_search", true}, {"n", 3}});
    const Json got = shared().complete(body);
    ASSERT_EQ(got["choices"].size(), 3u);
    EXPECT_NE(got["choices"][0]["text"], got["choices"][1]["text"]);
    body["n"] = 1; // a search of one beam: greedy
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], expected_text("The king", 6));
}

TEST(Completions, ShowLogprobs) {
    Json body = greedy("The king", 5);
    body["logprobs"] = 2;
    const Json choice = shared().complete(body)["choices"][0];
    const Json& got = choice["logprobs"];
    std::string joined;
    for (size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(got["text_offset"][i], count_characters(joined));
        joined += got["tokens"][i].get<std::string>();
        EXPECT_LT(got["token_logprobs"][i].get<double>(), 0);
        const Json& top = got["top_logprobs"][i];
        EXPECT_GE(top.size(), 2u);
        EXPECT_EQ(top[got["tokens"][i].get<std::string>()], got["token_logprobs"][i]); // greedy: the first
    }
    EXPECT_EQ(joined, choice["text"]);
}

TEST(Completions, EchoThePromptWithItsLogprobs) {
    Json body = greedy("The king said", 0);
    body.update({{"echo", true}, {"logprobs", 1}});
    const Json got = shared().complete(body);
    const Json& choice = got["choices"][0];
    EXPECT_EQ(choice["text"], "The king said");
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["logprobs"]["token_logprobs"][0], nullptr);
    EXPECT_EQ(choice["logprobs"]["tokens"].size(), got["usage"]["prompt_tokens"].get<size_t>());
    EXPECT_LT(choice["logprobs"]["token_logprobs"][1].get<double>(), 0);
    EXPECT_EQ(got["usage"]["completion_tokens"], 0);
}

TEST(Completions, ReturnTokenIdsAndPromptLogprobs) {
    Json body = greedy("The king", 4);
    body.update({{"return_token_ids", true}, {"prompt_logprobs", 1}});
    const Json choice = shared().complete(body)["choices"][0];
    EXPECT_EQ(choice["token_ids"].size(), 4u);
    EXPECT_EQ(choice["prompt_token_ids"],
              Json::parse(shared().post("/tokenize", {{"prompt", "The king"}}).body)["tokens"]);
    EXPECT_EQ(choice["prompt_logprobs"].size(), choice["prompt_token_ids"].size());
    EXPECT_EQ(choice["prompt_logprobs"][0], nullptr);
    const std::string second = choice["prompt_token_ids"][1].dump();
    EXPECT_TRUE(choice["prompt_logprobs"][1].contains(second)) << choice;
    EXPECT_EQ(shared().post("/detokenize", {{"tokens", choice["token_ids"]}}).body,
              Json({{"prompt", choice["text"]}}).dump());
}

TEST(Completions, KeepSpecialTokensWhereAsked) {
    constexpr const char* kEndToken = "<|endoftext|>";
    Json body = greedy("The king", 1);
    const Json end = Json::parse(shared().post("/tokenize", {{"prompt", kEndToken}}).body)["tokens"];
    ASSERT_EQ(end.size(), 1u);
    body.update({{"logit_bias", {{end[0].dump(), 1000}}}, {"ignore_eos", true}});
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], "");
    body["skip_special_tokens"] = false;
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], kEndToken);
    EXPECT_EQ(shared().post("/detokenize", {{"tokens", end}}).body, Json({{"prompt", kEndToken}}).dump());
    const Json echoed{{"prompt", end}, {"echo", true}, {"max_tokens", 0}};
    EXPECT_EQ(shared().complete(echoed)["choices"][0]["text"], kEndToken);
}

TEST(Completions, StreamPromptLogprobsOfEachOutput) {
    Json body = greedy("The king", 3);
    body.update({{"n", 2}, {"temperature", 1}, {"prompt_logprobs", 1}, {"logprobs", 1}, {"echo", true}});
    const Json whole = shared().complete(body)["choices"];
    body["stream"] = true;
    HttpClient client(shared().port());
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    std::vector<Json> first(2);
    while (const auto event = client.read_event()) {
        if (*event == "[DONE]") continue;
        const Json json = Json::parse(*event);
        for (const Json& choice : json["choices"])
            if (Json& known = first.at(choice["index"]); known.is_null()) known = choice;
    }
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(first[i]["prompt_logprobs"], whole[i]["prompt_logprobs"]) << i;
        EXPECT_EQ(first[i]["logprobs"]["token_logprobs"][1], whole[i]["logprobs"]["token_logprobs"][1]) << i;
        EXPECT_TRUE(first[i]["logprobs"]["token_logprobs"][1].is_number()) << i;
    }
}

TEST(Completions, StreamPromptLogprobsThoughTheFirstTextIsHeldBack) {
    Json body = greedy("The king", 1);
    const auto text = shared().complete(body)["choices"][0]["text"].get<std::string>();
    body.update({{"stream", true}, {"prompt_logprobs", 1}, {"max_tokens", 2}, {"stop", {text + "\x01"}}});
    HttpClient client(shared().port());
    client.post("/v1/completions", body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    const auto event = client.read_event();
    ASSERT_TRUE(event);
    EXPECT_GE(Json::parse(*event)["choices"][0]["prompt_logprobs"].size(), 2u) << *event;
}

TEST(Completions, FollowASchema) {
    const Json schema{{"type", "object"}, {"properties", {{"age", {{"type", "integer"}, {"maximum", 99}}}}},
                      {"required", {"age"}}, {"additionalProperties", false}};
    Json body = greedy("Person: ", 60);
    body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"name", "p"}, {"schema", schema}}}};
    const Json parsed = Json::parse(shared().complete(body)["choices"][0]["text"].get<std::string>());
    EXPECT_TRUE(parsed["age"].is_number_integer()) << parsed;
    body.erase("response_format");
    for (const Json& asked :
         {Json{{"structured_outputs", {{"choice", {"yes", "no"}}}}}, Json{{"guided_choice", {"yes", "no"}}},
          Json{{"structured_outputs",
                {{"regex", "yes|no"}, {"json", nullptr}, {"json_object", false}, {"disable_fallback", false}}}}}) {
        Json one = body;
        one.update(asked);
        const Json choice = shared().complete(one)["choices"][0];
        EXPECT_TRUE(choice["text"] == "yes" || choice["text"] == "no") << choice;
        EXPECT_EQ(choice["finish_reason"], "stop");
    }
}

// A schema's number must not become another one; numbers elsewhere may be rounded.
TEST(Completions, RefuseSchemasWhoseNumbersWouldBeRounded) {
    const std::string schema = R"({"const": 18446744073709551617})";
    const std::string content = R"({"type": "json_schema", "json_schema": )" + schema + "}";
    const std::pair<std::string, std::string> refused[] = {
        {R"("response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": )" + schema + "}}",
         "response_format"},
        {R"("response_format": {"type": "structural_tag", "format": )" + content + "}", "response_format"},
        {R"("structured_outputs": {"json": )" + schema + "}", "structured_outputs"},
        {R"("guided_json": )" + schema, "guided_json"}};
    for (const auto& [asked, field] : refused) {
        const Answer answer = post(shared().port(), kPath, R"({"prompt": "a", )" + asked + "}");
        EXPECT_EQ(answer.status, 400) << asked;
        EXPECT_EQ(Json::parse(answer.body)["error"]["param"], field) << answer.body;
        EXPECT_THAT(answer.body, HasSubstr("'const': 18446744073709551617 has more digits than are kept"));
    }
    EXPECT_EQ(post(shared().port(), kPath, R"({"prompt": "a", "max_tokens": 2, "temperature": 0.12345678901234567891,
        "guided_json": {"enum": [18446744073709551615, 0.5]}})").status, 200);
}

TEST(Completions, FollowGrammarsAndStructuralTags) {
    const Json structures{{"type", "structural_tag"},
                          {"triggers", {"t"}},
                          {"structures", {{{"begin", "the"}, {"schema", {{"enum", {7}}}}, {"end", "!"}}}}};
    const Json content{{"type", "regex"}, {"pattern", "ab|cd"}};
    const Json tag{{"type", "tag"}, {"begin", "<"}, {"content", content}, {"end", ">"}};
    const Json format{{"type", "structural_tag"}, {"format", tag}};
    const std::regex word("[a-d]{2,3}!"), tagged("<(ab|cd)>"), whole("[^t]*(the7![^t]*)*(t|th)?");
    const std::tuple<Json, const std::regex&> cases[] = {
        {{{"structured_outputs", {{"grammar", "start: WORD \"!\"\nWORD: /[a-d]{2,3}/"}}}}, word},
        {{{"guided_grammar", "root ::= [a-d]{2,3} \"!\""}}, word},
        {{{"response_format", format}}, tagged},
        {{{"structured_outputs", {{"structural_tag", format}}}}, tagged},
        {{{"structured_outputs", {{"structural_tag", format.dump()}}}}, tagged},
        {{{"response_format", structures}}, whole}};
    for (const auto& [asked, form] : cases) {
        Json body = greedy("Once upon a time", 40);
        body.update(asked);
        const auto text = shared().complete(body)["choices"][0]["text"].get<std::string>();
        EXPECT_TRUE(std::regex_match(text, form)) << asked << ": " << text;
    }
}

TEST(Completions, KeepTheLastTokensOfALongPrompt) {
    const Json tokens =
        Json::parse(shared().post("/tokenize", {{"prompt", "Once there was. The wolf said"}}).body)["tokens"];
    Json last = Json::array();
    for (size_t i = tokens.size() - 3; i < tokens.size(); ++i) last.push_back(tokens[i]);
    Json body = greedy("Once there was. The wolf said");
    body["truncate_prompt_tokens"] = 3;
    EXPECT_EQ(shared().complete(body)["choices"][0]["text"], shared().complete(greedy(last))["choices"][0]["text"]);
}

TEST(Completions, RefuseByNameWhatIsWrong) {
    struct Case {
        Json change;
        int status;
        const char *param, *message;
    };
    const Case cases[] = {
        {{{"max_tokens", "ten"}},
         400,
         "max_tokens",
         "max_tokens: got \"ten\", expected a whole number of 0 to 4294967295"},
        {{{"max_tokens", -1}}, 400, "max_tokens", "max_tokens: got -1, expected a whole number"},
        {{{"temperature", "hot"}}, 400, "temperature", "temperature: got \"hot\", expected a number"},
        {{{"temperature", -1}}, 400, "temperature", "temperature is -1, expected 0 to 100"},
        {{{"stream", 1}}, 400, "stream", "stream: got 1, expected true or false"},
        {{{"stop", {1}}}, 400, "stop", "stop[0]: got 1, expected a string"},
        {{{"logit_bias", {{"x", 1}}}}, 400, "logit_bias", "got the key 'x', expected a token id"},
        {{{"model", "gpt"}}, 404, "model", "the model 'gpt' does not exist, expected 'demo'"},
        {{{"prompt", nullptr}}, 400, "prompt", "prompt: is missing"},
        {{{"prompt", {99999}}}, 400, "prompt", "token 99999, expected 0 to"},
        {{{"prompt", {"a", 1}}}, 400, "prompt", "neither a string nor a list"},
        {{{"max_tokens", 5000}}, 400, "max_tokens", "max_tokens is 5000, expected at most"},
        {{{"n", 2}}, 400, "n", "n is 2 at temperature 0"},
        {{{"n", 0}}, 400, "n", "n: got 0, expected 1 to 128"},
        {{{"n", 1.5}}, 400, "n", "n: got 1.5, expected a whole number"},
        {{{"suffix", "x"}}, 400, "suffix", "suffix: is not supported"},
        {{{"stream_options", {{"include_usage", true}}}}, 400, "stream_options", "only for requests with"},
        {{{"response_format", {{"type", "xml"}}}}, 400, "response_format.type", "got 'xml', expected text"},
        {{{"structured_outputs", {{"regex", "("}}}}, 400, "structured_outputs", "regex"},
        {{{"structured_outputs", {{"structural_tag", 1}}}},
         400,
         "structured_outputs.structural_tag",
         "expected an object"},
        {{{"response_format", {{"type", "structural_tag"}}}}, 400, "structured_outputs", "expected 'structures' with"},
        {{{"response_format", {{"type", "json_object"}}}, {"guided_regex", "a"}},
         400,
         "response_format",
         "as structured_outputs does"},
        {{{"response_format", {{"type", "json_schema"}, {"json_schema", {{"schema", true}}}}},
          {"structured_outputs", {{"json", true}}}},
         400,
         "response_format",
         "as structured_outputs does"},
        {{{"structured_outputs", {{"regex", "a"}, {"json", true}}}}, 400, "structured_outputs", "2 forms"},
        {{{"structured_outputs", {{"regexp", "a"}}}},
         400,
         "structured_outputs.regexp",
         "regexp: is unknown (did you mean 'regex'?), expected json, regex, choice"},
        {{{"structured_outputs", Json::object()}},
         400,
         "structured_outputs",
         "no form of the output, expected exactly one of json, regex, choice"},
        {{{"structured_outputs", {{"disable_any_whitespace", true}}}}, 400, "structured_outputs", "exactly one of"},
        {{{"structured_outputs", {{"json_object", false}, {"regex", nullptr}}}},
         400,
         "structured_outputs",
         "exactly one of"},
        {{{"structured_outputs", {{"choice", Json::array()}}}},
         400,
         "structured_outputs.choice",
         "got an empty list, expected at least one string"},
        {{{"guided_choice", Json::array()}}, 400, "guided_choice", "expected at least one string"},
        {{{"structured_outputs", {{"json", true}, {"disable_additional_properties", true}}}},
         400,
         "structured_outputs.disable_additional_properties",
         "not supported"},
        {{{"structured_outputs", {{"json", true}, {"whitespace_pattern", " ?"}}}},
         400,
         "structured_outputs.whitespace_pattern",
         "not supported"},
        {{{"guided_regex", "a"}, {"guided_whitespace_pattern", " ?"}},
         400,
         "guided_whitespace_pattern",
         "not supported"},
        {{{"repetition_detection", {{"max_pattern", 30}}}},
         400,
         "repetition_detection.max_pattern",
         "is unknown, expected max_pattern_size, min_pattern_size, min_count"},
        {{{"structured_outputs", {{"regex", "[a-z]+"}}}, {"allowed_token_ids", {0}}},
         400,
         "structured_outputs",
         "no token that allowed_token_ids, bad_words and min_tokens leave"},
        {{{"stop", std::vector<std::string>(65, "x")}}, 400, "stop", "65 stop strings"},
        {{{"stop", std::vector<std::string>(5, std::string(4000, 'x'))}}, 400, "stop", "of 20000 bytes together"},
        {{{"best_of", 1}, {"n", 2}, {"temperature", 1}}, 400, "best_of", "less than n"},
    };
    for (const Case& c : cases) {
        Json body = greedy("a");
        body.update(c.change);
        const Answer answer = shared().post(kPath, body);
        EXPECT_EQ(answer.status, c.status) << c.change << answer.body;
        const Json error = Json::parse(answer.body)["error"];
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(c.message));
        EXPECT_EQ(error["param"], c.param ? Json(c.param) : Json()) << c.change;
        EXPECT_EQ(error["type"], c.status == 404 ? "not_found_error" : "invalid_request_error");
        body["stream"] = body["stream"].is_null() ? Json(true) : body["stream"];
        EXPECT_EQ(shared().post(kPath, body).status, c.change.contains("stream_options") ? 200 : c.status) << c.change;
    }
    for (const char* text : {"", "[]", "{\"a\":", "{\"prompt\": \"\xFF\"}"})
        EXPECT_EQ(post(shared().port(), kPath, text).status, 400) << text;
    EXPECT_THAT(post(shared().port(), kPath, std::string(100'000, '[')).body, HasSubstr("more than 64 deep"));
}

TEST(Completions, BoundWhatAllOutputsHaveOfTheirFields) {
    Json body{{"prompt", Json::array()}, {"max_tokens", 1}, {"n", 4}};
    for (int i = 0; i < 1024; ++i) body["prompt"].push_back("a");
    body["allowed_token_ids"] = std::vector<int>(20'000, 5); // 80 kB for each of 4,096 outputs
    const Answer answer = shared().post(kPath, body);
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("the lists and texts of its fields take 80000 bytes, for each of 4096 outputs"));
}

TEST(Completions, IgnoreFieldsThatTheyDoNotKnow) {
    Json body = greedy("The king", 4);
    body.update({{"user", "me"}, {"no_such_field", {1, 2}}, {"stop", nullptr}, {"model", "alias"}});
    const Json got = shared().complete(body);
    EXPECT_EQ(got["choices"][0]["text"], expected_text("The king", 4));
    EXPECT_EQ(got["model"], "alias");
}

TEST(Completions, TakeAnEmptyNameForTheModelThatIsServed) {
    Json body = greedy("The king", 1);
    body["model"] = "";
    EXPECT_EQ(shared().complete(body)["model"], "demo");
}

TEST(Routes, AnswerOperators) {
    const uint16_t port = shared().port();
    EXPECT_EQ(get(port, "/health").status, 200);
    EXPECT_EQ(get(port, "/ready").status, 200);
    EXPECT_EQ(get(port, "/version").body, "{\"version\":\"1.2.3\"}");
    const Json models = Json::parse(get(port, "/v1/models").body);
    EXPECT_EQ(models["data"][0]["id"], "demo");
    EXPECT_GT(models["data"][0]["max_model_len"].get<int>(), 100);
    EXPECT_EQ(Json::parse(get(port, "/v1/models/alias").body)["id"], "alias");
    EXPECT_EQ(Json::parse(get(port, "/v1/models/%61l%69as").body)["id"], "alias");
    EXPECT_THAT(get(port, "/v1/models/a%2Fb%2").body, HasSubstr("the model 'a/b%2' does not exist"));
    EXPECT_EQ(get(port, "/v1/models/x").status, 404);
    EXPECT_EQ(get(port, "/no/such").status, 404);
    const Answer wrong = get(port, "/v1/completions");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.at("allow"), "POST");
    shared().complete(greedy("a", 1));
    const Answer metrics = get(port, "/metrics");
    EXPECT_THAT(metrics.body, HasSubstr("patchbay_http_requests_total{route=\"/v1/completions\",status=\"200\"}"));
    EXPECT_THAT(metrics.body, HasSubstr("patchbay_generation_tokens_total"));
}

TEST(Routes, TokenizeTextsAndChats) {
    const Json got =
        Json::parse(shared().post("/tokenize", {{"prompt", "The wolf"}, {"return_token_strs", true}}).body);
    EXPECT_EQ(got["count"], got["tokens"].size());
    std::string joined;
    for (const Json& piece : got["token_strs"]) joined += piece.get<std::string>();
    EXPECT_EQ(joined, "The wolf");
    const Json chat{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
    const Json tokens = Json::parse(shared().post("/tokenize", chat).body)["tokens"];
    EXPECT_EQ(shared().post("/detokenize", {{"tokens", tokens}}).body, "{\"prompt\":\"<user>Hi\\n<assistant>\"}");
    EXPECT_EQ(shared().post("/tokenize", Json::object()).status, 400);
    EXPECT_EQ(shared().post("/detokenize", {{"tokens", {-1}}}).status, 400);
}

}  // namespace
}  // namespace patchbay::serve::testing::completions_test
