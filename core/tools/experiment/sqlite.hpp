// Statements and queries of SQLite, whose parameters and columns are C++ values in their order. For results.sqlite.
#pragma once
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace patchbay::experiment {

struct CloseSqlite {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
};
using SqliteFile = std::unique_ptr<sqlite3, CloseSqlite>;
using SqliteStatement = std::unique_ptr<sqlite3_stmt, CloseSqlite>;

inline SqliteStatement prepared(sqlite3* db, const std::string& sql) { // null: it cannot be
    sqlite3_stmt* s = nullptr;
    (void)sqlite3_prepare_v2(db, sql.c_str(), -1, &s, nullptr);
    return SqliteStatement(s);
}

// The rows of a query, one after the other.
class Query {
  public:
    Query(sqlite3* db, const std::string& sql) : statement_(prepared(db, sql)) {}
    bool next() {
        code_ = statement_ ? sqlite3_step(statement_.get()) : SQLITE_ERROR;
        column_ = 0;
        return code_ == SQLITE_ROW;
    }
    bool failed() const { return code_ != SQLITE_DONE && code_ != SQLITE_ROW; }
    // The next columns of the row. NULL is NaN, 0, an empty text or none; numbers below 0 are 0 where T has no sign.
    template <class... T>
    void read(T&... values) {
        (get(values), ...);
    }
    template <class T>
    T read() {
        T value{};
        get(value);
        return value;
    }
    sqlite3_stmt* statement() const { return statement_.get(); }

  private:
    bool is_null() const { return sqlite3_column_type(statement_.get(), column_) == SQLITE_NULL; }
    template <class T>
        requires std::is_integral_v<T>
    void get(T& v) {
        const sqlite3_int64 value = sqlite3_column_int64(statement_.get(), column_++);
        v = static_cast<T>(std::is_signed_v<T> ? value : std::max<sqlite3_int64>(0, value));
    }
    void get(double& v) {
        v = is_null() ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(statement_.get(), column_);
        column_ += 1;
    }
    void get(std::string& v) {
        const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column_));
        v = bytes ? std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column_))) : "";
        column_ += 1;
    }
    template <class T>
    void get(std::vector<T>& v) {
        const void* bytes = sqlite3_column_blob(statement_.get(), column_);
        v.resize(static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column_)) / sizeof(T));
        if (bytes && !v.empty()) std::memcpy(v.data(), bytes, v.size() * sizeof(T));
        column_ += 1;
    }
    template <class T>
    void get(std::optional<T>& v) {
        v.reset();
        if (is_null()) column_ += 1;
        else get(v.emplace());
    }

    SqliteStatement statement_;
    int code_ = SQLITE_OK, column_ = 0;
};

// What SQLite says, and what the system said to it: "disk I/O error (File too large)".
inline std::string error_of(sqlite3* db) {
    std::string text = sqlite3_errmsg(db);
    const int code = sqlite3_errcode(db) & 0xFF, system = sqlite3_system_errno(db);
    if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) && system != 0)
        text += std::string(" (") + std::strerror(system) + ")";
    return text;
}

// A statement that may be run again and again, each time with its parameters; of an array each item is one. NaN and
// empty optionals are NULL.
class Statement {
  public:
    Statement(sqlite3* db, const std::string& sql) : db_(db), statement_(prepared(db, sql)) {}
    template <class... T>
    Result<> run(const T&... values) {
        bound_ = 0;
        (bind(values), ...);
        const bool done = statement_ && sqlite3_step(statement_.get()) == SQLITE_DONE;
        sqlite3_reset(statement_.get());
        if (!done) return fail(error_of(db_));
        return {};
    }

  private:
    template <class T>
        requires std::is_integral_v<T>
    void bind(T v) {
        sqlite3_bind_int64(statement_.get(), ++bound_, static_cast<sqlite3_int64>(v));
    }
    void bind(std::nullopt_t) { sqlite3_bind_null(statement_.get(), ++bound_); }
    void bind(double v) {
        if (std::isnan(v)) bind(std::nullopt);
        else sqlite3_bind_double(statement_.get(), ++bound_, v);
    }
    void bind(std::string_view v) {
        sqlite3_bind_text(statement_.get(), ++bound_, v.data(), static_cast<int>(v.size()), SQLITE_TRANSIENT);
    }
    template <class T>
    void bind(const std::vector<T>& v) { // little-endian, as every machine that this runs on
        const void* bytes = v.empty() ? "" : static_cast<const void*>(v.data());
        sqlite3_bind_blob64(statement_.get(), ++bound_, bytes, v.size() * sizeof(T), SQLITE_TRANSIENT);
    }
    template <class T, size_t N>
    void bind(const std::array<T, N>& v) {
        for (const T& item : v) bind(item);
    }
    template <class T>
    void bind(const std::optional<T>& v) {
        if (v) bind(*v);
        else bind(std::nullopt);
    }

    sqlite3* db_;
    SqliteStatement statement_;
    int bound_ = 0;
};

}  // namespace patchbay::experiment
