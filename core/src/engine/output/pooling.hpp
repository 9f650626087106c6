// Embeddings: the hidden states of a prompt become one vector, over as many steps as its chunks take. The steps of such
// requests are back before the next one is planned.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "engine/output/outputs.hpp"
#include "engine/request/sequence_records.hpp"
#include "runner/batch.hpp"

namespace patchbay::engine {

struct Sequence;

class Pooling {
  public:
    // Its request wants an embedding. A mean is over tokens that are computed, so it reads no cached prefix.
    void add(Sequence&);
    void erase(const Sequence&);
    bool any() const { return !records_.empty(); }

    void begin_step() { wanted_.clear(); } // before its batch is built
    // Of the chunk [begin, begin + count), whose tokens are the next of the batch.
    void want(const Sequence&, uint32_t begin, uint32_t count, runner::Batch&);
    // Of the step that was built last, (tokens, hidden_size), in the order in which they were wanted.
    void take(std::span<const float> hidden);
    // The embedding is in the delta; nothing while tokens of the prompt are to be computed.
    std::optional<Ending> finish(Sequence&) const;

  private:
    struct Record {
        std::vector<double> sum; // (hidden_size)
        uint32_t tokens = 0;     // in the sum
    };
    struct Wanted {
        RequestId id;
        uint32_t begin, count; // tokens of the sequence
    };
    SequenceRecords<Record> records_;
    std::vector<Wanted> wanted_;
};

}  // namespace patchbay::engine
