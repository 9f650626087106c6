// Manifests are files that any user may have edited: what is read back, and what is refused with its place.
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "unit/host/host_fixture.hpp"

namespace patchbay::host::manifest_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using json = nlohmann::json;

const fs::path kFile = "somewhere/p.plugin.json";

Manifest full() {
    ParamManifest whole{"ageing", "float", true, "50", 0.0, 1e9, {}, "tokens/s", "how much"};
    ParamManifest bare{"name", "string", false, std::nullopt, std::nullopt, std::nullopt, {}, "", "who"};
    ParamManifest choice{"order", "enum", false, "up", std::nullopt, std::nullopt, {"up", "down"}, "", "which way"};
    ComponentManifest first{"scheduler",           PB_SCHEDULER,        3,  "mine", "1.2.3", "says \"hello\"", "mine/1",
                            {whole, bare, choice}, {{PB_CONFIGURE, 2}}, {}, "", {"plan", "arrived"}};
    ComponentManifest second{"model", PB_MODEL, 1, "net", "0.1.0", "a net", "", {}, {}, {"NetForCausalLM"}, "no GPU"};
    return {"somewhere/p.so", "p", "2.0.0", "GNU-12", std::string(64, 'a'), 1, 0, {first, second}};
}

json good() { return json::parse(manifest_text(full())); }
std::string text_fault(const std::string& text) { return error_of(parse_manifest(text, kFile)); }
std::string fault(const json& j) { return text_fault(j.dump()); }

TEST(Manifest_, EverythingInItIsReadBack) {
    const Manifest m = must(parse_manifest(manifest_text(full()), kFile));
    EXPECT_EQ(manifest_text(m), manifest_text(full()));
    EXPECT_EQ(m.library, "somewhere/p.so");
    EXPECT_EQ(m.abi_major, 1);
    ASSERT_EQ(m.components.size(), 2u);
    const ComponentManifest& c = m.components[0];
    EXPECT_EQ(c.summary, "says \"hello\"");
    EXPECT_EQ(c.state, "mine/1");
    ASSERT_EQ(c.params.size(), 3u);
    EXPECT_TRUE(c.params[0].hot);
    EXPECT_EQ(c.revision, 3u);
    ASSERT_EQ(c.extensions.size(), 1u);
    EXPECT_EQ(c.extensions[0].id, PB_CONFIGURE);
    EXPECT_EQ(c.extensions[0].revision, 2u);
    EXPECT_THAT(c.hooks, ::testing::ElementsAre("plan", "arrived"));
    EXPECT_EQ(c.params[0].default_value, "50");
    EXPECT_EQ(c.params[0].max, 1e9);
    EXPECT_EQ(c.params[0].unit, "tokens/s");
    EXPECT_EQ(c.params[1].default_value, std::nullopt);
    EXPECT_EQ(c.params[1].min, std::nullopt);
    EXPECT_THAT(c.params[2].choices, ::testing::ElementsAre("up", "down"));
    EXPECT_THAT(m.components[1].architectures, ::testing::ElementsAre("NetForCausalLM"));
    EXPECT_EQ(m.components[1].unavailable, "no GPU");
}

// JSON has no infinities.
TEST(Manifest_, ABoundThatIsInfiniteIsNone) {
    static const pb_param kRate{"rate",  PB_PARAM_FLOAT, PB_PARAM_HAS_MIN | PB_PARAM_HAS_MAX, "1", 0, INFINITY, nullptr,
                                "req/s", "of arrivals"};
    pb_component type{};
    type.kind = PB_KV_POLICY;
    type.name = type.version = type.summary = "mine";
    type.params = &kRate;
    type.param_count = 1;
    type.param_stride = sizeof kRate;
    static const pb_kv_policy kTable{};
    type.vtable = &kTable;
    Manifest m = full();
    m.components = {describe(type)};
    const ParamManifest p = must(parse_manifest(manifest_text(m), kFile)).components.at(0).params.at(0);
    EXPECT_EQ(p.min, 0);
    EXPECT_EQ(p.max, std::nullopt);
}

TEST(Manifest_, NothingInItMovesACursor) {
    json j = good();
    j["components"][0]["summary"] = "\033[2J\nnever";
    j["components"][0]["params"][0]["description"] = std::string(100'000, 'x');
    const Manifest m = must(parse_manifest(j.dump(), kFile));
    EXPECT_EQ(m.components[0].summary, "\\x1b[2J\\nnever");
    EXPECT_LT(m.components[0].params[0].description.size(), 3'000u);
}

TEST(Manifest_, ThatIsNoJsonIsRefusedWithItsPlace) {
    EXPECT_THAT(text_fault("{\n \"library\": p.so\n}"), StartsWith("somewhere/p.plugin.json:2:13: invalid JSON: "));
    EXPECT_THAT(text_fault(""), StartsWith("somewhere/p.plugin.json:1:1: invalid JSON: "));
    EXPECT_THAT(text_fault(std::string(17, '[')), HasSubstr("nested more than 16 levels deep"));
    EXPECT_THAT(text_fault(manifest_text(full()) + std::string(4u << 20, ' ')),
                HasSubstr("bytes of JSON, more than 4194304"));
}

TEST(Manifest_, EveryFieldIsNeededAndOfItsType) {
    for (const char* key : {"library", "name", "version", "build", "sha256", "abi_major", "abi_minor", "components"}) {
        json without = good(), other = good();
        without.erase(key);
        other[key] = json{{"not", "this"}};
        for (const json& j : {without, other})
            EXPECT_THAT(fault(j), StartsWith("somewhere/p.plugin.json: not a plugin manifest: ")) << j.dump();
    }
    for (const char* key : {"kind", "kind_id", "revision", "name", "version", "summary", "params"}) {
        json j = good();
        j["components"][0].erase(key);
        EXPECT_THAT(fault(j), HasSubstr("not a plugin manifest")) << key;
    }
    for (const char* key : {"name", "type", "hot", "description"}) {
        json j = good();
        j["components"][0]["params"][0].erase(key);
        EXPECT_THAT(fault(j), HasSubstr("not a plugin manifest")) << key;
    }
    EXPECT_THAT(text_fault("[]"), HasSubstr("not a plugin manifest"));
}

TEST(Manifest_, ValuesThatNoProbeWritesAreRefused) {
    const auto with = [](const char* at, const json& value) {
        json j = good();
        j[json::json_pointer(at)] = value;
        return fault(j);
    };
    for (const std::string& sha :
         {std::string(63, 'a'), std::string(65, 'a'), std::string(64, 'A'), std::string(64, 'g')})
        EXPECT_THAT(with("/sha256", sha), HasSubstr("'sha256' must be 64 hexadecimal digits"));
    for (const char* library : {"", "../p.so", "/usr/lib/p.so"})
        EXPECT_THAT(with("/library", library), HasSubstr("'library' must be a file beside it"));
    for (const int64_t version : {-1, 65536, 65537})
        EXPECT_THAT(with("/abi_major", version), HasSubstr("'abi_major' and 'abi_minor' must be 0 to 65535"));
    for (const char* at : {"/abi_major", "/components/0/revision"})
        for (const double number : {1.5, 1.3e32})
            EXPECT_THAT(with(at, number), HasSubstr("a number must be whole")) << at;
    for (const int64_t revision : {int64_t{-1}, int64_t{1} << 32})
        EXPECT_THAT(with("/components/0/revision", revision), HasSubstr("a revision is out of range"));
    EXPECT_THAT(with("/components/0/name", ""), HasSubstr("a component has no kind or no name"));
    EXPECT_THAT(with("/components/0/params/0/type", "double"),
                HasSubstr("parameter 'ageing' of 'mine' has type 'double'"));
}

TEST(Manifest_, StandsBesideItsLibraryAndIsWrittenWhole) {
    const Folder folder;
    const fs::path file = manifest_path(folder / "scheduler-mine.v2.so");
    EXPECT_EQ(file, folder / "scheduler-mine.v2.plugin.json");
    write(file, "an older one");
    ASSERT_TRUE(write_manifest(full(), file));
    EXPECT_EQ(bytes_of(file), manifest_text(full()));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1)
        << "nothing temporary is left";
    EXPECT_EQ(must(read_manifest(file)).library, folder / "p.so");
    EXPECT_FALSE(write_manifest(full(), folder / "nowhere/p.plugin.json"));
}

// As two probes of one library do.
TEST(Manifest_, IsWholeWhateverElseWritesIt) {
    const Folder folder;
    const fs::path file = manifest_path(folder / "p.so");
    ASSERT_TRUE(write_manifest(full(), file));
    std::atomic<uint32_t> unwritten = 0, unread = 0;
    std::vector<std::thread> writers;
    for (uint32_t t = 0; t < 4; ++t)
        writers.emplace_back([&] {
            for (uint32_t i = 0; i < 200; ++i) {
                unwritten += !write_manifest(full(), file);
                unread += !read_manifest(file);
            }
        });
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(unwritten, 0u);
    EXPECT_EQ(unread, 0u);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Manifest_, AFailedWriteLeavesNothing) {
    const Folder folder;
    const fs::path file = manifest_path(folder / "p.so");
    fs::create_directories(file / "in the way");
    EXPECT_THAT(error_of(write_manifest(full(), file)), StartsWith("cannot write " + file.string() + ": "));
    EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Manifest_, TextThatIsNoUtf8DoesNotBreakTheFile) {
    Manifest m = full();
    m.build = "caf\xe9";
    EXPECT_EQ(must(parse_manifest(manifest_text(m), kFile)).build, "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace patchbay::host::manifest_test
