"""The paper's successive geometric programs in CVXPY, in the same form that stlf solves.

minimise   w_S sum chiS_i + w_T sum psi_j alpha_ij T_ij + w_E sum K_ij alpha_ij / (alpha_ij + eps_E)
           + N sum chiC_j
such that  (1 - psi_i) S_i <= chiS_i,   alpha_ij + psi_i <= 1,
           chiC_j - eps_C <= sum_i alpha_ij - psi_j <= chiC_j + eps_C

With the paper's own target term, chiT_ij stands in place of psi_j alpha_ij T_ij and is at least
psi_j (1 - psi_i) alpha_ij T_ij. Each denominator (F, J, M+, M-, and with that term H) is replaced by its
best monomial at the last iterate. A posynomial is a list of monomials, a monomial a pair (coefficient,
{variable: exponent}).
"""

import math

import cvxpy as cp
import numpy as np

from instances import bounds
from stopwatch import Stopwatch

FLOOR = 1e-6
EPSILON_C = 1e-2


def value(monomial, point):
    coefficient, powers = monomial
    return coefficient * math.prod(point[v] ** a for v, a in powers.items())


def times(a, b):
    powers = dict(a[1])
    for v, p in b[1].items():
        powers[v] = powers.get(v, 0.0) + p
    return a[0] * b[0], {v: p for v, p in powers.items() if p != 0.0}


def power(a, exponent):
    return a[0] ** exponent, {v: p * exponent for v, p in a[1].items()}


def condense(posynomial, point):
    """The monomial that is never above the posynomial and meets it at the point."""
    values = [value(m, point) for m in posynomial]
    total = sum(values)
    result = (1.0, {})
    for monomial, v in zip(posynomial, values):
        result = times(result, power((monomial[0] * total / v, monomial[1]), v / total))
    return result


class Relaxation:
    """The variables of one fleet, its starting point, and its geometric program at a point."""

    def __init__(self, problem, paper_term):
        self.problem = problem
        self.paper_term = paper_term
        self.source, self.target = bounds(problem)
        self.energy = np.array(problem["link_energy"])
        self.n = len(self.source)
        self.senders = [i for i in range(self.n) if self.source[i] is not None]
        self.links = [(i, j) for j in range(self.n) for i in self.senders if i != j]
        names = [("psi", i) for i in self.senders] + [("chiS", i) for i in self.senders]
        names += [("alpha", link) for link in self.links]
        names += [("chiT", link) for link in self.links if paper_term]
        names += [("chiC", j) for j in range(self.n)]
        self.index = {name: k for k, name in enumerate(names)}

    def var(self, kind, key):
        if kind == "psi" and self.source[key] is None:
            return (1.0, {})
        return (1.0, {self.index[kind, key]: 1.0})

    def start(self):
        """Nobody is favoured: psi = 1/2 where it is free, and equal shares."""
        psi = [1.0 if s is None else 0.5 for s in self.source]
        alpha = {}
        for i, j in self.links:
            senders = sum(1 for k in self.senders if k != j)
            alpha[i, j] = (psi[j] + FLOOR - EPSILON_C) / senders
        for (i, _), a in alpha.items():
            psi[i] = min(psi[i], 1.0 - a)
        return self.point(psi, alpha)

    def point(self, psi, alpha):
        """Every variable at this psi and alpha, the auxiliary ones the least that is allowed."""
        point = np.empty(len(self.index))
        for i in self.senders:
            point[self.index["psi", i]] = psi[i]
            point[self.index["chiS", i]] = max((1 - psi[i]) * self.source[i], FLOOR)
        total = np.zeros(self.n)
        for i, j in self.links:
            point[self.index["alpha", (i, j)]] = alpha[i, j]
            total[j] += alpha[i, j]
            if self.paper_term:
                sent = max(psi[j] * (1 - psi[i]) * alpha[i, j], FLOOR)
                point[self.index["chiT", (i, j)]] = sent * self.target[i][j]
        for j in range(self.n):
            point[self.index["chiC", j]] = max(total[j] - psi[j] - EPSILON_C, FLOOR)
        return point

    def unpack(self, values):
        psi = [1.0] * self.n
        for i in self.senders:
            psi[i] = min(max(values[self.index["psi", i]], FLOOR), 1 - FLOOR)
        alpha = {
            (i, j): min(max(values[self.index["alpha", (i, j)]], FLOOR), 1 - psi[i])
            for i, j in self.links
        }
        return psi, alpha

    def objective(self, point):
        weights, epsilon = self.problem["weights"], self.problem["energy_epsilon"]
        at = lambda kind, key: value(self.var(kind, key), point)
        total = weights["source"] * sum(at("chiS", i) for i in self.senders)
        for i, j in self.links:
            alpha = at("alpha", (i, j))
            sent = at("psi", j) * alpha * self.target[i][j]
            total += weights["target"] * (at("chiT", (i, j)) if self.paper_term else sent)
            total += weights["energy"] * self.energy[i][j] * alpha / (alpha + epsilon)
        return total + self.n * sum(at("chiC", j) for j in range(self.n))

    def program(self, point):
        """Objective, posynomials that must be at most one, and (lower, upper) by variable."""
        weights, epsilon = self.problem["weights"], self.problem["energy_epsilon"]
        objective, at_most_one = [], []
        bounds = [(FLOOR, math.inf)] * len(self.index)
        for i in self.senders:
            psi, chi = self.var("psi", i), self.var("chiS", i)
            bounds[self.index["psi", i]] = (FLOOR, 1.0)
            f = [psi, times(chi, (1 / self.source[i], {}))]
            at_most_one.append([power(condense(f, point), -1)])
            objective.append(times(chi, (weights["source"], {})))
        for i, j in self.links:
            t = self.target[i][j]
            alpha, psi_i, psi_j = self.var("alpha", (i, j)), self.var("psi", i), self.var("psi", j)
            bounds[self.index["alpha", (i, j)]] = (FLOOR, 1.0)
            at_most_one.append([alpha, psi_i])
            if self.paper_term:
                chi = self.var("chiT", (i, j))
                bounds[self.index["chiT", (i, j)]] = (FLOOR * t, math.inf)
                h = [times(psi_i, (t, {})), times(chi, power(times(psi_j, alpha), -1))]
                at_most_one.append([times((t, {}), power(condense(h, point), -1))])
                objective.append(times(chi, (weights["target"], {})))
            else:
                objective.append(times(times(psi_j, alpha), (weights["target"] * t, {})))
            denominator = condense([alpha, (epsilon, {})], point)
            scale = (weights["energy"] * self.energy[i][j], {})
            objective.append(times(times(alpha, scale), power(denominator, -1)))
        for j in range(self.n):
            chi, psi = self.var("chiC", j), self.var("psi", j)
            alphas = [self.var("alpha", link) for link in self.links if link[1] == j]
            above = power(condense([chi, (EPSILON_C, {}), psi], point), -1)
            at_most_one.append([times(a, above) for a in alphas])
            below = power(condense(alphas + [(EPSILON_C, {})], point), -1)
            at_most_one.append([times(chi, below), times(psi, below)])
            objective.append(times(chi, (float(self.n), {})))
        return objective, at_most_one, bounds


def solve_dgp(objective, at_most_one, bounds):
    """Written as a geometric program; CVXPY finds the convex form."""
    x = cp.Variable(len(bounds), pos=True)

    def expression(posynomial):
        terms = []
        for coefficient, powers in posynomial:
            term = cp.Constant(coefficient)
            for v, a in powers.items():
                term = term * (x[v] if a == 1.0 else x[v] ** a)
            terms.append(term)
        return sum(terms[1:], terms[0])

    constraints = [expression(p) <= 1 for p in at_most_one]
    constraints += [x[v] >= lower for v, (lower, _) in enumerate(bounds)]
    constraints += [x[v] <= upper for v, (_, upper) in enumerate(bounds) if upper < math.inf]
    problem = cp.Problem(cp.Minimize(expression(objective)), constraints)
    problem.solve(gp=True, solver=cp.CLARABEL)
    return x.value, problem.solver_stats.solve_time


def solve_logarithms(objective, at_most_one, bounds):
    """The convex form written by hand with as few, as large expressions as possible."""
    z = cp.Variable(len(bounds))

    def affine(monomials):
        exponents = np.zeros((len(monomials), len(bounds)))
        for row, (_, powers) in enumerate(monomials):
            for v, a in powers.items():
                exponents[row, v] = a
        return exponents @ z + np.log([c for c, _ in monomials])

    single = [p[0] for p in at_most_one if len(p) == 1]
    constraints = [affine(single) <= 0]
    by_length = {}
    for posynomial in at_most_one:
        if len(posynomial) > 1:
            by_length.setdefault(len(posynomial), []).append(posynomial)
    for length, group in by_length.items():
        columns = [affine([p[k] for p in group]) for k in range(length)]
        constraints.append(cp.log_sum_exp(cp.vstack(columns), axis=0) <= 0)
    lower, upper = np.array(bounds).T
    constraints.append(z >= np.log(lower))
    limited = np.flatnonzero(np.isfinite(upper))
    constraints.append(z[limited] <= np.log(upper[limited]))
    problem = cp.Problem(cp.Minimize(cp.log_sum_exp(affine(objective))), constraints)
    problem.solve(solver=cp.CLARABEL)
    return np.exp(z.value), problem.solver_stats.solve_time


class Scheme:
    """The iteration, one step at a time."""

    def __init__(self, problem, solve, paper_term=False):
        self.relaxation = Relaxation(problem, paper_term)
        self.solve = solve
        self.at = self.relaxation.start()
        self.trace = [self.relaxation.objective(self.at)]

    def step(self):
        """One iteration; seconds in all and in Clarabel."""
        stopwatch = Stopwatch()
        values, inside = self.solve(*self.relaxation.program(self.at))
        self.at = self.relaxation.point(*self.relaxation.unpack(values))
        seconds = stopwatch.seconds()
        self.trace.append(self.relaxation.objective(self.at))
        return seconds, inside
