// The changes to text before it is split: the `normalizer` of tokenizer.json, and that of a SentencePiece model.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "text/charsmap.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/sentencepiece_normalizer.hpp"
#include "text/splitter.hpp"

namespace patchbay::text {

class Normalizer {
  public:
    Normalizer() = default; // changes nothing
    explicit Normalizer(SentencePieceNormalizer only) { steps_.push_back(std::move(only)); }
    static Result<Normalizer> from_json(const nlohmann::json&); // null: changes nothing

    // text: valid UTF-8. Returns the result, in `storage` if it differs. A step that would make the text more
    // than 32 times as long is left out.
    std::string_view apply(std::string_view text, TextBegin, std::string& storage) const;

  private:
    enum class Form { kNfc, kNfd, kNfkc, kNfkd };
    struct Lowercase {};
    struct StripAccents {};
    struct Strip {
        bool left, right;
    };
    struct Nmt {};
    struct Bert {
        bool clean, chinese, strips_accents, lowercase;
    };
    struct Prepend {
        std::string content;
    };
    struct Replace {
        Splitter finder;
        std::string content;
    };
    using Step = std::variant<Form, Lowercase, StripAccents, Strip, Nmt, Bert, Prepend, Replace, Charsmap,
                              SentencePieceNormalizer>;
    struct Apply;
    Result<> add(const nlohmann::json&);
    static Result<Step> read_step(const nlohmann::json&, const std::string& type);
    std::vector<Step> steps_;
};

}  // namespace patchbay::text
