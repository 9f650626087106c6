// What `output` and `draft` of a scenario say, put in place of what a model samples and a proposer proposes. Part of
// Player.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "execution/script.hpp"
#include "scenario/course.hpp"
#include "scenario/requests.hpp"

namespace patchbay::scenario {

using DraftsById = std::map<engine::RequestId, std::vector<Tokens>>; // by path

// A proposer that says what its script says, so that drafts go the way of every proposer's. They are taken out of
// `drafts` when their sequence is asked for. The map outlives the component.
Result<host::Proposer> scripted_proposer(DraftsById& drafts);

// The tokens of the step into the rows that sample them. A difference: no row samples for a request, or another number
// of tokens than its drafts allow.
void write_output(const Step& output, const Requests&, std::span<const execution::ScriptedRows>, Course&);

class NextDrafts { // what the proposer says after the output in hand
  public:
    DraftsById& by_id() { return by_id_; } // the proposer takes them out
    void take(Course&, const Requests&); // where the file says what they are
    void check_all_taken(const Requests&, Course&) const; // a difference: the proposer was not asked

  private:
    DraftsById by_id_;
    const Step* of_ = nullptr;
};

}  // namespace patchbay::scenario
