// Chains (letters of words, attributes of value 1) trained by dlib's OCA; compiled, fed and read by bench_dlib.py.
//
//     dlib_oca PROBLEM RESULTS LAMBDA EPSILON dense|sparse CACHE SECONDS
//
// dlib minimises 1/2 ||w||^2 + C R(w), where R is the mean over the sequences of the structured hinge. With C = 1 / lambda
// that is 1 / lambda times the objective of stages/problems/chain/chain.py. PROBLEM and the oracle: chains.hpp.
//
// RESULTS: a row of doubles for each evaluation of the risk but the first, which is at w = 0: CPU seconds since the start,
// objective and lower bound as dlib states them (times lambda), calls of the oracle, w. The seconds end when dlib knows the
// objective at w, and leave out writing w.
//
// Ends when dlib's own gap, of the objective times lambda, is below EPSILON, or after SECONDS of CPU time.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <dlib/svm.h>

#include "chains.hpp"

namespace {

using Weights = dlib::matrix<double, 0, 1>;
using Dense = Weights;
using Sparse = std::vector<std::pair<unsigned long, double>>;

void clear(Dense& psi, long d) { psi = dlib::zeros_matrix<double>(d, 1); }
void clear(Sparse& psi, long) { psi.clear(); }
void count(Dense& psi, long feature) { psi(feature) += 1.0; }
void count(Sparse& psi, long feature) { psi.emplace_back(feature, 1.0); }  // dlib allows a feature to occur twice

// The structural SVM, as a user of dlib writes it; Features is Dense or Sparse.
template <typename Features>
class Chains : public dlib::structural_svm_problem<Weights, Features> {
public:
    explicit Chains(const Sequences& sequences) : S(sequences), oracle_(S.longest), truths_(S.n) {
        for (long i = 0; i < S.n; ++i) joint(i, &S.truth[S.start[i]], truths_[i]);
    }

    long calls() const { return calls_; }
    long get_num_dimensions() const override { return S.d; }
    long get_num_samples() const override { return S.n; }
    void get_truth_joint_feature_vector(long i, Features& psi) const override { psi = truths_[i]; }

    void separation_oracle(const long i, const Weights& w, double& loss, Features& psi) const override {
        long wrong = 0;
        const auto* y = oracle_(S, i, &w(0), wrong);
        loss = static_cast<double>(wrong) / static_cast<double>(S.length(i));
        joint(i, y, psi);
        ++calls_;
    }

private:
    void joint(long i, const std::int32_t* y, Features& psi) const {
        clear(psi, S.d);
        S.features(i, y, [&](long feature) { count(psi, feature); });
    }

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
