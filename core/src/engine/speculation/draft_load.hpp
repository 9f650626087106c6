// Opens the model that a proposer drafts with, when the proposer requests it in its create(). One at most, and only
// while the engine is made. Part of DraftModel.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "host/registry.hpp"
#include "patchbay/sizes.hpp"
#include "runner/runner_settings.hpp"

namespace patchbay::engine {

inline constexpr uint32_t kDraftModel = 0; // as pb_runner_facts.model: there is no other

std::map<std::string, std::string> settings_of(const pb_runner_load&); // of the model that it names

struct DraftForm { // what passes of an open model need to know of it
    pb_model_facts facts = sized<pb_model_facts>();
    std::optional<uint32_t> head_depth; // of a head: what max_draft_depth() gave; none: it is a model of its own
    bool computes = true;               // the device
    double acceptance = -1;             // of made-up tokens
    // In seeds: where drafts are accepted by rejection, they must not follow from the noise of the target's tokens.
    uint64_t noise = 0;

    bool is_head() const { return head_depth.has_value(); }
    bool keeps_kv() const { return facts.layer_count > 0; } // else it need not follow the target
};

class DraftLoad {
  public:
    struct Context { // of the engine, which outlives the load
        const config::EngineConfig& config;  // until end()
        const host::Registry& registry;      // likewise
        host::Services services;             // for its model component
        ThreadPool& pool;
        bool computes;                       // the device
        const weights::FlatConfig& target;   // likewise
    };
    explicit DraftLoad(const Context&);

    // Refuses a second one, and what this engine cannot run. facts: of the model that is open then.
    Result<> load(const pb_runner_load&, pb_runner_facts& facts);
    void end() { context_.reset(); } // nothing is loaded from here on

    runner::DraftModel* draft() { return draft_ ? &*draft_ : nullptr; } // for the runner; null: none was loaded
    void give() { draft_.reset(); } // the runner has it
    // ---- of the one that was loaded
    const DraftForm& form() const { return form_; }
    const std::string& identity() const { return identity_; } // as weights::model_identity(); "dummy"
    const std::map<std::string, std::string>& settings() const { return settings_; }
    const pb_runner_facts& facts() const { return facts_; }

  private:
    Result<> check(const pb_runner_load&) const;

    std::optional<Context> context_;
    std::optional<runner::DraftModel> draft_;
    DraftForm form_;
    std::string identity_;
    std::map<std::string, std::string> settings_;
    pb_runner_facts facts_ = sized<pb_runner_facts>();
};

}  // namespace patchbay::engine
