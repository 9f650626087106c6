#include <gmock/gmock.h>

#include "experiment/input_files.hpp"
#include "experiment/results_reader.hpp"
#include "workload_fixture.hpp"

namespace patchbay::experiment::jsonl_prompts_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<std::vector<std::string>> read_jsonl_prompts(const std::filesystem::path& path, const std::string& field,
                                                    const InputLimits& limits = {}) {
    std::vector<InputFile> files;
    PB_TRY(const std::string text, read_input(path, files, limits));
    return jsonl_prompts(text, path, field, limits);
}

TEST(JsonlPrompts, TakesTheFieldAtADottedPath) {
    const Folder f;
    const auto path = f.file("p.jsonl", "{\"turns\": [\"one\", \"x\"]}\n\n{\"turns\": [\"two\"]}");
    EXPECT_THAT(*read_jsonl_prompts(path, "turns.0"), ElementsAre("one", "two"));
}

TEST(JsonlPrompts, WrongFilesAreInvalidAndThoseThatAreNotThereNotFound) {
    const Folder f;
    for (const char* text : {"", "{", "3\n", "{\"other\": \"a\"}", "{\"prompt\": 3}", "{\"prompt\": \"\"}"})
        EXPECT_EQ(read_jsonl_prompts(f.file("p.jsonl", text), "prompt").code(), StatusCode::kInvalid) << text;
    EXPECT_EQ(read_jsonl_prompts("/no/such/file.jsonl", "prompt").code(), StatusCode::kNotFound);
    EXPECT_EQ(read_experiment("/no/such/results.sqlite").code(), StatusCode::kNotFound);
    EXPECT_EQ(read_experiment(f.file("results.sqlite", "no database")).code(), StatusCode::kInvalid);
}

TEST(JsonlPrompts, FaultsNameTheFileTheLineAndWhatIsThere) {
    const Folder f;
    const auto error = [&](const std::string& text) {
        return read_jsonl_prompts(f.file("p.jsonl", text), "prompt").error();
    };
    EXPECT_THAT(error("{\"prompt\": \"a\"}\n{\"prompt\": 3}\n"),
                HasSubstr("p.jsonl:2: field 'prompt' is a number, expected a string"));
    EXPECT_THAT(error("{\"promt\": \"a\"}\n"), HasSubstr("p.jsonl:1: no field 'prompt' (there are 'promt')"));
    EXPECT_THAT(error("{\"prompt\": \"a\"}\n\n{oops\n"), HasSubstr("p.jsonl:3:2: invalid JSON"));
    EXPECT_THAT(error("{\"prompt\": \"\"}\n"), HasSubstr("p.jsonl:1: field 'prompt' is empty"));
    EXPECT_THAT(error("\n"), HasSubstr("no prompts in it"));
    EXPECT_THAT(read_jsonl_prompts(f.path / "none", "prompt").error(), HasSubstr("none"));
}

TEST(JsonlPrompts, AreLimitedInLengthAndNumber) {
    const Folder f;
    const auto path = f.file("p.jsonl", "{\"prompt\": \"abc\"}\n{\"prompt\": \"abc\"}\n");
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.line_bytes = 10}).error(),
                HasSubstr("p.jsonl:1: a line of 17 bytes, expected at most 10"));
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.rows = 1}).error(), HasSubstr("more than 1 prompts"));
    EXPECT_THAT(read_jsonl_prompts(path, "prompt", {.file_bytes = 5}).error(), HasSubstr("more than the 5"));
}

}  // namespace
}  // namespace patchbay::experiment::jsonl_prompts_test
