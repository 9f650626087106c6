#include "cli/commands.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "bench/kv_quality.hpp"
#include "cli/engine_flags.hpp"
#include "cli/flag_checks.hpp"
#include "cli/plugin_dirs.hpp"
#include "config/load.hpp"
#include "text/tokenizer.hpp"
#include "weights/checkpoint.hpp"
#include "weights/gguf_tokenizer.hpp"

namespace patchbay::cli {
namespace {

struct KvQualityOptions {
    std::string model, text;
    std::vector<std::string> plugin_dirs, types = {"float32", "bfloat16", "int8", "fp8"};
    config::Overrides overrides;
    uint32_t tokens = 4096, window = 256;
    bool json = false;
};

// A type, and perhaps a map of layers after it: "int8 {last 2: bfloat16}".
config::Overrides with_type(config::Overrides out, const std::string& type) {
    const size_t map = type.find('{');
    const size_t end = type.find_last_not_of(' ', map == type.npos ? map : map - 1);
    out.push_back({"engine.kv_cache_dtype", type.substr(0, end + 1), "--kv"});
    if (map != type.npos) out.push_back({"engine.kv_cache_dtype_layers", type.substr(map), "--kv"});
    return out;
}

Result<std::vector<int32_t>> read_tokens(const KvQualityOptions& o, const config::ModelSettings& model) {
    std::ifstream in(o.text, std::ios::binary);
    std::string text(size_t{o.tokens} * 16, '\0'); // bytes: more than the tokens take
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    if (text.empty()) return invalid("'" + o.text + "' cannot be read, or is empty");
    const std::string folder = model.tokenizer.empty() ? model.path : model.tokenizer;
    const auto load = weights::is_gguf(folder) ? weights::load_gguf_tokenizer : text::Tokenizer::load;
    PB_TRY(const auto tokenizer, load(folder));
    std::vector<int32_t> tokens = tokenizer->encode(text);
    if (tokens.size() > o.tokens) tokens.resize(o.tokens);
    return tokens;
}

Result<> run(const KvQualityOptions& o) {
    PB_TRY(const auto registry, registry_of(o.plugin_dirs));
    std::vector<int32_t> tokens;
    std::vector<bench::TextScores> scores;
    for (const std::string& type : o.types) {
        config::Overrides overrides = with_type(o.overrides, type);
        overrides.push_back({"model.path", o.model, "--model"});
        PB_TRY(const auto loaded, config::load_engine_config("", registry, overrides));
        if (tokens.empty()) {
            PB_TRY(tokens, in_one_line(read_tokens(o, loaded.config.model)));
        }
        PB_TRY(auto one, in_one_line(bench::score_text(loaded.config, registry, tokens, o.window)));
        scores.push_back(std::move(one));
    }
    std::cout << (o.json ? bench::json_of(scores) + "\n" : bench::table_of(scores));
    return {};
}

}  // namespace

void add_kv_quality_bench(Commands& commands, CLI::App* bench) {
    CLI::App* app = bench->add_subcommand(
        "kv-quality", "What types of keys and values cost: perplexity over a text, and the same choices");
    app->footer(
        "Examples:\n"
        "  patchbay bench kv-quality --model models/demo-target --text book.txt\n"
        "  patchbay bench kv-quality --model models/demo-target --text book.txt --kv float32 --kv 'fp8 {0: bfloat16}'");
    const auto o = std::make_shared<KvQualityOptions>();
    app->add_option("--model", o->model, "Hugging Face folder or GGUF file")->required();
    app->add_option("--text", o->text, "file whose beginning is scored")->required();
    app->add_option("--kv", o->types, "a type, perhaps with a map of layers after it; repeated: the first is compared "
                                      "with (default: float32, bfloat16, int8, fp8)")
        ->allow_extra_args(false);
    add_number(*app, "--tokens", o->tokens, "tokens of the text to score", 2, 1u << 22);
    add_number(*app, "--window", o->window, "tokens of each window; windows are independent", 2, 1u << 20);
    add_key_flags({*app, std::shared_ptr<config::Overrides>(o, &o->overrides)},
                  {"--attention", "--dtype", "--threads"});
    add_plugin_dirs(*app, o->plugin_dirs);
    app->add_flag("--json", o->json, "print JSON");
    set_action(commands, app, o, {run});
}

}  // namespace patchbay::cli
