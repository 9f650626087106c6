// Rules that narrow what a sequence's rows may become: grammars, bad words. Each keeps what it knows of a sequence, and
// masks each row as if the drafts before it were accepted.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "engine/request/sequence_records.hpp"
#include "patchbay/abi/sampler.h"

namespace patchbay::engine {

struct Sequence;

struct PathRows { // of one path of a sequence's drafts
    const Sequence& sequence;
    std::span<const TokenId> tokens; // of the sequence, and the path's drafts after the confirmed ones
    uint32_t confirmed;
    uint32_t after;                  // the first row: so many drafts
    uint32_t first_row;              // of the step's
    std::span<pb_sample_row> rows;   // in which `allowed` is narrowed; a null one allows all
};

using MaskWords = std::vector<uint32_t>; // (rows, words): a bit for each token

class RowConstraint {
  public:
    virtual ~RowConstraint() = default;
    virtual bool applies(const Sequence&) const = 0;
    // `memory` holds the masks until the step is over. Gives the rows that nothing is left for, and why: of no matter
    // unless the output gets there.
    using Unsatisfiable = std::vector<std::pair<uint32_t, std::string>>;
    virtual void mask(const PathRows&, MaskWords& memory, Unsatisfiable&) = 0;
    // The next token of the output. A failure ends the request.
    virtual Result<> accept(const Sequence&, TokenId, const std::string& sampler) {
        static_cast<void>(sampler);
        return {};
    }
    virtual bool is_complete(const Sequence&) const { return false; } // the output cannot go on
    // Of drafts after the confirmed tokens: how many, from the first on, it allows.
    virtual uint32_t count_allowed(const Sequence&, std::span<const TokenId> drafts) {
        return static_cast<uint32_t>(drafts.size());
    }
    virtual void inherit(const Sequence& from, const Sequence& to) = 0; // a sibling's rules
    virtual void erase(const Sequence&) = 0;
};

// All of them, over the rows of each sequence in turn.
class Constraints {
  public:
    explicit Constraints(std::vector<RowConstraint*> all) : all_(std::move(all)) {}

    void mask(const PathRows&);                              // of a sequence's first path, anew for each step
    void mask_branch(const PathRows&, std::vector<MaskWords>& memory); // of a further one
    // Fails where a row of the step that is back has no token for the sequence (invalid: the request's rules leave
    // none), or where it may not be this one.
    Result<> accept(const Sequence&, TokenId, uint32_t row, const std::string& sampler);
    bool is_complete(const Sequence&) const;
    bool applies(const Sequence&) const;
    uint32_t count_allowed(const Sequence&, std::span<const TokenId> drafts);
    void inherit(const Sequence& from, const Sequence& to);
    void erase(const Sequence&);

  private:
    struct Record {
        std::vector<MaskWords> memory; // by constraint
        RowConstraint::Unsatisfiable unsatisfiable;
    };
    void mask(const PathRows&, std::vector<MaskWords>& memory, RowConstraint::Unsatisfiable&);

    std::vector<RowConstraint*> all_;
    SequenceRecords<Record> records_; // of sequences that one applies to
};

}  // namespace patchbay::engine
