#include "cli/plugin_new.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "cli/report_command.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;
using Replacements = std::map<std::string, std::string>; // "@name@" → what stands there

// templates/<kind>/plugin.<language> is the source; what else is in that folder and in templates/all comes with it.
constexpr const char* kForAll = "all";
constexpr const char* kSource = "plugin";
constexpr const char* kAbout = "about.md"; // becomes part of README.md

std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> out;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<std::string> kinds_in(const fs::path& templates) {
    std::vector<std::string> out;
    for (const fs::path& folder : entries_of(templates))
        if (fs::is_directory(folder) && folder.filename() != kForAll) out.push_back(folder.filename());
    return out;
}

std::vector<std::string> languages_in(const fs::path& folder) {
    std::vector<std::string> out;
    for (const fs::path& file : entries_of(folder))
        if (file.stem() == kSource) out.push_back(file.extension().string().substr(1));
    return out;
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "MyPlugin-2" as it may be written: "my_plugin_2".
std::string usable_name(const std::string& name, const std::string& kind) {
    std::string out;
    for (size_t i = 0; i < name.size(); ++i) {
        const char c = name[i];
        const bool upper = c >= 'A' && c <= 'Z';
        if (upper && i > 0 && (is_lower(name[i - 1]) || is_digit(name[i - 1]))) out += '_';
        if (upper) out += static_cast<char>(c - 'A' + 'a');
        else if (is_lower(c) || is_digit(c)) out += c;
        else if (!out.empty() && out.back() != '_') out += '_';
    }
    while (!out.empty() && out.back() == '_') out.pop_back();
    return out.empty() || is_lower(out[0]) ? out : kind + "_" + out;
}

Result<> check_name(const NewPlugin& o) {
    constexpr size_t kMaxBytes = 64;
    const bool fits = o.name.size() <= kMaxBytes && !o.name.empty() && is_lower(o.name[0]) &&
                      std::all_of(o.name.begin(), o.name.end(),
                                  [](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
    if (fits) return {};
    const std::string usable = usable_name(o.name, o.kind).substr(0, kMaxBytes);
    return invalid("NAME is '" + o.name + "', expected a-z, 0-9 and _, a letter first, " + std::to_string(kMaxBytes) +
                   " characters at most" + (usable.empty() ? "" : " (did you mean '" + usable + "'?)"));
}

// "my_plugin" → "MyPlugin"
std::string camel_case(const std::string& name) {
    std::string out;
    bool begins = true;
    for (const char c : name) {
        if (c != '_') out += begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        begins = c == '_';
    }
    return out;
}

Result<std::string> read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    if (!in) return fail(code_of_open(errno), "cannot read " + file.string());
    return text.str();
}

std::string filled_in(std::string text, const Replacements& words) {
    for (const auto& [word, value] : words)
        for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + value.size()))
            text.replace(at, word.size(), value);
    return text;
}

Result<> write(const fs::path& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    std::error_code error;
    if (out && file.extension() == ".sh") fs::permissions(file, fs::perms::owner_exec, fs::perm_options::add, error);
    if (!out || error) return fail("cannot write " + file.string());
    return {};
}

Replacements words_for(const NewPlugin& o, const fs::path& support) {
    const bool c = o.language == "c";
    return {{"@name@", o.name},
            {"@Name@", camel_case(o.name)},
            {"@Class@", camel_case(o.name) + camel_case(o.kind)},
            {"@kind@", o.kind},
            {"@lang@", o.language},
            {"@cmake_language@", c ? "C" : "CXX"},
            {"@libraries@", c ? " LIBRARIES m" : ""},
            {"@model@", (support / "models" / "demo-target").string()}};
}

// What the folder will hold: by name, the text.
Result<std::map<std::string, std::string>> texts_of(const NewPlugin& o, const fs::path& support) {
    const fs::path templates = support / "templates";
    Replacements words = words_for(o, support);
    if (const fs::path about = templates / o.kind / kAbout; fs::exists(about)) {
        PB_TRY(const std::string text, read(about));
        words["@about@"] = filled_in(text, words);
    }
    std::map<std::string, std::string> out;
    for (const char* from : {kForAll, o.kind.c_str()})
        for (const fs::path& file : entries_of(templates / from)) {
            std::string name = file.filename();
            if (name == kAbout) continue;
            if (file.stem() == kSource) {
                if (file.extension() != "." + o.language) continue;
                name = o.name + "." + o.language;
            }
            PB_TRY(const std::string text, read(file));
            out[name] = filled_in(text, words);
        }
    return out;
}

Result<> check_folder(const fs::path& folder) {
    std::error_code error;
    if (!fs::exists(folder, error)) return {};
    if (!fs::is_directory(folder, error)) return invalid(folder.string() + " is there already, and no folder");
    if (const auto files = entries_of(folder); !files.empty())
        return invalid(folder.string() + " is there already, with " + files[0].filename().string() +
                       " in it; expected a new or an empty folder (name one: --dir)");
    return {};
}

}  // namespace

Result<> write_new_plugin(const NewPlugin& o) {
    const fs::path support = support_folder(), templates = support / "templates";
    const auto kinds = kinds_in(templates);
    if (support.empty() || kinds.empty())
        return not_found("the templates are nowhere above the program: is it installed as a whole?");
    if (std::find(kinds.begin(), kinds.end(), o.kind) == kinds.end())
        return not_found("no kind '" + o.kind + "'" + did_you_mean(o.kind, kinds) + ", expected " + joined(kinds));
    const auto languages = languages_in(templates / o.kind);
    if (std::find(languages.begin(), languages.end(), o.language) == languages.end())
        return invalid("--lang is '" + o.language + "', expected for a " + o.kind + ": " + joined(languages) +
                       did_you_mean(o.language, languages));
    PB_CHECK(check_name(o));
    const fs::path folder = o.folder.empty() ? fs::path(o.name) : fs::path(o.folder);
    PB_CHECK(check_folder(folder));
    PB_TRY(const auto texts, texts_of(o, support));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return fail("cannot make the folder " + folder.string() + ": " + error.message());
    for (const auto& [name, text] : texts) {
        PB_CHECK(write(folder / name, text));
        std::cout << printable_message((folder / name).string()) << '\n';
    }
    std::cout << "next: patchbay plugin build " << in_shell_quotes((folder / (o.name + "." + o.language)).string())
              << '\n';
    return {};
}

}  // namespace patchbay::cli
