#include "experiment/shares.hpp"

#include <charconv>
#include <cmath>

namespace patchbay::experiment {

std::optional<Measure> measure_of(std::string_view text) {
    Measure out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.value);
    if (error != std::errc{} || !std::isfinite(out.value)) return std::nullopt;
    out.unit = text.substr(static_cast<size_t>(end - text.data()));
    if (out.unit.starts_with(' ')) out.unit.remove_prefix(1);
    return out;
}

std::optional<double> share_of(std::string_view text) {
    const auto measure = measure_of(text);
    if (!measure || measure->unit != "%" || measure->value < 0) return std::nullopt;
    return measure->value / 100;
}

}  // namespace patchbay::experiment
