#include "cli/plugin_build.hpp"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <vector>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "base/suggest.hpp"
#include "base/words.hpp"
#include "cli/plugin_check.hpp"
#include "cli/report_command.hpp"
#include "cli/run_program.hpp"

namespace patchbay::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

struct Language {
    const char *name, *standard, *compiler, *flags; // the last two: environment variables
    Words compilers;
};

const Language& language_of(const fs::path& file) {
    static const Language kC{"C", "-std=c11", "CC", "CFLAGS", {"cc", "gcc", "clang"}};
    static const Language kCpp{"C++", "-std=c++20", "CXX", "CXXFLAGS", {"c++", "g++", "clang++"}};
    return file.extension() == ".c" ? kC : kCpp;
}

Words words_of(const char* variable) { // separated by spaces, as make and CMake read them
    Words out;
    const char* const text = std::getenv(variable);
    std::istringstream in(text ? text : "");
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

bool runs(Words compiler, const Words& arguments) {
    compiler.insert(compiler.end(), arguments.begin(), arguments.end());
    return run_program(compiler, ProgramOutput::kDropped) == 0;
}

Result<Words> compiler_for(const Language& language) {
    if (Words chosen = words_of(language.compiler); !chosen.empty()) {
        if (runs(chosen, {"--version"})) return chosen;
        return not_found("$" + std::string(language.compiler) + " is '" + std::getenv(language.compiler) +
                         "', which does not run; expected a compiler of " + language.name);
    }
    for (const std::string& name : language.compilers)
        if (runs({name}, {"--version"})) return Words{name};
    return not_found("no compiler of " + std::string(language.name) + " on PATH (tried " + joined(language.compilers) +
                     "): install one, or name it in $" + language.compiler);
}

struct Sdk {
    fs::path headers, exports; // exports: the linker script that hides all but the entry
};

// Of a checkout, or of an installed prefix, whose support folder is PREFIX/share/patchbay.
Result<Sdk> find_sdk() {
    const fs::path support = support_folder(), prefix = support.parent_path().parent_path();
    for (const Sdk& sdk : {Sdk{support / "core" / "include", support / "cmake" / "plugin.map"},
                           Sdk{prefix / "include", prefix / "lib" / "cmake" / "patchbay" / "plugin.map"}})
        if (fs::exists(sdk.headers / "patchbay" / "plugin.hpp") && fs::exists(sdk.exports)) return sdk;
    return not_found("the headers of plugins are not beside the program: is it installed as a whole?");
}

// The last of the flags that says it, which is the one that counts, without its dash: "O2".
std::string optimisation_in(const Words& flags) {
    std::string last = "-O2";
    for (const std::string& flag : flags)
        if (flag.starts_with("-O")) last = flag;
    return last.substr(1);
}

// What add_plugin() of cmake/AddPlugin.cmake gives, too.
Words command_for(const Language& language, const Words& compiler, const Sdk& sdk, const fs::path& file,
                  const fs::path& library) {
    Words out = compiler;
    const auto add = [&](const Words& words) { out.insert(out.end(), words.begin(), words.end()); };
    const Words own_flags = words_of(language.flags);
    const bool gnu = runs(compiler, {"-fno-gnu-unique", "-x", "c", "-E", "/dev/null"});
    add({language.standard, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden"});
    if (gnu) add({"-fno-gnu-unique"}); // else builds share such a symbol, and none is ever unmapped
    add({"-DPATCHBAY_PLUGIN_NAME=\"" + file.stem().string() + "\"", "-DPATCHBAY_PLUGIN_VERSION=\"0.1.0\"",
         std::string("-DPATCHBAY_PLUGIN_BUILD=\"") + (gnu ? "GNU-" : "") + "\" __VERSION__ \"/" +
             optimisation_in(own_flags) + "\"",
         "-I" + sdk.headers.string()});
    add(own_flags);
    add({file.string(), "-o", library.string(), "-Wl,--version-script=" + sdk.exports.string(), "-Wl,-z,defs", "-lm"});
    add(words_of("LDFLAGS"));
    return out;
}

Result<> check_source(const fs::path& file) {
    const std::string ending = file.extension();
    if (ending != ".c" && ending != ".cpp" && ending != ".cc" && ending != ".cxx")
        return invalid("FILE is '" + file.string() + "', expected a source that ends in .cpp, .cc, .cxx or .c");
    std::error_code error;
    if (fs::is_regular_file(file, error)) return {};
    Words beside;
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    for (const auto& entry : fs::directory_iterator(folder, error)) beside.push_back(entry.path().filename());
    return not_found("no file " + file.string() + did_you_mean(file.filename().string(), beside));
}

}  // namespace

Result<> build_plugin(const PluginSource& source) {
    const fs::path file = source.file;
    PB_CHECK(check_source(file));
    const Language& language = language_of(file);
    PB_TRY(const Words compiler, compiler_for(language));
    PB_TRY(const Sdk sdk, find_sdk());
    const fs::path folder = source.folder.empty() ? file.parent_path() : fs::path(source.folder);
    std::error_code error;
    if (!folder.empty()) fs::create_directories(folder, error);
    if (error) return fail("cannot make the folder " + folder.string() + ": " + error.message());

    const fs::path library = folder / (file.stem().string() + ".so");
    const fs::path linked = folder / (file.stem().string() + ".so.part"); // until it is whole, the one before stays
    const int status = run_program(command_for(language, compiler, sdk, file, linked));
    if (status == 0) fs::rename(linked, library, error);
    if (status != 0 || error) {
        std::error_code ignored;
        fs::remove(linked, ignored);
        if (error) return fail("cannot write " + library.string() + ": " + error.message());
        return fail(file.string() + ": " + compiler[0] + " ended with status " + std::to_string(status) +
                    "; what it found is above");
    }
    return check_plugin({library.string()});
}

}  // namespace patchbay::cli
