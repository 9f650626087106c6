#include "cli/command.hpp"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "base/suggest.hpp"
#include "base/words.hpp"

namespace patchbay::cli {
namespace {

const CLI::App& innermost(const CLI::App& program) {
    const CLI::App* at = &program;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return *at;
}

std::vector<std::string> command_names(const CLI::App& app) {
    std::vector<std::string> names;
    const auto shown = [](const CLI::App* sub) { return !sub->get_group().empty(); };
    for (const CLI::App* sub : app.get_subcommands(shown)) names.push_back(sub->get_name());
    return names;
}

std::string unknown_word(const CLI::App& app, const std::string& word) {
    if (word.starts_with('-')) {
        const std::string flag = word.substr(0, word.find('='));
        std::vector<std::string> flags;
        for (const CLI::Option* option : app.get_options())
            for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
        return "unknown flag '" + flag + "'" + did_you_mean(flag, flags);
    }
    const std::vector<std::string> commands = command_names(app);
    if (commands.empty()) return "unexpected argument '" + word + "'";
    return "unknown command '" + word + "'" + did_you_mean(word, commands);
}

}  // namespace

std::string full_name(const CLI::App& app) {
    std::string name = app.get_name();
    for (const CLI::App* up = app.get_parent(); up; up = up->get_parent()) name = up->get_name() + " " + name;
    return name;
}

std::vector<std::string> with_empty_values(const CLI::App& program, const std::vector<std::string>& arguments) {
    const CLI::App* app = &program;
    const auto takes_value = [&](const std::string& flag) {
        const CLI::Option* const option = flag.starts_with("--") ? app->get_option_no_throw(flag) : nullptr;
        return option && option->get_items_expected_min() > 0;
    };
    std::vector<std::string> out;
    bool is_value = false, flags_end = false;
    for (const std::string& argument : arguments) {
        out.push_back(argument);
        if (std::exchange(is_value, takes_value(argument) && !is_value) || flags_end) continue;
        flags_end = argument == "--";
        const auto subs = app->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == argument; });
        if (!subs.empty()) app = subs.front();
        if (!argument.ends_with('=') || !takes_value(argument.substr(0, argument.size() - 1))) continue;
        out.back().pop_back();
        out.emplace_back();
    }
    return out;
}

std::string command_name(const CLI::App& program) { return full_name(innermost(program)); }

std::string usage_fault(const CLI::App& program, const CLI::ParseError& error) {
    const CLI::App& app = innermost(program);
    const std::string head = command_name(program) + ": ";
    // A word that nothing takes explains more than what is missing because of it.
    const std::vector<std::string> unknown = app.remaining(), commands = command_names(app);
    if (!unknown.empty()) return head + unknown_word(app, unknown.front());
    if (!commands.empty()) return head + "no command, expected " + listed(commands, " or ");
    std::string text = error.what();
    const auto letter = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (text.size() > 1 && std::islower(letter(1))) text[0] = static_cast<char>(std::tolower(letter(0)));
    return head + text;
}

}  // namespace patchbay::cli
