// /v1/chat/completions.
#include "serve/generation_request.hpp"
#include "serve/server_fixture.hpp"

namespace patchbay::serve::testing::chat_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kPath = "/v1/chat/completions";
constexpr const char* kRendered = "<system>Be brief.\n<user>The wolf said\n<assistant>"; // of chat()

Json chat(int max_tokens = 12) {
    return {{"messages", {{{"role", "system"}, {"content", "Be brief."}},
                          {{"role", "user"}, {"content", "The wolf said"}}}},
            {"temperature", 0},
            {"max_tokens", max_tokens}};
}

TEST(Chats, GiveTheTextAfterTheRenderedMessages) {
    const Answer answer = shared().post(kPath, chat());
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json got = Json::parse(answer.body);
    EXPECT_EQ(got["object"], "chat.completion");
    EXPECT_THAT(got["id"].get<std::string>(), StartsWith("chatcmpl-"));
    EXPECT_EQ(got["choices"][0]["message"], (Json{{"role", "assistant"}, {"content", expected_text(kRendered, 12)}}));
    EXPECT_EQ(got["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(got["usage"]["completion_tokens"], 12);
}

TEST(Chats, StreamTheRoleThenTextThenAnEmptyDelta) {
    Json body = chat(4);
    body.update({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
    HttpClient client(shared().port());
    client.post(kPath, body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    std::vector<std::string> events;
    while (const auto event = client.read_event()) events.push_back(*event);
    ASSERT_GE(events.size(), 5u);
    const Json first = Json::parse(events[0]);
    const std::string head = "{\"id\":" + first["id"].dump() + ",\"object\":\"chat.completion.chunk\",\"created\":" +
                             first["created"].dump() + ",\"model\":\"demo\",\"choices\":[{\"index\":0,\"delta\":";
    EXPECT_EQ(events[0], head + "{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}],"
                                "\"usage\":null}");
    std::string text;
    for (size_t i = 1; i + 3 < events.size(); ++i) {
        const Json content = Json::parse(events[i])["choices"][0]["delta"]["content"];
        EXPECT_EQ(events[i], head + "{\"content\":" + content.dump() +
                                 "},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}");
        text += content.get<std::string>();
    }
    EXPECT_EQ(text, expected_text(kRendered, 4));
    EXPECT_EQ(events[events.size() - 3],
              head + "{},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null}],\"usage\":null}");
    EXPECT_THAT(events[events.size() - 2], HasSubstr("\"choices\":[],\"usage\":{\"prompt_tokens\":"));
    EXPECT_EQ(events.back(), "[DONE]");
}

TEST(Chats, ShowLogprobsWithBytes) {
    Json body = chat(3);
    body.update({{"logprobs", true}, {"top_logprobs", 2}});
    const Json choice = Json::parse(shared().post(kPath, body).body)["choices"][0];
    std::string joined;
    for (const Json& entry : choice["logprobs"]["content"]) {
        ASSERT_EQ(entry["top_logprobs"].size(), 2u);
        EXPECT_EQ(entry["top_logprobs"][0]["token"], entry["token"]); // greedy
        EXPECT_EQ(entry["top_logprobs"][0]["logprob"], entry["logprob"]);
        for (const Json& byte : entry["bytes"]) joined += static_cast<char>(byte.get<int>());
    }
    EXPECT_EQ(joined, choice["message"]["content"]);
}

TEST(Chats, GoOnWithTheLastMessage) {
    Json body = chat();
    body["messages"].push_back({{"role", "assistant"}, {"content", "that he"}});
    body.update({{"continue_final_message", true}, {"add_generation_prompt", false}});
    const Json got = Json::parse(shared().post(kPath, body).body);
    EXPECT_EQ(got["choices"][0]["message"]["content"],
              expected_text("<system>Be brief.\n<user>The wolf said\n<assistant>that he", 12));
}

TEST(Chats, TakeContentInParts) {
    Json body = chat();
    body["messages"][1]["content"] = {{{"type", "text"}, {"text", "The wolf said"}}};
    EXPECT_EQ(Json::parse(shared().post(kPath, body).body)["choices"][0]["message"]["content"],
              expected_text(kRendered, 12));
}

TEST(Chats, GivePartsToTemplatesThatLoopOverThem) {
    ServedModel model;
    model.chat_template = *text::ChatTemplate::parse(
        "{% for m in messages %}<{% for c in m.content %}{{ c.type }}: {{ c.text }};{% endfor %}>{% endfor %}", "t");
    Json body = chat();
    body["messages"][1]["content"] = {{{"type", "text"}, {"text", "a"}}, "b"};
    body["messages"].push_back({{"role", "assistant"}, {"content", nullptr}});
    EXPECT_EQ(render_chat(body, model).text, "<text: Be brief.;><text: a;text: b;><>");
    body["messages"][2]["content"] = "that he";
    body["continue_final_message"] = true;
    EXPECT_EQ(render_chat(body, model).text, "<text: Be brief.;><text: a;text: b;><text: that he");
    model.chat_template = *text::ChatTemplate::parse("{{ messages[1].content }}", "t");
    body.erase("continue_final_message");
    EXPECT_EQ(render_chat(body, model).text, "a\nb");
}

TEST(Chats, UseAllThatFitsWhereNoLimitIsGiven) {
    Json body = chat();
    body.erase("max_tokens");
    body["stop"] = " "; // soon
    EXPECT_EQ(Json::parse(shared().post(kPath, body).body)["choices"][0]["finish_reason"], "stop");
}

TEST(Chats, GiveTemplatesNoneForToolsAndDocumentsThatAreNotThere) {
    ServedModel model;
    model.chat_template = *text::ChatTemplate::parse("{{ tools is none }} {{ documents }} {{ tools }}", "t");
    Json body = chat();
    EXPECT_EQ(render_chat(body, model).text, "True None None");
    body.update({{"tools", {{{"type", "function"}}}}, {"documents", {"d"}}});
    EXPECT_EQ(render_chat(body, model).text, "False ['d'] [{'type': 'function'}]");
    body["tool_choice"] = "none";
    EXPECT_EQ(render_chat(body, model).text, "True ['d'] None");
}

TEST(Chats, WithToolsUseTheTemplateForThem) {
    ServedModel model;
    model.tool_template = *text::ChatTemplate::parse("with {{ tools | length }}", "t");
    model.no_template = "no template";
    Json with = chat(), without = chat();
    with["tools"] = {{{"type", "function"}}};
    EXPECT_EQ(render_chat(with, model).text, "with 1");
    EXPECT_EQ(render_chat(without, model).refusal->failure.text, "no template");
    model.chat_template = *text::ChatTemplate::parse("without", "t");
    EXPECT_EQ(render_chat(with, model).text, "with 1");
    EXPECT_EQ(render_chat(without, model).text, "without");
    with["tool_choice"] = "none";
    EXPECT_EQ(render_chat(with, model).text, "without") << "the tools are not given to the template";
    with.erase("tool_choice");
    model.tool_template.reset();
    EXPECT_EQ(render_chat(with, model).text, "without");
}

TEST(Chats, GiveTemplatesTheArgumentsOfCallsAsObjects) {
    ServedModel model;
    model.chat_template = *text::ChatTemplate::parse(
        "{% for call in messages[0].tool_calls %}{{ call.function.arguments | tojson }};{% endfor %}", "t");
    const auto call = [](const Json& function) { return Json{{"type", "function"}, {"function", function}}; };
    Json body = chat();
    body["messages"] = {{{"role", "assistant"},
                         {"tool_calls",
                          {call({{"name", "f"}, {"arguments", "{\"a\": 1}"}}),
                           call({{"name", "f"}, {"arguments", ""}}), call({{"name", "f"}, {"arguments", nullptr}}),
                           call({{"name", "f"}}), call({{"name", "f"}, {"arguments", {{"b", 2}}}}),
                           call({{"name", "f"}, {"arguments", "?"}})}}}};
    EXPECT_EQ(render_chat(body, model).text, "{\"a\": 1};{};{};{};{\"b\": 2};\"?\";");
}

TEST(Chats, GiveTemplatesAnEmptyTextWhereThereIsNoContent) {
    ServedModel model;
    model.chat_template = *text::ChatTemplate::parse(
        "{% for m in messages %}<{{ m['content'] }}{{ 'calls' if 'tool_calls' in m }}>{% endfor %}", "t");
    Json body = chat();
    const Json call{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
    body["messages"] = {{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                        {{"role", "assistant"}, {"content", "a"}, {"tool_calls", nullptr}},
                        {{"role", "assistant"}, {"content", "b"}, {"tool_calls", Json::array()}},
                        {{"role", "assistant"}}};
    EXPECT_EQ(render_chat(body, model).text, "<calls><a><b><>");
}

// As the templates of DeepSeek V3 and R1.
TEST(Chats, GiveTemplatesThatTestContentForNoneNoneBesideCalls) {
    const Json call{{"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
    Json body = chat();
    body["messages"] = {{{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({call})}},
                        {{"role", "assistant"}, {"tool_calls", Json::array({call})}},
                        {{"role", "assistant"}, {"content", "a"}, {"tool_calls", Json::array({call})}},
                        {{"role", "assistant"}, {"content", nullptr}},
                        {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array()}},
                        {{"role", "tool"}, {"content", nullptr}}};
    ServedModel model;
    const auto rendered = [&](const std::string& shown) {
        model.chat_template = *text::ChatTemplate::parse("{% for m in messages %}" + shown + "{% endfor %}", "t");
        return render_chat(body, model).text;
    };
    constexpr const char* kExpected = "<f><f><a><><><>";
    EXPECT_EQ(rendered("<{% if m['content'] is none %}{{ m.tool_calls[0].function.name }}"
                       "{% else %}{{ m['content'] }}{% endif %}>"), kExpected);
    EXPECT_EQ(rendered("<{{ m.content if m.content is not none else m.tool_calls[0].function.name }}>"), kExpected);
    EXPECT_EQ(rendered("<{{ m.tool_calls[0].function.name if none == m.content else m.content }}>"), kExpected);
    EXPECT_EQ(rendered("<{{ m['content'] }}{{ '' if m['role'] is none }}>"), "<><><a><><><>") << "not for other tests";
}

TEST(Chats, StreamThePromptsTokensBesideTheFirstChoice) {
    Json body = chat(2);
    const Json whole = Json::parse(shared().post(kPath, [&] {
        Json asked = body;
        asked["return_token_ids"] = true;
        return asked;
    }()).body);
    body.update({{"stream", true}, {"return_token_ids", true}});
    HttpClient client(shared().port());
    client.post(kPath, body.dump());
    ASSERT_EQ(client.read_head().status, 200);
    const auto first = client.read_event(), second = client.read_event();
    ASSERT_TRUE(first && second);
    EXPECT_EQ(Json::parse(*first)["prompt_token_ids"], whole["prompt_token_ids"]);
    EXPECT_FALSE(Json::parse(*first)["choices"][0].contains("prompt_token_ids"));
    EXPECT_FALSE(Json::parse(*second).contains("prompt_token_ids"));
}

TEST(Chats, TakeTopLogprobsOfNoneWithoutLogprobs) {
    Json body = chat(1);
    body.update({{"logprobs", false}, {"top_logprobs", 0}});
    EXPECT_EQ(shared().post(kPath, body).status, 200);
}

TEST(Chats, GoOnWithALastMessageWhoseSpacesTheTemplateStrips) {
    ServedModel model;
    const auto prompt = [&](const char* source, const std::string& content) {
        model.chat_template = *text::ChatTemplate::parse(source, "t");
        Json body = chat();
        body["messages"].push_back({{"role", "assistant"}, {"content", content}});
        body["continue_final_message"] = true;
        const RenderedChat out = render_chat(body, model);
        return out.refusal ? "refused" : out.text;
    };
    constexpr const char* kStrips = "<{{ messages[-1].content | trim }}>";
    constexpr const char* kKeeps = "<{{ messages[-1].content }}>";
    EXPECT_EQ(prompt(kStrips, "that he "), "<that he");
    EXPECT_EQ(prompt(kStrips, "\n that he\n"), "<that he");
    EXPECT_EQ(prompt(kKeeps, "that he \n"), "<that he \n");
    EXPECT_EQ(prompt(kKeeps, " that he "), "< that he ");
    EXPECT_EQ(prompt("<{{ messages[-1].content | upper }}>", "that he"), "refused");
}

TEST(Chats, GoOnWithALastMessageThatTheTemplateMayWriteAgainAfterIt) {
    ServedModel model;
    const auto prompt = [&](const char* source, const Json& content) {
        model.chat_template = *text::ChatTemplate::parse(source, "t");
        Json body = chat();
        body["messages"] = {{{"role", "user"}, {"content", "a<b"}}, {{"role", "assistant"}, {"content", content}}};
        body["continue_final_message"] = true;
        const RenderedChat out = render_chat(body, model);
        return out.refusal ? "refused" : out.text;
    };
    constexpr const char* kChatMl =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}";
    const std::string before = "<|im_start|>user\na<b<|im_end|>\n<|im_start|>assistant\n";
    for (const char* content : {"<", "<|im_end", "im_end|>", "e", "a<b", "x  "})
        EXPECT_EQ(prompt(kChatMl, content), before + content);
    constexpr const char* kStripsAndAddsASpace = "[{{ messages[-1].content | trim }} ] that he";
    EXPECT_EQ(prompt(kStripsAndAddsASpace, "that he \n"), "[that he");
    constexpr const char* kParts = "{% for c in messages[-1].content %}({{ c.text }}){% endfor %}) b";
    EXPECT_EQ(prompt(kParts, {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}), "(a)(b");
    EXPECT_EQ(prompt(kChatMl, " \n"), "refused");
}

TEST(Chats, TakeABoundedNumberOfVariablesAndMembers) {
    Json body = chat(), more = Json::object();
    for (int i = 0; i < 1001; ++i) more["v" + std::to_string(i)] = i;
    body["chat_template_kwargs"] = more;
    const Answer refused = shared().post(kPath, body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_THAT(refused.body, HasSubstr("chat_template_kwargs: has 1001 members, expected at most 1000"));
    more.erase("v0");
    body["chat_template_kwargs"] = more;
    EXPECT_EQ(shared().post(kPath, body).status, 200);

    std::string members; // more than there are tokens; would take minutes if each were compared with all before it
    for (int i = 0; i <= 256 << 10; ++i) members += ",\"" + std::to_string(i) + "\":1";
    const std::string head = R"({"max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}], "x": {"a": 0)";
    HttpClient client(shared().port());
    client.post(kPath, head + members + "}}");
    const Answer wide = client.read_answer();
    EXPECT_EQ(wide.status, 400);
    EXPECT_THAT(wide.body, HasSubstr("the body has an object of more than 262144 members"));
}

TEST(Chats, RefuseWhatIsWrong) {
    struct Case {
        Json change;
        const char *param, *message;
    };
    const Case cases[] = {
        {{{"messages", "hello"}}, "messages", "messages: expected a list"},
        {{{"messages", Json::array()}}, "messages", "at least one message"},
        {{{"messages", {{{"content", "x"}}}}}, "messages", "messages[0]: expected an object with a 'role'"},
        {{{"messages", {{{"role", "user"}, {"content", 5}}}}}, "messages", "messages[0].content: expected a string"},
        {{{"messages", {{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}}}},
         "messages",
         "parts of type 'image_url'"},
        {{{"top_logprobs", 2}}, "top_logprobs", "needs \"logprobs\": true"},
        {{{"logprobs", true}, {"top_logprobs", -1}}, "top_logprobs", "top_logprobs is -1 (all"},
        {{{"logprobs", true}, {"top_logprobs", -2}}, "top_logprobs", "top_logprobs is -2, expected 0 to 100"},
        {{{"logprobs", true}, {"top_logprobs", 101}}, "top_logprobs", "top_logprobs is 101, expected 0 to 100"},
        {{{"stream", true}, {"prompt_logprobs", 1}}, "prompt_logprobs", "are not given in streams of chats"},
        {{{"tool_choice", "required"}}, "tool_choice", "only auto and none"},
        {{{"chat_template", "x"}}, "chat_template", "may not bring a template"},
        {{{"tools", 5}}, "tools", "expected a list"},
        {{{"continue_final_message", true}, {"chat_template_kwargs", {{"messages", Json::array()}}}},
         "chat_template_kwargs",
         "may not bring messages of its own"},
    };
    for (const Case& c : cases) {
        Json body = chat();
        body.update(c.change);
        const Answer answer = shared().post(kPath, body);
        EXPECT_EQ(answer.status, 400) << c.change << answer.body;
        const Json error = Json::parse(answer.body)["error"];
        EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(c.message));
        EXPECT_EQ(error["param"], c.param);
    }
}

}  // namespace
}  // namespace patchbay::serve::testing::chat_test
