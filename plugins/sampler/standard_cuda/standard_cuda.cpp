// The sampler `standard` on the device `cuda`: kernels/cuda as a plugin. Rows are packed here, and all
// other work is queued in order with the device's.
#include <cuda_runtime_api.h>

#include "kernels/cuda_sampling.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

namespace cuda = patchbay::kernels::cuda;
using patchbay::Error;

class StandardCuda {
  public:
    static constexpr const char* kDevice = "cuda";

    explicit StandardCuda(const patchbay::Context&) {} // looks for a GPU when there is work for it

    void accepts(const pb_sampling_params& p) const {
        const auto lacks = [](bool wanted, const char* what) {
            if (wanted) throw Error(PB_UNSUPPORTED, std::string(what) + " is not there yet (choose sampler: standard)");
        };
        lacks(p.dry_multiplier > 0, "dry_multiplier");
        lacks(p.top_n_sigma > 0, "top_n_sigma");
        lacks(p.typical_p > 0 && p.typical_p < 1, "typical_p");
        lacks(p.xtc_probability > 0, "xtc_probability");
        lacks(p.mirostat_tau > 0, "mirostat");
        lacks(p.logprobs > cuda::kMaxTop + 1, "so many logprobs");
    }

    pb_sample_plan plan(patchbay::SampleBatch& batch) {
        if (batch.vocab() > cuda::kMaxVocab)
            throw Error(PB_UNSUPPORTED, "a vocabulary of " + std::to_string(batch.vocab()) + " tokens is above " +
                                            std::to_string(cuda::kMaxVocab));
        inputs_.clear(batch.vocab());
        for (uint32_t i = 0; i < batch.size(); ++i) inputs_.add(request_of(batch.row(i)));
        const auto packed = inputs_.pack();
        return {sizeof(pb_sample_plan), 0, packed.data(), packed.size(), inputs_.scratch_bytes()};
    }

    void enqueue(const pb_sample_work& work) {
        if (!work.queue) throw Error(PB_UNSUPPORTED, "the device gives no queue to work in");
        cuda::sample_rows(work.queue, {static_cast<float*>(work.logits.data), work.logits.strides[0],
                                       static_cast<int32_t>(work.row_count), static_cast<int32_t>(work.max_logprobs),
                                       work.inputs, static_cast<float*>(work.scratch), work.tokens, work.faults,
                                       work.top_tokens, work.logprobs, work.top_logprobs});
        if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess)
            throw Error(PB_FAILED, std::string("sampling: ") + cudaGetErrorString(code));
    }

  private:
    cuda::SamplingRequest request_of(const pb_sample_row& row) {
        const pb_sampling_params& p = *row.params;
        if (p.logprobs > cuda::kMaxTop + 1)
            throw Error(PB_UNSUPPORTED, "logprobs of " + std::to_string(p.logprobs - 1) + ", expected at most " +
                                            std::to_string(cuda::kMaxTop));
        bias_.clear();
        for (uint32_t i = 0; i < p.logit_bias_count; ++i)
            bias_.push_back({p.logit_bias[i].token, p.logit_bias[i].bias});
        cuda::SamplingRequest out;
        out.seed = row.seed;
        out.position = row.position;
        out.temperature = p.temperature;
        out.top_p = p.top_p;
        out.min_p = p.min_p;
        out.repetition = p.repetition_penalty;
        out.presence = p.presence_penalty;
        out.frequency = p.frequency_penalty;
        out.top_k = p.top_k;
        out.logprobs = static_cast<int32_t>(p.logprobs) - 1;
        out.bias = bias_;
        out.prompt = {row.prompt, row.prompt_count};
        out.output = {row.output, row.output_count};
        out.allowed = row.allowed;
        return out;
    }

    cuda::SamplingInputs inputs_;
    std::vector<cuda::SamplingBias> bias_; // of the row that is being packed
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<StandardCuda>(
    {.name = "standard_cuda", .version = PATCHBAY_PLUGIN_VERSION,
     .summary = "standard, on an NVIDIA GPU: tokens need not be seen by the host before the next step"}))
