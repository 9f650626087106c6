// Sampling parameters are named where docs/sampling.md says, and nowhere else in the core.
#include <gtest/gtest.h>

#include "pattern.hpp"
#include "tree.hpp"

namespace patchbay::tidy::sampling_parameters_test {
namespace {

TEST(SamplingParameters, AreNamedInAtMostSixFilesOfTheCore) {
    constexpr size_t kMaxFiles = 6;
    for (const char* name : {"repetition_detection", "typical_p", "top_n_sigma", "xtc_threshold", "min_p", "bad_words",
                             "allowed_token_ids"}) {
        const Pattern word(R"(\b)" + std::string(name) + R"(\b)");
        std::string files;
        size_t count = 0;
        for (const SourceText& file : sources()) {
            if (!file.path.starts_with("core/")) continue;
            bool found = false;
            for (const std::string& line : file.lines) found = found || word.found_in(line);
            if (!found) continue;
            files += "\n  " + file.path;
            count += 1;
        }
        EXPECT_GE(count, 3u) << name << " is not found any more";
        EXPECT_LE(count, kMaxFiles) << name << " is named in" << files
                                    << "\nuse its row of engine/request/parameters.cpp: docs/sampling.md";
    }
}

}  // namespace
}  // namespace patchbay::tidy::sampling_parameters_test
