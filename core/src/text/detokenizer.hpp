// Token ids to text, token by token.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/token_id.hpp"

namespace patchbay::text {

class Tokenizer;
enum class SpecialTokens;

// Where the decoding of one text stands. Made empty; the tokenizer that it is given to keeps in it what it needs.
struct DecodeState {
    SpecialTokens special{}; // left out, if nothing else is said
    struct Held { // by a step that changes the joined text
        std::string text;
        size_t taken = 0;
        bool begun = false;
    };
    std::string bytes;            // of an unfinished character
    bool begun = false;           // the next token is not the text's first
    std::string if_more, if_last; // how the last token ends: if another one comes, and at the text's end
    std::vector<Held> steps;
};

// Streams text as tokens come: never splits a character, loses no byte.
class Detokenizer {
  public:
    // before: the tokens that the text continues, of which its last ones are read. The text is what decoding all tokens
    // gives, without what decoding those before gives: a word after other words keeps its space.
    explicit Detokenizer(std::shared_ptr<const Tokenizer>, std::span<const TokenId> before = {}, SpecialTokens = {});
    std::string add(TokenId); // the text that became complete with this token; may be empty
    std::string finish();     // what is left: an unfinished character becomes U+FFFD
    bool continues_text() const { return continues_text_; } // the first token added is not the first of a text

  private:
    void read(std::span<const TokenId> before);
    std::string without_said(std::string text);

    std::shared_ptr<const Tokenizer> tokenizer_;
    DecodeState state_;
    bool continues_text_ = false;
    std::string said_; // what the tokens before end with when nothing follows them, and is to come again
};

}  // namespace patchbay::text
