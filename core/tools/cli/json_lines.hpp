// Outputs as lines of JSON, an object each, when they have ended: all that the engine knows of them. For
// `patchbay generate --output-format jsonl`.
#pragma once
#include <map>
#include <ostream>
#include <utility>

#include "engine/request.hpp"

namespace patchbay::cli {

class JsonLines {
  public:
    explicit JsonLines(std::ostream& out) : out_(out) {}
    void add(size_t prompt, const engine::RequestOutput& delta); // writes it if it is the last one

  private:
    struct Whole {
        std::vector<text::TokenId> tokens;
        std::vector<engine::TokenLogprobs> logprobs, prompt_logprobs;
        std::string text;
    };
    std::ostream& out_;
    std::map<std::pair<size_t, uint32_t>, Whole> unfinished_; // by prompt and index
};

}  // namespace patchbay::cli
