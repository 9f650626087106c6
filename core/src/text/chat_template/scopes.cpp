#include "text/chat_template/scopes.hpp"

namespace patchbay::text::chat {

Value Scopes::look_up(const std::string& name) const {
    for (const Scope* scope = current_; scope; scope = scope->parent)
        if (const auto at = scope->names.find(name); at != scope->names.end()) return at->second;
    return Value::undefined("'" + name + "' is undefined");
}

Scope* Scopes::capture() {
    for (Scope* scope = current_; scope && !scope->captured; scope = scope->parent) scope->captured = true;
    return current_;
}

Scope* Scopes::open(Scope* parent) {
    if (free_.empty()) free_.push_back(&all_.emplace_back());
    Scope* const scope = free_.back();
    free_.pop_back();
    scope->parent = parent;
    return scope;
}

void Scopes::close(Scope* scope) {
    if (scope->captured) return;
    scope->names.clear();
    free_.push_back(scope);
}

OpenScope::OpenScope(Scopes& scopes, Scope* parent)
    : scopes_(scopes), before_(scopes.current_), own_(scopes.open(parent)) {
    scopes_.current_ = own_;
}

OpenScope::~OpenScope() {
    scopes_.current_ = before_;
    scopes_.close(own_);
}

}  // namespace patchbay::text::chat
