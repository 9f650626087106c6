// Chats: messages rendered by the model's template.
#include "base/printable.hpp"
#include "engine/request/validation.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {
namespace {

constexpr size_t kMaxVariables = 1000; // of a request's own, for the template

// A message's content as a list of parts of type "text", which is empty where there is none.
std::optional<Refusal> read_content(Json& message, const std::string& where) {
    const auto refuse = [](StatusCode code, std::string why) {
        return Refusal{fail(code, std::move(why)), "messages"};
    };
    const auto part_of = [](const Json& text) { return Json{{"type", "text"}, {"text", text}}; };
    Json& content = message["content"];
    if (!content.is_null() && !content.is_string() && !content.is_array())
        return refuse(StatusCode::kInvalid, where + ".content: expected a string or a list of parts");
    Json parts = Json::array();
    if (content.is_string()) parts.push_back(part_of(content));
    for (size_t i = 0; content.is_array() && i < content.size(); ++i) {
        const Json& part = content[i];
        const std::string place = where + ".content[" + std::to_string(i) + "]";
        const Json* type = part.is_object() && part.contains("type") ? &part["type"] : nullptr;
        if (part.is_string()) parts.push_back(part_of(part));
        else if (type && *type == "text" && part.contains("text") && part["text"].is_string())
            parts.push_back(part_of(part["text"]));
        else if (type && type->is_string())
            return refuse(StatusCode::kUnsupported, place + ": parts of type '" +
                                                        printable(type->get<std::string>(), 40) +
                                                        "' are not supported, expected text");
        else return refuse(StatusCode::kInvalid, place + ": expected a part with a 'type'");
    }
    content = std::move(parts);
    return std::nullopt;
}

// For templates that read contents as texts: parts are joined by new lines.
void join_contents(Json& messages) {
    for (Json& message : messages) {
        Json& content = message["content"];
        std::string text;
        for (size_t i = 0; i < content.size(); ++i)
            text += (i > 0 ? "\n" : "") + content[i]["text"].get_ref<const std::string&>();
        content = std::move(text);
    }
}

// Arguments of calls are JSON texts in the API, and objects for templates; none are an empty object. A list of calls
// that is null or empty is left out: templates ask whether the member is there.
void open_arguments(Json& message) {
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && (calls->is_null() || (calls->is_array() && calls->empty()))) {
        message.erase(calls);
        return;
    }
    if (calls == message.end() || !calls->is_array()) return;
    for (Json& call : *calls) {
        if (!call.is_object() || !call.contains("function") || !call["function"].is_object()) continue;
        Json& function = call["function"];
        Json& arguments = function["arguments"];
        if (arguments.is_null() || arguments == "") arguments = Json::object();
        if (!arguments.is_string()) continue;
        if (auto opened = parse_body(arguments.get<std::string>())) arguments = *std::move(opened);
    }
}

std::optional<Refusal> read_messages(const Json& body, Json& out) {
    Fields f(body);
    const Json* messages = f.find("messages");
    if (!messages || !messages->is_array() || messages->empty()) {
        f.refuse("messages", messages ? "expected a list of at least one message" : "is missing");
        return f.refusal();
    }
    out = *messages;
    for (size_t i = 0; i < out.size(); ++i) {
        const std::string where = "messages[" + std::to_string(i) + "]";
        if (!out[i].is_object() || !out[i].contains("role") || !out[i]["role"].is_string())
            return Refusal{fail(StatusCode::kInvalid, where + ": expected an object with a 'role'"), "messages"};
        if (auto refusal = read_content(out[i], where)) return refusal;
        open_arguments(out[i]);
    }
    return std::nullopt;
}

std::optional<Refusal> read_tools(Fields& f, Json& variables) {
    const Json* choice = f.find("tool_choice");
    if (choice && *choice != "auto" && *choice != "none")
        f.refuse("tool_choice", "only auto and none are supported", StatusCode::kUnsupported);
    const Json* tools = f.find("tools");
    if (tools && !tools->is_array()) f.refuse("tools", "expected a list");
    if (!f.refusal() && tools && !tools->empty() && (!choice || *choice != "none")) variables["tools"] = *tools;
    return f.refusal();
}

// Cuts what the template put after the text of the last message. Many templates strip that: then its white space is
// not part of the prompt. False: the text is not there.
bool end_with_last_message(std::string& prompt, const Json& message) {
    const Json& last = message["content"]; // a text or parts
    if (last.empty()) return false;
    const auto content = (last.is_string() ? last : last.back()["text"]).get<std::string>();
    constexpr const char* kSpaces = " \t\n\r\f\v";
    const size_t begin = content.find_first_not_of(kSpaces), end = content.find_last_not_of(kSpaces);
    if (begin == content.npos) return false;
    const std::string stripped = content.substr(begin, end + 1 - begin);
    const size_t at = prompt.rfind(stripped);
    if (at == prompt.npos) return false;
    const bool keeps_end = prompt.compare(at, content.size() - begin, content, begin) == 0;
    prompt.resize(at + (keeps_end ? content.size() - begin : stripped.size()));
    return true;
}

}  // namespace

RenderedChat render_chat(const Json& body, const ServedModel& model) {
    RenderedChat out;
    Json variables{{"tools", nullptr}, {"documents", nullptr}}; // as transformers gives them: none, but defined
    if ((out.refusal = read_messages(body, variables["messages"]))) return out;
    Fields f(body);
    bool prompt = true, go_on = false;
    f.read("add_generation_prompt", prompt);
    f.read("continue_final_message", go_on);
    f.read("add_special_tokens", out.add_special_tokens);
    if (f.has("chat_template"))
        f.refuse("chat_template", "requests may not bring a template (--chat-template of the server)",
                 StatusCode::kUnsupported);
    if (go_on && f.has("add_generation_prompt") && prompt)
        f.refuse("continue_final_message", "and add_generation_prompt cannot both be true");
    if ((out.refusal = read_tools(f, variables))) return out;
    if (const Json* documents = f.find("documents")) variables["documents"] = *documents;
    variables["add_generation_prompt"] = prompt && !go_on;
    for (const auto& [name, text] : model.special_tokens) variables[name] = text;
    if (!model.additional_special_tokens.empty())
        variables["additional_special_tokens"] = model.additional_special_tokens;
    if (const Json* more = f.object("chat_template_kwargs")) {
        if (more->contains("messages")) f.refuse("chat_template_kwargs", "may not bring messages of its own");
        if (more->size() > kMaxVariables)
            f.refuse("chat_template_kwargs", "has " + std::to_string(more->size()) + " members, expected at most " +
                                                 std::to_string(kMaxVariables));
        else for (const auto& [name, value] : more->items()) variables[name] = value;
    }
    if ((out.refusal = f.refusal())) return out;

    const bool has_tools = !variables["tools"].is_null();
    const auto& chosen = has_tools && model.tool_template ? model.tool_template : model.chat_template;
    if (!chosen) {
        out.refusal = Refusal{fail(StatusCode::kUnsupported, model.no_template), "messages"};
        return out;
    }
    if (!chosen->takes_parts()) join_contents(variables["messages"]);
    auto text = chosen->render(variables);
    if (!text) {
        out.refusal = Refusal{prefixed("the chat template refused the messages", text.failure()), "messages"};
        return out;
    }
    out.text = *std::move(text);
    if (go_on && !end_with_last_message(out.text, variables["messages"].back()))
        out.refusal =
            Refusal{fail(StatusCode::kInvalid, "continue_final_message: the template changes the last message"),
                    "continue_final_message"};
    return out;
}

ReadRequest read_chat(const Json& body, const ServedModel& model) {
    ReadRequest out;
    GenerationRequest& r = out.request;
    r.kind = ReplyKind::kChat;
    if ((out.refusal = read_generation(body, model, r))) return out;
    Fields f(body);
    f.read("max_tokens", r.max_tokens);
    f.read("max_completion_tokens", r.max_tokens);
    f.read("logprobs", r.logprobs);
    int32_t top = 0;
    f.read("top_logprobs", top);
    if (top != 0 && !r.logprobs) f.refuse("top_logprobs", "needs \"logprobs\": true");
    if (r.stream && r.sampling.prompt_logprobs)
        f.refuse("prompt_logprobs", "are not given in streams of chats", StatusCode::kUnsupported);
    if (!model.tokenizer) f.refuse("messages", "the model has no tokenizer", StatusCode::kUnsupported);
    if ((out.refusal = f.refusal())) return out;
    if (r.logprobs) {
        r.sampling.logprobs = top;
        const auto fits = engine::check_logprobs("top_logprobs", r.sampling.logprobs,
                                                 {model.vocab_size, model.max_logprobs});
        if (!fits) {
            out.refusal = Refusal{fits.failure(), "top_logprobs"};
            return out;
        }
    }
    RenderedChat chat = render_chat(body, model);
    if ((out.refusal = std::move(chat.refusal))) return out;
    Prompt prompt = prompt_of_text(chat.text, *model.tokenizer, chat.add_special_tokens);
    f.read("echo", r.echo);
    if (r.echo) f.refuse("echo", "is not supported for chats", StatusCode::kUnsupported);
    if (prompt.tokens.empty()) f.refuse("messages", "the template makes an empty prompt of them");
    if ((out.refusal = f.refusal())) return out;
    r.prompts.push_back(std::move(prompt));
    out.refusal = fit_prompts(body, model, r);
    return out;
}

}  // namespace patchbay::serve
