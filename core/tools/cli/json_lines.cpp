#include "cli/json_lines.hpp"

#include <nlohmann/json.hpp>

namespace patchbay::cli {
namespace {

using nlohmann::ordered_json;

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

ordered_json json_of(const std::vector<engine::TokenLogprobs>& all) {
    ordered_json out = ordered_json::array();
    for (const engine::TokenLogprobs& token : all) {
        ordered_json top = ordered_json::array();
        for (const auto& [id, logprob] : token.top) top.push_back({id, logprob});
        out.push_back({{"logprob", token.sampled}, {"top", std::move(top)}});
    }
    return out;
}

}  // namespace

void JsonLines::add(size_t prompt, const engine::RequestOutput& delta) {
    const auto at = unfinished_.try_emplace({prompt, delta.index}).first;
    Whole& whole = at->second;
    append(whole.tokens, delta.tokens);
    append(whole.logprobs, delta.logprobs);
    append(whole.prompt_logprobs, delta.prompt_logprobs);
    whole.text += delta.text;
    if (delta.finish == engine::FinishReason::kNone) return;
    ordered_json line{{"prompt", prompt},
                      {"index", delta.index},
                      {"text", whole.text},
                      {"token_ids", whole.tokens},
                      {"finish_reason", name_of(delta.finish)},
                      {"stop_reason", delta.stop_reason},
                      {"cached_tokens", delta.cached_tokens},
                      {"preemptions", delta.preemptions}};
    if (delta.cumulative_logprob) line["cumulative_logprob"] = *delta.cumulative_logprob;
    if (delta.beam_score) line["beam_score"] = *delta.beam_score;
    if (!whole.logprobs.empty()) line["logprobs"] = json_of(whole.logprobs);
    if (!whole.prompt_logprobs.empty()) line["prompt_logprobs"] = json_of(whole.prompt_logprobs);
    if (delta.logits)
        line["logits"] = {{"entropy", delta.logits->entropy},
                          {"max_logit", delta.logits->max_logit},
                          {"first_share", delta.logits->first_share}};
    // A stop string can cut a character.
    out_ << line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << std::endl;
    unfinished_.erase(at);
}

}  // namespace patchbay::cli
