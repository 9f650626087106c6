// Sampling on a GPU like the sampler `standard`: the parameters of rows, packed by plain C++ for one copy, and the
// kernel that reads them there. A row's token depends only on its logits and its parameters. Used by the sampler
// `standard_cuda`.
#pragma once
#include <cstdint>
#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda.hpp"

namespace patchbay::kernels::cuda {

constexpr int32_t kMaxTop = 256;           // a top list's length
constexpr int64_t kMaxVocab = 1 << 24;

struct SamplingBias {
    int32_t token;
    float bias;
};

struct SamplingRequest { // of one row; meanings as in patchbay/abi/sampler.h
    uint64_t seed = 0, position = 0;
    float temperature = 1, top_p = 1, min_p = 0;
    float repetition = 1, presence = 0, frequency = 0;
    int32_t top_k = 0, logprobs = -1;
    std::span<const SamplingBias> bias;
    std::span<const int32_t> prompt, output;
    const uint32_t* allowed = nullptr; // (⌈vocab / 32⌉) bits, or nullptr
};

// ---- as kernels read them ----

struct SamplingHeader { // begins the inputs; places are in bytes from here
    uint64_t rows_at, entries_at, masks_at;
    int32_t vocab;
    int32_t weight_bits; // probability weights are integers, 1 << weight_bits for the likeliest
};

struct SamplingRow {
    uint64_t seed, position;
    float temperature, top_p;
    float least; // greatest distance from the highest logit, over the temperature, that min_p keeps
    float repetition, presence, frequency;
    int32_t top_k, logprobs;
    uint32_t entry, entry_count; // in the list of entries
    int64_t mask;                // its first word in the list of masks; −1: all are allowed
};

struct SamplingEntry { // a token whose logit is changed
    int32_t token;
    float bias;
    int32_t count; // occurrences in the output; −1: neither there nor in the prompt, or no penalty
};

// The rows of a batch, packed.
class SamplingInputs {
  public:
    void clear(int64_t vocab);
    void add(const SamplingRequest&);
    std::span<const std::byte> pack(); // valid until the next call
    uint64_t scratch_bytes() const { return entries_.size() * sizeof(float); }

  private:
    int64_t vocab_ = 0;
    std::vector<SamplingRow> rows_;
    std::vector<SamplingEntry> entries_;
    std::vector<uint32_t> masks_;
    std::vector<std::byte> packed_;
    std::vector<uint32_t> places_; // (vocab): 1 + the entry of a token among those of the row being added; 0: none
};

struct SamplingWork { // of device memory
    float* logits;        // (rows, vocab), changed where rows have entries
    int64_t row_stride;
    int32_t rows, max_top;
    const void* inputs;   // as pack() gave them
    float* scratch;
    int32_t *tokens, *faults, *top_tokens; // (rows), (rows), (rows, max_top)
    float *logprobs, *top_logprobs;        // (rows), (rows, max_top)
};
void sample_rows(Stream, const SamplingWork&);

}  // namespace patchbay::kernels::cuda
