// Chats: messages rendered by the model's template.
#include <string_view>

#include "base/printable.hpp"
#include "engine/request/validation.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {
namespace {

constexpr size_t kMaxVariables = 1000; // of a request's own, for the template
constexpr std::string_view kSpaces = " \t\n\r\f\v";

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

// For templates that print an assistant's calls where its content is none, and not where it is empty.
void set_none_beside_calls(Json& messages) {
    for (Json& message : messages) {
        const auto calls = message.find("tool_calls");
        const bool has_calls = calls != message.end() && calls->is_array() && !calls->empty();
        if (has_calls && message["role"] == "assistant" && message["content"].empty()) message["content"] = nullptr;
    }
}

// For templates that read contents as texts: parts are joined by new lines.
void join_contents(Json& messages) {
    for (Json& message : messages) {
        Json& content = message["content"];
        if (content.is_null()) continue;
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

// Stands after the last message's text while that is rendered, so that its end is found whatever the template puts
// after it. A template that changes the case of texts changes it, too, and one that strips them takes its spaces away.
constexpr std::string_view kEndMark = "PatchbayEndOfLastMessage", kMarkSpaces = "   ";

// Returns how much white space the text of the last message ends with. Nothing: it has no other text.
std::optional<size_t> mark_end(Json& message) {
    Json& content = message["content"]; // a text, parts or none
    const bool in_parts = content.is_array() && !content.empty();
    auto* const text = (in_parts ? content.back()["text"] : content).get_ptr<std::string*>();
    const size_t last = text ? text->find_last_not_of(kSpaces) : std::string::npos;
    if (last == std::string::npos) return std::nullopt;
    const size_t spaces = text->size() - last - 1;
    text->append(kEndMark).append(kMarkSpaces);
    return spaces;
}

// Cuts the mark and what the template put after it. Many templates strip texts: then the white space before the mark is
// not part of the prompt. False: the mark is not there.
bool end_at_mark(std::string& prompt, size_t spaces) {
    const size_t at = prompt.rfind(kEndMark);
    if (at == std::string::npos) return false;
    const bool strips = prompt.compare(at + kEndMark.size(), kMarkSpaces.size(), kMarkSpaces) != 0;
    prompt.resize(at);
    const auto ends_with_space = [&] { return !prompt.empty() && kSpaces.find(prompt.back()) != kSpaces.npos; };
    for (; strips && spaces > 0 && ends_with_space(); --spaces) prompt.pop_back();
    return true;
}

// The prompt of the variables' messages. go_on: it ends with the text of the last one.
std::optional<Refusal> render(const text::ChatTemplate& chosen, Json& variables, bool go_on, std::string& prompt) {
    Json& messages = variables["messages"];
    if (chosen.tests_content_for_none()) set_none_beside_calls(messages);
    if (!chosen.takes_parts()) join_contents(messages);
    const auto spaces = go_on ? mark_end(messages.back()) : std::nullopt;
    auto text = chosen.render(variables);
    if (!text) return Refusal{prefixed("the chat template refused the messages", text.failure()), "messages"};
    prompt = *std::move(text);
    if (!go_on || (spaces && end_at_mark(prompt, *spaces))) return std::nullopt;
    return Refusal{fail(StatusCode::kInvalid, "continue_final_message: the template changes the last message"),
                   "continue_final_message"};
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
    out.refusal = render(*chosen, variables, go_on, out.text);
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
