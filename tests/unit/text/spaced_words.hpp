// A tokenizer of a few words, whose tokens carry the space before them; it loses it at the beginning of a text.
#pragma once

namespace patchbay::text {

inline constexpr const char* kSpacedWords = R"({
    "added_tokens": [{"id": 0, "content": "<s>", "special": true}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "model": {"type": "WordLevel", "unk_token": "<unk>",
              "vocab": {"<s>": 0, "<unk>": 1, "▁Once": 2, "▁upon": 3, "▁a": 4, "▁time": 5, "time": 6}}})";
enum SpacedWord : int { kBegin, kUnknown, kOnce, kUpon, kA, kSpaceTime, kTime };

}  // namespace patchbay::text
