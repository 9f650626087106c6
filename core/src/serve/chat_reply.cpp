// /v1/chat/completions.
#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

class ChatReply final : public Reply {
  public:
    ChatReply(const GenerationRequest& request, const ServedModel& model, std::string id, int64_t created)
        : Reply(request, model, std::move(id), created, "chat.completion.chunk") {}

    // The role with an empty content first, then contents, at last an empty delta with the finish reason.
    void add_events(std::string& out, uint32_t index, std::vector<Choice>& choices,
                    const engine::RequestOutput& delta) const override {
        Choice& choice = choices[index];
        if (!std::exchange(choice.begun, true)) {
            const std::string ids =
                request_.return_token_ids ? ",\"prompt_token_ids\":" + dumped(prompt_of(index).tokens) : "";
            add_event(out, head(index) + "{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
                                         "\"finish_reason\":null}", choice.usage, ids);
        }
        if (!delta.text.empty() || (!delta.tokens.empty() && (request_.logprobs || request_.return_token_ids))) {
            std::string json = head(index) + "{\"content\":" + json_string(delta.text) + "},\"logprobs\":";
            json += request_.logprobs ? dumped(chat_logprobs(request_, model_, delta.tokens, delta.logprobs)) : "null";
            json += ",\"finish_reason\":null";
            if (request_.return_token_ids) json += ",\"token_ids\":" + dumped(delta.tokens);
            add_event(out, json + "}", choice.usage);
        }
        if (delta.finish != engine::FinishReason::kNone)
            add_event(out, head(index) + "{},\"logprobs\":null," + ending(choice) + "}", choice.usage);
    }

    std::string whole(const std::vector<Choice>& choices, const Usage& usage) const override {
        Json out{{"id", id_}, {"object", "chat.completion"}, {"created", created_}, {"model", request_.model}};
        Json& list = out["choices"] = Json::array();
        for (uint32_t i = 0; i < choices.size(); ++i) {
            const Choice& c = choices[i];
            Json json{{"index", i},
                      {"message", {{"role", "assistant"}, {"content", c.text}}},
                      {"logprobs", request_.logprobs ? chat_logprobs(request_, model_, c.tokens, c.logprobs) : Json()},
                      {"finish_reason", finish_of(c)},
                      {"stop_reason", stop_reason_of(c)}};
            if (request_.return_token_ids) json["token_ids"] = c.tokens;
            list.push_back(std::move(json));
        }
        out["usage"] = usage_json(usage);
        if (request_.sampling.prompt_logprobs)
            out["prompt_logprobs"] = prompt_logprobs_json(model_, prompt_of(0).tokens, choices[0].prompt_logprobs);
        if (request_.return_token_ids) out["prompt_token_ids"] = prompt_of(0).tokens;
        return dumped(out);
    }

  private:
    static std::string head(uint32_t index) { return "{\"index\":" + std::to_string(index) + ",\"delta\":"; }
};

}  // namespace

std::unique_ptr<Reply> chat_reply(const GenerationRequest& request, const ServedModel& model, std::string id,
                                  int64_t created) {
    return std::make_unique<ChatReply>(request, model, std::move(id), created);
}

}  // namespace patchbay::serve
