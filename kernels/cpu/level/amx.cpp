// linear() of bf16 weights, and of fp8 that becomes bf16, in AMX tiles.
#include <immintrin.h>

#include "cpu/table.hpp"

namespace patchbay::kernels {
namespace {

#include "cpu/level/tiles.inc"
#include "cpu/level/vector_512.inc"

#include "cpu/level/functions.inc"

constexpr int kTileDepth = 32;      // of K in a tile
constexpr int kColumns = 2 * kSide; // of a panel
constexpr int kPair = 2 * kSide;    // rows that share a panel's loads
constexpr int64_t kNearBytes = 1 << 20; // of x that stay in the second-level cache
constexpr int64_t kNearSteps = 64;      // tiles of K that they have at most
constexpr int64_t kHeldSteps = 16;      // of a panel that stay in the first-level cache while pairs of rows go by
constexpr int64_t kTurn = 8;            // steps between what is done beside multiplying
constexpr int64_t kFewRows = 64;        // whose results are likely to be still in a cache when they are read
constexpr uint64_t kPages = 4, kPageLines = 64;
constexpr int64_t kSumStride = kColumns * sizeof(float);
constexpr int64_t kStepNumbers = kTileDepth * kColumns; // of a panel, in a step
static_assert(kColumns == kTileDepth); // the results of a panel are one step of K of a later multiplication

// What each tile register is for.
enum { kUpperLeft, kUpperRight, kLowerLeft, kLowerRight, kUpperRows, kLowerRows, kLeft, kRight };

// For blocks of `upper` rows and `lower` rows below them; lower may be 0.
void configure(int64_t upper, int64_t lower) {
    Configuration c;
    const auto set = [&](int tile, int64_t rows) {
        c.row_bytes[tile] = rows ? 64 : 0;
        c.rows[tile] = static_cast<uint8_t>(rows);
    };
    set(kUpperLeft, upper), set(kUpperRight, upper), set(kUpperRows, upper);
    set(kLowerLeft, lower), set(kLowerRight, lower), set(kLowerRows, lower);
    set(kLeft, kSide), set(kRight, kSide);
    use(c);
}

// The panel that is next, brought into the second-level cache meanwhile.
struct Ahead {
    const uint8_t* panel = nullptr;
    uint64_t lines = 0; // a step
    uint64_t line = 0;

    // Where the panel is read once, in order. Else from four pages in turn: the hardware follows each of them and is
    // ahead of us, and a page's first lines, for which it is not, come a while before the others.
    template <bool kInTurn>
    void step() {
        for (const uint64_t end = line + lines; line < end; ++line) {
            const uint64_t group = line / (kPages * kPageLines), in_group = line % (kPages * kPageLines);
            const uint64_t at = kInTurn ? (group * kPages + in_group % kPages) * kPageLines + in_group / kPages : line;
            _mm_prefetch(reinterpret_cast<const char*>(panel + at * 64), _MM_HINT_T1);
        }
    }
};

// Sums (rows, 32) on their way to out (rows, width ≤ 32), a few rows now and then while the next sums are computed: out
// lies in as many pages as it has rows, often in the same sets of a cache, and is slow to arrive there. Results of many
// rows pass the caches, where they would not stay until they are read.
struct Results {
    const float* sums = nullptr;
    const float* bias = nullptr;
    float* out = nullptr;
    int64_t out_stride = 0, width = 0, rows = 0;
    bool past_caches = false;

    void write(int64_t max_rows) {
        if (rows == 0) return;
        const __mmask16 left = width >= kSide ? 0xffff : static_cast<__mmask16>((1u << width) - 1);
        const __mmask16 right = width >= kColumns ? 0xffff
                                : width <= kSide  ? 0
                                                  : static_cast<__mmask16>((1u << (width - kSide)) - 1);
        for (const int64_t later = rows > max_rows ? rows - max_rows : 0; rows > later; --rows) {
            __m512 a = _mm512_loadu_ps(sums), b = _mm512_loadu_ps(sums + kSide);
            if (bias) {
                a = _mm512_add_ps(a, _mm512_loadu_ps(bias));
                b = _mm512_add_ps(b, _mm512_loadu_ps(bias + kSide));
            }
            if (past_caches) {
                _mm512_stream_ps(out, a);
                _mm512_stream_ps(out + kSide, b);
            } else {
                _mm512_mask_storeu_ps(out, left, a);
                _mm512_mask_storeu_ps(out + kSide, right, b);
            }
            sums += kColumns;
            out += out_stride;
        }
    }
};

// The same for gate · up, on its way to a row of a later multiplication's x: a line of memory for each row of sums.
struct GatedResults {
    const float *gate = nullptr, *up = nullptr;             // sums
    const float *gate_bias = nullptr, *up_bias = nullptr;
    TileGateKind kind = TileGateKind::kNone;
    uint16_t* to = nullptr;
    int64_t rows = 0;                                       // that are left
    bool past_caches = false;

    void write(int64_t max_rows) {
        if (rows == 0) return;
        if (kind == TileGateKind::kSilu) write(max_rows, silu_of);
        else write(max_rows, gelu_tanh_of);
    }

    template <class Gate>
    void write(int64_t max_rows, Gate gate_of) {
        for (const int64_t later = rows > max_rows ? rows - max_rows : 0; rows > later; --rows) {
            F product[2];
            for (int i = 0; i < 2; ++i) {
                F g{_mm512_load_ps(gate + i * kSide)}, u{_mm512_load_ps(up + i * kSide)};
                if (gate_bias) {
                    g = g + F{_mm512_loadu_ps(gate_bias + i * kSide)};
                    u = u + F{_mm512_loadu_ps(up_bias + i * kSide)};
                }
                product[i] = gate_of(g) * u;
            }
            const auto line = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(product[1].v, product[0].v));
            if (past_caches) _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
            else _mm512_store_si512(to, line);
            to += kColumns;
            gate += kColumns;
            up += kColumns;
        }
    }
};

// What is done beside multiplying.
struct Meanwhile {
    Ahead ahead;
    Results results;
    GatedResults gated;
    int64_t result_rows = 0;          // each two steps
    const float* next_sums = nullptr; // that the next pair goes on with; nullptr: it starts with 0
    void* spare;                      // a tile

    void write(int64_t max_rows) {
        results.write(max_rows);
        gated.write(max_rows);
    }

    // The processor takes some 700 cycles longer for a tile store that comes 2,000 cycles after the last one: so there
    // is a needless one now and then.
    void turn() {
        store<kUpperRows>(spare, 64);
        if (!next_sums) return;
        for (int64_t i = 0; i < kPair * kColumns; i += kSide * (kNearSteps / kTurn))
            _mm_prefetch(reinterpret_cast<const char*>(next_sums + i), _MM_HINT_T0);
        next_sums += kSide;
    }
};

template <bool kLower>
void clear() {
    zero<kUpperLeft>();
    zero<kUpperRight>();
    if constexpr (kLower) {
        zero<kLowerLeft>();
        zero<kLowerRight>();
    }
}

template <bool kLower>
void resume(const float* sums) {
    load<kUpperLeft>(sums, kSumStride);
    load<kUpperRight>(sums + kSide, kSumStride);
    if constexpr (kLower) {
        load<kLowerLeft>(sums + kSide * kColumns, kSumStride);
        load<kLowerRight>(sums + kSide * kColumns + kSide, kSumStride);
    }
}

template <bool kLower>
void keep(float* sums) {
    store<kUpperLeft>(sums, kSumStride);
    store<kUpperRight>(sums + kSide, kSumStride);
    if constexpr (kLower) {
        store<kLowerLeft>(sums + kSide * kColumns, kSumStride);
        store<kLowerRight>(sums + kSide * kColumns + kSide, kSumStride);
    }
}

// Up to 32 rows of x by a panel, from some tile of K on.
struct Operands {
    const uint8_t* x; // for each step the upper tile, then the lower
    int64_t x_step, upper_bytes;
    const uint8_t* panel;
};

// Both are inlined wherever they are called, so that `meanwhile` stays in registers: else decoding takes 8 % longer.
//
// The sums += x · panel over `steps` tiles of K. The loads that limit are those out of the second-level cache: the rows
// of x pass the first level, so that what is held of a panel, the steps with kHeld, stays there from pair to pair.
template <bool kLower, bool kHeld, bool kInTurn>
[[gnu::always_inline]] inline void multiply(Operands& o, int64_t steps, Meanwhile& meanwhile) {
    const auto step = [&] {
        meanwhile.ahead.step<kInTurn>();
        load_past<kUpperRows>(o.x, 64);
        if constexpr (kHeld) load<kLeft>(o.panel, 128);
        else load_past<kLeft>(o.panel, 128);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        if constexpr (kHeld) load<kRight>(o.panel + 64, 128);
        else load_past<kRight>(o.panel + 64, 128);
        multiply_add<kUpperRight, kUpperRows, kRight>();
        if constexpr (kLower) {
            load_past<kLowerRows>(o.x + o.upper_bytes, 64);
            multiply_add<kLowerLeft, kLowerRows, kLeft>();
            multiply_add<kLowerRight, kLowerRows, kRight>();
        }
        o.x += o.x_step;
        o.panel += 2 * kTileBytes;
    };
    for (; steps >= kTurn; steps -= kTurn) {
        for (int64_t s = 0; s < kTurn; s += 2) {
            step();
            step();
            meanwhile.write(meanwhile.result_rows);
        }
        meanwhile.turn();
    }
    for (; steps > 0; --steps) step();
}

template <bool kLower>
[[gnu::always_inline]] inline void multiply(Operands o, int64_t steps, bool once, float* sums, bool fresh,
                                            Meanwhile& meanwhile) {
    if (fresh) clear<kLower>();
    else resume<kLower>(sums);
    if (once) {
        multiply<kLower, true, false>(o, steps, meanwhile);
    } else {
        const int64_t held = steps < kHeldSteps ? steps : kHeldSteps;
        multiply<kLower, true, true>(o, held, meanwhile);
        multiply<kLower, false, true>(o, steps - held, meanwhile);
    }
    keep<kLower>(sums);
}

void round_rows(uint16_t* to, const float* x, int64_t x_stride, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* from = x + r * x_stride;
        uint16_t* row = to + r * kTileDepth;
        for (int64_t k = 0; k < cols; k += kTileDepth, row += rows * kTileDepth) {
            const int64_t left = cols - k;
            const __mmask16 low = left >= 16 ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
            const __mmask16 high = left >= 32   ? 0xffff
                                   : left <= 16 ? 0
                                                : static_cast<__mmask16>((1u << (left - 16)) - 1);
            const __m512 a = _mm512_maskz_loadu_ps(low, from + k), b = _mm512_maskz_loadu_ps(high, from + k + 16);
            _mm512_storeu_si512(row, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
        }
    }
}

// Rows of x that stay in the second-level cache, beside a panel and the next one, while all panels go by.
int64_t near_rows(int64_t depth) {
    const int64_t steps = depth / kTileDepth, near = steps < kNearSteps ? steps : kNearSteps;
    const int64_t rows = kNearBytes / (near * 64) / kPair * kPair;
    return rows < kPair ? kPair : rows;
}

// Tiles of K that are computed before the next panel: all, if the rows stay near with them, and widened weights, which
// more than a pair of rows use again.
int64_t near_steps(const TilePart& part, int64_t steps) {
    const bool stay = part.rows * steps * 64 <= kNearBytes && (part.panel.group == 0 || part.rows <= kPair);
    return stay || steps < kNearSteps ? steps : kNearSteps;
}

// Where the sums of each pair of rows lie, and in which order its panels come: with a gate, those of a gate and its up
// in turn.
struct Visits {
    explicit Visits(const TilePart& part)
        : steps(part.depth / kTileDepth),
          near(near_steps(part, steps)),
          pairs((part.rows + kPair - 1) / kPair),
          gated(part.gate.kind != TileGateKind::kNone),
          count(part.panel_count * (gated ? 2 : 1)),
          up_panels(part.gate.up_panels),
          widened(part.panel.group == 0 ? 0 : pairs == 1 && near > kHeldSteps ? kHeldSteps : near) {}

    bool in_parts() const { return steps > near; } // of K: the sums of all panels are kept meanwhile
    int64_t panel(int64_t visit) const { return gated ? visit / 2 + visit % 2 * up_panels : visit; }
    bool is_gate(int64_t visit) const { return gated && visit % 2 == 0; }
    // Sums of the block that is computed, of the one before, which is written meanwhile, and of two panels' gates.
    int64_t block(int64_t visit, int64_t pair, int64_t turn) const {
        if (in_parts()) return visit * pairs + pair;
        return is_gate(visit) ? 2 + visit / 2 % 2 * pairs + pair : turn % 2;
    }
    int64_t blocks() const { return in_parts() ? count * pairs : gated ? 2 + 2 * pairs : 2; }

    int64_t steps, near, pairs;
    bool gated;
    int64_t count, up_panels;
    int64_t widened; // steps of fp8 that are bf16 at a time; 0: the weights are bf16
};

#include "cpu/level/widen.inc"

// And a spare tile, and widened weights. Fewer rows may stay near where these do not: they have other blocks then.
int64_t sums_floats(const TilePart& part) {
    const Visits visits(part);
    const int64_t stays = visits.gated ? 2 + 2 * visits.pairs : 2;
    const int64_t blocks = visits.blocks() > stays ? visits.blocks() : stays;
    const int64_t widened = part.panel.group == 0 ? 0 : visits.steps < kNearSteps ? visits.steps : kNearSteps;
    return kSide * kSide + blocks * kPair * kColumns + widened * kStepNumbers / 2;
}

GatedResults gated_results(const TilePart& part, const float* gate, const float* up, int64_t panel, int64_t row,
                           int64_t rows) {
    const int64_t up_columns = (panel + part.gate.up_panels) * kColumns;
    return {.gate = gate,
            .up = up,
            .gate_bias = part.bias ? part.bias + panel * kColumns : nullptr,
            .up_bias = part.bias ? part.bias + up_columns : nullptr,
            .kind = part.gate.kind,
            .to = part.gate.out + row * part.gate.depth + (part.gate.step + panel) * rows * kTileDepth,
            .rows = rows,
            .past_caches = part.rows > kFewRows};
}

// Each sum runs over K in one chain, whatever the rows, panels and parts of K that it is computed among.
template <bool kWidens>
void linear_of(const TilePart& part) {
    const Visits visits(part);
    const int64_t steps = visits.steps, pairs = visits.pairs;
    constexpr int64_t kStepBytes = (kWidens ? 1 : 2) * kStepNumbers;
    const auto panel_of = [&](int64_t visit) { return part.panels + visits.panel(visit) * part.panel.bytes; };
    const auto bits = reinterpret_cast<uintptr_t>(part.out) | static_cast<uintptr_t>(part.out_stride) * sizeof(float);
    const bool aligned = bits % 64 == 0;
    const auto* x = reinterpret_cast<const uint8_t*>(part.x);
    float* const all_sums = part.sums + kSide * kSide;
    auto* const widened = reinterpret_cast<uint16_t*>(all_sums + visits.blocks() * kPair * kColumns);
    Meanwhile meanwhile{.spare = part.sums};
    int64_t configured = 0, turn = 0; // rows; pairs times panels until now
    for (int64_t step = 0; step < steps; step += visits.near) {
        const int64_t count = step + visits.near < steps ? visits.near : steps - step;
        const bool last = step + count == steps;
        meanwhile.result_rows = (2 * kPair + count - 1) / count;
        for (int64_t visit = 0; visit < visits.count; ++visit) {
            const int64_t p = visits.panel(visit);
            const uint8_t* next = visit + 1 < visits.count ? panel_of(visit + 1) + step * kStepBytes
                                  : last                   ? part.next
                                                           : part.panels + (step + count) * kStepBytes;
            // 32 lines of a panel a step, of fp8 16, shared by the pairs
            meanwhile.ahead = {next, next ? static_cast<uint64_t>((kStepBytes / 64 + pairs - 1) / pairs) : 0};
            for (int64_t pair = 0; pair < pairs; ++pair, ++turn) {
                const int64_t row = pair * kPair, rows = row + kPair < part.rows ? kPair : part.rows - row;
                const int64_t upper = rows < kSide ? rows : kSide, column = p * kColumns;
                if (rows != configured) configure(upper, rows - upper);
                configured = rows;
                float* const sums = all_sums + visits.block(visit, pair, turn) * kPair * kColumns;
                meanwhile.next_sums = step > 0 ? sums + kPair * kColumns : nullptr;
                for (int64_t from = step, some = count; from < step + count; from += some) {
                    const uint8_t* weights = panel_of(visit) + from * kStepBytes;
                    if constexpr (kWidens) {
                        some = from + visits.widened < step + count ? visits.widened : step + count - from;
                        if (pair == 0) widen(widened, panel_of(visit), part.panel, from, some);
                        weights = reinterpret_cast<const uint8_t*>(widened);
                    }
                    const Operands o{x + row * steps * 64 + from * rows * 64, rows * 64, upper * 64, weights};
                    if (rows > upper) multiply<true>(o, some, pairs == 1, sums, from == 0, meanwhile);
                    else multiply<false>(o, some, pairs == 1, sums, from == 0, meanwhile);
                }
                if (!last) continue;
                meanwhile.write(kPair); // what too few steps have left
                if (visits.is_gate(visit)) continue;
                if (visits.gated) {
                    const float* gate = all_sums + visits.block(visit - 1, pair, turn) * kPair * kColumns;
                    meanwhile.gated = gated_results(part, gate, sums, visit / 2, row, rows);
                } else {
                    meanwhile.results = {.sums = sums,
                                         .bias = part.bias ? part.bias + column : nullptr,
                                         .out = part.out + row * part.out_stride + column,
                                         .out_stride = part.out_stride,
                                         .width = part.width - column,
                                         .rows = rows,
                                         .past_caches =
                                             aligned && part.rows > kFewRows && part.width >= column + kColumns};
                }
            }
        }
    }
    meanwhile.write(kPair);
    _mm_sfence(); // who reads the results next need not know how they were written
    release();
}

void linear(const TilePart& part) {
    if (part.panel.group > 0) linear_of<true>(part);
    else linear_of<false>(part);
}

int64_t multiply_add(int64_t rounds) {
    alignas(64) uint16_t tiles[2 * kTileBytes]; // four; zeros would be faster than any weights
    uint32_t bits = 1;
    for (uint16_t& x : tiles) {
        bits = bits * 1664525u + 1013904223u;
        x = static_cast<uint16_t>(0x3f00u | (bits >> 16 & 0x80ffu)); // ±0.5 to ±2
    }
    configure(kSide, kSide);
    zero<kUpperLeft>(), zero<kUpperRight>(), zero<kLowerLeft>(), zero<kLowerRight>();
    for (int64_t r = 0; r < rounds; ++r) {
        load<kUpperRows>(tiles, 64);
        load<kLeft>(tiles + kTileBytes, 128);
        multiply_add<kUpperLeft, kUpperRows, kLeft>();
        load<kRight>(tiles + kTileBytes + 32, 128);
        multiply_add<kUpperRight, kUpperRows, kRight>();
        load<kLowerRows>(tiles + kTileBytes / 2, 64);
        multiply_add<kLowerLeft, kLowerRows, kLeft>();
        multiply_add<kLowerRight, kLowerRows, kRight>();
    }
    release();
    return rounds * 4 * kSide * kSide * kTileDepth;
}

}  // namespace

constexpr TileTable kAmxTiles = {
    kPair, kTileDepth, round_rows, linear, kNearSteps * kTileDepth, near_rows, sums_floats, multiply_add};

}  // namespace patchbay::kernels
