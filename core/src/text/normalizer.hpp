// The `normalizer` of tokenizer.json: Unicode normalisation forms, by ICU.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::text {

class Normalizer {
  public:
    static Result<Normalizer> from_json(const nlohmann::json&); // null: nothing to do

    bool changes_nothing() const { return forms_.empty(); }
    // text: valid UTF-8. The result, in `storage` where it differs from the text.
    std::string_view apply(std::string_view text, std::string& storage) const;

  private:
    enum class Form { kNfc, kNfd, kNfkc, kNfkd };
    Result<> add(const nlohmann::json&);
    std::vector<Form> forms_;
};

}  // namespace patchbay::text
