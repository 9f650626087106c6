// Any bytes as an engine configuration: parsed, laid over itself, read as dotted paths, typed. What is accepted must
// mean the same after `config show`. Files that it names are not opened: parse_yaml leaves `include` alone.
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string_view>

#include "config/load.hpp"
#include "config/show.hpp"
#include "host/manifest.hpp"

namespace {

using namespace patchbay;

host::ComponentManifest component(const char* kind, const char* name, std::vector<host::ParamManifest> params = {}) {
    host::ComponentManifest c;
    c.kind = kind;
    c.name = name;
    c.params = std::move(params);
    return c;
}

host::Registry registry_with_every_type() {
    std::string folder = "/tmp/config_fuzz.XXXXXX";
    if (!mkdtemp(folder.data())) abort();
    host::Manifest m;
    m.library = folder + "/all.so";
    m.components = {component("scheduler", "fcfs",
                              {{.name = "share", .type = "float", .default_value = "0.5", .min = 0, .max = 1},
                               {.name = "count", .type = "int", .default_value = "4", .min = 1, .max = 8},
                               {.name = "label", .type = "string", .default_value = "x"},
                               {.name = "on", .type = "bool", .default_value = "true"},
                               {.name = "mode", .type = "enum", .default_value = "a", .choices = {"a", "b"}}}),
                    component("sampler", "standard"), component("attention", "paged"), component("device", "cpu"),
                    component("proposer", "ngram")};
    std::ofstream(folder + "/all.so").flush();
    if (!host::write_manifest(m, folder + "/all.plugin.json")) abort();
    auto registry = host::Registry::open({folder});
    std::filesystem::remove_all(folder);
    if (!registry) abort();
    return *std::move(registry);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const host::Registry registry = registry_with_every_type();
    const config::DocumentLimits limits{.bytes = 1 << 16, .nodes = 4096};
    const auto node = config::parse_yaml({reinterpret_cast<const char*>(data), size}, "fuzz.yaml", limits);
    if (!node) return node.error().empty() ? __builtin_trap(), 0 : 0;
    config::merge(*node, *node);
    if (node->kind == config::NodeKind::kMap)
        if (const auto nested = config::expand_dotted(*node, limits))
            (void)config::load_engine_config(*nested, registry);
    const auto loaded = config::load_engine_config(config::engine_part(*node), registry);
    if (!loaded) return 0;
    const auto shown = config::parse_yaml(config::show_yaml(loaded->effective), "shown.yaml");
    if (!shown) __builtin_trap();
    const auto again = config::load_engine_config(*shown, registry);
    if (!again || !(again->config == loaded->config)) __builtin_trap();
    (void)config::show_json(loaded->effective);
    return 0;
}
