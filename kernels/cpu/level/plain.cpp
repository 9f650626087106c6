// Any machine: four lanes of the compiler's own vectors, no fused multiply-add.
#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

typedef float F __attribute__((vector_size(16)));
typedef uint32_t U __attribute__((vector_size(16)));
typedef int32_t I __attribute__((vector_size(16)));

constexpr int kLanes = 4;
constexpr int kAccumulators = 8; // vectors of partial sums that fit the registers beside their operands

inline F load(const float* p) {
    F v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
inline void store(float* p, F v) { __builtin_memcpy(p, &v, sizeof v); }
inline F set(float x) { return F{x, x, x, x}; }
inline F mul_add(F a, F b, F c) { return a * b + c; }
inline F where_less(F a, F b, F yes, F no) {
    const I mask = a < b;
    return reinterpret_cast<F>((reinterpret_cast<I>(yes) & mask) | (reinterpret_cast<I>(no) & ~mask));
}
inline bool any_less(F a, F b) {
    const I mask = a < b;
    return (mask[0] | mask[1] | mask[2] | mask[3]) != 0;
}
inline F min_of(F a, F b) { return where_less(a, b, a, b); }
inline F max_of(F a, F b) { return where_less(b, a, a, b); }
inline F quotient(F a, F b) { return a / b; }
inline F square_root(F a) {
    for (int i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
inline F floor(F a) { // |a| < 2³¹, or NaN
    const F at = where_less(a, set(2147483520.0f), a, set(0)); // no NaN may become an integer
    const F cut = __builtin_convertvector(__builtin_convertvector(at, I), F);
    const F down = where_less(at, cut, cut - set(1), cut);
    return down + (a - a); // NaN stays NaN
}
inline F pow2(F n) { // integral n in [−126, 127]
    return reinterpret_cast<F>((__builtin_convertvector(n, I) + 127) << 23);
}
// a − n·π/2. Without fused operations the products of long angles need doubles.
inline F minus_quarter_turns(F a, F n) {
    for (int i = 0; i < kLanes; ++i) a[i] = float(double(a[i]) - double(n[i]) * 1.57079632679489661923);
    return a;
}
inline F load_even(const uint16_t* pairs) { // bf16 pairs: the first of each
    U v;
    __builtin_memcpy(&v, pairs, sizeof v);
    return reinterpret_cast<F>(v << 16);
}
inline F load_odd(const uint16_t* pairs) {
    U v;
    __builtin_memcpy(&v, pairs, sizeof v);
    return reinterpret_cast<F>(v & 0xffff0000u);
}
inline F load(const uint16_t* p) {
    const U v = {p[0], p[1], p[2], p[3]};
    return reinterpret_cast<F>(v << 16);
}
inline F load(const Int8Code* p) {
    return F{float(int8_t(p[0].bits)), float(int8_t(p[1].bits)), float(int8_t(p[2].bits)), float(int8_t(p[3].bits))};
}
inline F load(const Fp8Code* p) {
    const U code = {p[0].bits, p[1].bits, p[2].bits, p[3].bits}, low = code & 0x7fu;
    const F small = __builtin_convertvector(low, F) * set(0x1p-9f);
    const U normal = (low << 20) + (120u << 23), is_small = reinterpret_cast<U>(low < 8u);
    return reinterpret_cast<F>((reinterpret_cast<U>(small) & is_small) | (normal & ~is_small) | (code & 0x80u) << 24);
}

constexpr float kFp8Unit = 1;
inline void load_two(const Fp8Code* p, F& a, F& b) { a = load(p), b = load(p + kLanes); }

#include "cpu/level/loops.inc"

}  // namespace

constexpr Table kPlainTable = make_table();

}  // namespace patchbay::kernels
