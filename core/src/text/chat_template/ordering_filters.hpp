// Filters that compare items: sort, dictsort, groupby, unique, min and max. Used by the table of filters.
#pragma once
#include "text/chat_template/builtins.hpp"

namespace patchbay::text::chat {

// of.a.b.0 by "a.b.0". path none: of itself. missing: of a part that is not there; null: it stays
// undefined.
Value by_path(Budget&, const Value& of, const Value& path, const Value* missing = nullptr);

Value sorted(Budget&, const Value&, const ArgumentReader&);
Value sorted_members(Budget&, const Value& dict, const ArgumentReader&);
Value grouped(Budget&, const Value&, const ArgumentReader&); // (value of an attribute, those that have it), sorted
Value without_repeats(Budget&, const Value&, const ArgumentReader&);
Value least(Budget&, const Value&, const ArgumentReader&);
Value greatest(Budget&, const Value&, const ArgumentReader&);

}  // namespace patchbay::text::chat
