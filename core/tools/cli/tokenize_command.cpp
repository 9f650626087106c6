#include "cli/commands.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "cli/sampling_flags.hpp"
#include "cli/token_ids.hpp"
#include "engine/load_tokenizer.hpp"

namespace patchbay::cli {
namespace {

using nlohmann::ordered_json;
using text::TokenId;
using text::Tokenizer;

struct TokenizeOptions {
    std::string model, text, file;
    bool given = false; // the text, as an argument
    bool json = false, ids_only = false, plain = false;
};

Result<std::string> read_standard_input() { // by no path: a socket has none that can be opened
    std::string text;
    char part[1 << 14];
    while (const size_t got = std::fread(part, 1, sizeof part, stdin)) text.append(part, got);
    if (std::ferror(stdin)) return fail(code_of_open(errno), std::string("standard input: ") + std::strerror(errno));
    return text;
}

Result<std::string> input_of(const TokenizeOptions& o) {
    if (o.given) return o.text;
    return o.file.empty() ? read_standard_input() : read_file("--file", o.file);
}

void print(const ordered_json& json) { // bytes that are not UTF-8 become U+FFFD
    std::cout << json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) << '\n';
}

// The names are those of the server's /tokenize.
ordered_json json_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    ordered_json strings = ordered_json::array(), special = ordered_json::array();
    for (const TokenId id : ids) {
        strings.push_back(std::string(tokenizer.token_bytes(id)));
        special.push_back(tokenizer.is_special(id));
    }
    return {{"count", ids.size()},
            {"tokens", ids},
            {"token_strs", std::move(strings)},
            {"special", std::move(special)}};
}

void print_ids(const std::vector<TokenId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) std::cout << (i ? "," : "") << ids[i];
    std::cout << '\n';
}

void print_pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    constexpr size_t kMaxBytes = 4096; // longer than a token
    for (const TokenId id : ids)
        std::cout << std::setw(8) << id << "  '" << printable(tokenizer.token_bytes(id), kMaxBytes) << '\''
                  << (tokenizer.is_special(id) ? "  special\n" : "\n");
}

Result<> tokenize(const TokenizeOptions& o) {
    PB_TRY(const auto tokenizer, engine::load_tokenizer(std::filesystem::path(o.model)));
    PB_TRY(const std::string text, input_of(o));
    const auto ids = o.plain ? tokenizer->encode_inside(text) : tokenizer->encode(text);
    if (o.json) print(json_of(*tokenizer, ids));
    else if (o.ids_only) print_ids(ids);
    else print_pieces(*tokenizer, ids);
    return {};
}

Result<> detokenize(const TokenizeOptions& o) {
    PB_TRY(const auto tokenizer, engine::load_tokenizer(std::filesystem::path(o.model)));
    PB_TRY(const std::string list, input_of(o));
    PB_TRY(const auto ids, read_token_ids(list));
    for (const TokenId id : ids)
        if (static_cast<uint32_t>(id) >= tokenizer->vocab_size())
            return invalid("token " + std::to_string(id) + ", expected 0 to " +
                           std::to_string(tokenizer->vocab_size() - 1));
    const std::string text = tokenizer->decode(ids);
    if (o.json) print({{"prompt", text}});
    else std::cout << text << (isatty(STDOUT_FILENO) ? "\n" : ""); // a file gets the text as it is
    return {};
}

void check_usage(const TokenizeOptions& o) {
    if (o.given && !o.file.empty())
        throw CLI::ValidationError("--file", "given beside an argument; only one of them can be the input");
}

void add(Commands& commands, CLI::App* app, const std::shared_ptr<TokenizeOptions>& o,
         Result<> (*work)(const TokenizeOptions&)) {
    app->add_option("--model", o->model, "model folder, file of a tokenizer, or GGUF file")->required();
    app->add_option("--file", o->file, "read it from this file (default: from standard input)");
    set_action(commands, app, o, {.run = work, .print = print_error, .check = check_usage});
}

}  // namespace

void add_tokenize_commands(Commands& commands) {
    CLI::App* app = commands.app.add_subcommand("tokenize", "Print the token ids of a text and their pieces");
    app->footer("Examples:\n"
                "  patchbay tokenize --model models/demo-target \"Once upon a time\"\n"
                "  patchbay tokenize --model llama.gguf --file story.txt --json\n"
                "  patchbay generate --model DIR --prompt-ids $(patchbay tokenize --model DIR --ids \"Once\")");
    const auto o = std::make_shared<TokenizeOptions>();
    add(commands, app, o, tokenize);
    app->add_option_function<std::string>(
        "text", [o](const std::string& text) { o->text = text, o->given = true; }, "the text");
    app->add_flag("--no-special-tokens", o->plain, "add no special tokens to the text");
    auto* const json = app->add_flag("--json", o->json, "print JSON with the fields of the server's /tokenize");
    app->add_flag("--ids", o->ids_only, "print the ids alone, on one line")->excludes(json);

    CLI::App* back = commands.app.add_subcommand("detokenize", "Print the text of token ids");
    back->footer("Examples:\n"
                 "  patchbay detokenize --model models/demo-target 27 256 90\n"
                 "  patchbay tokenize --model DIR --ids --file story.txt | patchbay detokenize --model DIR");
    const auto p = std::make_shared<TokenizeOptions>();
    add(commands, back, p, detokenize);
    back->add_option_function<std::vector<std::string>>(
        "ids",
        [p](const std::vector<std::string>& lists) {
            for (const std::string& list : lists) p->text += list + " ";
            p->given = true;
        },
        "the ids: 15 27 3, or 15,27,3")
        ->check(token_ids());
    back->add_flag("--json", p->json, "print JSON with the fields of the server's /detokenize");
}

}  // namespace patchbay::cli
