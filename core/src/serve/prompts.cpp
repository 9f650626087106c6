// Prompts: texts or ids, tokenised here, on the serving threads, and held to the limits.
#include <algorithm>

#include "base/printable.hpp"
#include "base/refusals.hpp"
#include "engine/request/parameters.hpp"
#include "serve/generation_request.hpp"

namespace patchbay::serve {
namespace {

constexpr size_t kMaxPrompts = 1024;   // of one request
constexpr size_t kMaxInputs = 2048;    // of one request for embeddings; OpenAI's
constexpr size_t kMaxSequences = 4096; // all outputs of all prompts
constexpr uint64_t kMaxFieldBytes = uint64_t{256} << 20;  // of the lists and texts that each of these has for itself
constexpr uint64_t kMaxPromptBytes = uint64_t{256} << 20; // of the token ids, which likewise each of them has
constexpr uint64_t kMaxLogprobs = uint64_t{32} << 20;     // of an answer, which is written as a whole

// Of the lists and texts of one request's fields, about.
struct FieldBytes {
    uint64_t operator()(const std::vector<engine::TokenId>& ids) const { return ids.size() * sizeof(engine::TokenId); }
    uint64_t operator()(const std::vector<std::string>& texts) const {
        uint64_t sum = 0;
        for (const std::string& text : texts) sum += sizeof text + text.size();
        return sum;
    }
    uint64_t operator()(const std::map<engine::TokenId, float>& biases) const {
        constexpr uint64_t kMapEntry = 48;
        return biases.size() * kMapEntry;
    }
    uint64_t operator()(const grammar::StructuredOutputs& form) const {
        uint64_t sum = (*this)(form.choice);
        for (const auto* text : {&form.json, &form.regex, &form.grammar, &form.structural_tag})
            sum += *text ? (*text)->size() : 0;
        return sum;
    }
    template <class V>
    uint64_t operator()(const std::optional<V>& value) const { return value ? (*this)(*value) : 0; }
    template <class V>
    uint64_t operator()(const V&) const { return 0; } // numbers
};

uint64_t field_bytes(const engine::SamplingParams& p) {
    uint64_t sum = 0;
    for (const auto& row : engine::rows_of<engine::SamplingParams>())
        sum += std::visit([&](auto field) { return FieldBytes{}(p.*field); }, row.field);
    return sum;
}

bool is_ids(const Json& list) {
    return list.is_array() && !list.empty() &&
           std::all_of(list.begin(), list.end(), [](const Json& v) { return v.is_number_integer(); });
}

class PromptReader {
  public:
    PromptReader(const Json& body, const ServedModel& model, GenerationRequest& out)
        : fields_(body), model_(model), out_(out) {
        fields_.read("add_special_tokens", special_);
    }

    std::optional<Refusal> run() {
        const Json* prompt = fields_.find(name_);
        const size_t max_prompts = out_.kind == ReplyKind::kEmbedding ? kMaxInputs : kMaxPrompts;
        if (!prompt) fields_.refuse(name_, "is missing");
        else if (prompt->is_string() || is_ids(*prompt)) add(*prompt);
        else if (!prompt->is_array() || prompt->empty() || prompt->size() > max_prompts)
            fields_.refuse(name_, "expected a string, a list of token ids, or a list of up to " +
                                      std::to_string(max_prompts) + " of these");
        else
            for (const Json& one : *prompt)
                if (!fields_.refusal()) add(one);
        return fields_.refusal();
    }

  private:
    void add(const Json& one) {
        Prompt prompt;
        if (one.is_string()) {
            if (!model_.tokenizer)
                return fields_.refuse(name_, "the model has no tokenizer for a text, expected token ids",
                                      StatusCode::kUnsupported);
            const auto text = one.get<std::string>();
            prompt = prompt_of_text(text, *model_.tokenizer, special_);
            prompt.text = text;
            if (prompt.tokens.empty()) return fields_.refuse(name_, "is empty");
        } else if (is_ids(one)) {
            for (const Json& id : one) {
                const bool fits = id.is_number_unsigned()
                                      ? id.get<uint64_t>() < model_.vocab_size
                                      : id.get<int64_t>() >= 0 && id.get<int64_t>() < model_.vocab_size;
                if (!fits)
                    return fields_.refuse(name_, "token " + id.dump() + ", expected 0 to " +
                                                        std::to_string(model_.vocab_size - 1));
                prompt.tokens.push_back(id.get<engine::TokenId>());
            }
            if (out_.echo && model_.tokenizer)
                prompt.text = model_.tokenizer->decode(prompt.tokens, text::SpecialTokens::kKept);
        } else {
            return fields_.refuse(name_, "got an element that is neither a string nor a list of token ids");
        }
        out_.prompts.push_back(std::move(prompt));
    }

    Fields fields_;
    const ServedModel& model_;
    GenerationRequest& out_;
    const char* const name_ = out_.prompt_field();
    bool special_ = true;
};

// Down to so many tokens, of which a text keeps those that the tokenizer puts around it. As in vLLM a text to embed
// keeps its beginning, and all others their end.
void truncate(Prompt& p, ReplyKind kind, size_t max_tokens) {
    if (p.tokens.size() <= max_tokens) return;
    const auto [before, after] = p.around.value_or(text::AroundText{});
    const auto begin = p.tokens.begin() + static_cast<ptrdiff_t>(before),
               end = p.tokens.end() - static_cast<ptrdiff_t>(after);
    const auto cut = std::min(static_cast<ptrdiff_t>(p.tokens.size() - max_tokens), end - begin);
    if (p.around && kind == ReplyKind::kEmbedding) p.tokens.erase(end - cut, end);
    else p.tokens.erase(begin, begin + cut);
    if (p.tokens.size() > max_tokens) p.tokens.resize(max_tokens);
}

// A tokenizer may have more tokens than the model.
std::optional<Refusal> check_tokens(const Prompt& prompt, const ServedModel& model, const char* field) {
    const auto is_unknown = [&](engine::TokenId t) { return t < 0 || static_cast<uint32_t>(t) >= model.vocab_size; };
    const auto unknown = std::ranges::find_if(prompt.tokens, is_unknown);
    if (unknown == prompt.tokens.end()) return std::nullopt;
    const std::string spelled = model.tokenizer ? printable(model.tokenizer->token_bytes(*unknown)) : std::string();
    return Refusal{invalid(field + (": token " + std::to_string(*unknown)) + " ('" + spelled +
                           "') of its text is not in the model's vocabulary, expected 0 to " +
                           std::to_string(model.vocab_size - 1)),
                   field};
}

std::optional<Refusal> check_copies(const GenerationRequest& r) {
    const uint64_t outputs = engine::sequences_of(r.sampling);
    uint64_t bytes = 0;
    for (const Prompt& p : r.prompts) bytes += p.tokens.size() * sizeof(engine::TokenId) * outputs;
    if (bytes <= kMaxPromptBytes) return std::nullopt;
    return Refusal{invalid("the token ids of its prompts take " + std::to_string(bytes) + " bytes, for each of " +
                           std::to_string(outputs) + " outputs of a prompt; expected at most " +
                           std::to_string(kMaxPromptBytes) + " for all"),
                   outputs > 1 ? "n" : r.prompt_field()};
}

// Of one token: its own, and those of the likeliest. A count that the engine refuses is taken as the largest allowed.
double logprobs_of_token(std::optional<int32_t> count, const ServedModel& model) {
    if (!count) return 0;
    double max_count = model.vocab_size;
    if (model.max_logprobs >= 0) max_count = std::min<double>(max_count, model.max_logprobs);
    return 1 + (*count < 0 ? max_count : std::min<double>(*count, max_count));
}

// Those of a prompt are shown with each of its outputs, and once more where it is echoed; in chats once. A stream sends
// those of outputs as they come.
std::optional<Refusal> check_logprobs(const GenerationRequest& r, const ServedModel& model) {
    const engine::SamplingParams& s = r.sampling;
    double prompt_tokens = 0;
    for (const Prompt& p : r.prompts) prompt_tokens += static_cast<double>(p.tokens.size());
    const bool chat = r.kind == ReplyKind::kChat;
    const double shown = chat ? 1 : r.echo && r.logprobs ? 2.0 * s.n : s.n;
    const bool come_whole = !r.stream || engine::sequences_of(s) > s.n || s.beam_width > 0;
    const double outputs = come_whole ? static_cast<double>(r.prompts.size()) * engine::sequences_of(s) : 0;
    const double of_prompts = prompt_tokens * shown * logprobs_of_token(s.prompt_logprobs, model),
                 of_outputs = outputs * s.max_tokens * logprobs_of_token(s.logprobs, model);
    if (of_prompts + of_outputs <= double{kMaxLogprobs}) return std::nullopt;
    const bool of_echo = r.echo && s.prompt_logprobs == s.logprobs;
    constexpr double kExact = 9007199254740992; // up to which doubles hold every whole number
    const auto all = static_cast<uint64_t>(std::min(of_prompts + of_outputs, kExact));
    return Refusal{invalid("its answer may hold " + std::to_string(all) + " log-probabilities, expected at most " +
                           std::to_string(kMaxLogprobs) +
                           ": fewer of each token, shorter prompts, a smaller max_tokens or n"),
                   of_prompts > of_outputs && !of_echo ? "prompt_logprobs" : chat ? "top_logprobs" : "logprobs"};
}

}  // namespace

Prompt prompt_of_text(const std::string& text, const text::Tokenizer& tokenizer, bool add_special_tokens) {
    if (!add_special_tokens) return {tokenizer.encode_inside(text), {}, text::AroundText{}};
    return {tokenizer.encode(text), {}, tokenizer.around_text()};
}

std::optional<Refusal> read_prompts(const Json& body, const ServedModel& model, GenerationRequest& out) {
    return PromptReader(body, model, out).run();
}

std::optional<Refusal> fit_prompts(const Json& body, const ServedModel& model, GenerationRequest& r) {
    Fields f(body);
    std::optional<int64_t> keep;
    f.read("truncate_prompt_tokens", keep);
    if (keep && *keep < -1) f.refuse("truncate_prompt_tokens", "expected -1 (what fits) or a number of tokens");
    if (f.refusal()) return f.refusal();
    const uint32_t max_output = model.max_output_tokens > 0 ? model.max_output_tokens : model.max_model_len;
    if (r.max_tokens && *r.max_tokens > max_output)
        return Refusal{invalid("max_tokens is " + std::to_string(*r.max_tokens) + ", expected at most " +
                               std::to_string(max_output)), "max_tokens"};
    const uint64_t all = r.prompts.size() * engine::sequences_of(r.sampling), bytes = field_bytes(r.sampling);
    if (all > kMaxSequences)
        return Refusal{invalid("asks for " + std::to_string(all) + " outputs, expected at most " +
                               std::to_string(kMaxSequences)), "n"};
    if (bytes > kMaxFieldBytes / std::max<uint64_t>(all, 1))
        return Refusal{invalid("the lists and texts of its fields take " + std::to_string(bytes) +
                               " bytes, for each of " + std::to_string(all) + " outputs; expected at most " +
                               std::to_string(kMaxFieldBytes) + " for all"), "n"};
    uint32_t longest = 0;
    for (Prompt& p : r.prompts) {
        if (keep) {
            const uint32_t output = r.kind == ReplyKind::kEmbedding ? 0 : r.max_tokens.value_or(1);
            const int64_t room = int64_t(model.max_model_len) - output;
            truncate(p, r.kind, static_cast<size_t>(std::max<int64_t>(*keep == -1 ? room : *keep, 1)));
        }
        if (auto refusal = check_tokens(p, model, r.prompt_field())) return refusal;
        if (model.max_prompt_tokens > 0 && p.tokens.size() > model.max_prompt_tokens)
            return Refusal{invalid("a prompt of " + std::to_string(p.tokens.size()) + " tokens, expected at most " +
                                   std::to_string(model.max_prompt_tokens)), r.prompt_field()};
        longest = std::max(longest, static_cast<uint32_t>(p.tokens.size()));
    }
    const uint32_t room = model.max_model_len > longest ? model.max_model_len - longest : 1; // 1: the engine refuses it
    r.sampling.max_tokens = r.max_tokens.value_or(std::min(room, max_output));
    if (auto refusal = check_copies(r)) return refusal;
    return check_logprobs(r, model);
}

ReadRequest read_completion(const Json& body, const ServedModel& model) {
    ReadRequest out;
    GenerationRequest& r = out.request;
    if ((out.refusal = read_generation(body, model, r))) return out;
    Fields f(body);
    r.max_tokens = 16; // OpenAI's
    f.read("max_tokens", r.max_tokens);
    f.read("echo", r.echo);
    f.read("logprobs", r.sampling.logprobs);
    std::string suffix;
    f.read("suffix", suffix);
    if (!suffix.empty()) f.refuse("suffix", "is not supported", StatusCode::kUnsupported);
    if ((out.refusal = f.refusal())) return out;
    r.logprobs = r.sampling.logprobs.has_value();
    if (r.echo && r.logprobs && !r.sampling.prompt_logprobs) r.sampling.prompt_logprobs = r.sampling.logprobs;
    r.echo_only = r.echo && r.max_tokens == 0u;
    if (r.echo_only) r.max_tokens = 1;
    if ((out.refusal = read_prompts(body, model, r))) return out;
    out.refusal = fit_prompts(body, model, r);
    return out;
}

}  // namespace patchbay::serve
