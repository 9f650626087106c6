#include "runner/model_swap.hpp"

#include <string>

#include "base/refusals.hpp"
#include "runner/pass_graphs.hpp"

namespace patchbay::runner {
namespace {

bool equal(const pb_kv_spec& a, const pb_kv_spec& b) {
    return a.kind == b.kind && a.heads == b.heads && a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
           a.sliding_window == b.sliding_window && a.scale == b.scale && a.soft_cap == b.soft_cap &&
           a.kv_source_layer == b.kv_source_layer && a.state_bytes == b.state_bytes;
}

Result<> unlike(const char* what, uint32_t got, uint32_t expected) {
    return unsupported(std::string("it has ") + what + " " + std::to_string(got) + ", expected " +
                       std::to_string(expected) + " as the model that runs (start the engine with it)");
}

}  // namespace

Result<> ModelSwap::check_like(const host::Component& model, const pb_model_facts& facts) const {
    if (drafts_with_head_)
        return unsupported("the engine drafts with a head that was trained for the model that runs");
    PB_CHECK(p_.device.check_needs(model));
    if (facts.vocab_size != first_.vocab_size) return unlike("a vocabulary of", facts.vocab_size, first_.vocab_size);
    if (facts.layer_count != first_.layer_count)
        return unlike("a layer_count of", facts.layer_count, first_.layer_count);
    const uint32_t reach = p_.kv.max_seq_len();
    if (facts.max_position < reach) return unlike("positions up to", facts.max_position, reach);
    for (uint32_t layer = 0; layer < facts.layer_count; ++layer) {
        pb_kv_spec kv = sized<pb_kv_spec>();
        PB_CHECK(host::checked<&pb_model::kv_spec>(model, layer, &kv));
        PB_CHECK(check_layer(layer, kv));
    }
    return {};
}

Result<> ModelSwap::check_layer(uint32_t layer, const pb_kv_spec& kv) const {
    const pb_kv_spec& in_use = p_.kv.layers().layers()[layer];
    if (kv.slopes || in_use.slopes) // which attention reads from the model that it was bound for
        return unsupported("models with ALiBi are not swapped live (start the engine with it)");
    if ((kv.sinks != 0) != (in_use.sinks != 0))
        return unsupported("its layer " + std::to_string(layer) + (kv.sinks ? " has" : " has no") +
                    " attention sinks, unlike that of the model that runs (start the engine with it)");
    if (equal(kv, in_use)) return {};
    return unsupported("its layer " + std::to_string(layer) + " keeps other KV than that of the model that runs (" +
                       std::to_string(kv.kv_heads) + " heads of " + std::to_string(kv.head_dim) + ", expected " +
                       std::to_string(in_use.kv_heads) + " of " + std::to_string(in_use.head_dim) +
                       "; start the engine with it)");
}

Result<pb_model_facts> ModelSwap::read_like(const host::Component& model, const weights::FlatConfig& config) const {
    PB_TRY(const pb_model_facts facts, read_facts(model, config, reader_));
    PB_CHECK(check_like(model, facts));
    return facts;
}

Result<std::unique_ptr<LoadedWeights>> ModelSwap::load_beside(const host::Component& model,
                                                              const weights::FlatConfig& config,
                                                              const weights::WeightSource& source,
                                                              const weights::WeightForm& form,
                                                              const BetweenSteps& run) const {
    PB_TRY(const pb_model_facts facts, read_like(model, config));
    return p_.weights.load_beside({model, facts, source, form}, p_.kv.layers().layers(), run);
}

void ModelSwap::use(const host::Component& model, LoadedWeights& weights) {
    pb_model_facts facts = weights.facts;
    p_.model.use(model, facts);
    p_.weights.use(weights);
    weights.facts = facts; // of the model before
    p_.graphs.renew();
}

}  // namespace patchbay::runner
