#pragma once
// Attention as an operation of named values, over every form that the contract knows.

#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

#include "compare.h"
#include "ops/attention.h"

namespace bamtrain::testing {

enum class ScaleForm { none, content, both };  // z = s + b;  t s + b;  t (s + b)
constexpr ScaleForm kScaleForms[] = {ScaleForm::none, ScaleForm::content, ScaleForm::both};
/// Every form of bias, as BiasForm has them: a table b ~ N(0, 1), sums that rise by about 0.4 a
/// key, segments whose lines do not meet; and other tables.
enum class TableForm {
  none,
  table,
  difference,
  log_square,
  fire,
  relative,
  contextual,
  falling,  // b = -d / 8, as priors of distance are
  bounded,  // every third entry -1e4, but not the self key's
  self,     // the same, and the self key of the last head too
};

/// Those of each form of bias.
constexpr TableForm kTableForms[] = {TableForm::none,       TableForm::table, TableForm::difference,
                                     TableForm::log_square, TableForm::fire,  TableForm::relative,
                                     TableForm::contextual};
static_assert(std::size(kTableForms) == std::size(kBiasForms));

/// These, and others.
std::vector<TableForm> table_forms_and(std::initializer_list<TableForm> others);
/// These, the table as those of priors are.
std::vector<TableForm> table_forms_of_priors();

/// Whether it reads queries and keys.
bool reads_content(TableForm form);

struct AttentionCase {
  int64_t B = 1, T = 1, H = 1, K = 1, D = 8;
  TableForm table = TableForm::none;
  ScaleForm scale = ScaleForm::none;
  bool documents = false;  // of random length
  bool causal = true;      // false: rows see their whole document, within the window on both sides
  bool padding = false;    // not causal: sequences end before T, each row behind sees itself
  int64_t window = 0;
  double content = 1;       // standard deviation of q; k and v have 1
  bool zero_scale = false;  // t = 0 in every third row
  bool below_zero = false;  // t < 0 in the row after each of those
  double content_scale = 0;
  int64_t positions = 64;          // of contextual encoding
  NormalizerForm normalizer = {};  // learned: one alpha per head, from its own on
  std::optional<MixForm> mix = {};
  int64_t hidden = 8;            // of the mix
  bool rounded_weights = false;  // of the mix to bf16, as tensor cores read them
  // Softmax's adjoint finds the backend's own forward pass, as others' do: of the CPU's general
  // path, whose D comes from weights and not from `out`, rounded.
  bool own_rows = false;
};

/// Heads and heads of keys, and windows, of cases in turn.
constexpr int64_t kTurningHeads[][2] = {{1, 1}, {4, 2}, {6, 1}, {3, 3}};
constexpr int64_t kTurningWindows[] = {0, 5, 64, 70, 0, 1};

/// Inputs q (B, T, H, D), k, v (B, T, K, D), table (H, T) or sums (B, H, T), scale (B, H, T);
/// results out, and what the normalizer saves (level as lse, threshold, last). On a backend q, k, v
/// are parts of one (B, T, H + 2 K, D), and so are their gradients, as in the model. Of fire the
/// lines are inputs, slope and offset (H, kFireSegments); what the backend returns beside their
/// gradients is "of_u" and "of_psi". Contextual positions are waves. Any other bias has normal
/// numbers. A mix has w1, w2 and c2, normal numbers over the root of what a layer reads, and c1
/// (add_mix in the source).
Operation attention(const AttentionCase& c);

/// The entropy of its rows, from the same inputs but a scale: result entropy, and no adjoint.
Operation attention_entropy(const AttentionCase& c);

/// Entropy and support of the rows of its forward pass: results entropy and support, and no
/// adjoint. With an input `level`, that of AttentionSaved, no forward pass runs before.
Operation attention_statistics(const AttentionCase& c);

/// attention() and attention_entropy() of the last n rows alone, the keys before them as those of
/// the past: results out (B, n, H, D), lse and, without a scale, entropy (B, H, n). No adjoint.
Operation attention_of_last_rows(const AttentionCase& c, int64_t n);

/// The last n of dimension `dim`.
Values last_of(const Values& v, size_t dim, int64_t n);

/// Checks on a machine that a content scale of 4 / sqrt(D) gives the bits of queries that are four
/// times as large. REQUIRES: sqrt(D) is a power of two.
void check_content_scale(Machine& m, AttentionCase c);

/// (B, T): what `documents`, `window` and `padding` leave visible. Seeded by the case's shape.
std::vector<int32_t> first_keys(const AttentionCase& c);
/// The same, the last key of each row.
std::vector<int32_t> last_keys(const AttentionCase& c);

/// Whether the bias comes from sums.
constexpr bool has_sums(const AttentionCase& c) {
  return c.table == TableForm::difference || c.table == TableForm::log_square;
}

std::string describe(const AttentionCase& c);

/// The tolerances, in bf16 on CUDA, of what reads logits: a mix, or a bias that reads queries and
/// keys. A network reads and makes logits of 16 bits; its gradients are sums over rows whose dz sum
/// to zero, and what is rounded once before they are formed does not cancel. The scale's gradient
/// is a row's sum of dz (s + b), and what D, of the rounded output, adds to all dz of a row meets
/// what s + b have in common.
void allow_for_logit_readers(Operation& op, const AttentionCase& c);

/// Rounding of a logit: the product of D terms of size 1 over sqrt(D), 0.3 u sqrt(D) (linear.cpp),
/// times t, and the bias; then exp to 3.4 u, sums over T keys, D terms of dP, T or D terms of the
/// gradients. Four times the sum of these for the largest of many elements.
double fp32_tolerance(const AttentionCase& c);
/// That of the general path. Of entmax the largest entries of dz are u (dP - D), and u may exceed
/// p. Above alpha 2 a key that a rounding u of its logit takes into the support has a weight of
/// u^(1 / (alpha - 1)).
double normalizer_tolerance(const AttentionCase& c);
/// The network adds two products, of 2 H and of F terms, to what a logit passes through. Sums reach
/// 27 in a strip of rows, and their differences, which it reads, keep the rounding of that.
double mix_tolerance(const AttentionCase& c);

/// The largest count of gates, whose additions round by as much as that times u, times the slope of
/// E, which makes it a logit's. 0: other biases count none.
double counted_gates(const AttentionCase& c);

}  // namespace bamtrain::testing
