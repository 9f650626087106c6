// What the routes know of the model that is served. Constant while it is.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "serve/default_sampling.hpp"
#include "serve/pooler.hpp"
#include "text/chat_template/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::serve {

struct ServedModel {
    std::vector<std::string> names; // that requests may use; the first one is shown
    std::string root;               // where it came from
    int64_t created = 0;            // seconds since 1970
    uint32_t max_model_len = 0, vocab_size = 0;
    int32_t max_logprobs = -1;      // of a request; −1: the whole vocabulary
    uint32_t hidden_size = 0;       // of embeddings; 0: the model gives none
    uint32_t max_prompt_tokens = 0, max_output_tokens = 0; // of a request; 0: what max_model_len allows
    std::shared_ptr<const text::Tokenizer> tokenizer;      // null: ids only
    // tool_template: for requests with tools, where the model has its own for them.
    std::optional<text::ChatTemplate> chat_template, tool_template;
    std::string no_template; // why there is none
    // For templates: the texts of bos_token, eos_token and the others that the tokenizer names.
    std::map<std::string, std::string> special_tokens;
    std::vector<std::string> additional_special_tokens;
    Pooler pooler;
    DefaultSampling default_sampling; // of requests that do not say
};

struct ModelNames {
    std::vector<std::string> served;    // empty: the path's last part
    std::string chat_template_file;     // empty: the model's own
    bool generation_config = true;      // the model's sampling parameters count for requests that do not set them
};

std::string default_model_name(const std::filesystem::path& model); // the path's last part
// The templates of a tokenizer's folder, file or GGUF file, and the texts of its tokens. given: a file that counts
// instead of its own templates; or empty.
Result<> read_chat_templates(ServedModel&, const std::filesystem::path& tokenizer, const std::string& given);
Result<ServedModel> served_model(const config::EngineConfig&, const engine::Engine&, const ModelNames&);

}  // namespace patchbay::serve
