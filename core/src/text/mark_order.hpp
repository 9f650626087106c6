// Long runs of combining marks in canonical order, for normalization in linear time: ICU inserts each mark into its run
// by walking back over those that belong after it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace patchbay::text {

enum class Decomposition { kCanonical, kCompatibility };

// A text that normalizes to the same, in `storage` if it differs: in runs of more than a few marks these are decomposed
// and in order. Nothing: ICU lacks its data.
std::optional<std::string_view> with_ordered_marks(std::string_view text, Decomposition, std::string& storage);

}  // namespace patchbay::text
