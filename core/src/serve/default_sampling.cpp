#include "serve/default_sampling.hpp"

#include <string>
#include <type_traits>

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "engine/request/parameters.hpp"
#include "engine/request/validation.hpp"
#include "weights/checkpoint.hpp"

namespace patchbay::serve {
namespace {

template <class V>
bool read_number(const std::string& text, V& out) {
    if constexpr (std::is_same_v<V, float> || std::is_same_v<V, int32_t> || std::is_same_v<V, uint32_t>) {
        const auto number = parse_number<V>(text);
        if (number) out = *number;
        return number.has_value();
    } else {
        return false; // no such parameter is recommended
    }
}

}  // namespace

Result<DefaultSampling> default_sampling(const std::filesystem::path& folder) {
    DefaultSampling out;
    const std::filesystem::path file = folder / "generation_config.json";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return out;
    PB_TRY(const weights::FlatConfig settings, weights::read_json_flat(file));
    for (const auto& row : engine::rows_of<engine::SamplingParams>()) {
        const auto at = settings.find(row.info.name);
        if (!row.info.recommended || at == settings.end() || at->second == "null") continue;
        if (!std::visit([&](auto field) { return read_number(at->second, out.params.*field); }, row.field))
            return invalid(file.string() + ": " + row.info.name + " is " + printable(at->second, 40) +
                           ", expected a number");
        out.text += (out.text.empty() ? "" : ", ") + (row.info.name + (" " + at->second));
    }
    engine::SamplingParams checked = out.params;
    if (const auto fits = engine::check_sampling(checked, {.vocab_size = 1, .max_logprobs = -1}); !fits)
        return prefixed(file.string(), fits.failure());
    return out;
}

}  // namespace patchbay::serve
