// Sampling fields of OpenAI's and vLLM's APIs.
#include <algorithm>

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {
namespace {

using engine::SamplingParams;
using engine::TokenId;
using grammar::StructuredOutputs;

void read_numbers(Fields& f, SamplingParams& s) {
    for (const engine::SamplingRange& range : engine::kSamplingRanges) f.read(range.name, s.*range.field);
    f.read("top_k", s.top_k);
    f.read("n", s.n);
    if (s.n == 0) f.refuse("n", "got 0, expected 1 to " + std::to_string(engine::kMaxOutputs));
    f.read("best_of", s.best_of);
    f.read("min_tokens", s.min_tokens);
    f.read("prompt_logprobs", s.prompt_logprobs);
    f.read("dry_allowed_length", s.dry_allowed_length);
    f.read("dry_range", s.dry_range);
    f.read("mirostat", s.mirostat);
    std::optional<int64_t> seed; // OpenAI's and vLLM's may be negative
    f.read("seed", seed);
    if (seed) s.seed = static_cast<uint64_t>(*seed);
}

void read_ends(Fields& f, SamplingParams& s) {
    if (const Json* stop = f.find("stop"); stop && stop->is_string()) s.stop = {stop->get<std::string>()};
    else f.read("stop", s.stop);
    f.read("stop_token_ids", s.stop_token_ids);
    f.read("ignore_eos", s.ignore_eos);
    f.read("include_stop_str_in_output", s.include_stop_str_in_output);
    if (const Json* repetition = f.object("repetition_detection")) {
        Fields nested(*repetition, "repetition_detection.");
        nested.read("max_pattern_size", s.repetition_detection.max_pattern_size);
        nested.read("min_pattern_size", s.repetition_detection.min_pattern_size);
        nested.read("min_count", s.repetition_detection.min_count);
        f.keep(nested.refusal());
    }
}

void read_biases(Fields& f, SamplingParams& s) {
    f.read("bad_words", s.bad_words);
    f.read("allowed_token_ids", s.allowed_token_ids);
    const Json* biases = f.object("logit_bias");
    if (!biases) return;
    for (const auto& [key, value] : biases->items()) {
        const auto token = parse_number<TokenId>(key);
        if (!token)
            return f.refuse("logit_bias", "got the key '" + printable(key, 40) + "', expected a token id");
        if (!value.is_number()) return f.refuse("logit_bias", "the bias of token " + key + " is no number");
        s.logit_bias[*token] = value.get<float>();
    }
}

void read_beams(Fields& f, SamplingParams& s) {
    bool use = false;
    f.read("use_beam_search", use);
    if (!use) return;
    s.beam_width = std::max(s.n, s.best_of); // as vLLM has it: n beams
    s.best_of = 0;
    if (const Json* early = f.find("early_stopping")) {
        if (early->is_boolean())
            s.early_stopping = early->get<bool>() ? engine::EarlyStopping::kYes : engine::EarlyStopping::kNo;
        else if (*early == "never") s.early_stopping = engine::EarlyStopping::kNever;
        else f.refuse("early_stopping", "expected true, false or \"never\"");
    }
}

// A schema is an object, true, or the text of one.
std::string schema_text(const Json& schema) { return schema.is_string() ? schema.get<std::string>() : schema.dump(); }

void read_structure(Fields& f, const std::string& prefix, StructuredOutputs& out) {
    if (const Json* schema = f.find(prefix + "json")) {
        if (schema->is_object() || schema->is_string() || schema->is_boolean()) out.json = schema_text(*schema);
        else f.refuse(prefix + "json", "expected a JSON Schema: an object, or its text");
    }
    f.read(prefix + "regex", out.regex);
    f.read(prefix + "choice", out.choice);
    f.read(prefix + "grammar", out.grammar);
    f.read(prefix + "json_object", out.json_object);
    if (const Json* tag = f.find(prefix + "structural_tag")) {
        if (tag->is_object() || tag->is_string()) out.structural_tag = schema_text(*tag);
        else f.refuse(prefix + "structural_tag", "expected an object with 'structures' or 'format', or its text");
    }
}

void read_response_format(Fields& f, const Json& format, std::optional<StructuredOutputs>& out) {
    Fields nested(format, "response_format.");
    std::string type;
    nested.read("type", type);
    if (type == "json_object") {
        out.emplace().json_object = true;
    } else if (type == "json_schema") {
        const Json* named = nested.object("json_schema");
        const Json* schema = named ? Fields(*named).find("schema") : nullptr;
        if (!schema) nested.refuse("json_schema", "expected an object with a 'schema'");
        else out.emplace().json = schema_text(*schema);
    } else if (type == "structural_tag") {
        out.emplace().structural_tag = format.dump();
    } else if (type != "text") {
        nested.refuse("type",
                      "got '" + printable(type, 40) + "', expected text, json_object, json_schema or structural_tag");
    }
    f.keep(nested.refusal());
}

void read_structures(Fields& f, SamplingParams& s) {
    std::optional<StructuredOutputs> out;
    if (const Json* asked = f.object("structured_outputs")) {
        Fields nested(*asked, "structured_outputs.");
        read_structure(nested, "", out.emplace());
        nested.read("disable_any_whitespace", out->disable_any_whitespace);
        f.keep(nested.refusal());
    }
    for (const char* old : {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_json_object",
                            "guided_structural_tag"})
        if (f.has(old)) { // vLLM's names of before
            read_structure(f, "guided_", out ? *out : out.emplace());
            break;
        }
    const int before = out ? out->forms() : 0;
    if (const Json* format = f.object("response_format")) {
        std::optional<StructuredOutputs> asked;
        read_response_format(f, *format, asked);
        if (asked && before > 0)
            return f.refuse("response_format", "asks for a form of the output, as structured_outputs does");
        if (asked) {
            asked->disable_any_whitespace = out && out->disable_any_whitespace;
            out = std::move(asked);
        }
    }
    if (!out) return;
    const int forms = out->forms();
    if (forms > 1)
        f.refuse("structured_outputs", "asks for " + std::to_string(forms) + " forms of the output, expected one");
    else if (forms == 1) s.structured_outputs = std::move(out);
}

void read_stream(Fields& f, GenerationRequest& r) {
    f.read("stream", r.stream);
    const Json* options = f.object("stream_options");
    if (!options) return;
    if (!r.stream) return f.refuse("stream_options", "is only for requests with \"stream\": true");
    Fields nested(*options, "stream_options.");
    nested.read("include_usage", r.include_usage);
    nested.read("continuous_usage_stats", r.continuous_usage);
    r.continuous_usage = r.continuous_usage && r.include_usage;
    f.keep(nested.refusal());
}

}  // namespace

std::optional<Refusal> read_model_name(const Json& body, const ServedModel& model, GenerationRequest& r) {
    Fields f(body);
    r.model = model.names.front();
    f.read("model", r.model);
    if (!f.refusal() && std::ranges::find(model.names, r.model) == model.names.end())
        return Refusal{fail(StatusCode::kNotFound, "the model '" + printable(r.model) + "' does not exist, expected '" +
                                                       model.names.front() + "'"),
                       "model"};
    return f.refusal();
}

std::optional<Refusal> read_generation(const Json& body, const ServedModel& model, GenerationRequest& r) {
    if (auto refusal = read_model_name(body, model, r)) return refusal;
    Fields f(body);
    read_numbers(f, r.sampling);
    read_ends(f, r.sampling);
    read_biases(f, r.sampling);
    read_beams(f, r.sampling);
    read_structures(f, r.sampling);
    read_stream(f, r);
    f.read("priority", r.priority);
    f.read("cache_salt", r.cache_salt);
    f.read("return_token_ids", r.return_token_ids);
    f.read("return_tokens_as_token_ids", r.tokens_as_ids);
    bool skip_special = true;
    f.read("skip_special_tokens", skip_special);
    if (!skip_special)
        f.refuse("skip_special_tokens", "false is not supported: texts leave special tokens out",
                 StatusCode::kUnsupported);
    return f.refusal();
}

}  // namespace patchbay::serve
