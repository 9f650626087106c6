// Which code a file that cannot be read, its content, or a wrapped failure has.
#include "base/refusals.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "base/temporary_folder.hpp"

namespace patchbay::refusals_test {
namespace {

TEST(Refusals, HaveTheirCode) {
    const std::pair<Failure, StatusCode> cases[] = {{fail("x"), StatusCode::kFailed},
                                                    {invalid("x"), StatusCode::kInvalid},
                                                    {unsupported("x"), StatusCode::kUnsupported},
                                                    {not_found("x"), StatusCode::kNotFound},
                                                    {exhausted("x"), StatusCode::kExhausted},
                                                    {unavailable("x"), StatusCode::kUnavailable},
                                                    {broken("x"), StatusCode::kInternal}};
    for (const auto& [failure, code] : cases) {
        EXPECT_EQ(failure.code, code);
        EXPECT_EQ(prefixed("there", failure).code, code);
        EXPECT_EQ(in_one_line(Result<>(failure)).code(), code);
    }
}

TEST(Refusals, KeepTheirCodeAsAWord) {
    for (const StatusCode code : {StatusCode::kInvalid, StatusCode::kExhausted, StatusCode::kInternal})
        EXPECT_EQ(status_code_of(name_of(code)), code) << name_of(code);
    for (const char* word : {"", "Invalid", "404"}) EXPECT_EQ(status_code_of(word), StatusCode::kFailed) << word;
}

TEST(Refusals, OfFilesAreThoseThatAreNotThereThoseThatCannotBeReadAndWhatIsInThem) {
    EXPECT_EQ(read_whole_file("/no/such/file.json", 9).code(), StatusCode::kNotFound);
    EXPECT_EQ(read_whole_file("/proc/self/exe/file.json", 9).code(), StatusCode::kNotFound) << "a file is not a folder";
    EXPECT_EQ(read_whole_file("/", 9).code(), StatusCode::kInvalid) << "a folder is no file";
    EXPECT_EQ(read_whole_file("/proc/self/exe", 1).code(), StatusCode::kInvalid) << "too large";
    EXPECT_EQ(code_of_open(EACCES), StatusCode::kFailed);
    for (const char* text : {"{", "[[[[1]]]]", "123456789012", "1e999"})
        EXPECT_EQ(parse_json(text, "f.json", {.bytes = 10, .depth = 3}).code(), StatusCode::kInvalid) << text;
}

TEST(Refusals, OfAddressesAreThoseThatAreInUseAndThoseThatAreWrong) {
    EXPECT_EQ(code_of_listen(EADDRINUSE), StatusCode::kUnavailable);
    for (const int error : {EADDRNOTAVAIL, EACCES, ENOENT}) EXPECT_EQ(code_of_listen(error), StatusCode::kInvalid);
    EXPECT_EQ(code_of_listen(EMFILE), StatusCode::kFailed);
}

TEST(Refusals, OfAnEnvironmentVariableAreTheUsersFault) {
    const char* const before = std::getenv("TMPDIR");
    const std::optional<std::string> kept = before ? std::optional<std::string>(before) : std::nullopt;
    setenv("TMPDIR", "/no/such/folder", 1);
    EXPECT_EQ(temporary_folder().code(), StatusCode::kInvalid);
    if (kept) setenv("TMPDIR", kept->c_str(), 1);
    else unsetenv("TMPDIR");
}

}  // namespace
}  // namespace patchbay::refusals_test
