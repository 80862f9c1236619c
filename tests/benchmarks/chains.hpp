// Chains (letters of words, attributes of value 1) for programs that are compared with ours, and their max-oracle in C++.
//
// The order of weights is that of stages/problems/chain/chain.py:
//
//     w = (E[p][K] attribute by attribute, biases being attributes;  T[K][K], T[a][b] for a before b)
//
// The problem's file: int64 n, tokens, entries, p; int64 first token of each sequence, and the end (n + 1); int64 first entry
// of each token, and the end (tokens + 1); int32 true labels (tokens); int32 attributes (entries). K is the macro LABELS.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr long K = LABELS;

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename T>
std::vector<T> read(std::istream& in, std::size_t size) {
    std::vector<T> values(size);
    in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(size * sizeof(T)));
    if (!in) throw std::runtime_error("the problem file ends early");
    return values;
}

void write(std::ostream& out, const double* values, std::size_t size) {
    out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(size * sizeof(double)));
}

struct Sequences {
    long n, p, d, longest = 0;
    std::vector<std::int64_t> start, row;  // first token of each sequence, first attribute of each token; and the ends
    std::vector<std::int32_t> truth, attributes;

    Sequences() = default;

    explicit Sequences(const std::string& file) {
        std::ifstream in(file, std::ios::binary);
        const auto sizes = read<std::int64_t>(in, 4);
        n = sizes[0];
        p = sizes[3];
        d = p * K + K * K;
        start = read<std::int64_t>(in, n + 1);
        row = read<std::int64_t>(in, sizes[1] + 1);
        truth = read<std::int32_t>(in, sizes[1]);
        attributes = read<std::int32_t>(in, sizes[2]);
        for (long i = 0; i < n; ++i) longest = std::max<long>(longest, start[i + 1] - start[i]);
    }

    // Sequence i alone, with the same weights.
    Sequences one(long i) const {
        Sequences S;
        const auto first = start[i], last = start[i + 1];
        S.n = 1, S.p = p, S.d = d, S.longest = last - first;
        S.start = {0, last - first};
        for (auto t = first; t <= last; ++t) S.row.push_back(row[t] - row[first]);
        S.truth.assign(truth.begin() + first, truth.begin() + last);
        S.attributes.assign(attributes.begin() + row[first], attributes.begin() + row[last]);
        return S;
    }

    long length(long i) const { return start[i + 1] - start[i]; }

    // fn(feature) for each joint feature of sequence i with the labels y (T), all of value 1; some may come twice.
    template <typename Labels, typename Function>
    void features(long i, const Labels* y, Function fn) const {
        const long first = start[i], T = length(i);
        for (long t = 0; t < T; ++t) {
            for (auto j = row[first + t]; j < row[first + t + 1]; ++j) fn(attributes[j] * K + y[t]);
            if (t > 0) fn(p * K + y[t - 1] * K + y[t]);
        }
    }
};

// argmax over y of `cost` * wrong labels / T + <w, psi(x, y)>, by Viterbi's algorithm. K is known to the compiler, so that all loops
// over labels become vector instructions.
class Oracle {
    using Row = std::array<double, K>;

public:
    explicit Oracle(long longest) : reached_(longest), best_(longest), y_(longest) {}

    // Labels of sequence i, valid until the next call; `wrong` becomes how many differ from the true ones.
    const std::int32_t* operator()(const Sequences& S, long i, const double* w, long& wrong, double cost = 1.0) {
        const long first = S.start[i], T = S.length(i);
        const double* transitions = w + S.p * K;
        const double each = cost / static_cast<double>(T);
        for (long t = 0; t < T; ++t) {
            reached_[t].fill(0.0);
            if (t > 0) follow(transitions, best_[t - 1], reached_[t]);
            Row score;
            score.fill(each);
            score[S.truth[first + t]] = 0.0;
            for (auto j = S.row[first + t]; j < S.row[first + t + 1]; ++j) {
                const double* weights = w + S.attributes[j] * K;
                for (long k = 0; k < K; ++k) score[k] += weights[k];
            }
            for (long k = 0; k < K; ++k) best_[t][k] = reached_[t][k] + score[k];
        }
        const Row& last = best_[T - 1];
        y_[T - 1] = static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin());
        for (long t = T - 1; t > 0; --t) y_[t - 1] = before(transitions, t, y_[t]);
        wrong = 0;
        for (long t = 0; t < T; ++t) wrong += y_[t] != S.truth[first + t];
        return y_.data();
    }

private:
    std::vector<Row> reached_, best_;  // of the prefixes that end in each label: without their last token's score, and with
    std::vector<std::int32_t> y_;

    static void follow(const double* transitions, const Row& from, Row& to) {
        Row most;
        for (long b = 0; b < K; ++b) most[b] = from[0] + transitions[b];
        for (long a = 1; a < K; ++a)
            for (long b = 0; b < K; ++b) {
                const double value = from[a] + transitions[a * K + b];
                most[b] = value > most[b] ? value : most[b];
            }
        to = most;
    }

    // The label before label b of token t: the first that attains the maximum, computed as in `follow`.
    std::int32_t before(const double* transitions, long t, long b) const {
        long a = 0;
        while (a < K - 1 && best_[t - 1][a] + transitions[a * K + b] != reached_[t][b]) ++a;
        return static_cast<std::int32_t>(a);
    }
};

}  // namespace
