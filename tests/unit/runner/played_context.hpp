// What a pass goes over, each part of it small, for tests of the parts of a pass.
#pragma once
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kv/kv_cache.hpp"
#include "runner/pass_context.hpp"
#include "unit/runner/played_runner.hpp"

namespace patchbay::runner::testing {

inline RunnerSettings with_graphs() {
    RunnerSettings s;
    s.block_size = 4;
    s.device = "fake";
    s.max_num_seqs = 4;
    s.max_num_batched_tokens = 16;
    s.cudagraph_mode = GraphMode::kFull;
    s.cudagraph_capture_sizes = {2, 4, 8};
    return s;
}

struct PlayedContext {
    static constexpr uint32_t kPages = 16;

    explicit PlayedContext(bool computes = true, bool own_memory = true,
                           std::vector<pb_kv_spec> layers = {FakeModel::layer()},
                           const pb_component& attending = kFakePages)
        : device(computes, own_memory),
          attention(device.opened, view_of<host::Attention, pb_attention>(attending)) {
        pb_model_facts facts = sized<pb_model_facts>();
        facts.vocab_size = FakeModel::kVocab;
        facts.hidden_size = FakeModel::kHidden;
        facts.layer_count = static_cast<uint32_t>(layers.size());
        facts.max_position = 64;
        model.set_facts(facts);
        computed().layers = std::move(layers);
        const auto described = kv.describe(model.component(), facts, with_graphs(), 0);
        if (!described) throw std::runtime_error(described.error());
        const auto bound = kv.bind(*described, kv::group_layers(described->kept, 4), 0);
        if (!bound) throw std::runtime_error(bound.error());
        if (!kv.allocate_pages(kPages)) throw std::runtime_error("there is no memory");
        pages_.emplace(kPages, 4, kv::PrefixCaching::kOff, "fake", kv.grouping().groups);
    }
    ~PlayedContext() {
        for (kv::BlockTable& t : tables_) pages_->tables().release(t);
    }
    PassContext context() { return {device.opened, clock, model, attention, weights, kv, hidden}; }
    // Sequences of so many tokens each, with a logit row each. Their ids: 1, 2, 3, …, or from another one on.
    Batch batch(const std::vector<uint32_t>& sequences, int32_t next = 1) {
        Batch out;
        out.clear(kv.batch_form());
        for (const uint32_t tokens : sequences) {
            std::vector<int32_t> ids(tokens);
            for (int32_t& id : ids) id = next++ % static_cast<int32_t>(FakeModel::kVocab);
            kv::BlockTable& table = tables_.emplace_back();
            if (!pages_->tables().grow(table, tokens)) throw std::runtime_error("there are too few pages");
            out.add({ids, 0, 1, table});
        }
        out.finish();
        return out;
    }
    FakeModel& computed() { return played<FakeModel>(model.component()); }

    PlayedDevice device;
    VirtualClock clock;
    ModelInUse model{view_of<host::Model, pb_model>(kFakeModel)};
    AttentionInUse attention;
    LoadedWeights weights;
    KvMemory kv{device.opened, attention.component(), clock};
    HiddenLinks hidden;

  private:
    std::optional<kv::KvCache> pages_;
    std::deque<kv::BlockTable> tables_; // which batches refer to
};

}  // namespace patchbay::runner::testing
