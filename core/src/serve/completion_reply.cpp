// /v1/completions.
#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

class CompletionReply final : public Reply {
  public:
    CompletionReply(const GenerationRequest& request, const ServedModel& model, std::string id, int64_t created)
        : Reply(request, model, std::move(id), created, "text_completion") {}

    void add_events(std::string& out, uint32_t index, std::vector<Choice>& choices,
                    const engine::RequestOutput& delta) const override {
        Choice& choice = choices[index];
        const bool first = !std::exchange(choice.begun, true);
        const bool last = delta.finish != engine::FinishReason::kNone;
        const bool echoes = first && request_.echo, shows_prompt = first && request_.sampling.prompt_logprobs;
        if (delta.text.empty() && !last && !echoes && !shows_prompt && !request_.logprobs && !request_.return_token_ids)
            return;
        const auto& of_prompt = prompt_logprobs_of(index, choices);
        std::string text = echoes ? prompt_of(index).text : "";
        if (!request_.echo_only) text += delta.text;
        std::string json = "{\"index\":" + std::to_string(index) + ",\"text\":" + json_string(text) + ",\"logprobs\":";
        if (request_.logprobs) {
            const std::vector<engine::TokenId> none;
            json += dumped(completion_logprobs(request_, model_, echoes ? prompt_of(index).tokens : none,
                                               of_prompt, delta.tokens, delta.logprobs, choice.text_offset));
        } else json += "null";
        json += "," + ending(choice);
        if (shows_prompt)
            json += ",\"prompt_logprobs\":" + dumped(prompt_logprobs_json(model_, prompt_of(index).tokens, of_prompt));
        if (request_.return_token_ids) {
            if (first) json += ",\"prompt_token_ids\":" + dumped(prompt_of(index).tokens);
            json += ",\"token_ids\":" + dumped(delta.tokens);
        }
        add_event(out, json + "}", choice.usage);
    }

    std::string whole(const std::vector<Choice>& choices, const Usage& usage) const override {
        Json out{{"id", id_}, {"object", "text_completion"}, {"created", created_}, {"model", request_.model}};
        Json& list = out["choices"] = Json::array();
        for (uint32_t i = 0; i < choices.size(); ++i) list.push_back(choice_json(i, choices));
        out["usage"] = usage_json(usage);
        return dumped(out);
    }

  private:
    Json choice_json(uint32_t index, const std::vector<Choice>& choices) const {
        const Choice& c = choices[index];
        const Prompt& prompt = prompt_of(index);
        std::string text = request_.echo ? prompt.text : "";
        if (!request_.echo_only) text += c.text;
        Json out{{"index", index}, {"text", std::move(text)}, {"logprobs", nullptr},
                 {"finish_reason", finish_of(c)}, {"stop_reason", stop_reason_of(c)}};
        const auto& of_prompt = prompt_logprobs_of(index, choices);
        size_t offset = 0;
        const std::vector<engine::TokenId> none;
        if (request_.logprobs)
            out["logprobs"] = completion_logprobs(request_, model_, request_.echo ? prompt.tokens : none, of_prompt,
                                                  c.tokens, c.logprobs, offset);
        if (request_.sampling.prompt_logprobs)
            out["prompt_logprobs"] = prompt_logprobs_json(model_, prompt.tokens, of_prompt);
        if (request_.return_token_ids) {
            out["prompt_token_ids"] = prompt.tokens;
            out["token_ids"] = c.tokens;
        }
        return out;
    }
};

}  // namespace

std::unique_ptr<Reply> completion_reply(const GenerationRequest& request, const ServedModel& model, std::string id,
                                        int64_t created) {
    return std::make_unique<CompletionReply>(request, model, std::move(id), created);
}

}  // namespace patchbay::serve
