"""Facility location as a mixed-integer program in its strong form, solved by HiGHS.

minimise sum f_i y_i + sum c_ij x_ij  such that  sum_i x_ij + y_j = 1,  x_ij <= y_i,  y binary
"""

import highspy
import numpy as np

from stopwatch import Stopwatch


def solve(opening, cost):
    """Objective and seconds that HiGHS itself took, building the model not counted."""
    n = len(opening)
    senders = [i for i in range(n) if opening[i] is not None]
    column = {i: k for k, i in enumerate(senders)}
    links = [(i, j) for i in senders for j in range(n) if i != j]
    columns = len(senders) + len(links)

    model = highspy.HighsLp()
    model.num_col_ = columns
    model.num_row_ = n + len(links)
    model.col_cost_ = np.array([opening[i] for i in senders] + [cost[i][j] for i, j in links])
    model.col_lower_ = np.zeros(columns)
    model.col_upper_ = np.ones(columns)
    served, allowed = np.ones(n), np.full(len(links), -highspy.kHighsInf)
    model.row_lower_ = np.concatenate([served, allowed])
    model.row_upper_ = np.concatenate([served, np.zeros(len(links))])
    integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    model.integrality_ = [integer] * len(senders) + [continuous] * len(links)

    rows = [[] for _ in range(columns)]
    for i in senders:
        rows[column[i]].append((i, 1.0))
    for k, (i, j) in enumerate(links):
        rows[column[i]].append((n + k, -1.0))
        rows[len(senders) + k] += [(j, 1.0), (n + k, 1.0)]
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.cumsum([0] + [len(r) for r in rows])
    model.a_matrix_.index_ = np.array([index for r in rows for index, _ in r])
    model.a_matrix_.value_ = np.array([value for r in rows for _, value in r])

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("mip_rel_gap", 1e-9)
    highs.setOptionValue("mip_abs_gap", 1e-9)
    highs.passModel(model)
    stopwatch = Stopwatch()
    highs.run()
    seconds = stopwatch.seconds()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS: {highs.modelStatusToString(highs.getModelStatus())}")
    return highs.getInfo().objective_function_value, seconds
