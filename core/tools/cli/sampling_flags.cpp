#include "cli/sampling_flags.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "base/refusals.hpp"
#include "cli/flag_checks.hpp"
#include "engine/request/parameters.hpp"
#include "text/tokenizer.hpp"

namespace patchbay::cli {
namespace {

using S = engine::SamplingParams;
using engine::ParameterInfo;
using text::TokenId;

void add_bias(std::map<TokenId, float>& biases, const char* flag, const std::string& item) {
    std::istringstream in(item);
    int32_t token = 0;
    char colon = 0;
    float bias = 0;
    if (!(in >> token >> colon >> bias) || colon != ':' || in.peek() != EOF || token < 0)
        throw CLI::ValidationError(flag, "got '" + item + "', expected TOKEN:BIAS such as 50:-2.5");
    biases[token] = bias;
}

// Adds the flags of parameters by the types of what they set.
class FlagAdder {
  public:
    FlagAdder(CLI::App& app, SamplingFlags& flags) : app_(app), flags_(flags) {}

    template <class T>
    void add_all(T& out) {
        for (const engine::ParameterRow<T>& row : engine::rows_of<T>())
            std::visit([&](auto field) { add(row.info, out.*field); }, row.field);
    }

  private:
    template <class V>
    void add(const ParameterInfo& p, V& out) {
        if constexpr (engine::kHasRows<V>) add_all(out);
        else if (p.flag.name) add_flag(p, out);
    }

    template <class V>
    void add_flag(const ParameterInfo& p, V& out) { add_number<V>(p, out); }
    template <class V>
    void add_flag(const ParameterInfo& p, std::optional<V>& out) { add_number<V>(p, out); }
    template <class V, class Out>
    void add_number(const ParameterInfo& p, Out& out) {
        using Limits = std::numeric_limits<V>;
        const std::optional<double> low = p.flag.low ? p.flag.low : p.low;
        CLI::Option* const option = app_.add_option(p.flag.name, out, p.flag.help);
        if (!p.only.empty()) option->check(CLI::IsMember(p.only));
        else option->transform(within<V>(low ? static_cast<V>(*low) : Limits::lowest(),
                                     p.high ? static_cast<V>(*p.high) : Limits::max()));
        if (p.flag.shows_default) option->capture_default_str();
    }

    void add_flag(const ParameterInfo& p, bool& out) { app_.add_flag(p.flag.name, out, p.flag.help); }
    void add_flag(const ParameterInfo& p, std::vector<std::string>& out) {
        app_.add_option(p.flag.name, out, p.flag.help)->allow_extra_args(false);
    }
    void add_flag(const ParameterInfo& p, std::vector<TokenId>&) { // of texts, until the model's tokens are known
        flags_.dry_breakers = {"\n", ":", "\"", "*"};
        add_flag(p, flags_.dry_breakers);
    }
    void add_flag(const ParameterInfo& p, std::optional<std::vector<TokenId>>& out) {
        app_.add_option_function<std::vector<TokenId>>(
                p.flag.name, [&out](const std::vector<TokenId>& ids) { out = ids; }, p.flag.help)
            ->delimiter(',')
            ->transform(within<TokenId>(0));
    }
    void add_flag(const ParameterInfo& p, std::map<TokenId, float>& out) {
        app_.add_option_function<std::vector<std::string>>(
                p.flag.name,
                [&out, flag = p.flag.name](const std::vector<std::string>& items) {
                    for (const auto& item : items) add_bias(out, flag, item);
                },
                p.flag.help)
            ->allow_extra_args(false);
    }
    void add_flag(const ParameterInfo& p, engine::EarlyStopping& out) {
        add_choice<engine::EarlyStopping>(
            app_, p.flag.name, out, p.flag.help,
            {std::begin(engine::kEarlyStoppingWords), std::end(engine::kEarlyStoppingWords)});
    }
    void add_flag(const ParameterInfo&, std::optional<grammar::StructuredOutputs>&) {} // a flag for each form

    CLI::App& app_;
    SamplingFlags& flags_;
};

void add_structure(CLI::App& app, const std::shared_ptr<SamplingFlags>& flags) {
    app.add_option("--json-schema", flags->schema_file, "the output is JSON that the schema in this file allows");
    app.add_option("--grammar", flags->grammar_file, "the output matches the grammar in this file, GBNF or Lark");
    app.add_option("--structural-tag", flags->structural_tag_file,
                   "parts of the output, from triggers on, match the structural tag in this JSON file");
    const auto structure = [flags]() -> grammar::StructuredOutputs& {
        auto& asked = flags->sampling.structured_outputs;
        return asked ? *asked : asked.emplace();
    };
    app.add_option_function<std::string>(
        "--regex", [=](const std::string& pattern) { structure().regex = pattern; },
        "the output matches this regular expression");
    app.add_option_function<std::vector<std::string>>(
           "--choice", [=](const std::vector<std::string>& texts) { structure().choice = texts; },
           "the output is one of these strings, a list")
        ->allow_extra_args(false)
        ->delimiter(',');
    app.add_flag_callback("--json-object", [=] { structure().json_object = true; }, "the output is a JSON object");
    app.add_flag_callback("--disable-any-whitespace", [=] { structure().disable_any_whitespace = true; },
                          "no white space between the parts of JSON");
}

}  // namespace

void add_sampling_flags(CLI::App& app, const std::shared_ptr<SamplingFlags>& flags) {
    FlagAdder(app, *flags).add_all(flags->sampling);
    add_structure(app, flags);
}

Result<engine::SamplingParams> read_sampling(const SamplingFlags& flags) {
    S out = flags.sampling;
    const auto read = [&](const char* flag, const std::string& file, auto grammar::StructuredOutputs::*to) -> Result<> {
        if (file.empty()) return {};
        if (!out.structured_outputs) out.structured_outputs.emplace();
        PB_TRY((*out.structured_outputs).*to, read_file(flag, file));
        return {};
    };
    PB_CHECK(read("--json-schema", flags.schema_file, &grammar::StructuredOutputs::json));
    PB_CHECK(read("--grammar", flags.grammar_file, &grammar::StructuredOutputs::grammar));
    PB_CHECK(read("--structural-tag", flags.structural_tag_file, &grammar::StructuredOutputs::structural_tag));
    return out;
}

std::vector<text::TokenId> tokens_with(const text::Tokenizer& tokenizer, uint32_t vocab_size,
                                       const std::vector<std::string>& texts) {
    std::vector<text::TokenId> out;
    const uint32_t end = std::min(vocab_size, tokenizer.vocab_size());
    for (text::TokenId t = 0; static_cast<uint32_t>(t) < end; ++t) {
        const std::string_view bytes = tokenizer.token_bytes(t);
        const auto in_it = [&](const std::string& text) {
            return !text.empty() && bytes.find(text) != std::string_view::npos;
        };
        if (std::any_of(texts.begin(), texts.end(), in_it)) out.push_back(t);
    }
    return out;
}

Result<std::string> read_file(const char* flag, const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    std::string text;
    char part[1 << 14];
    while (in && (in.read(part, sizeof part) || in.gcount() > 0)) text.append(part, static_cast<size_t>(in.gcount()));
    if (!in.is_open() || in.bad()) return fail(code_of_open(errno), flag + (" " + name) + ": " + std::strerror(errno));
    return text;
}

}  // namespace patchbay::cli
