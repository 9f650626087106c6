// patchbay.runner/1 without a model: it answers whatever it is asked, with tokens of no meaning, and remembers the
// first rule that was broken. Used by the proposer's checks.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "patchbay/abi/services.h"

namespace patchbay::conformance {

class MadeUpModel {
  public:
    static constexpr uint32_t kVocab = 64;

    MadeUpModel();
    MadeUpModel(const MadeUpModel&) = delete;
    MadeUpModel& operator=(const MadeUpModel&) = delete;

    const pb_runner& service() const { return service_; }
    uint32_t loads() const { return loads_; }
    const std::string& breach() const { return breach_; } // empty: none

    enum class Call { kNone, kCreate, kPropose };
    void enter(Call, std::unordered_map<uint64_t, uint32_t> max_drafts_by_id = {}); // of the component
    void leave() { call_ = Call::kNone; }

  private:
    pb_status load(const pb_runner_load&, pb_runner_facts&);
    pb_status forward(pb_runner_batch&);
    void note(const std::string& breach);

    pb_runner service_{};
    Call call_ = Call::kNone;
    std::unordered_map<uint64_t, uint32_t> max_drafts_;
    uint32_t loads_ = 0;
    std::string breach_;
};

}  // namespace patchbay::conformance
