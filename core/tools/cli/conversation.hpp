// A conversation with a model that this process runs: messages in, the answer's text as it comes. Used by `patchbay
// chat`.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.hpp"
#include "serve/served_model.hpp"

namespace patchbay::cli {

class Conversation {
  public:
    // sampling.max_tokens: of an answer. All outlive the conversation.
    Conversation(engine::Engine&, const serve::ServedModel&, const engine::SamplingParams&);

    void set_system(const std::string& text); // begins anew; empty: no system message
    void reset();                             // begins anew, after the system message
    // Hands the answer's text out as it comes; go_on is asked before each step, false ends the answer. What was said
    // and answered is remembered, also where the answer was ended; nothing is where it fails.
    Result<> say(const std::string& text, const std::function<void(const std::string&)>& on_text,
                 const std::function<bool()>& go_on);

  private:
    Result<std::vector<int32_t>> prompt() const;

    engine::Engine& engine_;
    const serve::ServedModel& model_;
    const engine::SamplingParams sampling_;
    nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
    std::string system_;
};

}  // namespace patchbay::cli
