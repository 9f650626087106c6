// The prompts of a workload, and what their requests have in common: token ids as a pure function of the
// specification, the draws of a repeat and the number of a request. Files are read and tokenised once.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "experiment/draws.hpp"
#include "experiment/input_files.hpp"
#include "experiment/prefixes.hpp"
#include "experiment/random_ids.hpp"
#include "experiment/spec.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::experiment {

class PromptSource {
  public:
    // The tokenizer may be null where no text is used.
    static Result<PromptSource> open(const WorkloadSpec&, const text::Tokenizer*, uint32_t vocab_size);

    const Trace* trace() const { return trace_.rows.empty() ? nullptr : &trace_; }
    uint32_t prompts() const { return static_cast<uint32_t>(prompts_.size()); } // of a JSONL file; else 0
    // The order in which a repeat goes through the prompts of a file. first: how many those before it have taken, which
    // a shuffled file does not give again before all others are.
    std::vector<uint32_t> order(uint64_t seed, uint64_t first) const;

    // Of request i; row: its row of the trace, else nullptr.
    uint32_t length(const Draws&, const std::vector<uint32_t>& order, uint32_t i, const TraceRow* row) const;
    TokenIds prompt(const Draws&, const std::vector<uint32_t>& order, uint32_t i, const TraceRow* row,
                    uint32_t tokens) const;
    // What answers it where no model does: the trace's answer, then random ids.
    TokenIds answer(const Draws&, uint32_t i, const TraceRow* row, uint32_t tokens) const;
    // The shared prefix that session s begins with; empty: none.
    TokenIds prefix(const Draws& draws, uint32_t s) const { return prefixes_.tokens(draws, s, random_); }
    uint32_t prefix_length(const Draws& draws, uint32_t s) const { return prefixes_.length(draws, s); }

    // Leaves the first `max_kept` of a file's prompts or of the trace's rows that are not used; where all are, the
    // first ones with random tokens in their place. Requests of the same kind, that are none of the others.
    void leave_unused(std::vector<bool> used, uint32_t max_kept);

    const std::vector<std::string>& notices() const { return notices_; }
    const std::vector<InputFile>& files() const { return files_; } // that were read

  private:
    Result<> open_trace(const TracePrompts&, const text::Tokenizer*);
    void append_blocks(TokenIds&, const Draws&, const TraceRow&, uint32_t tokens) const;

    Prompts spec_;
    PrefixSource prefixes_;
    RandomIds random_;
    std::vector<TokenIds> prompts_; // of a JSONL file
    TokenIds text_;                 // of a text file
    Trace trace_;
    bool made_up_ = false; // of prompts and rows only the lengths are taken
    std::shared_ptr<const LengthSource> lengths_;
    std::vector<std::string> notices_;
    std::vector<InputFile> files_;
};

}  // namespace patchbay::experiment
