// One ISA level's loops over codes of 8 and 4 bits, each over one task's part of the work: like table.hpp, without an
// inline function, since the files in level/ are compiled for instructions that this machine may lack.
#pragma once
#include <cstddef>
#include <cstdint>

namespace patchbay::kernels {

constexpr int kQuantisedColumns = 32; // in a panel of codes, at all levels
constexpr int kQuantisedStep = 64;    // columns of x stored together in QuantisedRows

// Rows of x as codes of 8 bits, in blocks of `side` rows; the last block may be padded with zeros.
struct QuantisedRows {
    int64_t rows, side, groups, group;
    int64_t steps;      // ⌈groups · group / kQuantisedStep⌉
    int8_t* codes;      // (blocks, steps, side, kQuantisedStep), −127 … 127
    int32_t* code_sums; // (blocks, groups, side): of a group's codes
    float* scales;      // the same shape: the value of a code, times the power of two of the weight's scales
    float* sums;        // the sum of the codes, times the power of two of the weight's offsets
};

struct QuantisingPart { // quantises x (rows from `first` on) into `to`
    const float* x;       // row 0
    int64_t x_stride, first, end, cols;
    const int32_t* order; // (cols), or nullptr
    float scale_unit, offset_unit; // powers of two
    QuantisedRows to;
};

struct QuantisedPart { // out (rows, width) = x · panels + bias
    QuantisedRows x;
    const uint8_t* panels; // of this part, from its first panel on
    int64_t panel_count, panel_bytes;
    uint32_t bits;         // 8 or 4
    uint32_t has_offsets;
    const float* bias;     // of the first panel's columns, padded; nullptr: none
    float* out;            // at the first panel's columns
    int64_t out_stride, width;
    uint8_t* scratch;      // QuantisedTable::scratch_bytes() of them, 64-byte aligned
};

// A level's product of codes. Sums within a group are integers, and groups are added in one order by the same
// operations, so that two tables give the same bits unless one of them lacks fused multiply-adds.
struct QuantisedTable {
    int32_t side;  // rows of a block; 1 … side in the last unless `filled`
    int32_t filled; // 1: the last block must have `side` rows
    void (*quantise)(const QuantisingPart&);
    void (*linear)(const QuantisedPart&);
    int64_t (*scratch_bytes)(const QuantisedRows&, uint32_t bits); // nullptr: none
    int64_t (*multiply_add)(int64_t rounds); // of codes of 8 bits; as in LimitTable
};

extern const QuantisedTable kPlainQuantised;
extern const QuantisedTable kAvx2Quantised;
extern const QuantisedTable kVnniQuantised;
extern const QuantisedTable kAvx2ManyQuantised; // for any number of rows: faster from some number on
extern const QuantisedTable kVnniManyQuantised;
extern const QuantisedTable kVnniTallQuantised; // only for kTallBits in groups of kTallGroup or more
extern const QuantisedTable kAvx2WholeQuantised; // only for codes of 8 bits whose group is longer than kMaxGroup,
extern const QuantisedTable kVnniWholeQuantised; // of any number of rows: faster from some number on
constexpr int64_t kMaxGroup = 128; // of scales for a group; a longer one is all of K, padded to kQuantisedStep
constexpr uint32_t kTallBits = 4;
constexpr int64_t kTallGroup = 64;
extern const QuantisedTable kAmxQuantised;
extern const QuantisedTable kAmxFewQuantised; // for at most 8 rows
extern const QuantisedTable kAmxWholeQuantised; // as kVnniWholeQuantised

}  // namespace patchbay::kernels
