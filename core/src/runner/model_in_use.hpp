// The model that a ModelRunner computes with, and what it says of itself.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "host/component.hpp"
#include "runner/model_facts.hpp"

namespace patchbay::runner {

class ModelInUse {
  public:
    explicit ModelInUse(host::Model model) : own_(std::move(model.component)), current_(own_.get()) {}

    const host::Component& component() const { return *current_; }
    const pb_model_facts& facts() const { return facts_; }
    std::string label() const { return "model '" + std::string(current_->type().name) + "'"; }
    bool is_head() const { return runner::is_head(*current_); }

    void set_facts(const pb_model_facts& facts) { facts_ = facts; } // once
    std::unique_ptr<host::Component> give() { return std::move(own_); } // to outlive its last pass
    void use(const host::Component& other, pb_model_facts& its) { // which are then those of the one before
        std::swap(facts_, its);
        current_ = &other;
    }

  private:
    std::unique_ptr<host::Component> own_; // null: it was given away
    const host::Component* current_;
    pb_model_facts facts_ = sized<pb_model_facts>();
};

}  // namespace patchbay::runner
