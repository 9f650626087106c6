// What a request for text asks for, read from its JSON: for completions and chat alike. Prompts are tokens already.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request/request.hpp"
#include "serve/fields.hpp"
#include "serve/served_model.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::serve {

enum class ReplyKind { kCompletion, kChat, kEmbedding };

struct Prompt {
    std::vector<engine::TokenId> tokens;
    std::string text; // as the user gave it, or what the tokens say; only where it is echoed
    std::optional<text::AroundText> around{}; // of the tokens those that were added to a text; none: ids were given
};

struct EmbeddingFormat {
    engine::PoolingType pooling = engine::PoolingType::kLast;
    bool normalize = true;   // to length 1
    uint32_t dimensions = 0; // the first so many elements; 0: all
    bool base64 = false;     // of little-endian f32; else numbers
};

struct GenerationRequest {
    ReplyKind kind = ReplyKind::kCompletion;
    std::string model; // the name that the request used
    std::vector<Prompt> prompts;
    engine::SamplingParams sampling;
    std::shared_ptr<grammar::Grammar> grammar; // of its structured_outputs, once it is compiled
    std::shared_ptr<const engine::RequestTokenRules> token_rules; // once they are read
    std::optional<uint32_t> max_tokens; // none: what the model has room for
    int32_t priority = 0;
    uint32_t deadline_ms = 0; // after its arrival; 0: none
    std::string cache_salt;
    bool cache_per_key = false; // KV is shared with requests of the same key only
    bool stream = false, include_usage = false, continuous_usage = false;
    bool echo = false, echo_only = false; // only: max_tokens was 0
    bool logprobs = false;                // are shown
    bool return_token_ids = false, tokens_as_ids = false;
    EmbeddingFormat embedding; // of kEmbedding

    const char* prompt_field() const {
        return kind == ReplyKind::kEmbedding ? "input" : kind == ReplyKind::kChat ? "messages" : "prompt";
    }
};

// "model", which is one of the served names. The fault, or nothing.
std::optional<Refusal> read_model_name(const Json& body, const ServedModel&, GenerationRequest&);
// Everything but prompts. The fault, or nothing.
std::optional<Refusal> read_generation(const Json& body, const ServedModel&, GenerationRequest&);

// POST /v1/completions, /v1/chat/completions, /v1/embeddings. A Refusal as the second part: the first one is nothing
// then.
struct ReadRequest {
    GenerationRequest request;
    std::optional<Refusal> refusal;
};
ReadRequest read_completion(const Json& body, const ServedModel&);
ReadRequest read_chat(const Json& body, const ServedModel&);
ReadRequest read_embedding(const Json& body, const ServedModel&);

Prompt prompt_of_text(const std::string& text, const text::Tokenizer&, bool add_special_tokens); // its tokens
// Prompts of "prompt" or "input": a text, texts, ids or lists of ids.
std::optional<Refusal> read_prompts(const Json& body, const ServedModel&, GenerationRequest&);
// The messages of a chat as the prompt's text, by the model's template.
struct RenderedChat {
    std::string text;
    bool add_special_tokens = false;
    std::optional<Refusal> refusal;
};
RenderedChat render_chat(const Json& body, const ServedModel&);
// The limits of prompt and output, once both are known; sets max_tokens.
std::optional<Refusal> fit_prompts(const Json& body, const ServedModel&, GenerationRequest&);

}  // namespace patchbay::serve
