// What bench_grammars() compiles and reads, and the vocabulary that it does so over where no model's is given.
#include <set>

#include "bench/grammar_bench.hpp"
#include "patchbay/sdk/philox.hpp"

namespace patchbay::bench {
namespace {

const char* kOrder = R"({
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "placed": {"type": "string", "format": "date-time"},
        "customer": {"type": "object", "properties": {
            "name": {"type": "string"}, "email": {"type": "string", "format": "email"},
            "age": {"type": "integer", "minimum": 18, "maximum": 120}}, "required": ["name", "email"]},
        "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "state": {"enum": ["new", "paid", "sent", "returned"]}
    },
    "required": ["id", "placed", "customer", "lines", "note", "state"],
    "additionalProperties": false,
    "$defs": {"line": {"type": "object", "properties": {
        "what": {"type": "string"}, "count": {"type": "integer", "minimum": 1, "maximum": 999},
        "price": {"type": "number", "minimum": 0}, "parts": {"type": "array", "items": {"$ref": "#/$defs/line"}}},
        "required": ["what", "count", "price"]}}
})";
const char* kOrderText =
    R"({"id": "123e4567-e89b-12d3-a456-426614174000", "placed": "2024-05-06T07:08:09Z", )"
    R"("customer": {"name": "Anna von der Heide", "email": "anna@example.com", "age": 42}, )"
    R"("lines": [{"what": "a lamp with a long shade", "count": 2, "price": 39.5, "parts": )"
    R"([{"what": "bulb", "count": 4, "price": 1.25}]}, {"what": "the table under it", )"
    R"("count": 1, "price": 250}], "note": "please ring twice, the bell is old", "state": "paid"})";
const char* kBounded = R"({
    "type": "object",
    "properties": {"title": {"type": "string", "minLength": 3, "maxLength": 60},
                   "body": {"type": "string", "maxLength": 2000},
                   "slug": {"type": "string", "pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 40}},
    "required": ["title", "body", "slug"]
})";
const char* kBoundedText = R"({"title": "What the wolf said to the king", "body": "It was late, and the wolf had come )"
                           R"(down from the hills because of the cold. He did not knock. The king was awake and )"
                           R"(said that he might sit by the fire, which he did.", "slug": "what-the-wolf-said"})";
const char* kSelect = R"ebnf(
root ::= "SELECT " columns " FROM " name (" WHERE " condition)? (" ORDER BY " name (" DESC")?)? ";"
columns ::= "*" | name (", " name)*
condition ::= condition (" AND " | " OR ") term | term
term ::= name " " ("=" | "<" | ">" | "<>" | "LIKE") " " value | "(" condition ")"
value ::= [0-9]+ ("." [0-9]+)? | "'" [^'\n]* "'"
name ::= [a-zA-Z_] [a-zA-Z0-9_]*
)ebnf";

}  // namespace

std::vector<GrammarCase> grammar_cases() {
    return {
        {"json_object", {.json_object = true}, kOrderText},
        {"json: an order", {.json = kOrder}, kOrderText},
        {"json: strings with bounds", {.json = kBounded}, kBoundedText},
        {"regex: a date and a name",
         {.regex = R"(\d{4}-(0[1-9]|1[0-2])-[0-3]\d: [A-Z]\w+( [A-Z]\w+)* (wrote|said) ".{1,200}"\.)"},
         R"(2024-05-06: Anna Heide wrote "it was late, and the wolf had come down from the hills".)"},
        {"grammar: SELECT",
         {.grammar = kSelect},
         "SELECT name, price FROM lines WHERE (count > 2 AND name LIKE 'the lamp%') OR price < 12.5 ORDER BY price;"},
        {"choice of 4", {.choice = {"positive", "negative", "neutral", "mixed"}}, "neutral"},
    };
}

std::shared_ptr<const grammar::Vocabulary> made_vocabulary(uint32_t size) {
    std::vector<std::string> tokens;
    std::set<std::string> known;
    const auto add = [&](const std::string& text) {
        if (tokens.size() < size && known.insert(text).second) tokens.push_back(text);
    };
    for (int b = 0; b < 256; ++b) add(std::string(1, static_cast<char>(b)));
    for (const char* piece :
         {"{\"", "\"}",  "\": ",  "\": \"", "\", \"", "\":",  "\",",    "\"]",  "},",    "}}",    "]}",    "[{\"",
          "://", "true", "false", "null",   " the",   " and", "SELECT", "FROM", "WHERE", " FROM", " WHERE"})
        add(piece);
    for (uint32_t n = 1; n <= 64; ++n) {
        add(std::string(n, ' '));
        add("\n" + std::string(n, ' '));
        add(std::string(n, '\t'));
        add(std::string(n, '='));
        add(std::string(n, '-'));
    }
    for (uint32_t n = 0; n < 1000; ++n) add(std::to_string(n));
    const std::string marks = "\"'()[]{}<>,.;:!?*/\\+-=_#@&|%";
    for (const char a : marks)
        for (const char b : marks) {
            add({a, b});
            add({' ', a, b});
            for (const char c : marks) add({a, b, c});
        }
    const char* const begins[] = {"",  "b", "c", "d", "f",  "g",  "h",  "k",  "l",  "m",  "n",  "p",  "r",
                                  "s", "t", "v", "w", "br", "cl", "cr", "ch", "sh", "st", "th", "tr", "pr"};
    const char* const middles[] = {"a", "e", "i", "o", "u", "ai", "ea", "ou", "é", "ü"};
    const char* const ends[] = {"", "n", "r", "s", "t", "l", "m", "nd", "st", "ng", "ck", "ll"};
    for (uint64_t i = 0; tokens.size() < size; ++i) {
        const PhiloxBlock bits = draw(11, i, Stream::kTest, 0), more = draw(11, i, Stream::kTest, 1);
        std::string word;
        for (uint32_t k = 0; k <= bits[0] % 3; ++k)
            word += std::string(begins[bits[1] / (k * k + 1) % std::size(begins)]) +
                    middles[bits[2] / (k * k + 1) % std::size(middles)] + ends[bits[3] / (k * k + 1) % std::size(ends)];
        if (more[0] % 8 == 0 && word[0] > 0) word[0] = static_cast<char>(word[0] & ~0x20);
        if (more[1] % 2) word = " " + word;
        if (more[2] % 64 == 0) word += marks[more[3] % marks.size()];
        add(word);
    }
    return std::make_shared<const grammar::Vocabulary>(std::move(tokens));
}

}  // namespace patchbay::bench
