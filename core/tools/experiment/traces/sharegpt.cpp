// Conversations as ShareGPT's files have them: [{"conversations": [{"from": "human", "value": …}, {"from": "gpt", …}]}]
// or with "messages", "role" and "content". Each question with its answer is a request; they follow one another.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/refusals.hpp"
#include "experiment/traces/builder.hpp"
#include "experiment/traces/json_lines.hpp"

namespace patchbay::experiment {
namespace {

using Json = nlohmann::json;

struct Message {
    bool is_answer;
    const std::string* text;
};

Result<Message> message_of(const TraceBuilder& b, const Json& given, size_t number) {
    const auto text_at = [&](const char* a, const char* also) -> const std::string* {
        if (!given.is_object()) return nullptr;
        for (const char* key : {a, also})
            if (const auto at = given.find(key); at != given.end() && at->is_string())
                return &at->get_ref<const std::string&>();
        return nullptr;
    };
    const std::string *from = text_at("from", "role"), *value = text_at("value", "content");
    if (!from || !value)
        return b.fault("message " + std::to_string(number) + " has no " +
                       (from ? "text 'value' or 'content'" : "text 'from' or 'role'"));
    return Message{*from == "gpt" || *from == "assistant" || *from == "chatgpt" || *from == "bing" || *from == "bard",
                   value};
}

Result<> add_conversation(TraceBuilder& b, const Json& given, size_t number) {
    const Json* messages = nullptr;
    if (given.is_object())
        for (const char* key : {"conversations", "conversation", "messages"})
            if (given.contains(key)) messages = &given.at(key);
    if (!messages || !messages->is_array())
        return b.fault("no list 'conversations' or 'messages'");
    const std::string session = std::to_string(number);
    std::string question;
    bool any = false;
    for (size_t i = 0; i < messages->size(); ++i) {
        PB_TRY(const Message m, message_of(b, (*messages)[i], i + 1));
        if (!m.is_answer) { // what a system says is a part of the question after it
            question += (question.empty() ? "" : "\n") + *m.text;
            continue;
        }
        if (question.empty() || m.text->empty()) continue;
        PB_TRY(const bool wanted, b.wanted_without_time());
        if (wanted) {
            TraceRow row;
            row.content = PromptContent::kText;
            row.follows = b.has_session(session);
            row.session = b.session(session);
            row.first = b.trace().texts.size();
            row.count = 1;
            row.has_answer = true;
            b.trace().texts.push_back(std::move(question));
            b.trace().texts.push_back(*m.text);
            b.add(row);
        }
        question.clear();
        any = true;
    }
    b.trace().left_out += !any;
    return {};
}

// Element by element, so that only the texts are kept, not their tree.
Result<> add_list(TraceBuilder& b, std::string_view text) {
    constexpr uint32_t kDepth = 64;
    std::optional<Failure> fault;
    size_t number = 0;
    const auto each = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth > static_cast<int>(kDepth) && !fault)
            fault = b.fault("JSON nested more than " + std::to_string(kDepth) + " levels deep");
        if (depth != 1 || (event != Json::parse_event_t::object_end && event != Json::parse_event_t::array_end &&
                           event != Json::parse_event_t::value))
            return !fault;
        b.at_conversation(++number);
        if (!fault)
            if (const auto added = add_conversation(b, parsed, number); !added) fault = added.failure();
        return false; // seen
    };
    try {
        const Json rest = Json::parse(text, each); // without its elements
        (void)rest;
    } catch (const Json::parse_error& error) {
        if (!fault) {
            const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
            b.at_line(1 + static_cast<size_t>(std::ranges::count(before, '\n')));
            return b.fault("invalid JSON: " + json_reason(error));
        }
    } catch (const Json::exception& error) { // a number that no double holds
        if (!fault) return invalid(b.name() + ": invalid JSON: " + json_reason(error));
    }
    if (fault) return *fault;
    return {};
}

}  // namespace

Result<Trace> parse_sharegpt(std::string_view text, const std::string& name, const TraceOptions& options,
                             const InputLimits& limits) {
    TraceBuilder b(name, options, limits, TraceFormat::kShareGpt);
    b.trace().timed = false;
    const size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin != text.npos && text[begin] == '[') {
        PB_CHECK(add_list(b, text));
        return b.finish();
    }
    PB_CHECK(each_json_line(text, b, [&](const Json& given, size_t line) { return add_conversation(b, given, line); }));
    return b.finish();
}

}  // namespace patchbay::experiment
