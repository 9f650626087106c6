// A ModelRunner over a device, a model and an attention that a test plays, all in this process and without a library.
#pragma once
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "patchbay/sdk/attention.hpp"
#include "patchbay/sdk/model.hpp"
#include "runner/model_runner.hpp"
#include "unit/runner/fake_device.hpp"

namespace patchbay::runner::testing {

// Over 8 tokens, of one layer unless a test says otherwise: the logit of token v in a row is 10 times the row's own
// token, plus v.
struct FakeModel {
    static constexpr const char* kArchitectures[] = {"Fake", nullptr};
    static constexpr uint32_t kVocab = 8, kHidden = 2;
    static float logit(int32_t token, uint32_t v) { return static_cast<float>(10 * token) + static_cast<float>(v); }

    uint32_t passes = 0;
    std::string fault; // of the next pass
    std::function<void()> computing; // in each pass
    int64_t scratch = 0; // elements of a temporary tensor in each pass
    std::vector<pb_kv_spec> layers = {layer()};
    std::vector<pb_weight_spec> weights;

    static pb_kv_spec layer() {
        pb_kv_spec out = sized<pb_kv_spec>();
        out.heads = out.kv_heads = 1;
        out.head_dim = 2;
        return out;
    }
    pb_model_facts load_config(const ModelConfig&) {
        pb_model_facts out = sized<pb_model_facts>();
        out.vocab_size = kVocab;
        out.hidden_size = kHidden;
        out.layer_count = static_cast<uint32_t>(layers.size());
        out.max_position = 64;
        out.flags = PB_MODEL_GIVES_HIDDEN;
        return out;
    }
    uint32_t weight_count() const { return static_cast<uint32_t>(weights.size()); }
    pb_weight_spec weight(uint32_t index) const { return weights.at(index); }
    void fill(uint32_t, float*) {}
    pb_kv_spec kv_spec(uint32_t index) const { return layers.at(index); }
    void forward(const Forward& f) { // where the device's memory is the host's
        if (!fault.empty()) throw Error(PB_FAILED, std::exchange(fault, ""));
        passes += 1;
        if (computing) computing();
        if (scratch > 0) (void)f.temp(PB_F32, {scratch});
        const auto* const ids = static_cast<const int32_t*>(f.raw.ids.data);
        const auto* const rows = static_cast<const int32_t*>(f.raw.logit_rows.data);
        auto* const logits = static_cast<float*>(f.raw.logits.data);
        for (int64_t r = 0; logits && r < f.raw.logits.shape[0]; ++r)
            for (uint32_t v = 0; v < kVocab; ++v) logits[r * kVocab + v] = logit(ids[rows[r]], v);
        auto* const hidden = static_cast<float*>(f.raw.hidden.data);
        for (uint32_t t = 0; hidden && t < f.raw.token_count; ++t)
            for (uint32_t i = 0; i < kHidden; ++i) hidden[t * kHidden + i] = static_cast<float>(ids[t]) / 2;
    }
};
inline constexpr pb_component kFakeModel = model<FakeModel>({"fake", "1.0.0", "plays"});

struct FakePages { // an attention
    struct Bound {};
    std::string tag = "A";
    uint64_t page_bytes = 64;
    pb_attention_graphs graphs = PB_GRAPHS_ANY;
    std::string fault; // of the next plan

    pb_attention_layout describe(const pb_attention_spec&) const {
        pb_attention_layout out = sized<pb_attention_layout>();
        out.page_bytes = page_bytes;
        out.graphs = graphs;
        tag.copy(out.layout_tag, sizeof out.layout_tag - 1);
        return out;
    }
    std::unique_ptr<Bound> bind(const pb_attention_spec&) { return std::make_unique<Bound>(); }
    void plan(Bound&, const pb_attention_batch&, void*) {
        if (!fault.empty()) throw Error(PB_FAILED, std::exchange(fault, ""));
    }
    void append_kv(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
    void run(Bound&, const pb_attention_batch&, const pb_kv_view&, const pb_tensor&, const pb_tensor&) {}
    pb_cost cost(const Bound&, const pb_attention_batch&) const { return sized<pb_cost>(); }
};
inline constexpr pb_component kFakePages = attention<FakePages>({"fake", "1.0.0", "plays"});

template <class View, class Table>
View view_of(const pb_component& type) {
    auto made = host::Component::create(nullptr, type, {}, {});
    if (!made) throw std::runtime_error(made.error());
    return {*std::move(made), static_cast<const Table*>(type.vtable)};
}
template <class T>
T& played(const host::Component& c) {
    return static_cast<detail::Box<T>*>(c.self())->value;
}

struct PlayedRunner {
    static constexpr uint32_t kBlocks = 8, kBlock = 4;

    // computes: else the device only says what time passes.
    explicit PlayedRunner(bool computes = true, Ranks* ranks = nullptr) {
        auto device = view_of<host::Device, pb_device>(kFakeDevice);
        auto model = view_of<host::Model, pb_model>(kFakeModel);
        auto attention = view_of<host::Attention, pb_attention>(kFakePages);
        fake = &played<FakeDevice>(*device.component);
        fake->computes = computes;
        fake->own_memory = false;
        computed = &played<FakeModel>(*model.component);
        RunnerSettings s;
        s.model_config = {{"architectures.0", "Fake"}};
        s.num_blocks = kBlocks;
        s.block_size = kBlock;
        s.device = "fake";
        s.max_num_seqs = s.max_num_batched_tokens = 0; // no graphs
        s.ranks = ranks;
        auto made = ModelRunner::create(std::move(device), std::move(model), std::move(attention),
                                        weights::WeightSource::dummy(1), s, clock);
        if (!made) throw std::runtime_error(made.error());
        runner = *std::move(made);
        fake->calls.clear();
    }

    VirtualClock clock;
    FakeDevice* fake;    // as long as the runner lives, wherever it is
    FakeModel* computed; // likewise
    std::unique_ptr<ModelRunner> runner;
};

}  // namespace patchbay::runner::testing
