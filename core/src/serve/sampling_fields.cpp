// Sampling fields of OpenAI's and vLLM's APIs.
#include <algorithm>

#include "base/numbers.hpp"
#include "base/printable.hpp"
#include "engine/request/parameters.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {
namespace {

using engine::SamplingParams;
using engine::TokenId;
using grammar::StructuredOutputs;

void read_biases(Fields& f, const char* name, std::map<TokenId, float>& out) {
    const Json* biases = f.object(name);
    if (!biases) return;
    for (const auto& [key, value] : biases->items()) {
        const auto token = parse_number<TokenId>(key);
        if (!token) return f.refuse(name, "got the key '" + printable(key, 40) + "', expected a token id");
        if (!value.is_number()) return f.refuse(name, "the bias of token " + key + " is not a number");
        out[*token] = value.get<float>();
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
    if (f.has(prefix + "choice") && out.choice.empty())
        f.refuse(prefix + "choice", "got an empty list, expected at least one string");
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

void read_structured_outputs(Fields& f, const Json& asked, StructuredOutputs& out) {
    static const std::vector<std::string> names{
        "json",        "regex",          "choice", "grammar", "structural_tag", "json_object", "disable_any_whitespace",
        "disable_fallback" /* there is one way to do it */, "disable_additional_properties", "whitespace_pattern"};
    Fields nested(asked, "structured_outputs.");
    nested.expect_only(names);
    read_structure(nested, "", out);
    nested.read("disable_any_whitespace", out.disable_any_whitespace);
    bool closed = false;
    nested.read("disable_additional_properties", closed);
    if (closed)
        nested.refuse("disable_additional_properties", "true is not supported: say additionalProperties in the schema",
                      StatusCode::kUnsupported);
    if (nested.has("whitespace_pattern"))
        nested.refuse("whitespace_pattern", "is not supported, expected disable_any_whitespace or neither",
                      StatusCode::kUnsupported);
    f.keep(nested.refusal());
}

void read_structures(Fields& f, std::optional<StructuredOutputs>& to) {
    std::optional<StructuredOutputs> out;
    if (const Json* asked = f.object("structured_outputs")) read_structured_outputs(f, *asked, out.emplace());
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
    if (f.has("guided_whitespace_pattern"))
        f.refuse("guided_whitespace_pattern",
                 "is not supported, expected structured_outputs.disable_any_whitespace or neither",
                 StatusCode::kUnsupported);
    if (!out) return;
    const int forms = out->forms();
    if (forms > 1)
        f.refuse("structured_outputs", "asks for " + std::to_string(forms) + " forms of the output, expected one");
    else if (forms == 1) to = std::move(out);
    else if (f.has("structured_outputs"))
        f.refuse("structured_outputs", "has no form of the output, expected exactly one of " +
                                           std::string(StructuredOutputs::kForms));
}

// Reads parameters by the types of what they set.
class ParameterReader {
  public:
    explicit ParameterReader(Fields& fields) : fields_(fields) {}

    template <class T>
    void read_all(T& out) {
        for (const engine::ParameterRow<T>& row : engine::rows_of<T>())
            if (row.info.json == engine::InJson::kByType)
                std::visit([&](auto field) { read(row.info.name, out.*field); }, row.field);
    }

  private:
    template <class V>
    void read(const char* name, V& out) {
        if constexpr (engine::kHasRows<V>) read_parts(name, out);
        else fields_.read(name, out);
    }
    template <class V>
    void read_parts(const char* name, V& out) {
        const Json* const parts = fields_.object(name);
        if (!parts) return;
        Fields nested(*parts, name + std::string("."));
        std::vector<std::string> names;
        for (const engine::ParameterRow<V>& row : engine::rows_of<V>()) names.emplace_back(row.info.name);
        nested.expect_only(names);
        ParameterReader(nested).read_all(out);
        fields_.keep(nested.refusal());
    }
    void read(const char* name, std::optional<uint64_t>& out) {
        std::optional<int64_t> seed; // OpenAI's and vLLM's may be negative; vLLM's -1 is none
        fields_.read(name, seed);
        if (seed && *seed != -1) out = static_cast<uint64_t>(*seed);
    }
    void read(const char* name, std::map<TokenId, float>& out) { read_biases(fields_, name, out); }
    void read(const char*, std::optional<StructuredOutputs>& out) { read_structures(fields_, out); }
    void read(const char*, engine::EarlyStopping&) {} // read_beams() does

    Fields& fields_;
};

void read_stops(Fields& f, SamplingParams& s) {
    if (const Json* stop = f.find("stop"); stop && stop->is_string()) s.stop = {stop->get<std::string>()};
    else f.read("stop", s.stop);
}

// llama.cpp's name of dry_range, with its values: 0 is off, -1 all.
void read_dry_range(Fields& f, SamplingParams& s) {
    std::optional<int32_t> last;
    f.read("dry_penalty_last_n", last);
    if (!last) return;
    if (f.has("dry_range")) return f.refuse("dry_penalty_last_n", "is dry_range by another name, expected one of them");
    if (*last < -1) return f.refuse("dry_penalty_last_n", "got " + std::to_string(*last) + ", expected -1 or more");
    if (*last == 0) s.dry_multiplier = 0;
    s.dry_range = static_cast<uint32_t>(std::max(*last, 0));
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
    if (r.model.empty()) r.model = model.names.front(); // as in vLLM
    if (!f.refusal() && std::ranges::find(model.names, r.model) == model.names.end())
        return Refusal{fail(StatusCode::kNotFound, "the model '" + printable(r.model) + "' does not exist, expected '" +
                                                       model.names.front() + "'"),
                       "model"};
    return f.refusal();
}

std::optional<Refusal> read_generation(const Json& body, const ServedModel& model, GenerationRequest& r) {
    if (auto refusal = read_model_name(body, model, r)) return refusal;
    Fields f(body);
    bool has_beams = false; // which take no sampling parameters
    f.read("use_beam_search", has_beams);
    if (!has_beams) r.sampling = model.default_sampling.params;
    ParameterReader(f).read_all(r.sampling);
    if (r.sampling.n == 0) f.refuse("n", "got 0, expected 1 to " + std::to_string(engine::kMaxOutputs));
    read_stops(f, r.sampling);
    read_dry_range(f, r.sampling);
    read_beams(f, r.sampling);
    read_stream(f, r);
    f.read("priority", r.priority);
    f.read("deadline_ms", r.deadline_ms);
    f.read("cache_salt", r.cache_salt);
    f.read("return_token_ids", r.return_token_ids);
    f.read("return_tokens_as_token_ids", r.tokens_as_ids);
    return f.refusal();
}

}  // namespace patchbay::serve
