#include "runner/weight_loader.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace patchbay::runner {
namespace {

using weights::Quantization;

bool makes_logits(const pb_weight_spec& spec, uint32_t vocab_size) { // and a token table, which may do so too
    return spec.part_count == 1 && spec.parts[0].rows == vocab_size;
}

// Rounding of the head shows in every logit, and its codes are few beside the layers': it is never int4.
weights::WeightForm form_of(const pb_weight_spec& spec, weights::WeightForm form, uint32_t vocab_size) {
    const bool rounds = form.quantization == Quantization::kInt8 || form.quantization == Quantization::kInt4;
    if (rounds && spec.exact) form.quantization = Quantization::kNone;
    const bool int4 = form.quantization == Quantization::kInt4;
    if (int4 && makes_logits(spec, vocab_size)) form.quantization = Quantization::kInt8;
    return form;
}

std::string text_of(const weights::LoadedWeight& weight) { // "bfloat16", "int4 g32", "int8 rows"
    if (weight.group == 0) return weight.dtype == PB_F32 ? "float32" : "bfloat16";
    const std::string codes = weight.dtype == PB_FP8 ? "fp8" : weight.dtype == PB_I4 ? "int4" : "int8";
    return codes + (weight.whole_rows ? " rows" : " g" + std::to_string(weight.group));
}

void add_work(ModelWork& work, const pb_weight_spec& spec, uint32_t vocab_size, uint64_t params, uint64_t bytes) {
    if (spec.share > 0 && spec.share < 1) {
        const double share = spec.share;
        const auto found = std::find_if(work.experts.begin(), work.experts.end(),
                                        [&](const ExpertWork& e) { return e.share == share; });
        ExpertWork& to = found != work.experts.end() ? *found : work.experts.emplace_back(ExpertWork{share, 0, 0});
        to.params += params;
        to.bytes += bytes;
        return;
    }
    (makes_logits(spec, vocab_size) ? work.head_params : work.linear_params) += params;
    work.linear_bytes += bytes;
}

}  // namespace

Result<pb_weight*> WeightLoader::prepare(const host::Component& model, const pb_weight_spec& spec,
                                         const weights::LoadedWeight& loaded) const {
    const pb_quant quant{sizeof(pb_quant), loaded.group, loaded.scales.data(),
                         loaded.offsets.empty() ? nullptr : loaded.offsets.data(),
                         loaded.order.empty() ? nullptr : loaded.order.data()};
    const pb_weight_source source{sizeof(pb_weight_source),
                                  spec.role,
                                  loaded.dtype,
                                  0,
                                  loaded.rows,
                                  loaded.cols,
                                  loaded.data.data(),
                                  loaded.bias.empty() ? nullptr : loaded.bias.data(),
                                  spec.uses,
                                  loaded.group ? &quant : nullptr};
    pb_weight* weight = nullptr;
    const pb_status status = device_.plugin.call<&pb_device::prepare>(&source, &weight);
    const Result<> prepared = device_.plugin.component->check(status, "prepare");
    if (!prepared && status == PB_UNSUPPORTED && loaded.group) {
        const std::string name(spec.parts[0].name, strnlen(spec.parts[0].name, sizeof spec.parts[0].name));
        return fail(prepared.code(), prepared.error() + " (of model '" + std::string(model.type().name) +
                    "', weight '" + name + "' as " + text_of(loaded) +
                    "; with quantization: none it is given real numbers)");
    }
    PB_CHECK(prepared);
    return weight;
}

Result<std::optional<pb_weight*>> WeightLoader::existing(uint32_t index, const pb_weight_spec& spec,
                                                         const LoadedWeights& loaded) const {
    if (spec.tied_to > 0) {
        if (spec.tied_to > index) return fail("weight " + std::to_string(index) + " is the same as a later one");
        return std::optional(loaded.by_spec[spec.tied_to - 1]);
    }
    if (spec.of_target == PB_TARGET_NONE) return std::optional<pb_weight*>();
    if (spec.of_target < 0 || static_cast<size_t>(spec.of_target) >= TargetWeights{}.size() || !of_target_)
        return fail("weight " + std::to_string(index) + " is the target's, of a model that is not a head");
    return std::optional((*of_target_)[static_cast<size_t>(spec.of_target)]);
}

Result<weights::LoadedWeight> WeightLoader::read(const WeightsToLoad& wanted, uint32_t index,
                                                 const pb_weight_spec& spec, const AttentionSinks& sinks,
                                                 std::vector<float>& filled, weights::LoadedWeight reuse) const {
    if (spec.part_count == 0) {
        filled.assign(static_cast<size_t>(spec.cols), 0);
        PB_CHECK(host::checked<&pb_model::fill>(wanted.model, index, filled.data()));
        return weights::LoadedWeight{.dtype = PB_F32, .rows = 1, .cols = spec.cols,
                                     .data = std::as_bytes(std::span(filled)), .memory = std::move(reuse.memory)};
    }
    const weights::WeightForm form =
        sinks.are_in(index) ? weights::WeightForm{} : form_of(spec, wanted.form, wanted.facts.vocab_size);
    return wanted.source.load(spec, form, rank_, size_, std::move(reuse));
}

Result<> WeightLoader::place(const WeightsToLoad& wanted, uint32_t index, const pb_weight_spec& spec,
                             const weights::LoadedWeight& loaded, LoadedWeights& into, const BetweenSteps& run,
                             uint64_t& bytes) const {
    Result<pb_weight*> prepared = fail("nothing was prepared");
    Result<> sinks_placed;
    const bool ran = run([&] {
        prepared = prepare(wanted.model, spec, loaded);
        if (prepared) bytes = device_.plugin.call<&pb_device::weight_bytes>(*prepared);
        if (prepared && device_.computes()) sinks_placed = into.sinks.place(device_.plugin, index, loaded.data);
    });
    if (!ran) return fail(StatusCode::kUnavailable, "the engine has stopped");
    PB_TRY(pb_weight* const weight, std::move(prepared));
    wanted.source.forget(spec); // in the device's memory it is there once more
    into.by_spec.push_back(weight);
    into.owned.push_back(weight);
    return sinks_placed;
}

Result<> WeightLoader::load(const WeightsToLoad& wanted, LoadedWeights& into, const BetweenSteps& run) const {
    const uint32_t count = host::call<&pb_model::weight_count>(wanted.model);
    PB_TRY(into.sinks, AttentionSinks::of(wanted.model, wanted.facts.layer_count));
    weights::LoadedWeight loaded;
    std::vector<float> filled;
    std::map<std::string, uint64_t> params_by_form; // of linears
    for (uint32_t i = 0; i < count; ++i) {
        pb_weight_spec spec = sized<pb_weight_spec>();
        PB_CHECK(host::checked<&pb_model::weight>(wanted.model, i, &spec));
        PB_TRY(const std::optional<pb_weight*> known, existing(i, spec, into));
        if (known) {
            into.by_spec.push_back(*known);
            continue;
        }
        if (ranks_) PB_CHECK(ranks_->check());
        PB_TRY(loaded, read(wanted, i, spec, into.sinks, filled, std::move(loaded)));
        uint64_t bytes = 0;
        PB_CHECK(place(wanted, i, spec, loaded, into, run, bytes));
        into.bytes += bytes;
        if (spec.role == PB_WEIGHT_LINEAR || spec.uses >> PB_WEIGHT_LINEAR & 1) {
            const uint64_t params = static_cast<uint64_t>(loaded.rows) * static_cast<uint64_t>(loaded.cols);
            add_work(into.work, spec, wanted.facts.vocab_size, params, bytes);
            params_by_form[text_of(loaded)] += params;
        }
    }
    into.form = text_of(weights::LoadedWeight{.dtype = wanted.form.dtype}); // of a model without
    uint64_t max_params = 0;
    for (const auto& [form, params] : params_by_form)
        if (params > std::exchange(max_params, std::max(max_params, params))) into.form = form;
    return {};
}

}  // namespace patchbay::runner
