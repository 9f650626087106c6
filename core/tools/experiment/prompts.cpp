#include "experiment/prompts.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/refusals.hpp"

namespace patchbay::experiment {
namespace {

Result<> needs_tokenizer(const text::Tokenizer* tokenizer, const char* what) {
    if (!tokenizer) return unsupported(std::string("workload: ") + what + " needs a tokenizer, and the model has none");
    return {};
}

// Texts of a trace become ids.
Result<> tokenise(Trace& trace, const std::string& path, const text::Tokenizer& tokenizer) {
    for (TraceRow& row : trace.rows) {
        if (row.content != PromptContent::kText) continue;
        const size_t text = row.first;
        row.content = PromptContent::kIds;
        row.first = trace.ids.size();
        const TokenIds prompt = tokenizer.encode(trace.texts[text]);
        if (prompt.empty())
            return invalid(path + ": a prompt has no tokens: '" + trace.texts[text].substr(0, 60) + "'");
        trace.ids.insert(trace.ids.end(), prompt.begin(), prompt.end());
        row.prompt_tokens = row.count = static_cast<uint32_t>(prompt.size());
        if (!row.has_answer) continue;
        const TokenIds answer = tokenizer.encode(trace.texts[text + 1]);
        trace.ids.insert(trace.ids.end(), answer.begin(), answer.end());
        row.output_tokens = static_cast<uint32_t>(answer.size());
    }
    trace.texts = std::vector<std::string>(); // {} would keep their memory
    return {};
}

}  // namespace

Result<PromptSource> PromptSource::open(const WorkloadSpec& spec, const text::Tokenizer* tokenizer,
                                        uint32_t vocab_size) {
    PromptSource s;
    s.spec_ = spec.prompts;
    s.prefixes_ = PrefixSource(spec.shared_prefixes);
    PB_TRY(s.random_, RandomIds::open(tokenizer, vocab_size));
    if (const auto* p = std::get_if<JsonlPrompts>(&spec.prompts)) {
        PB_CHECK(needs_tokenizer(tokenizer, "a file of prompts"));
        PB_TRY(const std::string file, read_input(p->path, s.files_));
        PB_TRY(const auto texts, jsonl_prompts(file, p->path, p->field));
        for (const std::string& text : texts) {
            s.prompts_.push_back(tokenizer->encode(text));
            if (s.prompts_.back().empty())
                return invalid(p->path.string() + ": prompt " + std::to_string(s.prompts_.size()) + " has no tokens");
        }
    } else if (const auto* t = std::get_if<TextPrompts>(&spec.prompts)) {
        PB_CHECK(needs_tokenizer(tokenizer, "a text file"));
        PB_TRY(const std::string text, read_input(t->path, s.files_));
        if (text.empty()) return invalid(t->path.string() + " is empty");
        s.text_ = tokenizer->encode(text);
        s.lengths_ = std::make_shared<LengthSource>(t->tokens);
    } else if (const auto* y = std::get_if<SyntheticPrompts>(&spec.prompts)) {
        s.lengths_ = std::make_shared<LengthSource>(y->tokens);
    } else {
        PB_CHECK(s.open_trace(std::get<TracePrompts>(spec.prompts), tokenizer));
    }
    return s;
}

Result<> PromptSource::open_trace(const TracePrompts& given, const text::Tokenizer* tokenizer) {
    PB_TRY(const std::string file, read_input(given.path, files_));
    PB_TRY(trace_, parse_trace(file, given.path.string(), given.options));
    if (trace_.left_out > 0)
        notices_.push_back(std::to_string(trace_.left_out) + " entries of " + given.path.string() +
                           " hold no request (they failed, or have no answer) and are left out");
    if (std::ranges::any_of(trace_.ids, [&](text::TokenId id) { return id > random_.largest(); })) {
        // Equal ids remain equal, so that prefixes that were shared still are.
        for (text::TokenId& id : trace_.ids) id = random_.folded(id);
        notices_.push_back("token ids of " + given.path.string() +
                           " are beyond the vocabulary: all are taken modulo its size, so that the text means nothing");
    }
    if (trace_.texts.empty()) return {};
    PB_CHECK(needs_tokenizer(tokenizer, "a trace of texts"));
    return tokenise(trace_, given.path.string(), *tokenizer);
}

std::vector<uint32_t> PromptSource::order(uint64_t seed, uint64_t first) const {
    const auto* jsonl = std::get_if<JsonlPrompts>(&spec_);
    if (jsonl && jsonl->order == Order::kShuffled && prompts() > 0) {
        std::vector<uint32_t> order = Draws(seed, 0).permutation(Purpose::kPromptChoice, prompts());
        std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(first % order.size()));
        return order;
    }
    std::vector<uint32_t> order(prompts());
    std::iota(order.begin(), order.end(), 0u);
    return order;
}

uint32_t PromptSource::length(const Draws& draws, const std::vector<uint32_t>& order, uint32_t i,
                              const TraceRow* row) const {
    if (row) return row->prompt_tokens;
    if (!prompts_.empty()) return static_cast<uint32_t>(prompts_[order[i % order.size()]].size());
    return lengths_->draw(draws, Purpose::kPromptLength, i);
}

void PromptSource::leave_unused(std::vector<bool> used, uint32_t max_kept) {
    const std::set<TokenIds> texts = [&] { // the same text may be in a file twice
        std::set<TokenIds> out;
        for (size_t i = 0; i < prompts_.size(); ++i)
            if (used[i]) out.insert(prompts_[i]);
        return out;
    }();
    for (size_t i = 0; i < prompts_.size(); ++i) used[i] = used[i] || texts.contains(prompts_[i]);
    made_up_ = std::ranges::all_of(used, std::identity());
    const auto leave = [&](auto& all) {
        size_t kept = 0;
        for (size_t i = 0; i < all.size() && kept < max_kept; ++i)
            if (made_up_ || !used[i]) std::swap(all[kept++], all[i]);
        all.resize(kept);
    };
    leave(prompts_);
    leave(trace_.rows);
}

void PromptSource::append_blocks(TokenIds& ids, const Draws& draws, const TraceRow& row, uint32_t tokens) const {
    for (uint32_t b = 0; b < row.count && ids.size() < tokens; ++b)
        random_.append(ids, draws, Purpose::kBlockIds, trace_.blocks[row.first + b],
                       std::min(trace_.block_tokens, tokens - static_cast<uint32_t>(ids.size())));
}

TokenIds PromptSource::prompt(const Draws& draws, const std::vector<uint32_t>& order, uint32_t i, const TraceRow* row,
                              uint32_t tokens) const {
    TokenIds ids;
    if (!prompts_.empty() && !made_up_) {
        const auto& whole = prompts_[order[i % order.size()]];
        return {whole.begin(), whole.begin() + std::min<std::ptrdiff_t>(tokens, std::ssize(whole))};
    }
    if (!text_.empty()) { // a slice; from the front again where the text ends
        const uint64_t offset = draws.below(Purpose::kOffset, i, text_.size());
        for (uint64_t k = 0; k < tokens; ++k) ids.push_back(text_[(offset + k) % text_.size()]);
        return ids;
    }
    if (row && row->content == PromptContent::kIds && !made_up_) {
        const auto begin = trace_.ids.begin() + static_cast<std::ptrdiff_t>(row->first);
        ids.assign(begin, begin + std::min(tokens, row->count));
    } else if (row && row->content == PromptContent::kBlocks) {
        append_blocks(ids, draws, *row, tokens);
    } else if (row && row->content == PromptContent::kPrefix) {
        random_.append(ids, draws, Purpose::kPrefixIds, row->first, std::min(tokens, row->count));
    }
    random_.append(ids, draws, Purpose::kPromptIds, i, tokens - static_cast<uint32_t>(ids.size()));
    return ids;
}

TokenIds PromptSource::answer(const Draws& draws, uint32_t i, const TraceRow* row, uint32_t tokens) const {
    TokenIds ids;
    if (row && row->has_answer && !made_up_) {
        const auto begin = trace_.ids.begin() + static_cast<std::ptrdiff_t>(row->first + row->count);
        const auto there = std::min<std::ptrdiff_t>(trace_.ids.end() - begin, row->output_tokens);
        ids.assign(begin, begin + std::min<std::ptrdiff_t>(tokens, there));
    }
    random_.append(ids, draws, Purpose::kAnswerIds, i, tokens - static_cast<uint32_t>(ids.size()));
    return ids;
}

}  // namespace patchbay::experiment
