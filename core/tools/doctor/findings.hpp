// What this machine offers a run and what is missing, each with what mends it. Used by `patchbay doctor`.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/registry.hpp"
#include "text/unicode_versions.hpp"

namespace patchbay::doctor {

enum class State { kGood, kNote /* works, could be better */, kAbsent /* not there; what needs it will not run */ };

struct Finding {
    std::string area, name; // "cpu", "huge pages"
    State state;
    std::string found;      // one line
    std::string remedy;     // a command or a step; empty: none is needed or known
};

// The machine as the checks see it. Tests give one of their own.
struct Surroundings {
    std::filesystem::path root = "/";                            // above proc, sys and dev
    std::function<bool(const std::string& library)> can_load;    // as dlopen would
    std::function<bool(const std::string& program)> in_path;
    std::function<bool(const std::vector<std::string>& words)> runs; // a command, silently, to exit code 0
    bool in_checkout = true;                                     // where scripts/install-deps is
};
Surroundings this_machine();

std::vector<Finding> check_devices(const host::Registry&);       // device plugins, each choice of instructions
std::vector<Finding> check_cpu(const Surroundings&, Clock&);     // cores, frequency, what others take (for a second)
std::vector<Finding> check_memory(const Surroundings&);
// devices: names of the device plugins that there are.
std::vector<Finding> check_gpu(const Surroundings&, const std::vector<std::string>& devices);
std::vector<Finding> check_parallel(const Surroundings&);        // MPI and NCCL
// What builds plugins, and the Python that makes reports.
std::vector<Finding> check_tools(const Surroundings&, const std::string& report_python);
// Whether the libraries know the characters that the tools which make vocabularies know.
std::vector<Finding> check_text(const std::vector<text::UnicodeTables>&);
std::vector<Finding> check_plugin_folders(const host::Registry&);

std::string table_of(const std::vector<Finding>&);
std::string json_of(const std::vector<Finding>&);

}  // namespace patchbay::doctor
