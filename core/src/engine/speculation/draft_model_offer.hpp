// patchbay.runner/1 as a proposer gets it that is made while the engine runs: the draft model that the engine was
// started with, for a proposer that names the same one.
#pragma once
#include <string>

#include "engine/speculation/draft_model.hpp"

namespace patchbay::engine {

class DraftModelOffer {
  public:
    explicit DraftModelOffer(DraftModel* loaded); // null: the engine has none; it outlives the offer
    DraftModelOffer(const DraftModelOffer&) = delete;
    DraftModelOffer& operator=(const DraftModelOffer&) = delete;

    const pb_runner& service() const { return service_; }
    bool taken() const { return taken_; } // the proposer drafts with it

  private:
    pb_status load(const pb_runner_load&, pb_runner_facts*, pb_str* why);
    pb_status forward(pb_runner_batch*, pb_str* why);
    pb_status refuse(pb_status, pb_str* why, std::string text);

    DraftModel* const loaded_;
    pb_runner service_;
    std::string why_;
    bool taken_ = false;
};

}  // namespace patchbay::engine
