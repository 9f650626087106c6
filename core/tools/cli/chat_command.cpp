#include "cli/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "cli/sampling_flags.hpp"
#include "config/load.hpp"
#include "engine/simulation.hpp"
#include "parallel/world.hpp"
#include "serve/generation_request.hpp"
#include "serve/served_model.hpp"
#include "service/run_to_end.hpp"

namespace patchbay::cli {
namespace {

struct ChatOptions {
    EngineFlags engine;
    std::string system, chat_template_file;
    SamplingFlags flags;
    uint32_t max_tokens = 1024;
};

// A conversation with a model that this process runs: messages in, the answer's text as it comes.
class Conversation {
  public:
    // sampling.max_tokens: of an answer. All outlive the conversation.
    Conversation(engine::Engine&, const serve::ServedModel&, const engine::SamplingParams&);

    void set_system(const std::string& text); // begins anew; empty: no system message
    void reset();                             // begins anew, after the system message
    // Hands the answer's text out as it comes; go_on is asked before each step, false ends the answer. What was said
    // and answered is remembered, also where the answer was ended; nothing is where it fails.
    Result<> say(const std::string& text, const std::function<void(const std::string&)>& on_text,
                 const std::function<bool()>& go_on);

  private:
    Result<std::vector<int32_t>> prompt() const;

    engine::Engine& engine_;
    const serve::ServedModel& model_;
    const engine::SamplingParams sampling_;
    nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
    std::string system_;
};

Conversation::Conversation(engine::Engine& engine, const serve::ServedModel& model,
                           const engine::SamplingParams& sampling)
    : engine_(engine), model_(model), sampling_(sampling) {}

void Conversation::set_system(const std::string& text) {
    system_ = text;
    reset();
}

void Conversation::reset() {
    messages_ = nlohmann::ordered_json::array();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
}

Result<std::vector<int32_t>> Conversation::prompt() const {
    const serve::RenderedChat chat = serve::render_chat({{"messages", messages_}}, model_);
    if (chat.refusal) return chat.refusal->failure;
    const text::Tokenizer& tokenizer = *model_.tokenizer;
    return chat.add_special_tokens ? tokenizer.encode(chat.text) : tokenizer.encode_inside(chat.text);
}

Result<> Conversation::say(const std::string& text, const std::function<void(const std::string&)>& on_text,
                           const std::function<bool()>& go_on) {
    const auto before = messages_;
    messages_.push_back({{"role", "user"}, {"content", text}});
    const auto forget = [&](const Failure& why) {
        messages_ = before;
        return why;
    };
    auto tokens = prompt();
    if (!tokens) return forget(tokens.failure());
    const uint32_t limit = model_.max_model_len;
    if (tokens->size() >= limit)
        return forget(fail(StatusCode::kInvalid, "the conversation has " + std::to_string(tokens->size()) +
                                                     " tokens, the model takes fewer than " + std::to_string(limit) +
                                                     "; /reset starts over"));
    engine::Request request;
    request.prompt = *std::move(tokens);
    const auto prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    request.sampling = sampling_;
    request.sampling.max_tokens = std::min(sampling_.max_tokens, limit - prompt_tokens);
    request.arrival_ns = engine_.clock().now_ns();
    std::string answer;
    std::optional<Failure> failed;
    request.on_output = [&](const engine::RequestOutput& out) {
        answer += out.text;
        if (!out.text.empty()) on_text(out.text);
        if (out.finish == engine::FinishReason::kError) failed = fail(out.error_code, out.stop_reason);
    };
    const auto id = engine_.add_request(std::move(request));
    if (!id) return forget(id.failure());
    const auto end_if_asked = [&] {
        if (!go_on()) engine_.abort(*id);
        return true;
    };
    if (const auto done = service::run_to_end(engine_, {end_if_asked, {}}); !done) return forget(done.failure());
    if (failed) return forget(*failed);
    messages_.push_back({{"role", "assistant"}, {"content", answer}});
    return {};
}

volatile std::sig_atomic_t ctrl_c = 0;

// Ctrl-C ends an answer, or drops a line that is being typed: without SA_RESTART reading returns.
void catch_ctrl_c() {
    struct sigaction how {};
    how.sa_handler = [](int) { ctrl_c = 1; };
    sigaction(SIGINT, &how, nullptr);
}

bool is_at_terminal() { return isatty(STDIN_FILENO) == 1; }

void print_at_once(const std::string& text) { std::cout << text << std::flush; }

constexpr const char* kHelp =
    "/reset           start over\n"
    "/system [TEXT]   start over with another system message\n"
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

void talk_at_terminal(Conversation& conversation) {
    std::string line;
    for (;;) {
        std::cout << "> " << std::flush;
        ctrl_c = 0;
        if (!std::getline(std::cin, line)) {
            if (ctrl_c == 0) break;
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
        const auto done = conversation.say(line, print_at_once, [] { return ctrl_c == 0; });
        std::cout << (ctrl_c ? " …\n" : "\n");
        if (!done) std::cout << "! " << done.error() << '\n';
        std::cout << std::flush;
    }
    std::cout << '\n';
}

// Of another program or a file: errors are kept out of the answers, and Ctrl-C ends the conversation.
Result<> answer_input(Conversation& conversation) {
    size_t messages = 0, unanswered = 0;
    for (std::string line; ctrl_c == 0 && std::getline(std::cin, line);) {
        if (line.empty()) continue;
        if (line[0] == '/') {
            if (!follow(line, conversation)) break;
            continue;
        }
        messages += 1;
        const auto done = conversation.say(line, print_at_once, [] { return ctrl_c == 0; });
        std::cout << (ctrl_c ? " …\n" : "\n") << std::flush;
        if (done) continue;
        unanswered += 1;
        print_error("patchbay chat", done.error());
    }
    if (ctrl_c) return fail(StatusCode::kCancelled, "interrupted");
    if (unanswered == 0) return {};
    return fail(std::to_string(unanswered) + " of " + std::to_string(messages) + " messages got no answer");
}

Result<> chat(const ChatOptions& o) {
    PB_TRY(engine::SamplingParams sampling, read_sampling(o.flags));
    if (sampling.n > 1) return fail(StatusCode::kInvalid, "a conversation has one answer, n is " +
                                                              std::to_string(sampling.n));
    sampling.max_tokens = o.max_tokens;
    PB_TRY(const auto registry, registry_of(o.engine.plugin_dirs));
    PB_TRY(const auto loaded, load_engine(o.engine, registry));
    print_warnings(loaded);
    PB_TRY(const auto clock, engine::clock_for(loaded.config, registry));
    parallel::World world;
    PB_TRY(const auto engine, engine::Engine::create(loaded.config, registry, *clock, nullptr, &world));
    PB_TRY(const auto model,
           serve::served_model(loaded.config, *engine,
                               {.chat_template_file = o.chat_template_file, .generation_config = false}));
    if (!model.tokenizer) return fail(StatusCode::kUnsupported, "the model has no tokenizer");
    if (!model.chat_template)
        return fail(StatusCode::kUnsupported, model.no_template);
    if (sampling.dry_multiplier > 0)
        sampling.dry_breakers = tokens_with(*model.tokenizer, model.vocab_size, o.flags.dry_breakers);
    Conversation conversation(*engine, model, sampling);
    conversation.set_system(o.system);
    if (is_at_terminal()) std::cout << model.names.front() << "; /help lists commands\n";
    catch_ctrl_c();
    if (!is_at_terminal()) return answer_input(conversation);
    talk_at_terminal(conversation);
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
        "Lines that begin with / are commands: /reset, /system TEXT, /help, /exit. Ctrl-C ends an answer.");
    auto o = std::make_shared<ChatOptions>();
    add_engine_flags(*app, std::shared_ptr<EngineFlags>(o, &o->engine));
    app->add_option("--system", o->system, "the system message");
    app->add_option("--chat-template", o->chat_template_file, "file with a Jinja template (default: the model's)")
        ->check(CLI::ExistingFile);
    add_number(*app, "--max-tokens", o->max_tokens, "maximum number of tokens in an answer", 1);
    add_sampling_flags(*app, std::shared_ptr<SamplingFlags>(o, &o->flags));
    set_action(commands, app, o,
               {.run = [](const ChatOptions& given) { return in_one_line(chat(given)); },
                .parallel = [](const ChatOptions& given) { return parallel_of(given.engine); }});
}

}  // namespace patchbay::cli
