// Slips of a plugin author's pen that would compile and then do nothing: the SDK names them.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>

#include "paths.hpp"
#include "unit/engine/temporary_folder.hpp"

namespace patchbay::slips_test {
namespace {

using ::testing::HasSubstr;

// What the compiler says of a plugin of this kind, with these members and this description; empty: it compiles.
std::string said_of(const std::string& kind, const std::string& members, const std::string& about) {
    const std::string file = (patchbay::engine::testing::temporary_folder() / "slip.cpp").string();
    std::ofstream(file) << "#include \"patchbay/sdk/" << kind << ".hpp\"\n"
                        << "struct Mine {\n"
                        << members << "\n};\n"
                        << "PATCHBAY_PLUGIN(patchbay::" << kind << "<Mine>({.name = \"mine\", .version = \"1.0.0\", "
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

std::string said_of(const std::string& members, const std::string& about = "") { // of a scheduler
    return said_of("scheduler", "void plan(const patchbay::SchedulerStep&, patchbay::Plan&) {}\n" + members, about);
}

std::string said_of_kv_policy(const std::string& members) {
    return said_of("kv_policy",
                   "void reset(uint32_t) {} void cached(const pb_kv_page&) {} void removed(uint32_t) {}\n"
                   "void choose(patchbay::Victims&) {}\n" +
                       members,
                   "");
}

TEST(Slips, OfAKvPolicy) {
    EXPECT_EQ(said_of_kv_policy("void used(uint32_t) {}"), "");
    EXPECT_THAT(said_of_kv_policy("void used(const pb_kv_page&) {}"), HasSubstr("used is: void used(uint32_t page)"));
    EXPECT_THAT(said_of_kv_policy("void hit(uint32_t) {}"), HasSubstr("it is called used"));
    EXPECT_THAT(said_of_kv_policy("void evicted(uint32_t) {}"), HasSubstr("it is called removed"));
}

TEST(Slips, NoneIsSeenWhereThereIsNone) {
    EXPECT_EQ(said_of(R"(
        static constexpr pb_param kParams[] = {patchbay::param::integer("n", "1", 0, 9, "", "a number", PB_PARAM_HOT)};
        void configure(const patchbay::Context&) {}
        void arrived(const pb_sequence&) {}
        void finished(const pb_finished&) {}
        void resync(const patchbay::SchedulerStep&) {}
        void save(patchbay::Writer&) const {}
        void load(const patchbay::Reader&) {})", ", .state = \"mine/1\""),
              "");
}

TEST(Slips, AHookOfOtherArguments) {
    EXPECT_THAT(said_of("void arrived(uint64_t, int) {}"), HasSubstr("arrived is: void arrived(const pb_sequence&)"));
    EXPECT_THAT(said_of("void finished() {}"), HasSubstr("finished is: void finished(const pb_finished&)"));
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

TEST(Slips, AChoiceWhoseListHasNoEnd) {
    const std::string params = "static constexpr pb_param kParams[] = "
                               "{patchbay::param::choice(\"order\", \"up\", kOrders, \"which way\")};";
    EXPECT_EQ(said_of("static constexpr const char* kOrders[] = {\"up\", \"down\", nullptr};\n" + params), "");
    EXPECT_THAT(said_of("static constexpr const char* kOrders[] = {\"up\", \"down\"};\n" + params),
                HasSubstr("the choices of a parameter end with nullptr"));
}

}  // namespace
}  // namespace patchbay::slips_test
