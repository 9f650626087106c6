// Whether a shared library can be a plugin at all, by its bytes: no code of it runs. Used by PluginSearch and Library.
#pragma once
#include <filesystem>
#include <string>

namespace patchbay::host {

// A whole shared library without the name of a plugin's entry, such as one that a plugin links to. A file that is cut
// off, unreadable or something else is not known to be one.
bool is_no_plugin(const std::filesystem::path&);

// A table of the SDK that the loader makes one with that of another build in the process (STB_GNU_UNIQUE): its name
// as the linker has it; empty: there is none.
std::string unique_table(const std::filesystem::path&);

}  // namespace patchbay::host
