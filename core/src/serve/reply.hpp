// The outputs of a request as OpenAI's JSON: in chunks for a stream, or whole. One for completions, one for chat; used
// by Generation, on one connection's strand.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/request.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {

struct Usage {
    uint64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

struct Choice { // one output; choice i is output i % n of prompt i / n
    std::vector<engine::TokenId> tokens;
    std::vector<engine::TokenLogprobs> logprobs, prompt_logprobs;
    std::string text;
    std::vector<float> embedding;
    engine::FinishReason finish = engine::FinishReason::kNone;
    std::string stop_reason;
    std::optional<engine::TokenId> stop_token; // the stop reason
    Usage usage;
    bool begun = false;     // of a stream: a chunk was made of it
    size_t text_offset = 0; // of a stream: characters so far
};

class Reply {
  public:
    Reply(const GenerationRequest&, const ServedModel&, std::string id, int64_t created, const char* chunk_object);
    virtual ~Reply() = default;

    // Appends the SSE events of a delta of choices[index].
    virtual void add_events(std::string& out, uint32_t index, std::vector<Choice>& choices,
                            const engine::RequestOutput& delta) const = 0;
    virtual std::string whole(const std::vector<Choice>&, const Usage&) const = 0;
    std::string usage_event(const Usage&) const;

  protected:
    const Prompt& prompt_of(uint32_t index) const { return request_.prompts[index / request_.sampling.n]; }
    // Its log-probabilities are computed for its first output.
    const std::vector<engine::TokenLogprobs>& prompt_logprobs_of(uint32_t index, const std::vector<Choice>&) const;
    // "data: {…"choices":[" + choice + "]" + more + "…}\n\n"; usage: of that choice
    void add_event(std::string& out, const std::string& choice, const Usage&, const std::string& more = "") const;
    std::string ending(const Choice&) const; // "finish_reason":…,"stop_reason":…
    Json finish_of(const Choice&) const;
    Json stop_reason_of(const Choice&) const;

    const GenerationRequest& request_;
    const ServedModel& model_;
    const std::string id_;
    const int64_t created_;
    const std::string chunk_head_; // {"id":…,"object":…,"created":…,"model":…,"choices":[
};

std::unique_ptr<Reply> completion_reply(const GenerationRequest&, const ServedModel&, std::string id, int64_t created);
std::unique_ptr<Reply> chat_reply(const GenerationRequest&, const ServedModel&, std::string id, int64_t created);
std::unique_ptr<Reply> embedding_reply(const GenerationRequest&, const ServedModel&, std::string id, int64_t created);

Json usage_json(const Usage&);
// A JSON string; bytes that are no UTF-8 (a stop string may cut a character) become U+FFFD.
std::string json_string(const std::string& text);
std::string dumped(const Json&);

// ---- logprobs_json.cpp ----
std::string token_text(const GenerationRequest&, const ServedModel&, engine::TokenId);
// OpenAI's of completions; offset: of the first token in the text, in characters; moved on. from: tokens left out.
Json completion_logprobs(const GenerationRequest&, const ServedModel&, const std::vector<engine::TokenId>& prompt,
                         const std::vector<engine::TokenLogprobs>& of_prompt,
                         const std::vector<engine::TokenId>& tokens,
                         const std::vector<engine::TokenLogprobs>& logprobs, size_t& offset);
// OpenAI's of chat: {"content": […]}.
Json chat_logprobs(const GenerationRequest&, const ServedModel&, const std::vector<engine::TokenId>&,
                   const std::vector<engine::TokenLogprobs>&);
// vLLM's prompt_logprobs: a map a token, null for the first.
Json prompt_logprobs_json(const ServedModel&, const std::vector<engine::TokenId>& prompt,
                          const std::vector<engine::TokenLogprobs>&);

}  // namespace patchbay::serve
