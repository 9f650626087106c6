// Slips of a plugin author's pen that would compile and then do nothing: the SDK names them.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>

#include "paths.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace {

using ::testing::HasSubstr;

// What the compiler says of a scheduler with these members and this description; empty: it compiles.
std::string said_of(const std::string& members, const std::string& about = "") {
    const std::string file = (patchbay::engine::testing::temporary_folder() / "slip.cpp").string();
    std::ofstream(file) << "#include \"patchbay/sdk/scheduler.hpp\"\n"
                        << "struct Mine {\n"
                        << "    void plan(const patchbay::SchedulerStep&, patchbay::Plan&) {}\n"
                        << members << "\n};\n"
                        << "PATCHBAY_PLUGIN(patchbay::scheduler<Mine>({.name = \"mine\", .version = \"1.0.0\", "
                        << ".summary = \"\"" << about << "}))\n";
    const std::string command = "'" COMPILER "' -std=c++20 -fsyntax-only -I'" + std::string(patchbay::kSourceDir) +
                                "/core/include' '" + file + "' 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    std::string said;
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, pipe)) > 0;) said.append(part, n);
    const bool compiled = pclose(pipe) == 0;
    EXPECT_EQ(compiled, said.find("error") == std::string::npos) << said;
    return compiled ? "" : said;
}

TEST(Slips, NoneIsSeenWhereThereIsNone) {
    EXPECT_EQ(said_of(R"(
        static constexpr pb_param kParams[] = {patchbay::param::integer("n", "1", 0, 9, "", "a number", PB_PARAM_HOT)};
        void configure(const patchbay::Context&) {}
        void arrived(const pb_sequence&) {}
        void finished(uint64_t, uint32_t) {}
        void resync(const patchbay::SchedulerStep&) {}
        void save(patchbay::Writer&) const {}
        void load(const patchbay::Reader&) {})", ", .state = \"mine/1\""),
              "");
}

TEST(Slips, AHookOfOtherArguments) {
    EXPECT_THAT(said_of("void arrived(uint64_t, int) {}"), HasSubstr("arrived is: void arrived(const pb_sequence&)"));
    EXPECT_THAT(said_of("void finished() {}"), HasSubstr("finished is: void finished(uint64_t id, uint32_t tokens)"));
}

TEST(Slips, AHookOfAnotherName) {
    EXPECT_THAT(said_of("void arrive(const pb_sequence&) {}"), HasSubstr("it is called arrived"));
}

TEST(Slips, StateThatIsSavedByHalf) {
    EXPECT_THAT(said_of("void save(patchbay::Writer&) const {}"), HasSubstr("a class with state has both"));
    EXPECT_THAT(said_of("", ", .state = \"mine/1\""), HasSubstr("needs save(patchbay::Writer&)"));
    EXPECT_THAT(said_of("void save(patchbay::Writer&) const {} void load(const patchbay::Reader&) {}"),
                HasSubstr("needs .state"));
    EXPECT_THAT(said_of("void store(patchbay::Writer&) const {}"), HasSubstr("they are called save and load"));
}

TEST(Slips, HotParametersThatNothingTakes) {
    EXPECT_THAT(said_of("static constexpr pb_param kParams[] = "
                        "{patchbay::param::integer(\"n\", \"1\", 0, 9, \"\", \"a number\", PB_PARAM_HOT)};"),
                HasSubstr("need each other"));
    EXPECT_THAT(said_of("void configure(const patchbay::Context&) {}"), HasSubstr("need each other"));
}

}  // namespace
