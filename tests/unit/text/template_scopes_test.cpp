#include "text/chat_template/scopes.hpp"

#include <gtest/gtest.h>

namespace patchbay::text::chat::template_scopes_test {
namespace {

std::string found(const Scopes& scopes, const char* name) {
    const Value v = scopes.look_up(name);
    return v.is_undefined() ? "undefined" : text_of(v);
}

TEST(TemplateScopes, HideNamesOfOuterScopesUntilTheyClose) {
    Scopes scopes;
    scopes.set("a", "outer");
    {
        const OpenScope inner(scopes, scopes.current());
        EXPECT_EQ(found(scopes, "a"), "outer");
        EXPECT_FALSE(scopes.has_here("a"));
        scopes.set("a", "inner");
        scopes.set("b", "inner");
        EXPECT_EQ(found(scopes, "a"), "inner");
    }
    EXPECT_EQ(found(scopes, "a"), "outer");
    EXPECT_EQ(found(scopes, "b"), "undefined");
}

TEST(TemplateScopes, UseClosedScopesAgainWithoutTheirNames) {
    Scopes scopes;
    const Scope* first = nullptr;
    {
        const OpenScope inner(scopes, scopes.current());
        first = scopes.current();
        scopes.set("a", "closed");
    }
    const OpenScope inner(scopes, scopes.current());
    EXPECT_EQ(scopes.current(), first);
    EXPECT_EQ(found(scopes, "a"), "undefined");
}

TEST(TemplateScopes, KeepCapturedScopesAndThoseAroundThem) {
    Scopes scopes;
    Scope* captured = nullptr;
    {
        const OpenScope outer(scopes, scopes.current());
        scopes.set("a", "outer");
        const OpenScope inner(scopes, scopes.current());
        scopes.set("b", "inner");
        captured = scopes.capture();
    }
    const OpenScope other(scopes, scopes.current());
    scopes.set("a", "other");
    const OpenScope macro(scopes, captured);
    EXPECT_EQ(found(scopes, "a"), "outer");
    EXPECT_EQ(found(scopes, "b"), "inner");
}

}  // namespace
}  // namespace patchbay::text::chat::template_scopes_test
