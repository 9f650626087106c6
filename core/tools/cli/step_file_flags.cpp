#include "cli/step_file_flags.hpp"

namespace patchbay::cli {

void add_step_file_flags(CLI::App& app, const std::shared_ptr<engine::StepFilePaths>& paths, const std::string& whose) {
    const auto add = [&](const char* flag, std::string engine::StepFilePaths::* path, const std::string& help) {
        const auto set = [paths, path, name = std::string(flag)](const std::string& given) {
            (*paths).*path = given;
            if (const auto checked = engine::check(*paths); !checked)
                throw CLI::ValidationError(name, checked.error());
        };
        app.add_option_function<std::string>(flag, set, help)->type_name("TEXT");
    };
    add("--trace", &engine::StepFilePaths::trace,
        "write steps and requests" + whose + " to this file, for ui.perfetto.dev");
    add("--decision-log", &engine::StepFilePaths::decisions,
        "write the scheduler's decisions in each step" + whose + " to this file, as JSON lines");
    add("--kv-events", &engine::StepFilePaths::kv_events,
        "write which blocks enter and leave the prefix cache" + whose + " to this file, as JSON lines");
}

}  // namespace patchbay::cli
