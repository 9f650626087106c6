// recorder - a sampler for tests that appends each raw row of logits to a file, so that whole rows can be compared: the
// sequence's id and the position (u64 each), the number of logits (u64), the logits (f32). Otherwise it takes the
// highest logit, or at a temperature draws one in proportion.
#include <fstream>

#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"
#include "patchbay/sdk/sampler.hpp"

namespace {

class Recorder {
  public:
    static constexpr pb_param kParams[] = {patchbay::param::text("file", "", "that rows are appended to; empty: none")};

    explicit Recorder(const patchbay::Context& context) {
        const auto file = context.get<std::string>("file");
        if (!file.empty()) out_.open(file, std::ios::binary | std::ios::app);
        if (!file.empty() && !out_) throw patchbay::Error(PB_INVALID, "file: cannot write '" + file + "'");
    }

    void sample(patchbay::SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const auto logits = batch.logits(i);
            if (out_.is_open()) write(batch.row(i), logits);
            const int32_t token = choose(batch.row(i), logits);
            batch.raw.tokens[i] = token < 0 ? batch.fault(i) : token;
            patchbay::write_logprobs(batch, i, batch.raw.tokens[i]);
        }
        out_.flush();
    }

  private:
    void write(const pb_sample_row& row, std::span<const float> logits) {
        const uint64_t head[] = {row.id, row.position, logits.size()};
        out_.write(reinterpret_cast<const char*>(head), sizeof head);
        out_.write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size_bytes()));
    }

    static int32_t choose(const pb_sample_row& row, std::span<const float> logits) {
        int32_t token = -1;
        double best = -INFINITY;
        for (size_t t = 0; t < logits.size(); ++t) {
            if (!patchbay::allowed(row, t)) continue;
            const auto id = static_cast<uint32_t>(t);
            const double noise = row.params->temperature > 0 ? patchbay::gumbel(row.seed, row.position, id) : 0;
            if (logits[t] + noise > best) best = logits[t] + noise, token = static_cast<int32_t>(t); // NaN: false
        }
        return token;
    }

    std::ofstream out_;
};

}  // namespace

PATCHBAY_PLUGIN(patchbay::sampler<Recorder>({.name = "recorder", .version = "1.0.0", .summary = "writes down logits"}))
