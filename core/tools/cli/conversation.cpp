#include "cli/conversation.hpp"

#include <algorithm>

#include "serve/generation_request.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::cli {

Conversation::Conversation(engine::Engine& engine, const serve::ServedModel& model,
                           const engine::SamplingParams& sampling)
    : engine_(engine), model_(model), sampling_(sampling) {}

void Conversation::set_system(const std::string& text) {
    system_ = text;
    reset();
}

void Conversation::reset() {
    messages_ = nlohmann::ordered_json::array();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
}

Result<std::vector<int32_t>> Conversation::prompt() const {
    const serve::RenderedChat chat = serve::render_chat({{"messages", messages_}}, model_);
    if (chat.refusal) return chat.refusal->failure;
    const text::Tokenizer& tokenizer = *model_.tokenizer;
    return chat.add_special_tokens ? tokenizer.encode(chat.text) : tokenizer.encode_inside(chat.text);
}

Result<> Conversation::say(const std::string& text, const std::function<void(const std::string&)>& on_text,
                           const std::function<bool()>& go_on) {
    const auto before = messages_;
    messages_.push_back({{"role", "user"}, {"content", text}});
    const auto forget = [&](const Failure& why) {
        messages_ = before;
        return why;
    };
    auto tokens = prompt();
    if (!tokens) return forget(tokens.failure());
    const uint32_t limit = model_.max_model_len;
    if (tokens->size() >= limit)
        return forget(fail(StatusCode::kInvalid, "the conversation has " + std::to_string(tokens->size()) +
                                                     " tokens, the model takes fewer than " + std::to_string(limit) +
                                                     "; /reset begins anew"));
    engine::Request request;
    request.prompt = *std::move(tokens);
    const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    request.sampling = sampling_;
    request.sampling.max_tokens = std::min(sampling_.max_tokens, limit - prompt_tokens);
    request.arrival_ns = engine_.clock().now_ns();
    std::string answer;
    std::optional<Failure> failed;
    request.on_output = [&](const engine::RequestOutput& out) {
        answer += out.text;
        if (!out.text.empty()) on_text(out.text);
        if (out.finish == engine::FinishReason::kError) failed = fail(out.error_code, out.stop_reason);
    };
    const auto id = engine_.add_request(std::move(request));
    if (!id) return forget(id.failure());
    const auto end_if_asked = [&] {
        if (!go_on()) engine_.abort(*id);
        return true;
    };
    if (const auto done = service::run_to_end(engine_, {end_if_asked, {}}); !done) return forget(done.failure());
    if (failed) return forget(*failed);
    messages_.push_back({{"role", "assistant"}, {"content", answer}});
    return {};
}

}  // namespace patchbay::cli
