// What is wrong with a command line, in one line that names the command and the word. Used by main().
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace patchbay::cli {

// "patchbay", or with the subcommands that were given: "patchbay config show".
std::string command_name(const CLI::App& program);

// "patchbay: unknown command 'genrate' (did you mean 'generate'?)".
std::string usage_fault(const CLI::App& program, const CLI::ParseError&);

}  // namespace patchbay::cli
