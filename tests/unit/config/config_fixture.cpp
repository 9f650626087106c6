#include "unit/config/config_fixture.hpp"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace patchbay::config {
namespace {

namespace fs = std::filesystem;

host::ComponentManifest component(const std::string& kind, const std::string& name,
                                  std::vector<host::ParamManifest> params = {}) {
    host::ComponentManifest c;
    c.kind = kind;
    c.kind_id = "patchbay." + kind + "/1";
    c.revision = 1;
    c.name = name;
    c.version = "1.0.0";
    c.summary = "made up for a test";
    c.params = std::move(params);
    return c;
}

}  // namespace

ConfigFiles::ConfigFiles() {
    std::string pattern = (fs::temp_directory_path() / "patchbay-config-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    before_ = fs::current_path();
    fs::current_path(folder_);

    host::Manifest m;
    m.library = folder_ / "plugins" / "all.so";
    m.name = "all";
    m.version = "1.0.0";
    m.sha256 = std::string(64, '0');
    m.components = {
        component("scheduler", "fcfs"),
        component(
            "scheduler", "sjf",
            {{.name = "ageing",
              .type = "float",
              .default_value = "50",
              .min = 0,
              .max = 1e9,
              .unit = "tokens/s",
              .description = "credit for waiting"},
             {.name = "first",
              .type = "enum",
              .default_value = "short",
              .choices = {"short", "long"},
              .description = "who goes first"},
             {.name = "name", .type = "string", .default_value = "a: b # c",
              .description = "a text that must be quoted"}}),
        component("scheduler", "needy",
                  {{.name = "must", .type = "int", .min = 1, .max = 8, .description = "what it cannot guess"}}),
        component("sampler", "standard"),
        component("attention", "paged"),
        component("device", "cpu"),
        component(
            "proposer", "ngram",
            {{.name = "n", .type = "int", .default_value = "3", .min = 1, .max = 8,
              .description = "tokens that must match"}}),
        component("proposer", "reader",
                  {{.name = "file", .type = "string", .default_value = "", .unit = "path",
                    .description = "what is read"}}),
        component(
            "kv_policy", "prefix_tree",
            {{.name = "keep_s", .type = "float", .default_value = "300", .min = 0, .max = 1e9, .unit = "s",
              .description = "how much longer what is shared stays"}}),
        component("model", "llama")};
    fs::create_directory(folder_ / "plugins");
    write("plugins/all.so", "");
    EXPECT_TRUE(host::write_manifest(m, folder_ / "plugins" / "all.plugin.json"));
    auto opened = host::Registry::open({folder_ / "plugins"});
    EXPECT_TRUE(opened);
    registry_ = std::make_unique<host::Registry>(*std::move(opened));
    make_model("model");
}

ConfigFiles::~ConfigFiles() {
    fs::current_path(before_);
    std::error_code error;
    fs::remove_all(folder_, error);
}

std::string ConfigFiles::write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return name;
}

void ConfigFiles::make_model(const std::string& name) const { fs::create_directories(folder_ / name); }

std::string ConfigFiles::fault_of(const std::string& text, const Overrides& overrides) const {
    const auto loaded = load_engine_config(write("a.yaml", text), registry(), overrides);
    return loaded ? "" : loaded.error();
}

Loaded ConfigFiles::load(const std::string& text, const Overrides& overrides) const {
    auto loaded = load_engine_config(write("a.yaml", text), registry(), overrides);
    EXPECT_TRUE(loaded) << loaded.error();
    return loaded ? *std::move(loaded) : Loaded{};
}

}  // namespace patchbay::config
