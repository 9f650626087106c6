// The rows of sampling parameters: whole, documented, and what they say is so.
#include "engine/request/parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <type_traits>

#include "engine/request/sampling_params.hpp"
#include "file_text.hpp"
#include "paths.hpp"

namespace patchbay::engine::testing::parameters_test {
namespace {

const std::vector<ParameterRow<SamplingParams>>& rows() { return rows_of<SamplingParams>(); }

std::string page(const char* name) { return file_text(std::filesystem::path(kSourceDir) / "docs" / name); }

TEST(SamplingParameters, HaveNamesOfTheirOwnThatTheDocumentationExplains) {
    const std::string sampling = page("sampling.md"), serving = page("serving.md");
    std::set<std::string> names;
    for (const auto& row : rows()) {
        EXPECT_TRUE(names.insert(row.info.name).second) << row.info.name;
        const std::string quoted = "`" + std::string(row.info.name) + "`";
        const bool structure = std::string(row.info.name) == "structured_outputs"; // a page of its own
        EXPECT_TRUE(structure || sampling.find(quoted) != std::string::npos) << row.info.name << " in sampling.md";
        EXPECT_TRUE(row.info.json == InJson::kNo || serving.find(quoted) != std::string::npos)
            << row.info.name << " in serving.md";
    }
    EXPECT_GT(names.size(), 35u);
}

TEST(SamplingParameters, ThatAreFloatsHaveTheRangeThatIsChecked) {
    size_t floats = 0;
    for (const auto& row : rows()) {
        const auto* const field = std::get_if<float SamplingParams::*>(&row.field);
        if (!field) continue;
        ASSERT_TRUE(row.info.low && row.info.high) << row.info.name;
        const auto its = [&](const SamplingRange& range) { return range.field == *field; };
        const auto range = std::find_if(kSamplingRanges.begin(), kSamplingRanges.end(), its);
        ASSERT_NE(range, kSamplingRanges.end()) << row.info.name;
        EXPECT_STREQ(row.info.name, range->name);
        EXPECT_EQ(static_cast<float>(*row.info.low), range->low) << row.info.name;
        EXPECT_EQ(static_cast<float>(*row.info.high), range->high) << row.info.name;
        floats += 1;
    }
    EXPECT_EQ(floats, kSamplingRanges.size());
}

TEST(SamplingParameters, AreCopiedToTheirFieldsOfSamplers) {
    size_t copied = 0;
    const auto check = [&](auto from, auto to) {
        if constexpr (!std::is_same_v<decltype(to), std::monostate>) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(SamplingParams{}.*from)>>) {
                SamplingParams p;
                p.*from = 1;
                pb_sampling_params out{}, other{};
                copy_numbers(p, out);
                EXPECT_EQ(out.*to, 1);
                p.*from = 0;
                copy_numbers(p, other);
                EXPECT_EQ(other.*to, 0);
                copied += 1;
            } else {
                ADD_FAILURE() << "a sampler's field for what is not a number";
            }
        }
    };
    for (const auto& row : rows()) {
        SCOPED_TRACE(row.info.name);
        std::visit(check, row.field, row.info.sampler);
    }
    EXPECT_GT(copied, 10u);
}

TEST(SamplingParameters, AreUsedWhereTheyChangeAnything) {
    const auto used = [](auto change, bool ParameterInfo::*property = &ParameterInfo::refused_with_beams) {
        SamplingParams p;
        change(p);
        const char* const name = first_used(p, property);
        return std::string(name ? name : "none");
    };
    EXPECT_EQ(used([](SamplingParams&) {}), "none");
    EXPECT_EQ(used([](SamplingParams& p) { p.top_k = -1; }), "none") << "off, as 0 is";
    EXPECT_EQ(used([](SamplingParams& p) { p.top_k = 1; }), "top_k");
    EXPECT_EQ(used([](SamplingParams& p) { p.temperature = 0; }), "none") << "beams draw nothing";
    EXPECT_EQ(used([](SamplingParams& p) { p.typical_p = 0.5f; }), "typical_p");
    EXPECT_EQ(used([](SamplingParams& p) { p.logit_bias[3] = 1; }), "logit_bias");
    EXPECT_EQ(used([](SamplingParams& p) { p.allowed_token_ids.emplace(); }), "allowed_token_ids");
    EXPECT_EQ(used([](SamplingParams& p) { p.structured_outputs.emplace(); }), "structured_outputs");
    EXPECT_EQ(used([](SamplingParams& p) { p.repetition_detection = {0, 5, 5}; }), "none") << "off";
    EXPECT_EQ(used([](SamplingParams& p) { p.repetition_detection = {1, 1, 3}; }), "repetition_detection");
    EXPECT_EQ(used([](SamplingParams& p) { p.logprobs = 0; }, &ParameterInfo::of_the_model), "logprobs");
    EXPECT_EQ(used([](SamplingParams& p) { p.top_k = 1; }, &ParameterInfo::of_the_model), "none");
}

}  // namespace
}  // namespace patchbay::engine::testing::parameters_test
