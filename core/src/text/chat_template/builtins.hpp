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
    void characters(uint64_t bytes) { steps(bytes / 4); } // of a text that is looked at one by one
    void bytes(uint64_t n) { // of texts made
        if (n > bytes_) refuse("the template makes too much text");
        bytes_ -= n;
    }

    class Level { // of a recursion, as long as it lives: all together are bounded, as the stack is
      public:
        explicit Level(Budget& budget, uint32_t counts = 1) : budget_(budget), counts_(counts) {
            if (budget.levels_ + counts > kMaxLevels) refuse("macros, statements or expressions are nested too deep");
            budget.levels_ += counts;
        }
        ~Level() { budget_.levels_ -= counts_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        Budget& budget_;
        const uint32_t counts_;
    };

  private:
    static constexpr uint32_t kMaxLevels = 800; // of blocks, expressions and filters, those of macros among them
    uint64_t steps_, bytes_;
    uint32_t levels_ = 0;
};

// The arguments of a built-in, by place or name.
class ArgumentReader {
  public:
    ArgumentReader(std::string_view function, const Arguments& given) : function_(function), given_(given) {}

    static constexpr size_t kByName = SIZE_MAX; // a place that no argument has
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
bool apply_test(Budget&, const std::string& name, const Value& of, const Arguments&);

// Nothing: there is no such method.
std::optional<Value> call_method(Budget&, const Value& self, const std::string& name, const Arguments&);
bool has_method(const Value& self, std::string_view name);

Values items_of(Budget&, const Value&); // what a loop over it sees
Value item(Budget&, const Value& of, const Value& key); // of[key]; undefined where there is none
Value attribute_of(Budget&, const Value& of, const std::string& name); // of.name: a method, or an item
Value member_of(Budget&, const Value& of, const Value& key); // of[key]: an item, or what attribute_of() gives
Value slice(Budget&, const Value& of, const Value& start, const Value& stop, const Value& step); // none: not given
bool contains(const Value& in, const Value& what);
int64_t length_of(Budget&, const Value&);
int64_t whole_number(const Value&, std::string_view what);

}  // namespace patchbay::text::chat
