#include "text/chat_template/content_form.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

namespace patchbay::text::chat {
namespace {

// Names of variables, by what they hold at a place of the template.
struct Held {
    std::set<std::string> messages{"messages"}, message{}, content{}; // all or some of them, one, and what one has
    std::set<std::string> perhaps{}; // parameters that are a content, by their names

    void forget(const std::string& name) {
        for (auto* names : {&messages, &message, &content, &perhaps}) names->erase(name);
    }
};

class ContentReader {
  public:
    // In the order of the template, as names are set before they are read.
    void read(const Block& block) {
        for (const auto& statement : block) read(*statement);
    }
    bool takes_parts() const { return loops_ && !tests_; }

  private:
    using Expr = Expression::Kind;
    using Kind = Statement::Kind;

    void read(const Statement& s) {
        if (s.value) look(*s.value);
        switch (s.kind) {
            case Kind::kFor: return read_loop(s);
            case Kind::kSet: return read_assignment(s);
            case Kind::kMacro:
            case Kind::kCall: return read_called(s);
            default: break;
        }
        for (const Parameter& p : s.parameters)
            if (p.default_value) look(*p.default_value);
        read(s.body);
        read(s.otherwise);
    }

    void read_loop(const Statement& s) {
        if (is_content(*s.value)) loops_ = true;
        const Held around = held_;
        const bool over_messages = is_messages(*s.value);
        for (const std::string& name : s.target.names) held_.forget(name);
        if (over_messages && s.target.names.size() == 1) held_.message.insert(s.target.names[0]);
        if (s.condition) look(*s.condition);
        read(s.body);
        held_ = around;
        read(s.otherwise);
    }

    // A name that was a message's content in one branch may be so after another that sets it to a text.
    void read_assignment(const Statement& s) {
        if (s.target.names.size() != 1 || !s.target.field.empty()) return;
        const std::string& name = s.target.names[0];
        if (is_messages(*s.value)) held_.messages.insert(name);
        else if (is_message(*s.value)) held_.message.insert(name);
        else if (is_content(*s.value)) held_.content.insert(name);
    }

    void read_called(const Statement& s) { // a body with names of its own
        const Held around = held_;
        for (const Parameter& p : s.parameters) {
            if (p.default_value) look(*p.default_value);
            held_.forget(p.name);
            if (p.name.find("content") != p.name.npos) held_.perhaps.insert(p.name);
        }
        read(s.body);
        held_ = around;
    }

    // Tests and filters anywhere in an expression.
    void look(const Expression& e) {
        constexpr std::string_view kOfParts[] = {"selectattr", "rejectattr", "map"};
        if (e.kind == Expr::kTest && e.name == "string")
            tests_ = tests_ || is_content(*e.items[0]) || is_name(root(*e.items[0]), held_.perhaps);
        if (e.kind == Expr::kFilter && std::ranges::find(kOfParts, e.name) != std::end(kOfParts))
            loops_ = loops_ || is_content(*e.items[0]);
        for (const ExpressionPtr& item : e.items)
            if (item) look(*item);
        for (const auto& [name, item] : e.named) look(*item);
    }

    // What filters and slices give of a value, and one value or another in its place, count as that value.
    static const Expression& root(const Expression& e) {
        const bool of_first = e.kind == Expr::kFilter || e.kind == Expr::kSlice ||
                              (e.kind == Expr::kBinary && e.name == "or");
        return of_first ? root(*e.items[0]) : e;
    }
    static bool is_name(const Expression& e, const std::set<std::string>& names) {
        return e.kind == Expr::kName && names.contains(e.name);
    }
    bool is_messages(const Expression& e) const { return is_name(root(e), held_.messages); }
    bool is_message(const Expression& e) const { // by its name, or messages[0]
        const Expression& at = root(e);
        return is_name(at, held_.message) || (at.kind == Expr::kSubscript && is_messages(*at.items[0]));
    }
    bool is_content(const Expression& e) const {
        const Expression& at = root(e);
        if (is_name(at, held_.content)) return true;
        const Expression* const holder = holder_of_content(at);
        return holder && is_message(*holder);
    }

    Held held_;
    bool loops_ = false, tests_ = false; // over contents; whether they are strings
};

}  // namespace

const Expression* holder_of_content(const Expression& e) {
    const auto is_key = [](const Expression& key) {
        const std::string* const text = key.value.string();
        return key.kind == Expression::Kind::kLiteral && text && *text == "content";
    };
    const bool is_content = (e.kind == Expression::Kind::kAttribute && e.name == "content") ||
                            (e.kind == Expression::Kind::kSubscript && is_key(*e.items[1]));
    return is_content ? e.items[0].get() : nullptr;
}

bool takes_parts(const Block& block) {
    ContentReader reader;
    reader.read(block);
    return reader.takes_parts();
}

}  // namespace patchbay::text::chat
