// Numbers under bounds, as automata over their decimal spelling (without an exponent). For the JSON Schema front end.
#pragma once
#include <string>

#include "grammar/json_text.hpp"

namespace patchbay::grammar {

struct NumberBound {
    Json value;
    enum class Side { kMinimum, kMaximum } side;
    enum class Limit { kIncluded, kExcluded } limit;
};

// An expression for the decimals on one side of a number.
Result<ExprId> bounded(Rules&, const NumberBound&, Work&);
bool is_within(const NumberBound&, const Json& number);
std::string plain_decimal(const Json& number); // without an exponent and needless zeros
// An expression for all decimals that equal a number.
Result<ExprId> equal_to(Rules&, const Json& number, Work&);
// Whole numbers from 1, up to 10,000, and 0.1, 0.01, … are supported.
Result<ExprId> multiple_of(Rules&, const Json&, Work&);

}  // namespace patchbay::grammar
