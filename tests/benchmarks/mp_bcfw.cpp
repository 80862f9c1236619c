// Chains trained by MP-BCFW of S15's authors, "SVM, version 1.02"; compiled, fed and read by bench_mp_bcfw.py.
//
//     mp_bcfw PROBLEM RESULTS LAMBDA GAP PASSES PLANES AVERAGES whole|own
//
// Their solver minimises lambda/2 ||w||^2 + mu sum_i H_i(w); with mu = 1 / n that is our objective. PROBLEM and the oracle:
// chains.hpp. PLANES is the most planes of a block, 0 for BCFW; AVERAGES is their `avg_flag`. whole: a plane has a number for
// each weight. own: for each weight of the block's own attributes, gathered from w, and for the transitions.
//
// RESULTS: a row of doubles for each iteration: CPU seconds since the start, calls of the oracle in its passes, lower and
// upper bound as it states them. The seconds leave out the oracle calls for these bounds. Ends when the bounds are at most
// GAP apart, or after PASSES iterations; with GAP = 0 bounds are not computed.

#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <memory>
#include <numeric>

#include "SVM.h"
#include "chains.hpp"

namespace {

struct Example {
    Sequences only;             // this sequence alone, its attributes numbered from 0 where planes have weights of their own
    std::vector<int> mapping;   // the weights of its coordinates, and the free term; empty if they are all
};

struct Program {
    std::unique_ptr<Oracle> oracle;
    std::ofstream results;
    double begun = 0.0, apart = 0.0, gap = 0.0;
    long passes = 0, n = 0;
} program;

double max_fn(double* w, YPtr y, double kappa, TermData data) {
    const auto& S = static_cast<const Example*>(data)->only;
    long wrong = 0;
    const auto* best = (*program.oracle)(S, 0, w, wrong, kappa);
    for (long t = 0; t < S.length(0); ++t) static_cast<unsigned char*>(y)[t] = static_cast<unsigned char>(best[t]);
    return static_cast<double>(wrong) / static_cast<double>(S.length(0));
}

void copy_fn(double* a, YPtr y, TermData data) {
    const auto& S = static_cast<const Example*>(data)->only;
    std::memset(a, 0, static_cast<std::size_t>(S.d) * sizeof(double));
    S.features(0, static_cast<const unsigned char*>(y), [&](long feature) { a[feature] += 1.0; });
    S.features(0, S.truth.data(), [&](long feature) { a[feature] -= 1.0; });
}

bool compare_fn(YPtr y, YPtr z, TermData data) {
    return std::memcmp(y, z, static_cast<std::size_t>(static_cast<const Example*>(data)->only.length(0))) == 0;
}

double dot_product_fn(double* w, YPtr y, TermData data) {
    const auto& S = static_cast<const Example*>(data)->only;
    double sum = 0.0;
    S.features(0, static_cast<const unsigned char*>(y), [&](long feature) { sum += w[feature]; });
    S.features(0, S.truth.data(), [&](long feature) { sum -= w[feature]; });
    return sum;
}

bool after_iteration(SVM* svm) {
    const double now = cpu_seconds();
    ++program.passes;
    std::array<double, 4> row{now - program.begun - program.apart, static_cast<double>(program.passes * program.n), 0.0, 0.0};
    if (program.gap > 0.0) svm->GetBounds(row[2], row[3]);
    write(program.results, row.data(), row.size());
    program.apart += cpu_seconds() - now;
    return program.gap == 0.0 || row[3] - row[2] > program.gap;
}

Example block_of(const Sequences& all, long i, bool own) {
    Example block{all.one(i), {}};
    if (!own) return block;
    auto& S = block.only;
    auto known = S.attributes;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (auto& attribute : S.attributes)
        attribute = static_cast<std::int32_t>(std::lower_bound(known.begin(), known.end(), attribute) - known.begin());
    for (const auto attribute : known)
        for (long k = 0; k < K; ++k) block.mapping.push_back(static_cast<int>(attribute * K + k));
    for (long k = 0; k < K * K; ++k) block.mapping.push_back(static_cast<int>(all.p * K + k));
    block.mapping.push_back(static_cast<int>(all.d));
    S.p = static_cast<long>(known.size());
    S.d = S.p * K + K * K;
    return block;
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> given(argv + 1, argv + argc);
    if (given.size() != 8 || (given[7] != "whole" && given[7] != "own"))
        throw std::runtime_error("usage: mp_bcfw PROBLEM RESULTS LAMBDA GAP PASSES PLANES AVERAGES whole|own");
    const Sequences sequences(given[0]);
    std::vector<Example> blocks;
    for (long i = 0; i < sequences.n; ++i) blocks.push_back(block_of(sequences, i, given[7] == "own"));
    program.oracle = std::make_unique<Oracle>(sequences.longest);
    program.results.open(given[1], std::ios::binary);
    program.gap = std::stod(given[3]);
    program.n = sequences.n;
    SVM svm(static_cast<int>(sequences.d), static_cast<int>(sequences.n), max_fn, copy_fn, compare_fn, dot_product_fn,
            nullptr, true);
    svm.SetParams(std::stod(given[2]), 1.0 / static_cast<double>(sequences.n), 1.0);
    for (long i = 0; i < sequences.n; ++i) {
        auto& block = blocks[static_cast<std::size_t>(i)];
        const long room = (block.only.length(0) + 7) / 8 * 8;  // what follows a labelling in memory are doubles
        svm.SetTerm(static_cast<int>(i), &block, static_cast<int>(block.only.d), static_cast<int>(room),
                    block.mapping.empty() ? nullptr : block.mapping.data());
    }
    auto& options = svm.options;
    options.iter_max = std::stoi(given[4]);
    options.cp_max = std::stoi(given[5]);
    options.avg_flag = std::stoi(given[6]);
    options.callback_freq = 1;
    options.callback_fn = after_iteration;
    options.print_flag = 0;
    program.begun = cpu_seconds();
    svm.Solve();
    if (!program.results.flush()) throw std::runtime_error("cannot write " + given[1]);
    return 0;
} catch (const std::exception& error) {
    std::cerr << "mp_bcfw: " << error.what() << '\n';
    return 1;
}
