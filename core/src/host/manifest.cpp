#include "host/manifest.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json_file.hpp"
#include "base/printable.hpp"
#include "base/refusals.hpp"

namespace patchbay::host {

using json = nlohmann::json;

namespace {

constexpr JsonLimits kLimits{.bytes = 4u << 20, .depth = 16};

json to_json(const ParamManifest& p) {
    json j = {{"name", p.name}, {"type", p.type}, {"hot", p.hot}, {"description", p.description}};
    if (p.default_value) j["default"] = *p.default_value;
    if (p.min) j["min"] = *p.min;
    if (p.max) j["max"] = *p.max;
    if (!p.choices.empty()) j["choices"] = p.choices;
    if (!p.unit.empty()) j["unit"] = p.unit;
    return j;
}

// What a plugin says of itself is shown in lists and errors.
std::string shown_text(const json& j) { return printable(j.get<std::string>(), 2000); }

ParamManifest param_from(const json& j) {
    ParamManifest p;
    p.name = shown_text(j.at("name"));
    p.type = j.at("type").get<std::string>();
    p.hot = j.at("hot").get<bool>();
    p.description = shown_text(j.at("description"));
    if (j.contains("default")) p.default_value = j["default"].get<std::string>();
    if (j.contains("min")) p.min = j["min"].get<double>();
    if (j.contains("max")) p.max = j["max"].get<double>();
    if (j.contains("choices")) p.choices = j["choices"].get<std::vector<std::string>>();
    if (j.contains("unit")) p.unit = shown_text(j["unit"]);
    return p;
}

int64_t whole(const json& j) {
    if (!j.is_number_integer()) throw json::type_error::create(302, "a number must be whole", &j);
    return j.get<int64_t>();
}

uint32_t revision(const json& j) {
    const int64_t value = whole(j);
    if (value < 0 || value > UINT32_MAX) throw json::out_of_range::create(406, "a revision is out of range", &j);
    return static_cast<uint32_t>(value);
}

ComponentManifest component_from(const json& j) {
    ComponentManifest c;
    c.kind = shown_text(j.at("kind"));
    c.kind_id = shown_text(j.at("kind_id"));
    c.revision = revision(j.at("revision"));
    c.name = shown_text(j.at("name"));
    c.version = shown_text(j.at("version"));
    c.summary = shown_text(j.at("summary"));
    if (j.contains("state")) c.state = shown_text(j["state"]);
    if (j.contains("unavailable")) c.unavailable = shown_text(j["unavailable"]);
    for (const json& p : j.at("params")) c.params.push_back(param_from(p));
    if (j.contains("hooks"))
        for (const json& hook : j["hooks"]) c.hooks.push_back(shown_text(hook));
    if (j.contains("extensions"))
        for (const json& e : j["extensions"])
            c.extensions.push_back({shown_text(e.at("id")), revision(e.at("revision"))});
    if (j.contains("architectures")) c.architectures = j["architectures"].get<std::vector<std::string>>();
    return c;
}

bool is_hex(const std::string& s) {
    return std::all_of(s.begin(), s.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// What the JSON's types do not say.
std::string fault_of(const Manifest& m) {
    if (m.sha256.size() != 64 || !is_hex(m.sha256)) return "'sha256' must be 64 hexadecimal digits";
    for (const ComponentManifest& c : m.components) {
        if (c.kind.empty() || c.name.empty()) return "a component has no kind or no name";
        for (const ParamManifest& p : c.params)
            if (p.type != "bool" && p.type != "int" && p.type != "float" && p.type != "string" && p.type != "enum")
                return "parameter '" + p.name + "' of '" + c.name + "' has type '" + p.type + "'";
    }
    return "";
}

}  // namespace

std::filesystem::path manifest_path(const std::filesystem::path& library) {
    return std::filesystem::path(library).replace_extension(".plugin.json");
}

Result<Manifest> read_manifest(const std::filesystem::path& file) {
    PB_TRY(const std::string text, read_whole_file(file, kLimits.bytes));
    return parse_manifest(text, file);
}

Result<Manifest> parse_manifest(std::string_view text, const std::filesystem::path& file) {
    PB_TRY(const json j, parse_json(text, file.string(), kLimits));
    try {
        Manifest m;
        m.name = shown_text(j.at("name"));
        m.version = shown_text(j.at("version"));
        m.build = shown_text(j.at("build"));
        m.sha256 = j.at("sha256").get<std::string>();
        const int64_t major = whole(j.at("abi_major")), minor = whole(j.at("abi_minor"));
        if (std::min(major, minor) < 0 || std::max(major, minor) > UINT16_MAX)
            return invalid(file.string() + ": 'abi_major' and 'abi_minor' must be 0 to 65535");
        m.abi_major = static_cast<uint16_t>(major);
        m.abi_minor = static_cast<uint16_t>(minor);
        const auto library = j.at("library").get<std::string>();
        if (library.empty() || library.find('/') != std::string::npos)
            return invalid(file.string() + ": 'library' must be a file beside it");
        m.library = file.parent_path() / library;
        for (const json& c : j.at("components")) m.components.push_back(component_from(c));
        if (const std::string fault = fault_of(m); !fault.empty())
            return invalid(file.string() + ": " + printable_message(fault));
        return m;
    } catch (const json::exception& e) {
        return invalid(file.string() + ": not a plugin manifest: " + json_reason(e));
    }
}

std::string manifest_text(const Manifest& m) {
    json components = json::array();
    for (const ComponentManifest& c : m.components) {
        json params = json::array();
        for (const ParamManifest& p : c.params) params.push_back(to_json(p));
        json j = {{"kind", c.kind},  {"kind_id", c.kind_id}, {"revision", c.revision},
                  {"name", c.name},  {"version", c.version}, {"summary", c.summary},
                  {"params", params}};
        if (!c.state.empty()) j["state"] = c.state;
        if (!c.hooks.empty()) j["hooks"] = c.hooks;
        for (const ExtensionManifest& e : c.extensions)
            j["extensions"].push_back({{"id", e.id}, {"revision", e.revision}});
        if (!c.unavailable.empty()) j["unavailable"] = c.unavailable;
        if (!c.architectures.empty()) j["architectures"] = c.architectures;
        components.push_back(std::move(j));
    }
    const json j = {{"library", m.library.filename().string()},
                    {"name", m.name},
                    {"version", m.version},
                    {"build", m.build},
                    {"sha256", m.sha256},
                    {"abi_major", m.abi_major},
                    {"abi_minor", m.abi_minor},
                    {"components", components}};
    return j.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

namespace {

// An empty file beside it, which no other writer has, in this process or another.
Result<std::filesystem::path> new_file_beside(const std::filesystem::path& file) {
    static std::atomic<uint64_t> count = 0;
    for (;;) {
        const std::filesystem::path name =
            file.string() + "." + std::to_string(getpid()) + "-" + std::to_string(++count) + ".tmp";
        const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) {
            close(fd);
            return name;
        }
        if (errno != EEXIST) return fail("cannot write " + name.string() + ": " + std::strerror(errno));
    }
}

}  // namespace

Result<> write_manifest(const Manifest& m, const std::filesystem::path& file) {
    PB_TRY(const std::filesystem::path temporary, new_file_beside(file));
    std::ofstream out(temporary);
    out << manifest_text(m);
    out.close();
    std::error_code error, ignored;
    if (out) std::filesystem::rename(temporary, file, error);
    if (out && !error) return {};
    std::filesystem::remove(temporary, ignored);
    return fail("cannot write " + file.string() + (error ? ": " + error.message() : ""));
}

}  // namespace patchbay::host
