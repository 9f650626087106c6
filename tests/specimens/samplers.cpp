// A healthy sampler, and samplers each wrong in one way, as components of one library.
#include "patchbay/sdk/philox.hpp"
#include "patchbay/sdk/row_logprobs.hpp"

namespace {

using patchbay::SampleBatch;

// The choice among allowed, finite logits: the highest, or one drawn from the softmax at `temperature`. −1: none.
constexpr uint64_t kOfRow = ~uint64_t{0};

int32_t choose(const SampleBatch& batch, uint32_t i, float temperature, uint64_t seed, bool masked,
               uint64_t position = kOfRow) {
    const pb_sample_row& row = batch.row(i);
    if (position == kOfRow) position = row.position;
    const auto logits = batch.logits(i);
    int32_t best = -1;
    double max_logit = -INFINITY;
    for (size_t t = 0; t < logits.size(); ++t) {
        if ((masked && !patchbay::allowed(row, t)) || !(logits[t] > -INFINITY)) continue;
        const double x = temperature == 0
                             ? double{logits[t]}
                             : logits[t] / temperature + patchbay::gumbel(seed, position, static_cast<uint32_t>(t));
        if (x > max_logit || best < 0) max_logit = x, best = static_cast<int32_t>(t);
    }
    return best;
}

// Parts of a healthy sampler; the wrong ones replace one.
struct Softmax {
    static constexpr const char* kName = "healthy";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return choose(batch, i, batch.row(i).params->temperature, batch.row(i).seed, true);
    }
    int32_t instead(const SampleBatch& batch, uint32_t i) {
        return patchbay::first_allowed(batch.row(i), static_cast<size_t>(batch.vocab()));
    }
    void begin(SampleBatch&) {}
    void end(SampleBatch&) {}
};

template <class Parts>
class Sampler {
  public:
    void sample(SampleBatch& batch) {
        parts_.begin(batch);
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const int32_t token = parts_.pick(batch, i);
            if (token < 0) batch.fault(i);
            batch.raw.tokens[i] = token < 0 ? parts_.instead(batch, i) : token;
            if (batch.raw.tokens[i] >= 0) patchbay::write_logprobs(batch, i, batch.raw.tokens[i]);
        }
        parts_.end(batch);
    }

  private:
    Parts parts_;
};

struct FailsOnAnEmptyBatch : Softmax {
    static constexpr const char* kName = "fails_on_an_empty_batch";
    void begin(SampleBatch& batch) {
        if (batch.size() == 0) throw patchbay::Error(PB_FAILED, "nothing to sample");
    }
};

struct GivesMinusOne : Softmax {
    static constexpr const char* kName = "gives_minus_one";
    int32_t instead(const SampleBatch&, uint32_t) { return -1; }
};

struct WritesARowTooMany : Softmax {
    static constexpr const char* kName = "writes_a_row_too_many";
    void end(SampleBatch& batch) { batch.raw.tokens[batch.size()] = 0; }
};

struct SamplesAtTemperatureZero : Softmax {
    static constexpr const char* kName = "samples_at_temperature_zero";
    int32_t pick(const SampleBatch& batch, uint32_t i) { return choose(batch, i, 1, batch.row(i).seed, true); }
};

struct IgnoresTheMask : Softmax {
    static constexpr const char* kName = "ignores_the_mask";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return Softmax::pick(batch, i) < 0
                   ? -1
                   : choose(batch, i, batch.row(i).params->temperature, batch.row(i).seed, false);
    }
};

struct DrawsFromACounter : Softmax {
    static constexpr const char* kName = "draws_from_a_counter";
    uint64_t calls = 0;
    void begin(SampleBatch&) { calls += 1; }
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return choose(batch, i, batch.row(i).params->temperature, batch.row(i).seed + calls, true);
    }
};

struct DrawsBySeedAlone : Softmax {
    static constexpr const char* kName = "draws_by_seed_alone";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return choose(batch, i, batch.row(i).params->temperature, batch.row(i).seed, true, 0);
    }
};

struct DrawsByPositionAlone : Softmax {
    static constexpr const char* kName = "draws_by_position_alone";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return choose(batch, i, batch.row(i).params->temperature, 0, true);
    }
};

struct FailsOnABias : Softmax {
    static constexpr const char* kName = "fails_on_a_bias";
    void begin(SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (batch.row(i).params->logit_bias_count > 0) throw patchbay::Error(PB_FAILED, "a bias is too hard");
    }
};

struct DrawsByPlaceInBatch : Softmax {
    static constexpr const char* kName = "draws_by_place_in_batch";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return choose(batch, i, batch.row(i).params->temperature, i, true);
    }
};

struct TrustsItsOwnSizeof : Softmax {
    static constexpr const char* kName = "trusts_its_own_sizeof";
    void begin(SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)  // until what it reads cannot be
            if (batch.raw.rows[i].id == 0) throw patchbay::Error(PB_FAILED, "a row of no sequence");
    }
};

struct TakesLogitsForDense : Softmax {
    static constexpr const char* kName = "takes_logits_for_dense";
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        pb_sample_batch dense = batch.raw;
        dense.logits.strides[0] = dense.logits.shape[1];
        return Softmax::pick(SampleBatch(dense), i);
    }
};

struct HidesItsFaults : Softmax {
    static constexpr const char* kName = "hides_its_faults";
    void end(SampleBatch& batch) { std::fill_n(batch.raw.faults, batch.size(), 0); }
};

struct ReportsLogitsAsLogprobs : Softmax {
    static constexpr const char* kName = "reports_logits_as_logprobs";
    void end(SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i)
            if (batch.raw.tokens[i] >= 0)
                batch.raw.logprobs[i] = batch.logits(i)[static_cast<size_t>(batch.raw.tokens[i])];
    }
};

struct GivesANegativeSurprisal : Softmax {
    static constexpr const char* kName = "gives_a_negative_surprisal";
    void end(SampleBatch& batch) {
        for (uint32_t i = 0; batch.raw.surprisal && i < batch.size(); ++i) batch.raw.surprisal[i] = -1;
    }
};

struct KeepsTheRows : Softmax {  // and gives its first row up where those of the batch before are not as they were
    static constexpr const char* kName = "keeps_the_rows";
    void begin(SampleBatch& batch) {
        batches += 1;
        stale = batches > 2 && last && last->id != id;
        last = batch.size() > 0 ? batch.raw.rows : nullptr;
        if (last) id = last->id;
    }
    int32_t pick(const SampleBatch& batch, uint32_t i) {
        return stale && i == 0 ? instead(batch, i) : Softmax::pick(batch, i);
    }
    const pb_sample_row* last = nullptr;
    uint64_t id = 0;
    uint32_t batches = 0;
    bool stale = false;
};

class LeavesRawLogits : public Sampler<Softmax> {
  public:
    void process(SampleBatch&) {}
};

class ForgetsTheTemperature : public Sampler<Softmax> {
  public:
    void process(SampleBatch& batch) {
        for (uint32_t i = 0; i < batch.size(); ++i) {
            const auto logits = batch.logits(i);
            for (size_t t = 0; t < logits.size(); ++t)
                if (!patchbay::allowed(batch.row(i), t)) logits[t] = -INFINITY;
            const double norm = patchbay::log_sum_exp(logits);
            for (float& x : logits) x = static_cast<float>(x - norm);
        }
    }
};

template <class Parts>
constexpr pb_component component() {
    return patchbay::sampler<Sampler<Parts>>(
        {.name = Parts::kName, .version = "1.0.0", .summary = "for the tests of the probe"});
}

}  // namespace

PATCHBAY_PLUGIN(component<Softmax>(), component<FailsOnAnEmptyBatch>(), component<GivesMinusOne>(),
                component<WritesARowTooMany>(), component<SamplesAtTemperatureZero>(), component<IgnoresTheMask>(),
                component<DrawsFromACounter>(), component<DrawsByPlaceInBatch>(), component<HidesItsFaults>(),
                component<TrustsItsOwnSizeof>(), component<TakesLogitsForDense>(),
                component<ReportsLogitsAsLogprobs>(), component<GivesANegativeSurprisal>(),
                component<KeepsTheRows>(), component<DrawsBySeedAlone>(), component<DrawsByPositionAlone>(),
                component<FailsOnABias>(),
                patchbay::sampler<ForgetsTheTemperature>({.name = "forgets_the_temperature_in_process",
                                                          .version = "1.0.0",
                                                          .summary = "for the tests of the probe"}),
                patchbay::sampler<LeavesRawLogits>(
                    {.name = "leaves_raw_logits", .version = "1.0.0", .summary = "for the tests of the probe"}))
