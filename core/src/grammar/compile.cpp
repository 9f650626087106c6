#include "grammar/compile.hpp"

#include <chrono>
#include <exception>
#include <iterator>

#include "base/refusals.hpp"
#include "grammar/ebnf.hpp"
#include "grammar/json_schema.hpp"
#include "grammar/lark.hpp"
#include "grammar/regex.hpp"
#include "grammar/structural_tag.hpp"

namespace patchbay::grammar {
namespace {

Result<ExprId> choice_of(Rules& rules, const std::vector<std::string>& texts) {
    size_t bytes = 0;
    std::vector<ExprId> parts;
    for (const std::string& text : texts) {
        if (text.empty()) return invalid("choice: an empty string");
        bytes += text.size();
        parts.push_back(rules.bytes(text));
    }
    if (texts.size() > kMaxChoices || bytes > kMaxChoiceBytes)
        return invalid("choice: " + std::to_string(texts.size()) + " strings of " + std::to_string(bytes) +
                       " bytes, expected at most " + std::to_string(kMaxChoices) + " of " +
                       std::to_string(kMaxChoiceBytes));
    return rules.choice(std::move(parts));
}

Result<RuleId> root_of(Rules& rules, const StructuredOutputs& asked, Work& work) {
    if (asked.grammar)
        return is_lark(*asked.grammar) ? parse_lark(rules, *asked.grammar, work)
                                       : parse_ebnf(rules, *asked.grammar, work);
    const Whitespace whitespace = asked.disable_any_whitespace ? Whitespace::kNone : Whitespace::kSome;
    if (asked.structural_tag) return parse_structural_tag(rules, *asked.structural_tag, whitespace, work);
    if (asked.json) return parse_json_schema(rules, *asked.json, whitespace, work);
    if (asked.json_object) return parse_json_schema(rules, R"({"type": "object"})", whitespace, work);
    const RuleId root = rules.declare("root");
    ExprId body = 0;
    if (asked.regex) {
        PB_TRY(body, parse_regex(rules, *asked.regex, plain_regex(), work));
    } else {
        PB_TRY(body, choice_of(rules, asked.choice));
    }
    rules.define(root, body);
    return root;
}

Result<> check_one(const StructuredOutputs& s) {
    if (s.forms() == 1) return {};
    return invalid("got " + std::to_string(s.forms()) + " of " + StructuredOutputs::kForms + ", expected exactly one");
}

std::string key_of(const StructuredOutputs& s) {
    const std::string space = s.disable_any_whitespace ? "0" : "1";
    if (s.json) return "j" + space + *s.json;
    if (s.json_object) return "o" + space;
    if (s.regex) return "r" + *s.regex;
    if (s.grammar) return "g" + *s.grammar;
    if (s.structural_tag) return "t" + space + *s.structural_tag;
    std::string key = "c";
    for (const std::string& text : s.choice) key += std::to_string(text.size()) + ":" + text;
    return key;
}

}  // namespace

Result<Automaton> compile(const StructuredOutputs& asked) {
    PB_CHECK(check_one(asked));
    Rules rules;
    Work work(Automaton::kMaxWork);
    PB_TRY(const RuleId root, root_of(rules, asked, work));
    return Automaton::compile(rules, root, work);
}

GrammarCache::GrammarCache(MakeVocabulary make, Clock& clock, uint64_t max_bytes)
    : make_vocabulary_(std::move(make)), clock_(clock), max_bytes_(max_bytes) {}

// Grammars grow as they are used, so that this is asked with each call.
void GrammarCache::forget_beyond_limit() {
    uint64_t kept = 0;
    for (auto at = entries_.begin(); at != entries_.end();) {
        uint64_t bytes = 2 * at->key.size();
        if (at->grammar.wait_for(std::chrono::seconds(0)) == std::future_status::ready)
            if (const Shared& made = at->grammar.get()) bytes += (*made)->bytes();
        if (at != entries_.begin() && kept + bytes > max_bytes_) {
            by_key_.erase(at->key);
            at = entries_.erase(at);
            continue;
        }
        kept += bytes;
        ++at;
    }
}

GrammarCache::Shared GrammarCache::make(const StructuredOutputs& asked) {
    PB_TRY(Automaton automaton, compile(asked));
    std::call_once(vocabulary_made_, [&] {
        auto vocabulary = make_vocabulary_();
        const std::lock_guard lock(mutex_);
        vocabulary_ = std::move(vocabulary);
    });
    auto grammar = std::make_shared<Grammar>(std::move(automaton), vocabulary_);
    grammar->prepare(kPreparedNodes);
    return grammar;
}

Result<std::shared_ptr<Grammar>> GrammarCache::get(const StructuredOutputs& asked) {
    PB_CHECK(check_one(asked));
    const std::string key = key_of(asked);
    std::promise<Shared> promise;
    {
        std::unique_lock lock(mutex_);
        if (const auto at = by_key_.find(key); at != by_key_.end()) {
            entries_.splice(entries_.begin(), entries_, at->second);
            const std::shared_future<Shared> known = at->second->grammar;
            lock.unlock();
            Shared out = known.get(); // another thread may be at it
            lock.lock();
            (out ? counts_.cached : counts_.refused) += 1;
            forget_beyond_limit();
            return out;
        }
        entries_.push_front({key, promise.get_future().share()});
        by_key_[key] = entries_.begin();
        if (entries_.size() > kMaxGrammars) {
            by_key_.erase(entries_.back().key);
            entries_.pop_back();
        }
    }
    const uint64_t start = clock_.now_ns();
    bool kept = true;
    Shared made = [&]() -> Shared {
        try {
            return make(asked);
        } catch (const std::exception& e) { // out of memory: waiting callers get the error, the next one tries again
            kept = false;
            return fail(StatusCode::kExhausted, std::string("the grammar cannot be compiled: ") + e.what());
        }
    }();
    promise.set_value(made);
    const std::lock_guard lock(mutex_);
    if (const auto at = by_key_.find(key); !kept && at != by_key_.end()) {
        entries_.erase(at->second);
        by_key_.erase(at);
    }
    forget_beyond_limit();
    counts_.compile_ns += clock_.now_ns() - start;
    (made ? counts_.compiled : counts_.refused) += 1;
    return made;
}

bool GrammarCache::made(const Grammar& grammar) const {
    const std::lock_guard lock(mutex_);
    return &grammar.vocabulary() == vocabulary_.get();
}

GrammarCache::Counts GrammarCache::counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
}

}  // namespace patchbay::grammar
