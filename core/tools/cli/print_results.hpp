// The results of an experiment on a terminal: what it says first, then the table.
#pragma once
#include <string>
#include <vector>

#include "experiment/conclusion.hpp"

namespace patchbay::cli {

enum class Detail { kScreen, kFull }; // kFull: every metric, every note

struct ShownResults {
    std::string question;
    std::vector<std::string> variants;
    size_t baseline = 0;
    const experiment::Conclusion* conclusion = nullptr;
    std::vector<std::string> swaps; // a line each
};

void print_results(const ShownResults&, Detail);

}  // namespace patchbay::cli
