#include "weights/end_tokens.hpp"

#include <gmock/gmock.h>

#include "unit/weights/safetensors_fixture.hpp"

namespace patchbay::weights::end_tokens_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EndTokens : public ModelFolder {
  protected:
    std::string refusal(const FlatConfig& config) { return end_tokens(config, folder, 100).error(); }
};

TEST_F(EndTokens, are_those_of_both_files_each_once) {
    write("generation_config.json", R"({"eos_token_id": [7, 3], "max_new_tokens": 5})");
    EXPECT_THAT(*end_tokens({{"eos_token_id", "3"}}, folder, 100), ElementsAre(3, 7));
    write("generation_config.json", R"({"eos_token_id": null})");
    EXPECT_THAT(*end_tokens({{"eos_token_id.0", "99"}, {"eos_token_id.1", "0"}}, folder, 100), ElementsAre(0, 99));
    EXPECT_THAT(*end_tokens({}, folder, 100), IsEmpty());
    write("generation_config.json", R"({"eos_token_id": []})");
    EXPECT_THAT(*end_tokens({}, folder, 100), IsEmpty());
}

TEST_F(EndTokens, need_no_generation_config_and_no_folder) {
    EXPECT_THAT(*end_tokens({{"eos_token_id", "3"}}, folder, 100), ElementsAre(3));
    EXPECT_THAT(*end_tokens({{"eos_token_id", "3"}}, "", 100), ElementsAre(3));
}

TEST_F(EndTokens, are_not_read_from_keys_that_only_begin_so) {
    EXPECT_THAT(*end_tokens({{"eos_token_id_of_a_chat", "5"}, {"eos_token_ids", "6"}}, folder, 100), IsEmpty());
}

TEST_F(EndTokens, that_are_no_ids_are_refused) {
    for (const char* bad : {"", "-1", "x", "3x", "1.0", "true", "100", "4294967296", "99999999999999999999"})
        EXPECT_THAT(refusal({{"eos_token_id", bad}}), HasSubstr("config.json: eos_token_id is " + std::string(bad) +
                                                                ", expected a token id below 100"));
    write("generation_config.json", R"({"eos_token_id": "5"})");
    EXPECT_THAT(refusal({}), HasSubstr("eos_token_id is \"5\", expected a token id below 100"));
    std::filesystem::remove(folder / "generation_config.json");
    EXPECT_THAT(refusal({{"eos_token_id", "{}"}}), HasSubstr("eos_token_id is {}"));
    EXPECT_THAT(refusal({{"eos_token_id.0", "null"}}), HasSubstr("eos_token_id.0 is null"));
    EXPECT_THAT(refusal({{"eos_token_id.id", "5"}}), HasSubstr("eos_token_id.id is 5"));
}

TEST_F(EndTokens, of_a_broken_generation_config_are_an_error) {
    write("generation_config.json", R"({"eos_token_id": [1, "</s>"]})");
    EXPECT_THAT(refusal({}), HasSubstr("generation_config.json: eos_token_id.1 is </s>"));
    write("generation_config.json", R"({"eos_token_id": )");
    EXPECT_THAT(refusal({}), HasSubstr("generation_config.json:1:"));
}

}  // namespace
}  // namespace patchbay::weights::end_tokens_test
