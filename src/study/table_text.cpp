// A study's table as text.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "core/holm.h"
#include "core/join.h"
#include "core/markdown.h"
#include "core/metric.h"
#include "core/utf8.h"
#include "study/table.h"

namespace bamtrain {

namespace {

std::string joined_choice(const TableRow& row) { return join(row.chosen); }

/// The markup of one file format for content that all formats share.
struct Markup {
  std::string plus_minus, less;
  std::string (*bold)(const std::string&);
  std::string (*text)(const std::string&);
  std::string (*row)(const std::vector<std::string>& cells, bool head);
};

std::string p_text(const std::optional<double>& p, const Markup& m) {
  if (!p) return "-";
  return *p < 0.0001 ? m.less + "0.0001" : fmt::format("{:.4f}", *p);
}

std::string cell_text(const TableGroup& g, const TableCell& c, const Markup& m) {
  std::string text = value_text(g.number, c.sample.mean);
  if (c.paired && c.paired->is_significant()) text = m.bold(text);
  if (!c.sample.standard_deviation) return text;
  return text + m.plus_minus + value_text(g.number, *c.sample.standard_deviation) + " (" +
         value_text(g.number, c.best) + ")";
}

std::vector<std::string> heads(const StudyTable& t, const TableGroup& g, const Markup& m,
                               bool of_runs) {
  std::vector<std::string> head = {m.text(t.row_name)};
  for (const std::string& choice : t.choices) head.push_back(m.text(choice));
  if (of_runs) head.emplace_back("n");
  for (const int64_t length : g.lengths) head.push_back(std::to_string(length));
  if (g.lengths.empty()) head.push_back(m.text(unit_text(g.number)));
  return head;
}

std::vector<std::string> row_beginning(const StudyTable& t, const TableRow& r, const Markup& m) {
  std::vector<std::string> cells = {m.text(r.label)};
  for (size_t c = 0; c < t.choices.size(); ++c) {
    cells.push_back(c < r.chosen.size() ? m.text(r.chosen[c]) : "-");
  }
  return cells;
}

std::string group_rows(const StudyTable& t, size_t g, const Markup& m) {
  std::string out = m.row(heads(t, t.groups[g], m, true), true);
  for (size_t r = 0; r < t.rows.size(); ++r) {
    std::vector<std::string> cells = row_beginning(t, t.rows[r], m);
    cells.push_back(m.text(runs_text(t.rows[r])));
    for (size_t c = 0; c < t.groups[g].metrics.size(); ++c) {
      const auto& cell = t.rows[r].cells[g][c];
      cells.push_back(cell ? cell_text(t.groups[g], *cell, m) + fewer_text(t.rows[r], *cell) : "-");
    }
    out += m.row(cells, false);
  }
  return out;
}

/// Whether any cell of the group has the property.
template <class Has>
bool any_cell(const StudyTable& t, size_t g, Has&& has) {
  for (const TableRow& r : t.rows) {
    for (const auto& cell : r.cells[g]) {
      if (cell && has(*cell)) return true;
    }
  }
  return false;
}

bool has_paired(const TableCell& cell) { return cell.paired.has_value(); }
/// Welch's test is shown where it is the only one.
bool has_welch_alone(const TableCell& cell) { return cell.p && !cell.paired; }

/// "+1.230 ± 0.080 (p 0.0012)", with Holm's p.
std::string difference_cell(const TableGroup& g, const TableCell& cell, const Markup& m) {
  if (!cell.paired) return "-";
  const std::string difference = paired_text(g.number, cell.paired->difference, m.plus_minus);
  return cell.paired->p_holm ? difference + " (p " + p_text(cell.paired->p_holm, m) + ")"
                             : difference;
}

/// A table of the rows other than the reference; cells are `text` of a cell.
template <class Text>
std::string compared_rows(const StudyTable& t, size_t g, const Markup& m, Text&& text) {
  std::string out = m.row(heads(t, t.groups[g], m, false), true);
  for (const TableRow& r : t.rows) {
    if (r.label == t.reference) continue;
    std::vector<std::string> cells = row_beginning(t, r, m);
    for (const auto& cell : r.cells[g]) cells.push_back(cell ? text(*cell) : "-");
    out += m.row(cells, false);
  }
  return out;
}

std::string title_of(const TableGroup& g) {
  const std::string of = g.name.substr(0, g.name.rfind('/'));
  return of + ": " + unit_text(g.number) + (g.lengths.empty() ? "" : ", by length");
}

/// "paired by seed", "paired by document", or both.
std::string pairs_text(const StudyTable& t, size_t g) {
  const bool seeds =
      any_cell(t, g, [](const TableCell& c) { return c.paired && !c.paired->by_document; });
  const bool documents =
      any_cell(t, g, [](const TableCell& c) { return c.paired && c.paired->by_document; });
  if (seeds && documents) return "paired by seed, or by document where there is one run";
  return seeds ? "paired by seed" : "paired by document";
}

bool any_paired(const StudyTable& t) {
  for (size_t g = 0; g < t.groups.size(); ++g) {
    if (any_cell(t, g, has_paired)) return true;
  }
  return false;
}

const char* kMeaning =
    "mean over repeats, standard deviation (n - 1), and the best of them in parentheses";

/// Whether the text is only a number, which no program evaluates.
bool is_plain_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

/// Whether `code` is white space of any width, as in JavaScript, that `printable` keeps.
bool is_white_space(uint32_t code) {
  constexpr std::u32string_view kSpaces = U"\t\n \u00A0\u1680\u202F\u205F\u3000\uFEFF";
  return (code >= 0x2000 && code <= 0x200A) || kSpaces.find(code) != std::u32string_view::npos;
}

/// Whether a spreadsheet may evaluate the text: it begins with a tab, or with =, +, - or @, also in
/// full width or after white space. Numbers are not formulas.
bool is_formula(const std::string& text) {
  if (is_plain_number(text)) return false;
  if (text.starts_with('\t')) return true;
  size_t at = 0;
  while (at < text.size() && is_white_space(utf8_character_at(text, at).code)) {
    at += utf8_character_at(text, at).bytes;
  }
  if (at == text.size()) return false;
  constexpr std::u32string_view kSigns = U"=+-@\uFF1D\uFF0B\uFF0D\uFF20";
  return kSigns.find(utf8_character_at(text, at).code) != std::u32string_view::npos;
}

/// A cell of a CSV file, printable. Text that a spreadsheet would evaluate gets a leading
/// apostrophe.
std::string csv_cell(const std::string& name) {
  const std::string text = printable(name);
  const bool formula = is_formula(text);
  if (!formula && text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = formula ? "\"'" : "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string exact(double value) { return fmt::format("{}", value); }
std::string exact_or_empty(const std::optional<double>& value) {
  return value ? exact(*value) : "";
}

/// The last six cells of a line in csv().
std::string paired_columns(const std::optional<PairedCell>& cell) {
  if (!cell) return ",,,,,";
  const PairedDifference& d = cell->difference;
  return fmt::format("{},{},{},{},{},{}", exact(d.value), exact_or_empty(d.error), d.pairs,
                     cell->by_document ? "document" : "run", exact_or_empty(d.p),
                     exact_or_empty(cell->p_holm));
}

}  // namespace

std::string value_text(const std::string& number, double value) {
  if (is_fraction(number)) return fmt::format("{:.1f}", 100 * value);
  const int decimals = number == "loss" || number == "bits_per_byte" ? 4 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string paired_text(const std::string& number, const PairedDifference& difference,
                        const std::string& plus_minus) {
  const double unit = is_fraction(number) ? 100 : 1;
  const std::optional<double> error =
      difference.error ? std::optional(unit * *difference.error) : std::nullopt;
  return difference_text(unit * difference.value, error, plus_minus);
}

std::string paired_meaning(const std::string& reference) {
  return fmt::format(
      "Bold: differs from {} with p < {} in a paired t-test, two-sided, corrected by Holm's method "
      "over the column. Differences have their standard error and this p",
      reference, kSignificance);
}

std::string unit_text(const std::string& number) {
  std::string text = number;
  std::replace(text.begin(), text.end(), '_', ' ');
  return text + (is_fraction(number) ? " (%)" : "");
}

std::string runs_text(const TableRow& row) {
  std::string text = std::to_string(row.done);
  if (row.open > 0) text += fmt::format(" of {}", row.done + row.open + row.diverged);
  if (row.diverged > 0) text += fmt::format(", {} diverged", row.diverged);
  if (row.not_compared > 0) text += fmt::format(", {} of other values open", row.not_compared);
  return text;
}

std::string fewer_text(const TableRow& row, const TableCell& cell) {
  return cell.sample.count == row.done ? "" : fmt::format(" [{}]", cell.sample.count);
}

std::string markdown(const StudyTable& t) {
  const Markup m = {" ± ", "<", [](const std::string& s) { return "**" + s + "**"; },
                    [](const std::string& s) { return markdown_text(s); },
                    [](const std::vector<std::string>& cells, bool head) {
                      std::string out = "| " + join(cells, " | ") + " |\n";
                      if (!head) return out;
                      out += "|";
                      for (size_t i = 0; i < cells.size(); ++i) out += "---|";
                      return out + "\n";
                    }};
  const auto texts = [&m](const std::vector<std::string>& list) {
    std::vector<std::string> out;
    for (const std::string& text : list) out.push_back(m.text(text));
    return join(out, "; ");
  };
  std::string out = "# " + m.text(t.name) + "\n\nn: runs; " + kMeaning + ".\n";
  if (any_paired(t)) out += "\n" + paired_meaning(m.text(t.reference)) + ".\n";
  for (size_t g = 0; g < t.groups.size(); ++g) {
    out += "\n## " + m.text(title_of(t.groups[g])) + "\n\n" + group_rows(t, g, m);
    if (any_cell(t, g, has_paired)) {
      out += "\nDifference from " + m.text(t.reference) + ", " + pairs_text(t, g) + ":\n\n" +
             compared_rows(t, g, m,
                           [&](const TableCell& c) { return difference_cell(t.groups[g], c, m); });
    }
    if (any_cell(t, g, has_welch_alone)) {
      out += "\nWelch's p against " + m.text(t.reference) + ":\n\n" +
             compared_rows(t, g, m, [&](const TableCell& c) { return p_text(c.p, m); });
    }
  }
  if (!t.diverged.empty()) out += "\nDiverged: " + texts(t.diverged) + ".\n";
  if (!t.at_ends.empty()) out += fmt::format("\n{}: {}.\n", kAtEnds, texts(t.at_ends));
  if (!t.unpaired.empty()) out += fmt::format("\n{}: {}.\n", kUnpaired, texts(t.unpaired));
  return out;
}

std::string latex(const StudyTable& t) {
  const Markup m = {" $\\pm$ ", "$<$", [](const std::string& s) { return "\\textbf{" + s + "}"; },
                    [](const std::string& s) {
                      std::string out;
                      for (const char c : printable(s)) {
                        if (c == '\\') {
                          out += "\\textbackslash{}";
                        } else if (c == '~') {
                          out += "\\textasciitilde{}";
                        } else if (c == '^') {
                          out += "\\textasciicircum{}";
                        } else if (c == '<' || c == '>' || c == '|') {
                          out += std::string("$") + c + "$";
                        } else {
                          if (std::string("&%$#_{}").find(c) != std::string::npos) out += '\\';
                          out += c;
                        }
                      }
                      return out;
                    },
                    [](const std::vector<std::string>& cells, bool head) {
                      // In braces, because [ or * after the end of a row would be its option.
                      std::vector<std::string> row = cells;
                      row.front() = "{" + row.front() + "}";
                      return join(row, " & ") + " \\\\\n" + (head ? "\\midrule\n" : "");
                    }};
  const auto tabular = [&](const std::string& caption, size_t columns, const std::string& rows) {
    return "\\begin{table}\n\\centering\n\\caption{" + m.text(caption) + "}\n\\begin{tabular}{l" +
           std::string(columns - 1, 'r') + "}\n\\toprule\n" + rows +
           "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
  };
  std::string out = "% " + printable(t.name) + ": " + kMeaning + ". Needs booktabs.\n";
  if (any_paired(t)) out += "% " + paired_meaning(printable(t.reference)) + ".\n";
  if (!t.diverged.empty()) out += "% Diverged: " + printable(join(t.diverged, "; ")) + ".\n";
  if (!t.at_ends.empty()) {
    out += fmt::format("% {}: {}.\n", kAtEnds, printable(join(t.at_ends, "; ")));
  }
  if (!t.unpaired.empty()) {
    out += fmt::format("% {}: {}.\n", kUnpaired, printable(join(t.unpaired, "; ")));
  }
  for (size_t g = 0; g < t.groups.size(); ++g) {
    const size_t columns = heads(t, t.groups[g], m, true).size();
    out += "\n" + tabular(t.name + ", " + title_of(t.groups[g]), columns, group_rows(t, g, m));
    const auto compared = [&](const std::string& what, auto&& text) {
      out += "\n" + tabular(t.name + ", " + title_of(t.groups[g]) + ": " + what, columns - 1,
                            compared_rows(t, g, m, text));
    };
    if (any_cell(t, g, has_paired)) {
      compared("difference from " + t.reference + ", " + pairs_text(t, g),
               [&](const TableCell& c) { return difference_cell(t.groups[g], c, m); });
    }
    if (any_cell(t, g, has_welch_alone)) {
      compared("Welch's p against " + t.reference,
               [&](const TableCell& c) { return p_text(c.p, m); });
    }
  }
  return out;
}

std::string csv(const StudyTable& t) {
  std::string out =
      "row,chosen,metric,n,mean,deviation,best,p,difference,difference_error,pairs,paired_by,"
      "paired_p,holm_p\n";
  for (const TableRow& r : t.rows) {
    for (size_t g = 0; g < t.groups.size(); ++g) {
      for (size_t c = 0; c < t.groups[g].metrics.size(); ++c) {
        const auto& cell = r.cells[g][c];
        if (!cell) continue;
        out += fmt::format("{},{},{},{},{},{},{},{},{}\n", csv_cell(r.label),
                           csv_cell(joined_choice(r)), csv_cell(t.groups[g].metrics[c]),
                           cell->sample.count, exact(cell->sample.mean),
                           exact_or_empty(cell->sample.standard_deviation), exact(cell->best),
                           exact_or_empty(cell->p), paired_columns(cell->paired));
      }
    }
  }
  return out;
}

std::string runs_csv(const StudyTable& t) {
  std::string out = "row,run,metric,value,error\n";
  for (const TableRun& r : t.runs) {
    for (const auto& [metric, m] : r.metrics) {
      out += run_cells(r.row, r.label) +
             fmt::format("{},{},{}\n", csv_cell(metric), exact(m.value), exact_or_empty(m.error));
    }
  }
  return out;
}

std::string run_cells(const std::string& row, const std::string& label) {
  return csv_cell(row) + "," + csv_cell(label) + ",";
}

std::set<std::string> run_cells_in(const std::string& runs_csv) {
  std::set<std::string> runs;
  std::istringstream lines(runs_csv);
  for (std::string line; std::getline(lines, line);) {  // labels contain no newline
    bool inside = false;
    int commas = 0;
    size_t end = 0;
    for (; end < line.size() && commas < 2; ++end) {
      if (line[end] == '"') inside = !inside;
      commas += line[end] == ',' && !inside;
    }
    if (commas == 2) runs.insert(line.substr(0, end));
  }
  return runs;
}

}  // namespace bamtrain
