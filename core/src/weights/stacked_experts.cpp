#include "weights/stacked_experts.hpp"

#include <charconv>
#include <utility>

namespace patchbay::weights {

std::optional<StackedExpert> stacked_expert(std::string_view name) {
    constexpr std::string_view kExperts = ".experts.";
    const size_t found = name.find(kExperts);
    if (found == name.npos) return std::nullopt;
    const std::string_view layer = name.substr(0, found + kExperts.size());
    StackedExpert out;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + layer.size(), end, out.expert);
    if (error != std::errc{} || out.expert < 0 || rest == end || *rest != '.') return std::nullopt;
    const std::string_view of_expert(rest + 1, static_cast<size_t>(end - rest - 1)); // "up.weight"
    const size_t dot = of_expert.find('.');
    if (dot == of_expert.npos) return std::nullopt;
    constexpr std::pair<std::string_view, std::string_view> kEndings[] = {
        {"weight", ""}, {"bias", "_bias"}, {"weight_blocks", "_blocks"}, {"weight_scales", "_scales"}};
    for (const auto& [of_one, of_all] : kEndings) {
        if (of_expert.substr(dot + 1) != of_one) continue;
        out.tensor = std::string(layer) + std::string(of_expert.substr(0, dot)) + std::string(of_all);
        if (of_one != "weight") out.holds = StackedExpert::Holds::kOther;
        return out;
    }
    return std::nullopt;
}

bool has_expert(const StackedExpert& one, const std::vector<int64_t>& shape) {
    const bool fits = one.holds == StackedExpert::Holds::kMatrix ? shape.size() == 3 : shape.size() >= 2;
    return fits && one.expert < shape[0];
}

TensorView expert_view(const StackedExpert& one, const TensorView& all) {
    TensorView out = all;
    out.bytes = all.bytes / static_cast<uint64_t>(all.shape[0]);
    out.data = all.data + static_cast<uint64_t>(one.expert) * out.bytes;
    out.shape.erase(out.shape.begin());
    if (one.holds == StackedExpert::Holds::kMatrix) {
        std::swap(out.shape[0], out.shape[1]);
        out.turned = true;
    }
    return out;
}

}  // namespace patchbay::weights
