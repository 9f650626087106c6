#include "serve/reply.hpp"

#include <string>

#include "engine/request/finish_reasons.hpp"

namespace patchbay::serve {

Reply::Reply(const GenerationRequest& request, const ServedModel& model, std::string id, int64_t created,
             const char* chunk_object)
    : request_(request), model_(model), id_(std::move(id)), created_(created),
      chunk_head_("{\"id\":" + json_string(id_) + ",\"object\":\"" + chunk_object + "\",\"created\":" +
                  std::to_string(created) + ",\"model\":" + json_string(request.model) + ",\"choices\":[") {}

const std::vector<engine::TokenLogprobs>& Reply::prompt_logprobs_of(uint32_t index,
                                                                    const std::vector<Choice>& choices) const {
    return choices[index - index % request_.sampling.n].prompt_logprobs;
}

void Reply::add_event(std::string& out, const std::string& choice, const Usage& usage, const std::string& more) const {
    out += "data: ";
    out += chunk_head_;
    out += choice;
    out += ']';
    out += more;
    if (request_.continuous_usage) out += ",\"usage\":" + dumped(usage_json(usage));
    else if (request_.include_usage) out += ",\"usage\":null";
    out += "}\n\n";
}

std::string Reply::usage_event(const Usage& usage) const {
    return "data: " + chunk_head_ + "],\"usage\":" + dumped(usage_json(usage)) + "}\n\n";
}

Json Reply::finish_of(const Choice& choice) const {
    if (choice.finish == engine::FinishReason::kNone) return nullptr;
    if (request_.echo_only) return "length";
    return std::string(engine::name_of(choice.finish));
}

Json Reply::stop_reason_of(const Choice& choice) const {
    if (!engine::info_of(choice.finish).shows_stop_reason || choice.stop_reason.empty()) return nullptr;
    if (choice.stop_token) return *choice.stop_token;
    return choice.stop_reason;
}

std::string Reply::ending(const Choice& choice) const {
    return "\"finish_reason\":" + dumped(finish_of(choice)) + ",\"stop_reason\":" + dumped(stop_reason_of(choice));
}

Json usage_json(const Usage& usage) {
    return {{"prompt_tokens", usage.prompt_tokens},
            {"completion_tokens", usage.completion_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }
std::string json_string(const std::string& text) { return dumped(text); }

}  // namespace patchbay::serve
