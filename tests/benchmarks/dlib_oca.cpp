// Chains (letters of words, attributes of value 1) trained by dlib's OCA; compiled, fed and read by bench_dlib.py.
//
//     dlib_oca PROBLEM RESULTS LAMBDA EPSILON dense|sparse CACHE SECONDS
//
// dlib minimises 1/2 ||w||^2 + C R(w), where R is the mean over the sequences of the structured hinge. With C = 1 / lambda
// that is 1 / lambda times the objective of stages/problems/chain/chain.py, whose order of weights is kept here:
//
//     w = (E[p][K] attribute by attribute, biases being attributes;  T[K][K], T[a][b] for a before b)
//
// PROBLEM: int64 n, tokens, entries, p; int64 first token of each sequence, and the end (n + 1); int64 first entry of each
// token, and the end (tokens + 1); int32 true labels (tokens); int32 attributes (entries). K is the macro LABELS.
//
// RESULTS: a row of doubles for each evaluation of the risk but the first, which is at w = 0: CPU seconds since the start,
// objective and lower bound as dlib states them (times lambda), calls of the oracle, w. The seconds end when dlib knows the
// objective at w, and leave out writing w.
//
// Ends when dlib's own gap, of the objective times lambda, is below EPSILON, or after SECONDS of CPU time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlib/svm.h>

namespace {

constexpr long K = LABELS;

using Weights = dlib::matrix<double, 0, 1>;
using Dense = Weights;
using Sparse = std::vector<std::pair<unsigned long, double>>;

double cpu_seconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void clear(Dense& psi, long d) { psi = dlib::zeros_matrix<double>(d, 1); }
void clear(Sparse& psi, long) { psi.clear(); }
void count(Dense& psi, long feature) { psi(feature) += 1.0; }
void count(Sparse& psi, long feature) { psi.emplace_back(feature, 1.0); }  // dlib allows a feature to occur twice

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

    long length(long i) const { return start[i + 1] - start[i]; }

    // The joint features of sequence i with the labels y (T).
    template <typename Features>
    void features(long i, const std::int32_t* y, Features& psi) const {
        clear(psi, d);
        const long first = start[i], T = length(i);
        for (long t = 0; t < T; ++t) {
            for (auto j = row[first + t]; j < row[first + t + 1]; ++j) count(psi, attributes[j] * K + y[t]);
            if (t > 0) count(psi, p * K + y[t - 1] * K + y[t]);
        }
    }
};

// argmax over y of wrong labels / T + <w, psi(x, y)>, by Viterbi's algorithm. K is known to the compiler, so that all loops
// over labels become vector instructions.
class Oracle {
    using Row = std::array<double, K>;

public:
    explicit Oracle(long longest) : reached_(longest), best_(longest), y_(longest) {}

    // Labels of sequence i, valid until the next call; `wrong` becomes how many differ from the true ones.
    const std::int32_t* operator()(const Sequences& S, long i, const double* w, long& wrong) {
        const long first = S.start[i], T = S.length(i);
        const double* transitions = w + S.p * K;
        const double each = 1.0 / static_cast<double>(T);
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

// The structural SVM, as a user of dlib writes it; Features is Dense or Sparse.
template <typename Features>
class Chains : public dlib::structural_svm_problem<Weights, Features> {
public:
    explicit Chains(const Sequences& sequences) : S(sequences), oracle_(S.longest), truths_(S.n) {
        for (long i = 0; i < S.n; ++i) S.features(i, &S.truth[S.start[i]], truths_[i]);
    }

    long calls() const { return calls_; }
    long get_num_dimensions() const override { return S.d; }
    long get_num_samples() const override { return S.n; }
    void get_truth_joint_feature_vector(long i, Features& psi) const override { psi = truths_[i]; }

    void separation_oracle(const long i, const Weights& w, double& loss, Features& psi) const override {
        long wrong = 0;
        const auto* y = oracle_(S, i, &w(0), wrong);
        loss = static_cast<double>(wrong) / static_cast<double>(S.length(i));
        S.features(i, y, psi);
        ++calls_;
    }

private:
    const Sequences& S;
    mutable Oracle oracle_;
    mutable long calls_ = 0;
    std::vector<Features> truths_;
};

// Passes everything on to the problem, and writes down each w with what dlib says of it.
template <typename Features>
class Recorded : public dlib::oca_problem<Weights> {
public:
    Recorded(const Chains<Features>& problem, double limit, std::ostream& results)
        : chains_(problem), problem_(problem), limit_(limit), results_(results) {}

    double seconds() const { return cpu_seconds() - begun_ - writing_; }

    bool risk_has_lower_bound(double& bound) const override { return problem_.risk_has_lower_bound(bound); }
    double get_c() const override { return problem_.get_c(); }
    long get_num_dimensions() const override { return problem_.get_num_dimensions(); }

    void get_risk(Weights& w, double& risk, Weights& subgradient) const override {
        problem_.get_risk(w, risk, subgradient);
        w_ = &w;
    }

    bool optimization_status(double objective, double gap, double risk, double risk_gap, unsigned long planes,
                             unsigned long iterations) const override {
        const double now = seconds(), lambda = 1.0 / get_c();
        const double calls = static_cast<double>(chains_.calls());
        const std::array<double, 4> said{now, lambda * objective, lambda * (objective - gap), calls};
        write(results_, said.data(), said.size());
        write(results_, &(*w_)(0), w_->size());
        writing_ += seconds() - now;
        return problem_.optimization_status(objective, gap, risk, risk_gap, planes, iterations) || now > limit_;
    }

private:
    const Chains<Features>& chains_;
    const dlib::oca_problem<Weights>& problem_;
    double limit_;
    std::ostream& results_;
    double begun_ = cpu_seconds();
    mutable double writing_ = 0.0;
    mutable const Weights* w_ = nullptr;
};

template <typename Features>
void solve(const Sequences& sequences, double lambda, double epsilon, unsigned long cache, double limit,
           const std::string& results) {
    Chains<Features> chains(sequences);
    chains.set_c(1.0 / lambda);
    chains.set_epsilon(epsilon);  // of the risk; times C = 1 / lambda it is of dlib's objective, so it is of ours
    chains.set_max_iterations(1'000'000'000);
    chains.set_max_cache_size(cache);
    std::ofstream out(results, std::ios::binary);
    Weights w;
    dlib::oca()(Recorded<Features>(chains, limit, out), w);
    if (!out.flush()) throw std::runtime_error("cannot write " + results);
}

}  // namespace

int main(int argc, char** argv) try {
    const std::vector<std::string> given(argv + 1, argv + argc);
    if (given.size() != 7 || (given[4] != "dense" && given[4] != "sparse"))
        throw std::runtime_error("usage: dlib_oca PROBLEM RESULTS LAMBDA EPSILON dense|sparse CACHE SECONDS");
    const Sequences sequences(given[0]);
    const auto run = given[4] == "dense" ? solve<Dense> : solve<Sparse>;
    run(sequences, std::stod(given[2]), std::stod(given[3]), std::stoul(given[5]), std::stod(given[6]), given[1]);
    return 0;
} catch (const std::exception& error) {
    std::cerr << "dlib_oca: " << error.what() << '\n';
    return 1;
}
