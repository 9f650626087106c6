// The names that a template has set, in scopes inside each other. Lives for one render, on one thread.
#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {

struct Scope {
    Scope* parent = nullptr;
    std::unordered_map<std::string, Value> names{};
    bool captured = false; // by a macro, which may look here later
};

class Scopes {
  public:
    Scopes() : current_(open(nullptr)) { current_->captured = true; }

    Value look_up(const std::string& name) const; // undefined where no scope has it
    void set(const std::string& name, Value value) { current_->names[name] = std::move(value); }
    bool has_here(const std::string& name) const { return current_->names.contains(name); }
    Scope* current() { return current_; }
    Scope* capture(); // the current scope; it and those around it are kept as long as this

  private:
    friend class OpenScope;
    Scope* open(Scope* parent);
    void close(Scope*);

    std::deque<Scope> all_; // that were made; those in free_ serve again
    std::vector<Scope*> free_;
    Scope* current_;
};

// A new scope, the current one for as long as this lives.
class OpenScope {
  public:
    OpenScope(Scopes&, Scope* parent);
    ~OpenScope();
    OpenScope(const OpenScope&) = delete;
    OpenScope& operator=(const OpenScope&) = delete;

  private:
    Scopes& scopes_;
    Scope *before_, *own_;
};

}  // namespace patchbay::text::chat
