// <plugin>.plugin.json: what a probe found in a library. Written by the probe alone, on success; reading runs no code.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace patchbay::host {

struct ParamManifest { // pb_param, owned
    std::string name, type; // "bool", "int", "float", "string", "enum"
    bool hot = false;
    std::optional<std::string> default_value; // none: required
    std::optional<double> min, max;
    std::vector<std::string> choices;
    std::string unit, description;
};

struct ExtensionManifest {
    std::string id; // "patchbay.device.graphs/1"
    uint32_t revision = 0;
};

struct ComponentManifest {
    std::string kind; // "scheduler": the word between "patchbay." and "/"
    std::string kind_id;    // "patchbay.scheduler/1"
    uint32_t revision = 0;  // of the kind's structs
    std::string name, version, summary, state;
    std::vector<ParamManifest> params;
    std::vector<ExtensionManifest> extensions;
    std::vector<std::string> architectures; // of a model
    std::string unavailable;                // why it cannot run on this machine; empty: it can
    std::vector<std::string> hooks;         // functions of its vtable: "plan", "arrived"
};

struct Manifest {
    std::filesystem::path library; // the .so beside the manifest
    std::string name, version, build, sha256;
    uint16_t abi_major = 0, abi_minor = 0;
    std::vector<ComponentManifest> components;
};

Result<Manifest> read_manifest(const std::filesystem::path& json);
// text: untrusted. json: the file that it was read from, or will be.
Result<Manifest> parse_manifest(std::string_view text, const std::filesystem::path& json);
std::string manifest_text(const Manifest&);
std::filesystem::path manifest_path(const std::filesystem::path& library); // <plugin>.plugin.json beside it
Result<> write_manifest(const Manifest&, const std::filesystem::path& json); // atomically

}  // namespace patchbay::host
