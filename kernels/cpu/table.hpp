// One ISA level's inner loops, each over one task's part of the work. The files in level/ fill a table each; they are
// compiled for instructions that this machine may lack, so they share no inline function with other files (the linker
// would keep one copy, perhaps theirs), and this header has none.
#pragma once
#include <cstddef>
#include <cstdint>

namespace patchbay::kernels {

struct PanelShape { // of a packed matrix; see docs/cpu-device.md
    int64_t bytes;                 // from a panel to the next one
    int64_t group, scale_bytes;    // of fp8: K that share a scale, and how many bytes of scales come first; else 0
};

struct LinearPart { // out (rows, width) = x (rows, cols) · panels + bias
    const float* x;
    int64_t x_stride, rows, cols;
    const void* panels;    // the first of this part
    PanelShape panel;
    int64_t panel_count;
    const float* bias;     // of the first panel's columns, padded; nullptr: none
    float* out;            // at the first panel's columns
    int64_t out_stride;
    int64_t width;         // columns of out from there on
};

struct LinearBlock { // the same for many rows, over a part of K
    const float* x;        // tiles of rows as lay_rows() lays them, one after another
    int64_t height;        // of a tile: even, 4 to MatrixTable::block_rows
    int64_t rows, cols;    // rows: the last tile may have fewer
    int64_t begin, end;    // of K; begin is even. From 0 on sums start at 0, else at the values in `out`.
    const void* panels;
    PanelShape panel;
    int64_t panel_count;
    const float* bias;     // added if `end` is `cols`
    float* out;
    int64_t out_stride, width;
};

// f(gate) · up of a gated MLP, as rows of x that round_rows() has laid.
enum class TileGateKind : int32_t { kNone, kSilu, kGeluTanh };
struct TileGate {
    TileGateKind kind;     // with the bits of silu_mul and gelu_tanh_mul; kNone: no gated MLP
    int64_t up_panels;     // from a gate's panel to its up's
    uint16_t* out;         // of the first row, at K 0
    int64_t depth, step;   // of out; `depth`s of K before the first panel's columns
};

struct TilePart { // the same, with rows of x as round_rows() lays them and K padded
    const uint16_t* x;     // of the first row, which is a multiple of TileTable::side
    int64_t rows, depth;   // rows: fastest up to TileTable::near_rows(); depth: a multiple of TileTable::depth
    const uint8_t* panels;
    PanelShape panel;
    int64_t panel_count;   // with a gate: of gates
    const float* bias;
    float* out;            // with a gate: nullptr
    int64_t out_stride, width;
    const uint8_t* next;   // the panel that this thread probably reads next; nullptr: unknown
    float* sums;           // scratch: TileTable::sums_floats() of them, 64-byte aligned
    TileGate gate;
};

constexpr int kAttendQueries = 8;     // (row, head) pairs that share the loads of a key
constexpr int kTileQueries = 64;      // the same, where they are rows of tiles
constexpr int kMaxHeadDim = 512;
constexpr int kAttendBlock = 64;      // keys of one softmax update, aligned by absolute position
constexpr int kKeyGroup = 16;         // keys stored together in a page

struct Int8Code {
    uint8_t bits;
};
struct Fp8Code { // e4m3; no NaN
    uint8_t bits;
};

struct AttendPart { // queries over keys [begin, end), both within one split
    const float* q[kTileQueries];      // each (head_dim)
    int64_t position[kTileQueries];    // the last key it sees
    float slope[kTileQueries];         // of its score, by the key's position
    int32_t queries;
    int32_t block_size, head_dim;
    int32_t page_shift;                // log2 of block_size; −1: not a power of two
    int64_t window;                    // 0: all
    const int32_t* table;              // of the sequence: page ids
    const uint8_t *keys, *values;      // of the kv head in page 0
    const uint8_t *key_scales, *value_scales; // likewise, f32, if those are codes
    uint64_t page_stride;
    int64_t begin, end;
    int64_t ahead;                     // ≥ end: the end of the keys that this thread reads next
    float scale, soft_cap;
    bool sloped;                       // a slope is not 0
};

struct AttendState { // of the queries of a part
    float* max_score; // (queries) greatest score; −inf: no key yet
    float* total;     // (queries) sum of e^(score − max_score)
    float* sum;       // (queries, stride) sum of e^(score − max_score) · value
    int64_t stride;   // head_dim; in tiles a multiple of 16
};

constexpr int kMaxConvWidth = 16;

struct ConvPart { // rows of one sequence, some channels
    float* out;
    int64_t out_stride;
    const float* x;
    int64_t x_stride, rows, channels, width;
    const float* w;    // (channels, width)
    const float* bias; // (channels); nullptr: none
    float* tail;       // (width − 1, channels): the preceding rows; replaced by the last ones
    int64_t tail_stride;
    bool is_first_chunk; // there are no preceding rows
};

struct ScanPart { // rows of one sequence, one head
    float* out;
    int64_t out_stride;
    const float* x; // may be out
    int64_t x_stride;
    const float* b;
    int64_t b_stride;
    const float* c;
    int64_t c_stride, rows, dim, n;
    const float *steps, *decays; // (rows)
    float skip;
    float* state; // (dim, n), replaced by the state after the last row
    bool is_first_chunk; // the state before is zero
};

constexpr int64_t kFewLinearRows = 4;

struct MatrixTable {
    int32_t panel_columns;
    void (*linear_f32)(const LinearPart&); // of at most kFewLinearRows rows
    void (*linear_bf16)(const LinearPart&);
    void (*linear_fp8)(const LinearPart&); // with the bits of linear_f32 and numbers that are codes times scales
    // rows (rows, cols) as (cols, height), padded with 0
    void (*lay_rows)(float* to, const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t height);
    void (*block_f32)(const LinearBlock&);
    void (*block_bf16)(const LinearBlock&);
    void (*block_fp8)(const LinearBlock&);
    int32_t block_rows; // maximum for a tile
};

struct AttentionTable {
    void (*attend_f32)(const AttendPart&, const AttendState&);
    void (*attend_bf16)(const AttendPart&, const AttendState&);
    void (*attend_int8)(const AttendPart&, const AttendState&);
    void (*attend_fp8)(const AttendPart&, const AttendState&);
    // into += later, for keys after those of `into`
    void (*merge)(const AttendState& into, const AttendState& later, int32_t queries);
    void (*divide)(float* out, const float* a, float by, int64_t n);
    // Of bf16: one token's k and v (dim) to its lane of a group of keys and its half, 0 or 1, of a pair of values.
    void (*write_token)(uint16_t* keys, uint16_t* values, int half, const float* k, const float* v, int64_t dim);
};

struct RowTable { // one row of n values
    void (*rms_norm)(float* out, const float* x, const float* w, int64_t n, float eps);
    void (*layer_norm)(float* out, const float* x, const float* w, const float* b, int64_t n, float eps);
    // one token: x (heads, ≥ 2 half), heads `head_stride` apart
    void (*rope)(float* x, int64_t heads, int64_t head_stride, float position, const float* inv_freq, int64_t half,
                 float scale);
    void (*add)(float* a, const float* b, int64_t n);
    void (*add_scaled)(float* a, const float* b, float factor, int64_t n); // a += b · factor
    void (*scale)(float* x, float factor, int64_t n);
    void (*soft_cap)(float* x, float cap, int64_t n);
    void (*exp)(float* out, const float* x, int64_t n);
};

struct ActivationTable { // of one row of n values; those named *_mul: f(gate) · up
    void (*relu)(float* x, int64_t n);
    void (*silu)(float* x, int64_t n);
    void (*silu_mul)(float* out, const float* gate, const float* up, int64_t n);
    void (*gelu_tanh)(float* x, int64_t n);
    void (*gelu_tanh_mul)(float* out, const float* gate, const float* up, int64_t n);
    void (*gelu_erf)(float* x, int64_t n);
    void (*gelu_erf_mul)(float* out, const float* gate, const float* up, int64_t n);
    void (*sigmoid_mul)(float* x, const float* gate, int64_t n); // x / (1 + e^−gate)
    void (*swiglu_oai)(float* out, const float* gate, const float* up, int64_t n, float alpha, float limit);
};

struct RecurrentTable {
    void (*conv_silu)(const ConvPart&);
    void (*scan)(const ScanPart&);
};

struct LimitTable { // for measuring what the machine can do, not for results
    float (*read)(const float* from, int64_t n);       // every element; n is a multiple of 64
    int64_t (*multiply_add)(int64_t rounds);           // in registers; returns the multiply-adds done
};

struct Table { // of a level
    MatrixTable matrices;
    AttentionTable attention;
    RowTable rows;
    ActivationTable activations;
    RecurrentTable recurrent;
    LimitTable limits;
};

// Matrix products in tiles of bf16; fp8 becomes bf16 on its way.
struct TileTable {
    int32_t side, depth; // a block of x: rows, elements of K
    // to: for each `depth` of K, padded with zeros, (rows, depth); from x (rows ≤ side, cols)
    void (*round_rows)(uint16_t* to, const float* x, int64_t x_stride, int64_t rows, int64_t cols);
    void (*linear)(const TilePart&);
    int64_t near_depth; // of K; more is computed in parts
    int64_t (*near_rows)(int64_t depth); // that stay in the cache while panels stream past
    int64_t (*sums_floats)(const TilePart&); // by rows, depth, panel, panel_count and gate
    int64_t (*multiply_add)(int64_t rounds); // of tiles that are loaded from the first-level cache; as in LimitTable
};

// Attention over pages of bf16 or codes in tiles of bf16, of up to kTileQueries queries.
struct TileAttend {
    void (*attend_bf16)(const AttendPart&, const AttendState&); // sums 64-byte aligned, here and below
    void (*attend_int8)(const AttendPart&, const AttendState&);
    void (*attend_fp8)(const AttendPart&, const AttendState&);
    void (*write_token)(uint16_t* keys, uint16_t* values, int half, const float* k, const float* v, int64_t dim);
};

extern const Table kPlainTable;
extern const Table kAvx2Table;
extern const Table kAvx512Table;
extern const TileTable kAmxTiles;
extern const TileAttend kAmxAttend;

}  // namespace patchbay::kernels
