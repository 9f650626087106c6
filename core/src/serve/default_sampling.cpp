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

constexpr const char* kWayOut = " (--generation-config none ignores the file)";

// What was expected; null: it was read.
template <class V>
const char* read_number(const std::string& text, V& out) {
    if constexpr (std::is_same_v<V, float> || std::is_same_v<V, int32_t> || std::is_same_v<V, uint32_t>) {
        if (const auto number = parse_number<V>(text)) {
            out = *number;
            return nullptr;
        }
        return std::is_same_v<V, float> ? "a number" : "a whole number";
    } else {
        return "nothing: no such parameter is recommended";
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
        const char* expected = std::visit([&](auto f) { return read_number(at->second, out.params.*f); }, row.field);
        if (expected)
            return invalid(file.string() + ": " + row.info.name + " is " + printable(at->second, 40) + ", expected " +
                           expected + kWayOut);
        out.text += (out.text.empty() ? "" : ", ") + (row.info.name + (" " + at->second));
    }
    engine::SamplingParams checked = out.params;
    if (const auto fits = engine::check_sampling(checked, {.vocab_size = 1, .max_logprobs = -1}); !fits)
        return prefixed(file.string(), fail(fits.code(), fits.error() + kWayOut));
    return out;
}

}  // namespace patchbay::serve
