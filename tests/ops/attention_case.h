#pragma once
// Attention as an operation on named values, over every form in the contract.

#include <initializer_list>
#include <iterator>
#include <optional>
#include <vector>

#include "compare.h"
#include "ops/attention.h"

namespace bamtrain::testing {

enum class ScaleForm { none, content, both };  // z = s + b;  t s + b;  t (s + b)
constexpr ScaleForm kScaleForms[] = {ScaleForm::none, ScaleForm::content, ScaleForm::both};
/// The forms of bias, in the order of BiasForm: a table b ~ N(0, 1), sums that rise by about 0.4
/// per key, segments with discontinuous lines. Then other tables.
enum class TableForm {
  none,
  table,
  difference,
  log_square,
  fire,
  relative,
  contextual,
  falling,  // b = -d / 8, like priors of distance
  bounded,  // every third entry is -1e4, except the self key's
  self,     // the same, and also the self key of the last head
};

/// One for each form of bias.
constexpr TableForm kTableForms[] = {TableForm::none,       TableForm::table, TableForm::difference,
                                     TableForm::log_square, TableForm::fire,  TableForm::relative,
                                     TableForm::contextual};
static_assert(std::size(kTableForms) == std::size(kBiasForms));

/// kTableForms and others.
std::vector<TableForm> table_forms_and(std::initializer_list<TableForm> others);
/// kTableForms, with `falling` in place of `table`, as in priors.
std::vector<TableForm> table_forms_of_priors();

/// Whether the bias reads queries and keys.
bool reads_content(TableForm form);

struct AttentionCase {
  int64_t B = 2, T = 70, H = 4, K = 2, D = 16;
  TableForm table = TableForm::none;
  ScaleForm scale = ScaleForm::none;
  bool documents = false;  // of random length
  bool causal = true;      // false: rows see their whole document, within the window on both sides
  bool padding = false;    // not causal: sequences end before T; later rows see only themselves
  int64_t window = 0;
  double content = 1;       // standard deviation of q; k and v have 1
  bool zero_scale = false;  // t = 0 in every third row
  bool below_zero = false;  // t < 0 in the next row after each of those
  double content_scale = 0;
  int64_t positions = 64;          // of contextual encoding
  NormalizerForm normalizer = {};  // learned: one alpha per head, starting at its alpha
  std::optional<MixForm> mix = {};
  int64_t hidden = 8;            // of the mix
  bool rounded_weights = false;  // of the mix to bf16, as tensor cores read them
  // Softmax's adjoint uses the backend's own forward pass, like other normalizers'. For the CPU's
  // general path, whose D comes from the weights and not from the rounded `out`.
  bool own_rows = false;
  bool general = false;  // the general path also for softmax
  bool apart = false;    // q, k, v and their gradients each in memory of their own
};

/// The n-th of cases that cycle through sequences, heads, dimensions, scales, documents, windows,
/// rows with t = 0, content scales and counts of positions. Their periods divide 840: loops whose
/// own period shares a factor with them must step by one more at each turn.
AttentionCase turning_case(size_t n, int64_t T, TableForm table);

/// What the case needs of a machine.
WorkspaceShape workspace_of(const AttentionCase& c);

/// Inputs: q (B, T, H, D), k, v (B, T, K, D), table (H, T) or sums (B, H, T), scale (B, H, T).
/// Results: out, and what the normalizer saves (level as lse, threshold, last). On a backend, q, k,
/// v are parts of one (B, T, H + 2 K, D), as in the model, and so are their gradients.
/// - fire: the lines slope and offset (H, kFireSegments) are inputs. Besides their gradients, the
///   backend returns "fire_u" and "fire_psi".
/// - c2 has no gradient where weights sum to 1, fire's functions of distances have none anywhere.
/// - Contextual positions are waves. Any other bias has normal numbers.
/// - A mix has w1, w2 and c2, normal numbers over the root of what a layer reads, and c1 (add_mix
///   in the source).
Operation attention(const AttentionCase& c);

/// The entropy of its rows, from the same inputs without a scale. Result: entropy. No adjoint.
Operation attention_entropy(const AttentionCase& c);

/// Entropy and number of nonzero keys of the rows of its forward pass. Results: entropy and
/// support. No adjoint. With an input `level`, used as AttentionSaved::level, no forward pass runs
/// before.
Operation attention_statistics(const AttentionCase& c);

/// attention() and attention_entropy() for the last n rows only; earlier keys are past keys.
/// Results: out (B, n, H, D), lse and, without a scale, entropy (B, H, n). No adjoint.
Operation attention_of_last_rows(const AttentionCase& c, int64_t n);

/// The last n along dimension `dim`.
Values last_of(const Values& v, size_t dim, int64_t n);

/// Checks on a machine that a content scale of 4 / sqrt(D) is bitwise identical with queries four
/// times as large. REQUIRES: sqrt(D) is a power of two.
void check_content_scale(Machine& m, AttentionCase c);

/// Checks on a machine that rows sum to one (at most one where the normalizer may leave some of it)
/// and that every gradient is finite. Logits are all equal, of size 1, of size 1e4, and at bam's
/// floor. `bf16_error`: of such a sum in bf16.
void check_edges(Machine& m, AttentionCase c, double bf16_error);

/// (B, T): the first keys visible under `documents`, `window` and `padding`. Seeded by the case's
/// shape.
std::vector<int32_t> first_keys(const AttentionCase& c);
/// The same for the last key of each row.
std::vector<int32_t> last_keys(const AttentionCase& c);

/// Whether the bias is computed from sums.
constexpr bool has_sums(const AttentionCase& c) {
  return c.table == TableForm::difference || c.table == TableForm::log_square;
}

std::string describe(const AttentionCase& c);

/// Sets the tolerances in bf16 on CUDA for what reads logits: a mix, or a bias that reads queries
/// and keys.
/// - A network reads and returns logits of 16 bits. Its gradients are sums over rows whose dz sum
///   to zero; values that are rounded before this sum do not cancel.
/// - The scale's gradient is a row's sum of dz (s + b). D comes from the rounded output and adds
///   the same error to all dz of a row, which meets the common part of s + b.
void allow_for_logit_readers(Operation& op, const AttentionCase& c);

/// The rounding error of a logit: the product of D terms of size 1 over sqrt(D), 0.3 u sqrt(D)
/// (linear.cpp), times t, and the bias. Then exp with 3.4 u, sums over T keys, D terms of dP, and T
/// or D terms of the gradients. Four times the sum of these, for the largest of many elements.
double fp32_tolerance(const AttentionCase& c);
/// The tolerance of the general path. For entmax, the largest entries of dz are u (dP - D), and u
/// may exceed p. Above alpha 2, a key that enters the nonzero keys by a rounding error u of its
/// logit has weight u^(1 / (alpha - 1)).
double normalizer_tolerance(const AttentionCase& c);
/// The network adds two products to a logit's path, of 2 H and of F terms. Sums reach 27 in a strip
/// of rows; the network reads their differences, which keep that rounding error.
double mix_tolerance(const AttentionCase& c);

/// The largest count of gates, times u for the rounding of its additions, times the slope of E,
/// which gives the error of a logit. 0: the bias counts no gates.
double counted_gates(const AttentionCase& c);

}  // namespace bamtrain::testing
