#include "kv/groups.hpp"

#include <algorithm>
#include <bit>

namespace patchbay::kv {
namespace {

struct Form { // layers that keep the same
    const LayerKv* kv;
    std::vector<uint32_t> layers;

    uint64_t bytes() const { return kv->bytes * layers.size(); }
};

std::vector<Form> forms_of(std::span<const LayerKv> layers) {
    std::vector<Form> forms;
    for (uint32_t i = 0; i < layers.size(); ++i) {
        if (layers[i].owner) continue;
        const auto at = std::find_if(forms.begin(), forms.end(), [&](const Form& f) { return *f.kv == layers[i]; });
        if (at == forms.end()) forms.push_back({&layers[i], {i}});
        else at->layers.push_back(i);
    }
    std::stable_partition(forms.begin(), forms.end(),
                          [](const Form& f) { return f.kv->spec.kind != GroupKind::kRecurrent; });
    return forms;
}

uint64_t groups_of(const Form& f, uint64_t page_bytes) {
    const uint64_t layers_a_page = page_bytes / f.kv->bytes;
    return (f.layers.size() + layers_a_page - 1) / layers_a_page;
}

uint64_t pages_of(const GroupSpec& spec, uint64_t blocks, uint32_t block_size, Computed how) {
    if (spec.kind == GroupKind::kRecurrent) return 1;
    if (spec.kind == GroupKind::kFull || how == Computed::kAtOnce) return blocks;
    return std::min(blocks, window_pages(spec.window, block_size));
}

struct Size { // a candidate for the size of pages
    uint64_t page_bytes, groups;
    double padding;
};

Size size_of(const std::vector<Form>& forms, uint64_t page_bytes, uint32_t block_size) {
    const uint64_t blocks = (kTypicalLength + block_size - 1) / block_size;
    Size size{page_bytes, 0, 0};
    double taken = 0, needed = 0;
    for (const Form& f : forms) {
        const uint64_t groups = groups_of(f, page_bytes);
        const auto pages = static_cast<double>(pages_of(f.kv->spec, blocks, block_size, Computed::kInChunks));
        size.groups += groups;
        taken += pages * static_cast<double>(groups * page_bytes);
        needed += pages * static_cast<double>(f.bytes());
    }
    size.padding = 1 - needed / taken;
    return size;
}

// The fewest groups with little padding; if there are none, the least padding.
Size choose_size(const std::vector<Form>& forms, uint32_t block_size) {
    uint64_t least = 0;
    for (const Form& f : forms) least = std::max(least, f.kv->bytes);
    const auto better = [](const Size& a, const Size& b) {
        const bool close_a = a.padding <= kMaxPadding, close_b = b.padding <= kMaxPadding;
        if (close_a != close_b) return close_a;
        if (close_a && a.groups != b.groups) return a.groups < b.groups;
        return a.padding != b.padding ? a.padding < b.padding : a.groups < b.groups;
    };
    Size best = size_of(forms, least, block_size);
    for (const Form& f : forms)
        for (uint64_t layers = 1; layers <= f.layers.size(); ++layers)
            if (const uint64_t bytes = layers * f.kv->bytes; bytes > least)
                if (const Size size = size_of(forms, bytes, block_size); better(size, best)) best = size;
    return best;
}

// The block size at which a block of the largest form takes about as many bytes as a state.
uint32_t closer_block_size(const std::vector<Form>& forms, const Size& size, uint32_t block_size) {
    uint64_t tokens = 0;
    for (const Form& f : forms)
        if (f.kv->spec.kind != GroupKind::kRecurrent) tokens = std::max(tokens, f.bytes());
    if (size.padding <= kMaxPadding || tokens == 0 || tokens >= size.page_bytes) return 0;
    return static_cast<uint32_t>(std::bit_floor(size.page_bytes / tokens)) * block_size;
}

}  // namespace

Grouping group_layers(std::span<const LayerKv> layers, uint32_t block_size) {
    Grouping out;
    if (layers.empty()) return out;
    const std::vector<Form> forms = forms_of(layers);
    const Size size = choose_size(forms, block_size);
    out.page_bytes = size.page_bytes;
    out.padding = size.padding;
    out.better_block_size = closer_block_size(forms, size, block_size);
    out.layers.resize(layers.size());
    for (const Form& f : forms) {
        const uint64_t count = groups_of(f, size.page_bytes), all = f.layers.size();
        for (uint64_t g = 0; g < count; ++g) { // as evenly as possible
            const uint64_t first = all * g / count, end = all * (g + 1) / count;
            for (uint64_t i = first; i < end; ++i)
                out.layers[f.layers[i]] = {static_cast<uint32_t>(out.groups.size()), (i - first) * f.kv->bytes};
            out.groups.push_back(f.kv->spec);
        }
    }
    for (size_t i = 0; i < layers.size(); ++i)
        if (layers[i].owner) out.layers[i] = out.layers[*layers[i].owner];
    return out;
}

uint64_t longest_sequence(std::span<const GroupSpec> groups, uint32_t block_size, uint32_t pages, Computed how) {
    const auto fits = [&](uint64_t blocks) {
        uint64_t sum = 0;
        for (const GroupSpec& g : groups) sum += pages_of(g, blocks, block_size, how);
        return sum <= pages;
    };
    if (!fits(1)) return 0;
    const uint64_t many = uint64_t{UINT32_MAX}; // blocks
    if (fits(many)) return UINT64_MAX;
    uint64_t low = 1, high = many; // low fits, high does not fit
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low * block_size;
}

}  // namespace patchbay::kv
