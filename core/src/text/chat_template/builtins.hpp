// What Jinja and Python give to templates: filters, tests, methods of strings, lists and dicts. Used by the evaluation;
// the parser asks which names there are.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template/value.hpp"

namespace patchbay::text::chat {

class Budget { // of one render; spending more ends it
  public:
    Budget(uint64_t steps, uint64_t bytes) : steps_(steps), bytes_(bytes) {}
    void steps(uint64_t n) {
        if (n > steps_) refuse("the template takes too many steps");
        steps_ -= n;
    }
    void bytes(uint64_t n) { // of texts made
        if (n > bytes_) refuse("the template makes too much text");
        bytes_ -= n;
    }

  private:
    uint64_t steps_, bytes_;
};

// The arguments of a built-in, by place or name.
class ArgumentReader {
  public:
    ArgumentReader(std::string_view function, const Arguments& given) : function_(function), given_(given) {}

    const Value* find(size_t place, std::string_view name) const; // null: not given
    const Value& need(size_t place, std::string_view name) const;
    const std::string& text(size_t place, std::string_view name) const;
    int64_t integer(size_t place, std::string_view name, int64_t otherwise) const;
    bool flag(size_t place, std::string_view name, bool otherwise) const;
    size_t places() const { return given_.positional.size(); }
    const Arguments& given() const { return given_; }

  private:
    std::string_view function_;
    const Arguments& given_;
};

bool is_filter(std::string_view name);
Value apply_filter(Budget&, const std::string& name, const Value& of, const Arguments&);
bool is_test(std::string_view name);
bool apply_test(const std::string& name, const Value& of, const Arguments&);

// Nothing: there is no such method.
std::optional<Value> call_method(Budget&, const Value& self, const std::string& name, const Arguments&);
bool has_method(const Value& self, std::string_view name);

Values items_of(Budget&, const Value&);           // what a loop over it sees
Value item(const Value& of, const Value& key);    // of[key]; undefined where there is none
Value slice(const Value& of, const Value& start, const Value& stop, const Value& step); // none: not given
bool contains(const Value& in, const Value& what);
int64_t length_of(const Value&);
int64_t whole_number(const Value&, std::string_view what);

}  // namespace patchbay::text::chat
