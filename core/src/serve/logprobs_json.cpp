// Log-probabilities in the forms of OpenAI's two APIs and of vLLM.
#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/utf8.hpp"
#include "serve/reply.hpp"

namespace patchbay::serve {
namespace {

using engine::TokenId;
using engine::TokenLogprobs;

// JSON has no infinity; a token that cannot come is as unlikely as OpenAI writes it.
double finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

std::string bytes_of(const ServedModel& model, TokenId token) {
    return model.tokenizer ? std::string(model.tokenizer->token_bytes(token)) : std::string();
}

std::string valid(const std::string& bytes) { return Json::parse(json_string(bytes)).get<std::string>(); }

// An object that may have a member for each token of the vocabulary: Json looks through all for each that is set.
class LargeObject {
  public:
    explicit LargeObject(size_t members) { members_.reserve(members); }

    void add(std::string name, Json value) { members_.emplace_back(std::move(name), std::move(value)); } // a new name
    Json made() { return std::move(out_); }

  private:
    Json out_ = Json::object();
    Json::object_t& members_ = out_.get_ref<Json::object_t&>();
};

// Of one token of a completion: {text: logprob} of the highest and of itself.
Json top_of(const GenerationRequest& request, const ServedModel& model, TokenId token, const TokenLogprobs& logprobs) {
    LargeObject out(logprobs.top.size() + 1);
    std::unordered_set<std::string> names;
    const auto add = [&](TokenId id, float logprob) {
        std::string text = token_text(request, model, id);
        if (names.insert(text).second) out.add(std::move(text), finite(logprob)); // the likelier of one text is first
    };
    for (const auto& [id, logprob] : logprobs.top) add(id, logprob);
    add(token, logprobs.sampled);
    return out.made();
}

Json chat_entry(const GenerationRequest& request, const ServedModel& model, TokenId token, float logprob) {
    const std::string bytes = bytes_of(model, token);
    Json list = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    return {{"token", token_text(request, model, token)}, {"logprob", finite(logprob)}, {"bytes", std::move(list)}};
}

}  // namespace

std::string token_text(const GenerationRequest& request, const ServedModel& model, TokenId token) {
    if (request.tokens_as_ids || !model.tokenizer) return "token_id:" + std::to_string(token);
    return valid(bytes_of(model, token));
}

Json completion_logprobs(const GenerationRequest& request, const ServedModel& model, const std::vector<TokenId>& prompt,
                         const std::vector<TokenLogprobs>& of_prompt, const std::vector<TokenId>& tokens,
                         const std::vector<TokenLogprobs>& logprobs, size_t& offset) {
    Json texts = Json::array(), values = Json::array(), tops = Json::array(), offsets = Json::array();
    const auto add = [&](TokenId token, const TokenLogprobs* of) {
        std::string text = token_text(request, model, token);
        offsets.push_back(offset);
        offset += count_characters(text);
        values.push_back(of ? Json(finite(of->sampled)) : Json());
        tops.push_back(of ? top_of(request, model, token, *of) : Json());
        texts.push_back(std::move(text));
    };
    for (size_t i = 0; i < prompt.size(); ++i)
        add(prompt[i], i > 0 && i - 1 < of_prompt.size() ? &of_prompt[i - 1] : nullptr);
    for (size_t i = 0; i < tokens.size() && i < logprobs.size() && !request.echo_only; ++i)
        add(tokens[i], &logprobs[i]);
    return {{"tokens", std::move(texts)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
}

Json chat_logprobs(const GenerationRequest& request, const ServedModel& model, const std::vector<TokenId>& tokens,
                   const std::vector<TokenLogprobs>& logprobs) {
    Json content = Json::array();
    for (size_t i = 0; i < tokens.size() && i < logprobs.size(); ++i) {
        Json entry = chat_entry(request, model, tokens[i], logprobs[i].sampled);
        Json& top = entry["top_logprobs"] = Json::array();
        for (const auto& [id, logprob] : logprobs[i].top) top.push_back(chat_entry(request, model, id, logprob));
        content.push_back(std::move(entry));
    }
    return {{"content", std::move(content)}};
}

Json prompt_logprobs_json(const ServedModel& model, const std::vector<TokenId>& prompt,
                          const std::vector<TokenLogprobs>& of_prompt) {
    Json out = Json::array();
    out.push_back(nullptr);
    for (size_t i = 0; i < of_prompt.size() && i + 1 < prompt.size(); ++i) {
        const auto& top = of_prompt[i].top;
        LargeObject token(top.size() + 1);
        bool has_own = false;
        const auto entry = [&](TokenId id, float logprob, const Json& rank) {
            token.add(std::to_string(id), {{"logprob", finite(logprob)},
                                           {"rank", rank},
                                           {"decoded_token", valid(bytes_of(model, id))}});
            has_own = has_own || id == prompt[i + 1];
        };
        for (size_t n = 0; n < top.size(); ++n) entry(top[n].first, top[n].second, n + 1);
        if (!has_own) entry(prompt[i + 1], of_prompt[i].sampled, nullptr);
        out.push_back(token.made());
    }
    return out;
}

}  // namespace patchbay::serve
