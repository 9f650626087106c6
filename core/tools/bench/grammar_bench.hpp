// What structured output costs: to compile a grammar, and to find the tokens that it allows next, over the tokens of
// texts that have its form.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "grammar/compile.hpp"

namespace patchbay::bench {

struct GrammarCase {
    std::string name;
    grammar::StructuredOutputs asked;
    std::string text; // of that form
};
std::vector<GrammarCase> grammar_cases();

// Like a byte-level vocabulary of a large model: the bytes, words with and without a space before them, numbers, white
// space, marks and what JSON is made of.
std::shared_ptr<const grammar::Vocabulary> made_vocabulary(uint32_t size);
// The text as tokens, the longest first.
std::vector<text::TokenId> longest_tokens(const grammar::Vocabulary&, std::string_view text);

struct GrammarResult {
    std::string name;
    size_t states = 0, tokens = 0; // tokens: of the text
    double compile_seconds = 0;    // with what is prepared before the first token; the median
    double first_mask_seconds = 0; // a token of the first text after that, median
    double mask_seconds = 0, mask_seconds_p99 = 0, advance_seconds = 0; // of the texts after it, median
};
struct GrammarBench {
    uint32_t vocabulary;
    std::vector<GrammarResult> results;
};

Result<GrammarBench> bench_grammars(const std::shared_ptr<const grammar::Vocabulary>&, uint32_t repeats, Clock&);
std::string table_of(const GrammarBench&);
std::string json_of(const GrammarBench&);

}  // namespace patchbay::bench
