// The pages of docs/plugins: their examples are what `patchbay plugin new` writes, their tables have every field of
// what a plugin is given and every check, and the gallery has every plugin.
#include <gmock/gmock.h>

#include <filesystem>
#include <algorithm>
#include <map>
#include <sstream>

#include "conformance/check.hpp"
#include "host/plugin_list.hpp"
#include "file_text.hpp"
#include "paths.hpp"
#include "pattern.hpp"

namespace patchbay::kind_pages_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
const fs::path kSource = kSourceDir;

std::string read(const fs::path& file) {
    const std::string text = file_text(file);
    EXPECT_FALSE(text.empty()) << file;
    return text;
}

std::string page_of(const std::string& kind) { return read(kSource / "docs/plugins" / (kind + ".md")); }

std::string replaced(std::string text, const std::string& word, const std::string& by) {
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + by.size()))
        text.replace(at, word.size(), by);
    return text;
}

std::string camel_case(const std::string& word) {
    std::string out;
    bool begins = true;
    for (const char c : word) {
        if (c != '_') out += begins ? static_cast<char>(c - 'a' + 'A') : c;
        begins = c == '_';
    }
    return out;
}

TEST(KindPages, ShowTheFilesThatPluginNewWrites) {
    for (const std::string kind : host::kKinds) {
        std::string source = read(kSource / "templates" / kind / "plugin.cpp");
        source = replaced(source, "@name@", "mine");
        source = replaced(source, "@Name@", "Mine");
        source = replaced(source, "@Class@", "Mine" + camel_case(kind));
        EXPECT_THAT(page_of(kind), HasSubstr("```cpp\n" + source + "```\n")) << kind;
        EXPECT_LT(std::ranges::count(source, '\n'), 60) << kind << ": an example is read at a glance";
    }
}

TEST(KindPages, ShowTheTestThatPluginNewWrites) {
    const std::string test = replaced(read(kSource / "templates/scheduler/test.cpp"), "@name@", "mine");
    EXPECT_THAT(page_of("testing"), HasSubstr("```cpp\n" + test + "```\n"));
}

TEST(KindPages, HaveEachCheckWithItsRule) {
    for (const std::string kind : host::kKinds) {
        const std::string page = page_of(kind);
        std::string rows;
        for (const conformance::Check& check : conformance::suite_of(kind).checks)
            rows += std::string("| `") + check.name + "` | " + check.rule + " |\n";
        EXPECT_THAT(page, HasSubstr("|---|---|\n" + rows)) << kind;
    }
}

// What the host fills and a plugin reads, or the other way round in a call of every step.
const std::map<std::string, std::vector<std::string>> kStructs = {
    {"scheduler", {"pb_scheduler_in", "pb_sequence"}},
    {"sampler", {"pb_sample_batch", "pb_sample_row", "pb_sampling_params"}},
    {"proposer", {"pb_propose_batch", "pb_propose_row"}},
    {"kv_policy", {"pb_kv_pages", "pb_kv_page", "pb_kv_choice"}},
    {"attention", {"pb_attention_spec", "pb_attention_batch", "pb_kv_view"}},
    {"model", {"pb_model_config", "pb_forward", "pb_kv_spec"}},
    {"device", {"pb_weight_source", "pb_device_info"}},
};

TEST(KindPages, NameEachFieldOfWhatAPluginIsGiven) {
    const std::string layout = read(kSource / "tests/abi/layout.txt");
    for (const std::string kind : host::kKinds) {
        const std::string page = page_of(kind);
        for (const std::string& name : kStructs.at(kind)) {
            EXPECT_THAT(page, HasSubstr("`" + name + "`")) << kind;
            const auto fields = Pattern(" " + name + R"(\.(\w+) )").all_in(layout);
            EXPECT_GT(fields.size(), 3u) << name;
            for (const auto& field : fields) {
                if (field[1] == "struct_size" || field[1].starts_with("reserved")) continue;
                EXPECT_THAT(page, HasSubstr("`" + field[1] + "`")) << kind << ": a field of " << name;
            }
        }
    }
}

std::vector<std::string> rows_of_gallery() {
    std::vector<std::string> out;
    std::istringstream lines(read(kSource / "docs/plugins/gallery.md"));
    std::string line;
    while (std::getline(lines, line))
        if (line.starts_with("| [`")) out.push_back(line);
    return out;
}

TEST(Gallery, HasEveryPluginThatIsListed) {
    const auto registry = host::Registry::open({fs::path(kBuildDir) / "lib/patchbay/plugins"});
    ASSERT_TRUE(registry) << registry.error();
    const std::vector<std::string> rows = rows_of_gallery();
    size_t listed = 0;
    for (const host::ListedComponent& l : host::list_components(*registry)) {
        const std::string begin = "| [`" + l.component->name + "`](../../plugins/" + l.component->kind + "/";
        EXPECT_TRUE(std::ranges::any_of(rows, [&](const std::string& r) { return r.starts_with(begin); }))
            << l.component->kind << " " << l.component->name << " is not in docs/plugins/gallery.md";
        listed += 1;
    }
    EXPECT_GT(listed, 40u);
}

// Of this source, whether or not this machine builds them.
TEST(Gallery, HasEveryFolderOfPluginsAndNoOther) {
    std::string gallery;
    for (const std::string& row : rows_of_gallery()) {
        gallery += row + "\n";
        for (const auto& link : Pattern(R"(\]\(([^)#:]+)(?:#[^)]*)?\))").all_in(row))
            EXPECT_TRUE(fs::exists(kSource / "docs/plugins" / link[1])) << row;
    }
    for (const std::string kind : host::kKinds)
        for (const auto& entry : fs::directory_iterator(kSource / "plugins" / kind)) {
            const std::string link = "plugins/" + kind + "/" + entry.path().filename().string() + "/README.md";
            EXPECT_THAT(gallery, HasSubstr(link));
        }
}

}  // namespace
}  // namespace patchbay::kind_pages_test
