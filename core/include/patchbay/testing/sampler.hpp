// patchbay/testing/sampler.hpp - a sampler that gets rows of logits and chooses tokens.
#pragma once
#include <vector>

#include "patchbay/sdk/sampler.hpp"
#include "patchbay/sdk/tensor.hpp"
#include "patchbay/testing/component.hpp"

namespace patchbay::testing {

struct LogitRow {
    std::vector<float> logits;                    // (vocab), as many in all rows of a batch
    pb_sampling_params params = plain_params();   // temperature 1, every other stage off
    uint64_t seed = 0, position = 0;
    std::vector<int32_t> prompt = {}, output = {};
    std::vector<uint32_t> allowed = {};           // bit t set: token t may be sampled; empty: all
    std::vector<float> surprisals = {};           // of each output token, where params.mirostat_tau is not 0
};

struct Sampled {
    std::vector<int32_t> tokens; // of each row
    std::vector<float> logprobs; // likewise, where a row's params.logprobs is not 0
    std::vector<int32_t> faults; // 1: the row had nothing to choose from
    uint32_t top_count = 0;      // of the longest top list: of a row it is params.logprobs - 1
    std::vector<int32_t> top_tokens; // (rows, top_count), the likeliest first; -1 past the end of the row's own
    std::vector<float> top_logprobs; // likewise
    std::vector<float> surprisals;   // of each row, where its params.mirostat_tau is not 0
};

class Sampler : public Subject {
  public:
    explicit Sampler(const Plugin& plugin, const Settings& settings = {}, std::string_view name = {})
        : Subject(plugin, PB_SAMPLER, settings, name) {}

    Sampled sample(const std::vector<LogitRow>& rows) {
        const auto& table = component.table<pb_sampler>();
        if (!table.sample) throw Error(PB_UNSUPPORTED, "it samples on a device");
        const size_t vocab = rows.empty() ? 1 : rows[0].logits.size();
        std::vector<float> logits;
        std::vector<pb_sample_row> wire;
        Sampled out;
        bool mirostat = false;
        for (const LogitRow& r : rows) {
            if (r.logits.size() != vocab) throw Error(PB_INVALID, "rows of different vocabularies");
            const bool steered = r.params.mirostat_tau > 0;
            if (steered && r.surprisals.size() != r.output.size())
                throw Error(PB_INVALID, std::to_string(r.surprisals.size()) + " surprisals, expected one for each of " +
                                            std::to_string(r.output.size()) + " output tokens");
            mirostat |= steered;
            logits.insert(logits.end(), r.logits.begin(), r.logits.end());
            wire.push_back({wire.size() + 1, r.seed, r.position, &r.params, r.prompt.data(), r.output.data(),
                            static_cast<uint32_t>(r.prompt.size()), static_cast<uint32_t>(r.output.size()),
                            r.allowed.empty() ? nullptr : r.allowed.data(), steered ? r.surprisals.data() : nullptr});
            if (r.params.logprobs > 0) out.top_count = std::max(out.top_count, r.params.logprobs - 1);
        }
        out.tokens.assign(rows.size(), -1);
        out.logprobs.assign(rows.size(), 0);
        out.faults.assign(rows.size(), 0);
        out.top_tokens.assign(rows.size() * out.top_count, -1);
        out.top_logprobs.assign(rows.size() * out.top_count, 0);
        out.surprisals.assign(rows.size(), 0);
        auto batch = sized<pb_sample_batch>();
        batch.row_count = static_cast<uint32_t>(rows.size());
        batch.row_stride = sizeof(pb_sample_row);
        batch.max_logprobs = out.top_count;
        batch.logits = tensor(logits.data(), PB_F32, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(vocab)});
        batch.rows = wire.data();
        batch.tokens = out.tokens.data();
        batch.logprobs = out.logprobs.data();
        batch.top_tokens = out.top_tokens.data();
        batch.top_logprobs = out.top_logprobs.data();
        batch.faults = out.faults.data();
        batch.surprisal = mirostat ? out.surprisals.data() : nullptr;
        component.check(table.sample(component.self(), &batch));
        return out;
    }
    int32_t sample(const LogitRow& row) { return sample(std::vector<LogitRow>{row}).tokens[0]; }
};

}  // namespace patchbay::testing
