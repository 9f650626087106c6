#include "runner/kv_memory.hpp"

#include <algorithm>
#include <utility>

namespace patchbay::runner {

Result<LayersKv> KvMemory::describe(const host::Component& model, const pb_model_facts& facts,
                                    const RunnerSettings& settings, uint32_t padded) {
    max_seq_len_ = settings.max_model_len ? settings.max_model_len : facts.max_position;
    LayersKv out;
    out.specs.resize(facts.layer_count, sized<pb_kv_spec>());
    for (uint32_t layer = 0; layer < facts.layer_count; ++layer)
        PB_CHECK(host::checked<&pb_model::kv_spec>(model, layer, &out.specs[layer]));
    PB_TRY(std::vector<pb_dtype> dtypes, settings.kv_dtypes.by_layer(facts.layer_count));
    for (uint32_t layer = 0; layer < facts.layer_count; ++layer)
        if (const uint32_t owner = out.specs[layer].kv_source_layer; owner > 0 && owner <= layer)
            dtypes[layer] = dtypes[owner - 1];
    const pb_device_info& info = device_.info;
    out.form = {settings.block_size, info.activation_dtype, std::move(dtypes),
                info.compatible_with[0] ? info.compatible_with : device_.name, !info.computes,
                std::max(settings.max_num_seqs, padded), std::max(settings.max_num_batched_tokens, padded),
                max_seq_len_};
    PB_TRY(out.kept, layers_.describe(out.specs, out.form));
    return out;
}

Result<> KvMemory::bind(const LayersKv& own, kv::Grouping grouping, size_t first_layer) {
    const auto first = grouping.layers.begin() + static_cast<ptrdiff_t>(first_layer);
    grouping.layers = std::vector<kv::LayerPlace>(first, first + static_cast<ptrdiff_t>(own.specs.size()));
    form_ = {own.form.block_size, 0, 0};
    for (const kv::GroupSpec& g : grouping.groups)
        (g.kind == kv::GroupKind::kRecurrent ? form_.state_groups : form_.token_groups) += 1;
    return layers_.bind(own.specs, own.form, std::move(grouping));
}

Result<> KvMemory::allocate_host_pages(const RunnerSettings& settings) {
    constexpr uint64_t kMaxSlots = 1u << 26;
    if (settings.zero_freed_blocks) PB_CHECK(zero_page_.allocate(page_bytes()));
    if (settings.preemption_mode == config::PreemptionMode::kRecompute) return {};
    const auto space = static_cast<uint64_t>(settings.swap_space * 0x1p30);
    const uint64_t slots = settings.num_swap_blocks ? settings.num_swap_blocks
                                                    : space / std::max<uint64_t>(page_bytes(), 1);
    if (slots == 0 && space > 0)
        return fail(StatusCode::kInvalid,
                    "swap_space of " + std::to_string(space) + " bytes holds no block (one takes " +
                    std::to_string(page_bytes()) + " bytes)");
    return host_pages_.allocate(static_cast<uint32_t>(std::min(slots, kMaxSlots)), page_bytes(), pages_->page(0));
}

pb_kv_view KvMemory::view(uint32_t layer, const float* sinks) const {
    uint8_t* const first = pages_->page(0);
    return {sizeof(pb_kv_view), 0, first ? first + grouping().layers[layer].offset : nullptr, page_bytes(),
            pages_->count(), layer, sinks};
}

Result<> KvMemory::copy(const kv::PageCopy& page) {
    if (page.way == kv::Way::kZeroPage || page.way == kv::Way::kZeroSlot) return clear(page);
    if (page.way == kv::Way::kToHost) return host_pages_.copy(page.way, page.to, pages_->page(page.from));
    if (page.way == kv::Way::kToDevice) return host_pages_.copy(page.way, page.from, pages_->page(page.to));
    return device_.plugin.checked<&pb_device::copy_page>(pages_->page(page.to), pages_->page(page.from), page_bytes());
}

Result<> KvMemory::clear(const kv::PageCopy& what) {
    if (what.way == kv::Way::kZeroSlot) return host_pages_.copy(kv::Way::kToHost, what.to, zero_page_.data());
    return device_.plugin.checked<&pb_device::copy_page>(pages_->page(what.to), zero_page_.data(), page_bytes());
}

}  // namespace patchbay::runner
