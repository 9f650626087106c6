#include "cli/commands.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "cli/conversation.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/sampling_flags.hpp"
#include "config/load.hpp"
#include "engine/simulation.hpp"
#include "parallel/world.hpp"

namespace patchbay::cli {
namespace {

struct ChatOptions {
    EngineFlags engine;
    std::string system, chat_template_file;
    SamplingFlags flags;
    uint32_t max_tokens = 1024;
};

volatile std::sig_atomic_t ctrl_c = 0;

// Ctrl-C ends an answer, or drops a line that is being typed: without SA_RESTART reading returns.
void catch_ctrl_c() {
    struct sigaction how {};
    how.sa_handler = [](int) { ctrl_c = 1; };
    sigaction(SIGINT, &how, nullptr);
}

bool is_at_terminal() { return isatty(STDIN_FILENO) == 1; }

constexpr const char* kHelp =
    "/reset           begin anew\n"
    "/system [TEXT]   begin anew with another system message\n"
    "/exit            end; Ctrl-D too. Ctrl-C ends an answer\n";

// False: the conversation is over.
bool follow(const std::string& line, Conversation& conversation) {
    const size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    const std::string rest = space == line.npos ? "" : line.substr(space + 1);
    if (command == "/exit" || command == "/quit" || command == "/bye") return false;
    if (command == "/reset") conversation.reset();
    else if (command == "/system") conversation.set_system(rest);
    else if (command == "/help" || command == "/?") std::cout << kHelp;
    else {
        const std::vector<std::string> known = {"/reset", "/system", "/exit", "/help"};
        std::cout << "there is no " << command << did_you_mean(command, known) << "; /help lists what there is\n";
    }
    return true;
}

void talk(Conversation& conversation) {
    std::string line;
    for (;;) {
        if (is_at_terminal()) std::cout << "> " << std::flush;
        ctrl_c = 0;
        if (!std::getline(std::cin, line)) {
            if (ctrl_c == 0 || !is_at_terminal()) break;
            std::cin.clear(); // meant for an answer that has just ended, perhaps: the conversation is not lost
            std::clearerr(stdin);
            std::cout << "\n(Ctrl-D or /exit ends)\n";
            continue;
        }
        if (line.empty()) continue;
        if (line[0] == '/') {
            if (!follow(line, conversation)) return;
            continue;
        }
        const auto show = [](const std::string& text) { std::cout << text << std::flush; };
        const auto done = conversation.say(line, show, [] { return ctrl_c == 0; });
        std::cout << (ctrl_c ? " …\n" : "\n");
        if (!done) std::cout << "! " << done.error() << '\n';
        std::cout << std::flush;
    }
    if (is_at_terminal()) std::cout << '\n';
}

Result<> chat(const ChatOptions& o) {
    PB_TRY(engine::SamplingParams sampling, read_sampling(o.flags));
    if (sampling.n > 1) return fail(StatusCode::kInvalid, "a conversation has one answer, n is " +
                                                              std::to_string(sampling.n));
    sampling.max_tokens = o.max_tokens;
    PB_TRY(const auto registry, registry_of(o.engine.plugin_dirs));
    PB_TRY(const auto loaded, load_engine(o.engine, registry));
    PB_TRY(const auto clock, engine::clock_for(loaded.config, registry));
    parallel::World world;
    PB_TRY(const auto engine, engine::Engine::create(loaded.config, registry, *clock, nullptr, &world));
    PB_TRY(const auto model,
           serve::served_model(loaded.config, *engine, {.served = {}, .chat_template_file = o.chat_template_file}));
    if (!model.tokenizer) return fail(StatusCode::kUnsupported, "the model has no tokenizer");
    if (!model.chat_template)
        return fail(StatusCode::kUnsupported, model.no_template);
    if (sampling.dry_multiplier > 0) sampling.dry_breakers = tokens_with(*model.tokenizer, o.flags.dry_breakers);
    Conversation conversation(*engine, model, sampling);
    conversation.set_system(o.system);
    if (is_at_terminal()) std::cout << model.names.front() << "; /help lists commands\n";
    catch_ctrl_c();
    talk(conversation);
    return {};
}

}  // namespace

void add_chat_command(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("chat", "Talk with a model at the terminal");
    app->footer(
        "Examples:\n"
        "  patchbay chat --model DIR\n"
        "  patchbay chat --model DIR --system \"Answer in one sentence.\" --temperature 0.7\n"
        "  echo \"What is a page?\" | patchbay chat --model DIR --temperature 0\n"
        "Lines that begin with / are commands: /reset, /system TEXT, /exit. Ctrl-C ends an answer.");
    auto o = std::make_shared<ChatOptions>();
    add_engine_flags(*app, std::shared_ptr<EngineFlags>(o, &o->engine));
    app->add_option("--system", o->system, "the system message");
    app->add_option("--chat-template", o->chat_template_file, "file with a Jinja template (default: the model's)")
        ->check(CLI::ExistingFile);
    add_number(*app, "--max-tokens", o->max_tokens, "tokens of an answer at most", 1);
    add_sampling_flags(*app, std::shared_ptr<SamplingFlags>(o, &o->flags));
    set_action(commands, app, o, {[](const ChatOptions& given) { return in_one_line(chat(given)); }});
}

}  // namespace patchbay::cli
