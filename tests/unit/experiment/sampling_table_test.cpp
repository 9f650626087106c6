// Each sampling parameter that says what its key means has one.
#include "experiment/sampling_table.hpp"

#include <gtest/gtest.h>

#include "engine/request/parameters.hpp"

namespace patchbay::experiment::sampling_table_test {
namespace {

TEST(SamplingTable, HasTheKeysOfTheParameters) {
    std::vector<std::string> expected, found;
    for (const auto& row : engine::rows_of<engine::SamplingParams>())
        if (row.info.key_help) expected.emplace_back(row.info.name);
    const config::Table<engine::SamplingParams> table = sampling_table();
    for (const config::KeyInfo& key : table.keys()) found.push_back(key.name);
    EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace patchbay::experiment::sampling_table_test
