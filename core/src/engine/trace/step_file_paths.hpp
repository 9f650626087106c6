// Which files an engine writes its steps to.
#pragma once
#include <string>

#include "base/result.hpp"

namespace patchbay::engine {

struct StepFilePaths { // empty: it is not written
    std::string trace{};     // of steps and requests, for ui.perfetto.dev
    std::string decisions{}; // what each step was planned to be and what became of it, a line of JSON each
    std::string kv_events{}; // what entered and left the prefix cache, likewise

    bool any() const { return *this != StepFilePaths(); }
    bool operator==(const StepFilePaths&) const = default;
};

// Refused: one file for two of them.
Result<> check(const StepFilePaths&);

}  // namespace patchbay::engine
