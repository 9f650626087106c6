// Traces of one request a line, each a JSON object: Mooncake's, those with token ids, and Patchbay's own.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "base/suggest.hpp"
#include "experiment/traces/builder.hpp"
#include "experiment/traces/json_lines.hpp"
#include "experiment/traces/lines.hpp"

namespace patchbay::experiment {
namespace {

using Json = nlohmann::json;

std::string what_is(const Json& value) {
    return in_quotes(printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), 60));
}

Result<uint32_t> tokens_of(const TraceBuilder& b, const Json& object, const char* key, uint32_t least = 0) {
    const auto at = object.find(key);
    if (at == object.end()) return b.fault("no field '" + std::string(key) + "'");
    if (!at->is_number_unsigned() || at->get<uint64_t>() > kMaxTokensOfRow || at->get<uint64_t>() < least)
        return b.fault("'" + std::string(key) + "' is " + what_is(*at) + ", expected a number of tokens from " +
                       std::to_string(least) + " to " + std::to_string(kMaxTokensOfRow));
    return at->get<uint32_t>();
}

Result<int64_t> time_of(const TraceBuilder& b, const Json& object, const char* key, double seconds_per_unit) {
    const auto at = object.find(key);
    if (at == object.end()) return b.fault("no field '" + std::string(key) + "'");
    const auto time = at->is_number() ? seconds_ns(at->get<double>() * seconds_per_unit) : std::nullopt;
    if (!time) return b.fault("'" + std::string(key) + "' is " + what_is(*at) + ", expected a time, at most 1e9 s");
    return *time;
}

// Appends the ids of a list; their number.
Result<uint32_t> append_ids(TraceBuilder& b, const Json& list, const char* key) {
    if (!list.is_array() || list.empty())
        return b.fault("'" + std::string(key) + "' is " + what_is(list) + ", expected a list of token ids");
    for (const Json& id : list) {
        if (!id.is_number_unsigned() || id.get<uint64_t>() > 0x7fffffff)
            return b.fault("'" + std::string(key) + "' has " + what_is(id) + ", expected a token id");
        b.trace().ids.push_back(id.get<text::TokenId>());
    }
    return static_cast<uint32_t>(list.size()); // a line has at most 4 MB
}

// {"timestamp": ms, "input_length", "output_length", "hash_ids": [a name for each block of the prompt]}
Result<> add_mooncake(TraceBuilder& b, const Json& object) {
    PB_TRY(const int64_t time, time_of(b, object, "timestamp", 1e-3));
    TraceRow row;
    PB_TRY(row.prompt_tokens, tokens_of(b, object, "input_length"));
    PB_TRY(row.output_tokens, tokens_of(b, object, "output_length"));
    PB_TRY(const bool wanted, b.wanted(time));
    if (!wanted) return {};
    const uint32_t size = b.options().block_tokens;
    b.trace().block_tokens = size;
    if (const auto hashes = object.find("hash_ids"); hashes != object.end()) {
        const uint64_t expected = (uint64_t{row.prompt_tokens} + size - 1) / size;
        if (!hashes->is_array() || hashes->size() != expected)
            return b.fault("'hash_ids' is " + what_is(*hashes) + ", expected a list of " + std::to_string(expected) +
                           ": one for each " + std::to_string(size) + " of " + std::to_string(row.prompt_tokens) +
                           " tokens (is `block_tokens` right?)");
        row.content = PromptContent::kBlocks;
        row.first = b.trace().blocks.size();
        row.count = static_cast<uint32_t>(expected);
        for (const Json& hash : *hashes) {
            if (!hash.is_number_integer())
                return b.fault("'hash_ids' has " + what_is(hash) + ", expected a whole number");
            b.trace().blocks.push_back(hash.is_number_unsigned() ? hash.get<uint64_t>()
                                                                 : static_cast<uint64_t>(hash.get<int64_t>()));
        }
    }
    b.add(row);
    return {};
}

// {"arrival_time_ns", "input_tok_ids": […], "output_tok_ids": […] or "output_toks"}
Result<> add_token_ids(TraceBuilder& b, const Json& object) {
    PB_TRY(const int64_t time, time_of(b, object, "arrival_time_ns", 1e-9));
    PB_TRY(const bool wanted, b.wanted(time));
    if (!wanted) return {};
    TraceRow row;
    row.content = PromptContent::kIds;
    row.first = b.trace().ids.size();
    PB_TRY(row.count, append_ids(b, object.at("input_tok_ids"), "input_tok_ids"));
    row.prompt_tokens = row.count;
    if (const auto output = object.find("output_tok_ids"); output != object.end() && !output->empty()) {
        PB_TRY(row.output_tokens, append_ids(b, *output, "output_tok_ids"));
        row.has_answer = true;
    } else {
        PB_TRY(row.output_tokens, tokens_of(b, object, "output_toks"));
    }
    b.add(row);
    return {};
}

// ---- Patchbay's own ----
const std::vector<std::string>& own_keys() {
    static const std::vector<std::string> keys = {
        "at_s",     "after_s",      "prompt", "prompt_ids", "prompt_tokens", "prefix", "prefix_tokens",
        "output_tokens", "max_tokens", "class",  "tenant",     "priority",      "session"};
    return keys;
}

Result<std::string> text_of(const TraceBuilder& b, const Json& object, const char* key) {
    constexpr size_t kLongestName = 1 << 20;
    const Json& value = object.at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty() ||
        value.get_ref<const std::string&>().size() > kLongestName)
        return b.fault("'" + std::string(key) + "' is " + what_is(value) + ", expected a string");
    return value.get<std::string>();
}

Result<> read_prompt(TraceBuilder& b, const Json& object, TraceRow& row) {
    const int kinds =
        object.contains("prompt") + object.contains("prompt_ids") + object.contains("prompt_tokens");
    if (kinds != 1)
        return b.fault("has " + std::to_string(kinds) +
                       " of 'prompt', 'prompt_ids' and 'prompt_tokens', expected one of them");
    if (object.contains("prompt")) {
        PB_TRY(std::string text, text_of(b, object, "prompt"));
        row.content = PromptContent::kText;
        row.first = b.trace().texts.size();
        row.count = 1;
        b.trace().texts.push_back(std::move(text));
    } else if (object.contains("prompt_ids")) {
        row.content = PromptContent::kIds;
        row.first = b.trace().ids.size();
        PB_TRY(row.count, append_ids(b, object.at("prompt_ids"), "prompt_ids"));
        row.prompt_tokens = row.count;
    } else {
        PB_TRY(row.prompt_tokens, tokens_of(b, object, "prompt_tokens", 1));
    }
    if (!object.contains("prefix") && !object.contains("prefix_tokens")) return {};
    if (!object.contains("prefix") || !object.contains("prompt_tokens"))
        return b.fault("'prefix' and 'prefix_tokens' come together, and with 'prompt_tokens'");
    PB_TRY(const std::string name, text_of(b, object, "prefix"));
    PB_TRY(row.count, tokens_of(b, object, "prefix_tokens", 1));
    if (row.count > row.prompt_tokens)
        return b.fault("'prefix_tokens' is " + std::to_string(row.count) + ", more than 'prompt_tokens' of " +
                       std::to_string(row.prompt_tokens) + ", which it is a part of");
    row.content = PromptContent::kPrefix;
    row.first = b.prefix(name);
    return {};
}

Result<> read_class(TraceBuilder& b, const Json& object, TraceRow& row) {
    if (object.contains("class")) {
        PB_TRY(const std::string name, text_of(b, object, "class"));
        row.label = b.label(name);
    }
    if (object.contains("tenant")) {
        PB_TRY(row.tenant, tokens_of(b, object, "tenant"));
    }
    if (const auto at = object.find("priority"); at != object.end()) {
        if (!at->is_number_integer() || std::abs(at->get<double>()) > 1e9)
            return b.fault("'priority' is " + what_is(*at) + ", expected a whole number");
        row.priority = at->get<int32_t>();
    }
    return {};
}

Result<> add_own(TraceBuilder& b, const Json& object) {
    for (const auto& [key, value] : object.items())
        if (std::ranges::find(own_keys(), key) == own_keys().end())
            return b.fault("unknown field " + in_quotes(printable(key, 60)) + did_you_mean(key, own_keys()));
    TraceRow row;
    row.follows = object.contains("after_s");
    if (row.follows == object.contains("at_s"))
        return b.fault("has " + std::string(row.follows ? "both" : "none") + " of 'at_s' and 'after_s', expected one");
    std::string session;
    if (object.contains("session")) {
        PB_TRY(session, text_of(b, object, "session"));
    } else if (row.follows) {
        return b.fault("'after_s' needs a 'session'");
    }
    bool wanted = false;
    if (row.follows) {
        PB_TRY(const int64_t after, time_of(b, object, "after_s", 1));
        row.think_s = static_cast<double>(after) * 1e-9;
        if (!b.has_session(session)) return {}; // it began in a part that is left out
        PB_TRY(wanted, b.wanted_without_time());
    } else {
        PB_TRY(const int64_t time, time_of(b, object, "at_s", 1));
        PB_TRY(wanted, b.wanted(time));
    }
    if (!wanted) return {};
    if (!session.empty()) row.session = b.session(session);
    PB_CHECK(read_prompt(b, object, row));
    PB_TRY(row.output_tokens, tokens_of(b, object, "output_tokens", 1));
    if (object.contains("max_tokens")) {
        PB_TRY(row.max_tokens, tokens_of(b, object, "max_tokens", 1));
        if (row.max_tokens < row.output_tokens)
            return b.fault("'max_tokens' is " + std::to_string(row.max_tokens) + ", less than 'output_tokens' of " +
                           std::to_string(row.output_tokens));
    }
    PB_CHECK(read_class(b, object, row));
    b.add(row);
    return {};
}

Result<> add_row(TraceBuilder& b, const Json& object) {
    TraceFormat& format = b.trace().format;
    if (format == TraceFormat::kAuto) { // by the first line
        format = object.contains("input_length")    ? TraceFormat::kMooncake
                 : object.contains("input_tok_ids") ? TraceFormat::kTokenIds
                                                    : TraceFormat::kPatchbay;
    }
    if (format == TraceFormat::kMooncake) return add_mooncake(b, object);
    if (format == TraceFormat::kPatchbay) return add_own(b, object);
    if (!object.contains("input_tok_ids")) return b.fault("no field 'input_tok_ids'");
    return add_token_ids(b, object);
}

}  // namespace

Result<Trace> parse_jsonl_trace(std::string_view text, const std::string& name, const TraceOptions& options,
                                const InputLimits& limits) {
    TraceBuilder b(name, options, limits, options.format);
    PB_CHECK(each_json_line(text, b, [&](const Json& object, size_t) -> Result<> {
        if (!object.is_object()) return b.fault(what_is(object) + ", expected an object");
        return add_row(b, object);
    }));
    return b.finish();
}

}  // namespace patchbay::experiment
