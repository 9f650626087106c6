// Token ids to text, token by token.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "text/token_id.hpp"

namespace patchbay::text {

class Tokenizer;

// Where the decoding of one text stands. Made empty; the tokenizer that it is given to keeps in it what it needs.
struct DecodeState {
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
    explicit Detokenizer(std::shared_ptr<const Tokenizer>);
    std::string add(TokenId); // the text that became complete with this token; may be empty
    std::string finish();     // what is left: an unfinished character becomes U+FFFD

  private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    DecodeState state_;
};

}  // namespace patchbay::text
