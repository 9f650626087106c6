// Another model or another attention in a ModelRunner whose steps go on.
#include <utility>

#include "host/registry.hpp"
#include "runner/model_runner.hpp"

namespace patchbay::runner {

// ---- another model ----

namespace {

bool equal(const pb_kv_spec& a, const pb_kv_spec& b) {
    return a.kind == b.kind && a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
           a.sliding_window == b.sliding_window && a.scale == b.scale && a.soft_cap == b.soft_cap &&
           a.kv_source_layer == b.kv_source_layer && a.state_bytes == b.state_bytes;
}

Result<> unlike(const char* what, uint32_t got, uint32_t expected) {
    return fail(StatusCode::kUnsupported, std::string("it has ") + what + " " + std::to_string(got) + ", expected " +
                                              std::to_string(expected) +
                                              " as the model that runs (start the engine with it)");
}

}  // namespace

Result<> ModelRunner::check_like(const host::Component& model, const pb_model_facts& facts) const {
    if (draft_ && is_head(*draft_->model_))
        return fail(StatusCode::kUnsupported, "the engine drafts with a head that was trained for the model that runs");
    PB_CHECK(its_.check_needs(model));
    if (facts.vocab_size != signature_.vocab_size)
        return unlike("a vocabulary of", facts.vocab_size, signature_.vocab_size);
    if (facts.layer_count != signature_.layer_count)
        return unlike("a layer_count of", facts.layer_count, signature_.layer_count);
    if (facts.max_position < kv_.max_seq_len()) return unlike("positions up to", facts.max_position, kv_.max_seq_len());
    for (uint32_t layer = 0; layer < facts.layer_count; ++layer) {
        pb_kv_spec kv = sized<pb_kv_spec>();
        PB_CHECK(host::checked<&pb_model::kv_spec>(model, layer, &kv));
        const pb_kv_spec& in_use = kv_.layers().layers()[layer];
        if (kv.slopes || in_use.slopes) // which attention reads from the model that it was bound for
            return fail(StatusCode::kUnsupported, "models with ALiBi are not swapped live (start the engine with it)");
        if ((kv.sinks != 0) != (in_use.sinks != 0))
            return fail("its layer " + std::to_string(layer) + (kv.sinks ? " has" : " has no") +
                        " attention sinks, unlike that of the model that runs (start the engine with it)");
        if (!equal(kv, in_use))
            return fail(StatusCode::kUnsupported,
                        "its layer " + std::to_string(layer) + " keeps other KV than that of the model that runs (" +
                            std::to_string(kv.kv_heads) + " heads of " + std::to_string(kv.head_dim) + ", expected " +
                            std::to_string(in_use.kv_heads) + " of " +
                            std::to_string(in_use.head_dim) + "; start the engine with it)");
    }
    return {};
}

Result<pb_model_facts> ModelRunner::read_like(const host::Component& model, const weights::FlatConfig& config) const {
    PB_TRY(const pb_model_facts facts, read_facts(model, config, reader_));
    PB_CHECK(check_like(model, facts));
    return facts;
}

Result<std::unique_ptr<LoadedWeights>> ModelRunner::load_beside(const host::Component& model,
                                                                const weights::FlatConfig& config,
                                                                const weights::WeightSource& source,
                                                                const weights::WeightForm& form,
                                                                const BetweenSteps& run) {
    PB_TRY(const pb_model_facts facts, read_like(model, config));
    return weights_.load_beside({model, facts, source, form}, kv_.layers().layers(), run);
}

void ModelRunner::use_model(const host::Component& model, LoadedWeights& weights) {
    const pb_model_facts before = std::exchange(facts_, weights.facts);
    weights_.use(weights);
    weights.facts = before;
    model_ = &model;
    make_graph_cache();
}

// ---- another attention ----

Result<> ModelRunner::check_attention(const host::Component& attention) const {
    if (!its_.info.computes && !attention.table<pb_attention>()->cost)
        return fail(StatusCode::kUnsupported, attention.label() + (" does not say what it costs on device '" +
                                                                   its_.name + "', which computes nothing"));
    PB_CHECK(kv_.layers().check_pages(attention));
    return draft_ ? draft_->check_attention(attention) : Result<>();
}

Result<bool> ModelRunner::use_attention(const host::Component& attention) {
    PB_TRY(bool reads, kv_.layers().rebind(attention));
    if (draft_) {
        const Result<bool> of_draft = draft_->use_attention(attention);
        if (!of_draft) {
            (void)kv_.layers().rebind(*attention_); // which is bound still
            kv_.layers().unbind_other();
            return of_draft;
        }
        reads = reads && *of_draft;
    }
    attention_ = &attention;
    make_graph_cache();
    return reads;
}

void ModelRunner::forget_attention() {
    kv_.layers().unbind_other();
    if (draft_) draft_->forget_attention();
}

void ModelRunner::end_attention() {
    kv_.layers().unbind();
    if (draft_) draft_->end_attention();
}

}  // namespace patchbay::runner
